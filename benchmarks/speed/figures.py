"""A measured figure beside its target, and all of them as a table or as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.speed.timing import Spread


@dataclass(frozen=True)
class Target:
    """What a figure should be: at least, or below, some value."""

    value: float
    at_least: bool = True

    def met(self, measured: float) -> bool:
        return measured >= self.value if self.at_least else measured < self.value

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '<'} {shown(self.value)}"


@dataclass(frozen=True)
class Figure:
    """One line of the table; one without a target is there to explain another, and one not measured says why."""

    case: str
    name: str
    measured: Spread | None
    unit: str
    target: Target | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the median meets the target; None where there is none."""
        if self.target is None or self.measured is None:
            return None
        return self.target.met(self.measured.median)

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "case": self.case,
            "name": self.name,
            "unit": self.unit,
            **({} if self.measured is None else asdict(self.measured)),
            "target": None if self.target is None else str(self.target),
            "met": self.met,
            "note": self.note,
        }


def at_least(value: float) -> Target:
    return Target(value)


def below(value: float) -> Target:
    return Target(value, at_least=False)


def shown(value: float) -> str:
    """Three digits, and no exponent where a reader would count zeros."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 0.01:
        return f"{value:.3g}"
    return f"{value:.2e}"


HEAD = ("case", "figure", "measured", "least .. most", "repeats", "target", "met", "note")


def table(figures: Iterable[Figure]) -> str:
    """The figures in Markdown."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join(_row(figure)) + " |" for figure in figures]
    return "\n".join(lines)


def _row(figure: Figure) -> list[str]:
    measured = figure.measured
    target = "" if figure.target is None else str(figure.target)
    if measured is None:
        return [figure.case, figure.name, "not measured", "", "0", target, "", figure.note]
    spread = f"{shown(measured.low)} .. {shown(measured.high)}" if measured.repeats > 1 else ""
    met = {None: "", True: "yes", False: "NO"}[figure.met]
    value = f"{shown(measured.median)} {figure.unit}".strip()
    return [figure.case, figure.name, value, spread, str(measured.repeats), target, met, figure.note]


def seconds(value: float) -> str:
    """A duration in the unit a reader would use."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
