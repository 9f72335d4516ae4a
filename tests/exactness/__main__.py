"""`python -m exactness --instances 10000 --jobs 2` judges that many instances: exit 1 if one breaks the promise.

`--only 1234` judges one instance and prints it. Every instance is a function of `--seed` and its number.
"""

from __future__ import annotations

import argparse
import sys
import time

from exactness.features import EXPECTED
from exactness.findings import Findings
from exactness.instances import Instance
from exactness.run import judge_all, judged

SEED = 1
_SHOWN = 20


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    started = time.monotonic()
    if given.only is not None:
        print(_described(Instance.numbered(given.seed, given.only)))
        findings, complete = judged(given.seed, given.only), False
    else:
        numbers = range(given.first, given.first + given.instances)
        findings, complete = judge_all(given.seed, numbers, given.jobs), given.instances >= 1000
    print(_table(findings, time.monotonic() - started))
    missing = [name for name in EXPECTED if not findings.features[name]] if complete else []
    if missing:
        print("never met, so nothing is said about: " + ", ".join(missing))
    for line in findings.violations[:_SHOWN]:
        print(line)
    if findings.violations:
        print(
            f"VIOLATED {len(findings.violations)} times; again with: python -m exactness --seed {given.seed} --only N"
        )
    return int(bool(findings.violations or missing))


def _table(findings: Findings, seconds: float) -> str:
    counts, ratio, inflation = findings.counts, findings.ratio, findings.inflation
    exact = str(ratio.value) if len(str(ratio.value)) < 60 else "a long fraction"
    rows = [
        ("instances", counts["instances"]),
        ("plans", counts["plans"]),
        ("required pairs", counts["pairs"]),
        ("pairs of histories", counts["pairs of histories"]),
        ("points enumerated", counts["enumerated points"]),
        ("single checks", counts["checks"]),
        ("largest ratio / eps", f"{float(ratio.value):.17g} = {exact} exactly ({ratio.where})"),
        ("bodies, known exactly", f"{counts['bodies']}, {counts['exact bodies']}"),
        ("worst inflation", f"{float(inflation.value):.9g} ({inflation.where})"),
        ("violations", len(findings.violations)),
        ("refused instances", sum(findings.refusals.values())),
        *((f"    {reason}", times) for reason, times in findings.refusals.most_common()),
        ("plans with", ", ".join(f"{name} {findings.features[name]}" for name in EXPECTED)),
        ("seconds", f"{seconds:.1f}"),
    ]
    return "\n".join(f"{name:<22} {value}" for name, value in rows)


def _described(instance: Instance) -> str:
    lines = [f"instance {instance.number}: walk {list(instance.walk)}", f"policy {instance.policy}"]
    lines += [f"initial {instance.initial.tolist()}", f"transition {instance.transition.tolist()}"]
    for query in instance.queries:
        lines.append(f"query {query.name} ({query.shape}): answers {query.answers.tolist()}, pitch {query.pitch}")
        lines.append(f"    {query.options}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="exactness", description=__doc__)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first instance")
    parser.add_argument("--only", type=int, help="one instance, printed in full")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=1)
    return parser


if __name__ == "__main__":
    sys.exit(main())
