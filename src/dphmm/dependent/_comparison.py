"""Mechanisms side by side for one model, one query and one ε: scales, true losses, and where each claim is proved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dphmm._checks import exact_epsilon, one_of
from dphmm.accounting.records import in_short
from dphmm.dependent._pairs import Model
from dphmm.dependent._queries import Query
from dphmm.dependent._scales import _RATES, MECHANISMS, Calibration, Case
from dphmm.errors import InvalidInput
from dphmm.types import Exact

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("mechanism", "scale", "per_record", "true_epsilon", "bound", "proved", "why")


@dataclass(frozen=True)
class Comparison:
    """One row for each mechanism; ``not_applicable`` says of the others why there is none."""

    model: str
    epsilon: Fraction
    rows: tuple[Calibration, ...]
    not_applicable: tuple[tuple[str, str], ...]

    def __getitem__(self, mechanism: str) -> Calibration:
        for row in self.rows:
            if row.mechanism == mechanism:
                return row
        raise InvalidInput("mechanism", mechanism, "one of " + ", ".join(row.mechanism for row in self.rows))

    def __iter__(self) -> Iterator[Calibration]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """The table as a DataFrame, numbers as floats; a mechanism that does not apply has a row that says so."""
        import pandas as pd

        told = [
            (
                row.mechanism,
                float(row.scale),
                float(row.per_record),
                row.true_epsilon,
                row.bound,
                row.proved,
                row.why,
            )
            for row in self.rows
        ]
        missing = [(name, None, None, None, None, False, f"not applicable: {why}") for name, why in self.not_applicable]
        frame = pd.DataFrame([*told, *missing], columns=list(COLUMNS))
        numbers = ["scale", "per_record", "true_epsilon", "bound"]
        frame[numbers] = frame[numbers].astype("float64")
        return frame

    def plot(self, axes: Any = None) -> Any:
        """Bars of the scales with the true ε, unproved claims hatched, on a matplotlib Axes (the plot extra)."""
        if axes is None:
            from matplotlib.figure import Figure

            axes = Figure(figsize=(7.0, 0.5 * len(self.rows) + 1.5), layout="constrained").add_subplot()
        names = [row.mechanism for row in self.rows][::-1]
        for place, row in enumerate(reversed(self.rows)):
            colour, hatch = ("tab:blue", None) if row.proved else ("lightgray", "///")
            axes.barh(place, float(row.scale), color=colour, hatch=hatch, edgecolor="gray")
            true = "" if row.true_epsilon is None else f"ε = {row.true_epsilon:.3g}"
            note = true if row.proved else f"{true} not proved"
            axes.annotate(note, (float(row.scale), place), xytext=(4, 0), textcoords="offset points", va="center")
        axes.set(xscale="log", xlabel=f"noise scale for a claim of ε = {float(self.epsilon):g}", title=self.model)
        axes.set_yticks(range(len(names)), names)
        axes.margins(x=0.35)
        return axes

    def __str__(self) -> str:
        head = f"{self.model}, epsilon {in_short(self.epsilon)}"
        return "\n".join([head, *(_line(row) for row in self.rows)])


def compare(
    model: Model, query: Query, epsilon: Exact, mechanisms: tuple[str, ...] = MECHANISMS, *, exact: bool = True
) -> Comparison:
    """The scales of several mechanisms for the same promise, with the true loss of each where it can be computed."""
    case = Case(model, query, exact_epsilon(epsilon), exact)
    rows, missing = [], []
    for name in mechanisms:
        one_of(name, MECHANISMS, "mechanisms")
        try:
            rows.append(case.judged(name, _RATES[name](case)))
        except InvalidInput as without:
            missing.append((name, str(without).partition("expected ")[2]))
    return Comparison(repr(model), case.epsilon, tuple(rows), tuple(missing))


def _line(row: Calibration) -> str:
    true = "true epsilon not known" if row.true_epsilon is None else f"true epsilon {row.true_epsilon:.4g}"
    proved = "proved" if row.proved else "NOT PROVED"
    return f"  {row.mechanism:16} scale {float(row.scale):<10.4g} {true:24} {proved}: {row.why}"
