"""What a reader needs to know of the machine: its kind, not its name."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

#: More than one thread, and a little: somebody else was computing.
BUSY = 1.5
PACKAGES = ("dphmm", "numpy", "scipy", "numba", "pandas", "cryptography", "hmmlearn", "dynamax", "opendp", "qif")


def described() -> dict[str, Any]:
    """Cores, memory, versions, and how busy the machine was before anything was measured."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_before": load(),
        "python": platform.python_version(),
        "threads_of_numerical_libraries": 1,
        **{name: installed(name) for name in PACKAGES},
    }


def installed(name: str) -> str | None:
    """The version of a package; None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def load() -> float:
    """How many threads wanted to compute over the last minute."""
    return round(os.getloadavg()[0], 2)


def sentence(about: dict[str, Any]) -> str:
    """The same for people, with a warning where the machine was busy."""
    busy = max(about["load_before"], about["load_after"]) > BUSY
    packages = ", ".join(f"{name} {about[name]}" for name in PACKAGES)
    return (
        f"{about['cores']} cores ({about['machine']}), {about['memory_gib']} GiB, {about['system']}; numerical "
        f"libraries on one thread, beliefs of batches (`many`) on all cores; load {about['load_before']} before and "
        f"{about['load_after']} after; Python {about['python']}, {packages}"
        + (
            "\n\n**The machine was busy with other work: times are too long, and ratios not to be relied on.**"
            if busy
            else ""
        )
    )
