"""Kill sessions, batches and commands at random and at named points, and count what went wrong, as a Markdown table.

    python benchmarks/crashes.py --kills 1000 [--seed N] [--simulated N]

Uses the harness of tests/crashes. An escape is an answer that came out of a pipe or can be read in a file, whether or
not anybody acknowledged it. Double: two answers for one (subject, t, query). Unspent: an answer that escaped and is not
in the ledger, or a total below what escaped. Over-charged: a total above its rows. Other: order of steps, caps,
incomplete files, and an end that differs from that of a run without crashes. No violation in n kills bounds its rate by
3/n per kill at 95 %.

Kills are of processes: what the operating system has been given is kept. A loss of power is not simulated.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

# In place of this folder, in which this very file has the name of the package of the harness.
sys.path[:] = [folder for folder in sys.path if folder != str(Path(__file__).parent)]
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from crashes.arena import Arena, arena  # noqa: E402
from crashes.campaign import Trial, Verdict, campaign  # noqa: E402
from crashes.checker import KINDS  # noqa: E402
from crashes.trials import SIMULATED, TRIALS  # noqa: E402

NAMED = ("double", "unspent", "overcharged")
COLUMNS = ("work", "kills", "by delay / statement / point / call", "lives", "escapes", "steps seen", *NAMED, "other")


def main() -> int:
    """Run every trial with its share of the kills; 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000, help="kills in total, shared by all works")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the choice of deaths; when they strike is up to the machine"
    )
    parser.add_argument("--simulated", type=int, default=0, help="kills of simulated ledgers, three of four wrong")
    given = parser.parse_args()
    began = time.monotonic()
    with arena() as ready:
        verdicts = _run(ready, TRIALS, given.kills, given.seed)
        seconds = time.monotonic() - began
        simulated = _run(ready, SIMULATED, given.simulated, given.seed) if given.simulated else {}
    print(_table(verdicts))
    kills = sum(verdict.kills for verdict in verdicts.values())
    wrong = sum(len(verdict.findings.found) for verdict in verdicts.values())
    if wrong:
        print("\n" + "\n".join(f"{name}: {verdict.findings}" for name, verdict in verdicts.items() if verdict.findings))
    else:
        print(f"\n0 violations in {kills} kills: fewer than {3 / kills:.2g} per kill at 95 %.")
    print(
        f"{seconds:.0f} s on this machine, {seconds / kills * 1000:.0f} ms a kill with its restart and its two checks."
    )
    if simulated:
        print(
            "\nThe same deaths on simulated ledgers: A shows before it commits, B forgets its answers, C takes no "
            "lock, E is right.\n"
        )
        print(_table(simulated))
    return 1 if wrong else 0


def _run(ready: Arena, trials: dict[str, Trial], kills: int, seed: int) -> dict[str, Verdict]:
    verdicts = {}
    share = -(-kills // len(trials))
    for number, (name, trial) in enumerate(trials.items()):
        print(f"{name}: {share} kills", file=sys.stderr, flush=True)
        verdicts[name] = campaign(ready, trial, share, seed * len(trials) + number)
    return verdicts


def _table(verdicts: dict[str, Verdict]) -> str:
    rows = [_row(name, verdict) for name, verdict in verdicts.items()]
    if len(rows) > 1:
        total = Verdict()
        for verdict in verdicts.values():
            total.kills += verdict.kills
            total.lives += verdict.lives
            total.escapes += verdict.escapes
            total.keys += verdict.keys
            total.by_kind.update(verdict.by_kind)
        sums = [str(sum(int(row[k]) for row in rows)) for k in range(6, len(COLUMNS))]
        rows.append([*_row("all", total)[:6], *sums])
    head = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    return "\n".join(head + ["| " + " | ".join(row) + " |" for row in rows])


def _row(name: str, verdict: Verdict) -> list[str]:
    kinds = " / ".join(str(verdict.by_kind[kind]) for kind in ("delay", "statement", "point", "syscall"))
    counts = {kind: verdict.findings.count(kind) for kind in KINDS}
    named = [str(counts.pop(kind)) for kind in NAMED]
    seen = [str(verdict.lives), str(verdict.escapes), str(verdict.keys)]
    return [name, str(verdict.kills), kinds, *seen, *named, str(sum(counts.values()))]


if __name__ == "__main__":
    sys.exit(main())
