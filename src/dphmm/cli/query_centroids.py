"""What the noise leaves of the centroids of dphmm query kmeans, from the noisy answer and the public box alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dphmm.dependent._lloyd import HALF

if TYPE_CHECKING:
    from dphmm.cli.console import Console


def rounded(answered: Any, low: Sequence[float], high: Sequence[float]) -> Any:
    """Centroids to a power of ten that is at most a tenth of the noise in them, or of the box where that is smaller.

    A coordinate is a noisy sum, in steps of the box, over a noisy count.
    """
    table, scale = answered.table.copy(), _scale(answered, "sums")
    for axis, (least, most) in enumerate(zip(low, high, strict=True)):
        step, name = (most - least) / (2 * HALF), f"x{axis}"
        table[name] = [
            min(max(round(place, _digits(min(scale * step / max(count, 1), most - least))), least), most)
            for place, count in zip(table[name].tolist(), table["count"].tolist(), strict=True)
        ]
    return replace(answered, table=table)


def below_noise(answered: Any) -> list[int]:
    """The clusters whose noisy count is less than the scale of the noise in it."""
    scale = _scale(answered, "counts")
    return [number for number, count in enumerate(answered.table["count"].tolist()) if count < scale]


def warn_of_noise(answered: Any, console: Console) -> None:
    """One line about all clusters that are noise."""
    if lost := below_noise(answered):
        listed = ", ".join(map(str, lost[:5])) + (", ..." if len(lost) > 5 else "")
        console.warn(
            f"the noise is larger than the count in {len(lost)} of {len(answered.table)} clusters ({listed}): scale "
            f"{_scale(answered, 'counts'):.4g}; such a centroid may be anywhere in the box. More records, a larger "
            "epsilon or fewer --iterations help, in another answer that is paid for"
        )


def _scale(answered: Any, name: str) -> float:
    """The scale of the noise in the counts, or in the sums, of every round."""
    return float(next(part.scale for part in answered.event.parts if part.name == name))


def _digits(noise: float) -> int:
    return -math.floor(math.log10(noise / 10))
