"""Hold this tree to an earlier commit: the same random worlds, the same words, in a process for each side.

    PYTHONPATH=tests python -m frozen --against v0.1 --worlds 60

Prints the worlds that differ and how, and exits with 1 if there is one. ``--vectors`` writes the test vectors anew.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from frozen import commands, vectors, worlds

_ROOT = Path(__file__).parents[2]
#: Those of random worlds, which run unless families are named, and the commands on real data.
FAMILIES = {**worlds.FAMILIES, "real_commands": commands.real_commands}
#: Beliefs and errors to rounding; likelihoods of fits after equal iterations a little further.
RELATIVE = {"hidden_fits": 1e-9}
_ROUNDING = 1e-12


def main() -> int:
    """Compare, or write the vectors."""
    asked = _arguments()
    if asked.vectors:
        vectors.write()
        return 0
    if asked.tell is not None:
        for line in worlds.told_lines(FAMILIES[asked.tell], asked.tell, range(asked.first, asked.worlds)):
            print(line)
        return 0
    families = asked.families or list(worlds.FAMILIES)
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        _git("worktree", "add", "--detach", str(before), asked.against)
        try:
            found = [line for family in families for line in _compared(family, before, asked.first, asked.worlds)]
        finally:
            _git("worktree", "remove", "--force", str(before))
    print("\n".join(found) or f"{asked.worlds - asked.first} worlds of each of {len(families)} families: no difference")
    return 1 if found else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="HEAD", help="the commit to compare with")
    parser.add_argument("--worlds", type=int, default=60, help="seeds first..worlds of each family")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--families", nargs="*", choices=list(FAMILIES))
    parser.add_argument("--tell", choices=list(FAMILIES), help="print one family's lines and compare nothing")
    parser.add_argument("--vectors", action="store_true", help="write tests/frozen/vectors.json from this tree")
    return parser.parse_args()


def _compared(family: str, before: Path, first: int, worlds_end: int) -> Iterator[str]:
    """What one family says differently."""
    with ThreadPoolExecutor(2) as pool:
        sides = [pool.submit(_told_by, root, family, first, worlds_end) for root in (before, _ROOT)]
        old, new = (side.result() for side in sides)
    if len(old) != len(new):
        yield f"{family}: {len(old)} worlds before, {len(new)} now"
    plans: tuple[dict[str, str], dict[str, str]] = {}, {}
    for was, now in zip(old, new, strict=False):
        # Numbers agree where the hashes of the two sides correspond one to one, over all worlds of the family.
        exact = (worlds.numbered_plans(side["exact"], numbers) for side, numbers in zip((was, now), plans, strict=True))
        differ = list(worlds.differences(*exact, 0.0, "exact"))
        differ += worlds.differences(was["floats"], now["floats"], RELATIVE.get(family, _ROUNDING), "floats")
        if differ:
            yield f"{family} {was['seed']}: {len(differ)} differences, first: {differ[0][:600]}"
    renamed = len(plans[0].keys() - plans[1].keys())
    print(f"{family}: {len(old)} worlds, {len(plans[0])} plans, {renamed} of them with another hash", file=sys.stderr)


def _told_by(root: Path, family: str, first: int, worlds_end: int) -> list[dict[str, Any]]:
    command = (sys.executable, "-m", "frozen", "--tell", family, "--first", str(first), "--worlds", str(worlds_end))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (root / "src", _ROOT / "tests", _ROOT)))}
    done = subprocess.run(command, env=environment, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _git(*arguments: str) -> None:
    subprocess.run(("git", *arguments), cwd=_ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
