"""The real inputs: how each is imported, fitted and released."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from benchmarks.real.site_map import site_map_answers

POLICIES_OF_A_MAP = {"transition": ("transition",), "complete": ("complete",)}
# Public boxes: Beijing's third ring, Los Angeles, Austin.
BEIJING = ("--grid", "0.34km", "--bbox", "116.28,39.85,116.48,39.99", "--step", "5min")
LOS_ANGELES = ("--grid", "0.89km", "--bbox", "-118.58,33.70,-118.19,34.32")
AUSTIN = ("--grid", "1km", "--bbox", "-97.95,30.10,-97.50,30.55")


@dataclass(frozen=True)
class Input:
    """One real input: how it is imported, fitted and released, and how many people are released by default."""

    source: str
    importing: tuple[str, ...]
    fitting: tuple[str, ...]
    policies: dict[str, tuple[str, ...]]
    users: int
    models: tuple[str, ...] = ("counts",)
    box: tuple[float, float, float, float] | None = None
    answers: Callable[[], pd.DataFrame] | None = None
    labels: dict[str, str] | None = None

    @property
    def unit(self) -> str:
        """Unit of an error."""
        return "m" if "--grid" in self.fitting else "units"


#: Options of `dphmm fit` by the name of the model in the table.
MODELS = {"counts": (), "smoothed": ("--smoothing", "1")}

#: What a career month is about, for the categorical policy.
CAREER_LABELS = {
    "school": "education",
    "FE": "education",
    "HE": "education",
    "training": "work",
    "employment": "work",
    "joblessness": "work",
}

INPUTS = {
    "geolife-plt": Input(
        "raw/geolife_plt_sample.tar.gz",
        ("geolife",),
        BEIJING,
        {"radius": ("radius", "--radius", "1km"), **POLICIES_OF_A_MAP},
        users=8,
        models=("smoothed",),
        box=(116.28, 39.85, 116.48, 39.99),
    ),
    "geolife-beijing": Input(
        "geolife_beijing.parquet",
        ("csv",),
        BEIJING,
        {"radius": ("radius", "--radius", "1km"), **POLICIES_OF_A_MAP},
        users=15,
        models=("counts", "smoothed"),
    ),
    "gowalla-los-angeles": Input(
        "gowalla_la_sequence.parquet",
        ("csv", "--user-column", "block", "--order-column", "k"),
        LOS_ANGELES,
        {"radius": ("radius", "--radius", "2km"), "transition": ("transition",)},
        users=150,
    ),
    "gowalla-austin": Input(
        "raw/loc-gowalla_totalCheckins.head10k.txt.gz",
        ("gowalla",),
        AUSTIN,
        {"radius": ("radius", "--radius", "2km"), "complete": ("complete",)},
        users=24,
        models=("counts", "smoothed"),
        box=(-97.95, 30.10, -97.50, 30.55),
    ),
    "msnbc-ordinal": Input(
        "msnbc323.seq.gz",
        ("sequences",),
        ("--state-column", "state", "--answers", "ordinal"),
        {"radius": ("radius", "--radius", "3"), "transition": ("transition",), "complete": ("complete",)},
        users=161,
    ),
    "msnbc-site-map": Input(
        "msnbc323.seq.gz",
        ("sequences",),
        ("--state-column", "state"),
        {"radius": ("radius", "--radius", "25"), "transition": ("transition",), "complete": ("complete",)},
        users=161,
        answers=site_map_answers,
    ),
    "mvad": Input(
        "mvad.csv.gz",
        ("sequences", "--columns", "Jul.93:Jun.99", "--user-column", "id"),
        ("--state-column", "state", "--answers", "ordinal"),
        {"categorical": ("categorical",), "transition": ("transition",), "complete": ("complete",)},
        users=356,
        labels=CAREER_LABELS,
    ),
}
