"""Noise against other libraries, where they are installed (they are no dependencies): values per second, equal work.

Equal work is the same law, one value for each value that goes in, called the same way. What differs is said beside the
figure: OpenDP and this library draw exactly from secure bits, diffprivlib rounds a float made of secure bits, and qif
draws from a seedable generator that is not meant to be secure. diffprivlib needs an older scikit-learn, so it may be
measured by a child process of another environment (`diffprivlib_child`), in the same run.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure
from benchmarks.speed.machine import installed
from benchmarks.speed.timing import Spread, timed

AT_ONCE, ONE_A_CALL = "at once", "one a call"
_SECURE_EXACT = "secure bits, exact"

#: Draws as many values as it is told.
Draw = Callable[[int], Any]


@dataclass(frozen=True)
class Contender:
    """A way of another library to do what one of ours does."""

    call: str
    about: str
    draw: Draw


def figures(effort: Effort) -> Iterator[Figure]:
    """Integers with discrete Laplace noise, then points in the plane; ours first, then whoever is installed."""
    for law, ours, others in (
        ("discrete Laplace, ε = 1", _on_a_line(), {"opendp": _opendp, "diffprivlib": _diffprivlib}),
        ("planar, ε = 1", _in_the_plane(), {"qif": _qif}),
    ):
        rates = {}
        for call, draw in ours.items():
            rates[call] = _rate(draw, call, effort)
            yield Figure("noise", f"{law}, {call}: dphmm", rates[call], "/s", None, _SECURE_EXACT)
        for package, library in others.items():
            yield from _against(law, rates, package, library, effort)


def _against(law: str, rates: dict[str, Spread], package: str, library: Any, effort: Effort) -> Iterator[Figure]:
    if package == "diffprivlib" and effort.diffprivlib_python is not None:
        yield from _in_another_environment(law, rates, effort.diffprivlib_python, effort)
        return
    version = installed(package)
    if version is None:
        yield Figure("noise", f"{law}: {package}", None, "", None, "not installed")
        return
    try:
        contenders = library()
    except ImportError as error:
        yield Figure("noise", f"{law}: {package} {version}", None, "", None, f"its import failed: {error}")
        return
    for one in contenders:
        theirs = _rate(one.draw, one.call, effort)
        yield Figure("noise", f"{law}, {one.call}: {package} {version}", theirs, "/s", None, one.about)
        # A rate over a rate: how many of ours in the time of one of theirs.
        yield Figure("noise", f"{law}, {one.call}: dphmm against {package}", rates[one.call].times(theirs), "×")


def _in_another_environment(law: str, rates: dict[str, Spread], python: str, effort: Effort) -> Iterator[Figure]:
    child = Path(__file__).with_name("diffprivlib_child.py")
    arguments = [python, str(child), str(effort.pick(1000, 5000)), str(effort.pick(3, 7))]
    told = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
    theirs = Spread.of(told["seconds"]).per_second(told["count"])
    name = f"diffprivlib {told['version']}"
    about = f"secure bits, rounded floats; Python {told['python']} of its own"
    yield Figure("noise", f"{law}, {ONE_A_CALL}: {name}", theirs, "/s", None, about)
    yield Figure("noise", f"{law}, {ONE_A_CALL}: dphmm against diffprivlib", rates[ONE_A_CALL].times(theirs), "×")


def _rate(draw: Draw, call: str, effort: Effort) -> Spread:
    count = effort.pick(20_000, 200_000) if call == AT_ONCE else effort.pick(1000, 5000)
    return timed(lambda: draw(count), effort.pick(3, 7)).per_second(count)


def _on_a_line() -> dict[str, Draw]:
    """Answers that differ by at most 1: P(v) ∝ exp(-|v|)."""
    return _ours(dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(2), [[0], [1]]))


def _in_the_plane() -> dict[str, Draw]:
    """Neighbours are cells at most one apart."""
    cells = [[x, y] for x in range(3) for y in range(3)]
    return _ours(dphmm.sensitivity.sensitivity_hull(dphmm.policy.radius(cells, 1), cells))


def _ours(hull: dphmm.sensitivity.SensitivityHull) -> dict[str, Draw]:
    mechanism = dphmm.mechanisms.DiscreteKNorm(hull, 1)
    return {AT_ONCE: mechanism.noise, ONE_A_CALL: lambda count: [mechanism.noise(1) for _ in range(count)]}


def _opendp() -> list[Contender]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    line = (dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"))
    vector = dp.m.make_laplace(*line, scale=1.0)
    single = dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=1.0)
    return [
        Contender(AT_ONCE, _SECURE_EXACT, lambda count: vector([0] * count)),
        Contender(ONE_A_CALL, _SECURE_EXACT, lambda count: [single(0) for _ in range(count)]),
    ]


def _diffprivlib() -> list[Contender]:
    from diffprivlib.mechanisms import Geometric

    mechanism = Geometric(epsilon=1.0, sensitivity=1)
    about = "secure bits, rounded floats"
    return [Contender(ONE_A_CALL, about, lambda count: [mechanism.randomise(0) for _ in range(count)])]


def _qif() -> list[Contender]:
    import qif

    sample = qif.mechanism.geo_ind.planar_geometric_sample
    about = "not secure: a seedable generator; floats"
    # Version 1.6.0 cannot hand many samples at once to Python: it lacks the conversion.
    return [Contender(ONE_A_CALL, about, lambda count: [sample(1.0, 1.0) for _ in range(count)])]
