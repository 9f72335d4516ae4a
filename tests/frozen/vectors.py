"""Test vectors: plan hashes, answers under given words, and account totals of 50 small worlds, kept in the tree.

They hold every later version, and other implementations, to what was once released. Worlds whose noise a linear program
decides are left out: another solver may find another optimum.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from frozen import worlds

PATH = Path(__file__).parent / "vectors.json"
_FAMILIES = {"sessions": 25, "queries": 15, "tables": 10}


def vector(family: str, seed: int) -> dict[str, Any]:
    """What one world must say for ever.

    ``all`` is the SHA-256 of everything exact, errors' words left out and plans numbered by their first appearance:
    another version of the algorithm has other hashes of the same plans, and changes ``plans`` alone.
    """
    exact = worlds.FAMILIES[family](seed).exact
    lasting = [line for line in exact if line[0] not in ("refused", "verdict")]
    return {
        "family": family,
        "seed": seed,
        "plans": sorted({line[7].removeprefix(worlds.PLAN) for line in lasting if line[0] == "entry" and line[7]}),
        "answers": [list(line[4]) for line in lasting if line[0] == "entry" and line[4] is not None],
        "spent": [line[1:] for line in lasting if line[0] == "spent"],
        "all": hashlib.sha256(json.dumps(worlds.numbered_plans(lasting, {})).encode()).hexdigest(),
    }


def seeds() -> Iterator[tuple[str, int]]:
    """The worlds that the vectors are of: the first of each family that no linear program decides."""
    for family, wanted in _FAMILIES.items():
        found = 0
        for seed in range(10_000):
            if "optimal" not in worlds.mechanism_of(family, seed):
                yield family, seed
                found += 1
            if found == wanted:
                break


def write() -> None:
    """Write the vectors as this tree computes them."""
    lines = [json.dumps(vector(family, seed)) for family, seed in seeds()]
    PATH.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def kept() -> list[dict[str, Any]]:
    """The vectors of the tree."""
    found: list[dict[str, Any]] = json.loads(PATH.read_text())
    return found
