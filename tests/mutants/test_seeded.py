"""The seeded privacy bugs: planted one at a time in a copy of the project, each must be killed by the tests named for
it.

Claim of the long test: every bug is killed, 100 %, and its killers pass where nothing is planted. A bug is killed
where each test named for it fails; one that keeps the tests from starting, or that does not fit the code any more, is
not. The quick tests keep the table true between runs: every bug fits the code of today, its result is Python, its
killers exist, and the machinery convicts a bug, acquits a change that changes nothing, and refuses to test another
copy.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from jinja2 import Environment, TemplateSyntaxError

from mutants.catalogue import ROOT, SEEDED, DoesNotApply, Edit, Mutant, catalogue
from mutants.seeding import Verdict, summary, verdicts
from mutants.workshop import Workshop

MUTANTS = catalogue()
#: The marks of the tests that `python3 run.py test` runs.
DEFAULT = "not long and not slow"
#: How many of each family there are.
FAMILIES = {
    "A": 7,
    "B": 18,
    "C": 62,
    "D": 31,
    "E": 17,
    "F": 36,
    "G": 14,
    "H": 20,
    "I": 18,
    "J": 23,
    "K": 21,
    "L": 39,
    "M": 16,
    "N": 36,
    "O": 11,
    "P": 32,
    "Q": 35,
    "R": 17,
    "S": 22,
    "T": 26,
    "U": 50,
    "V": 39,
    "W": 68,
    "X": 25,
    "Y": 13,
    "Z": 37,
}


def test_every_bug_is_there_once():
    numbers = [mutant.number for mutant in MUTANTS]
    assert sorted(numbers) == sorted(f"{family}{n}" for family, count in FAMILIES.items() for n in range(1, count + 1))


def does_not_fit(mutant):
    """Why a bug cannot be planted in the code of today, in words."""
    try:
        changed = mutant.changed(ROOT).items()
        same = [name for name, text in changed if _says_the_same(name, text)]
    except (DoesNotApply, SyntaxError, TemplateSyntaxError) as wrong:
        return [f"{mutant.number}: {wrong}"]
    return [f"{mutant.number} changes nothing in {name}" for name in same]


def _says_the_same(name, text):
    if name.endswith(".html"):
        return Environment().parse(text) == Environment().parse((ROOT / name).read_text())
    return len(set(map(_tree, _changed_statements(name, text)))) == 1


def _tree(text):
    # Members of a class may stand alone.
    return ast.dump(ast.parse(f"if True:\n    pass\n{text}"))


@cache
def _own_lines(name):
    """The lines of a file, and after how many of them an outermost statement or one of an outermost class ends."""
    text = (ROOT / name).read_text()
    lines, body = text.splitlines(), ast.parse(text).body
    members = [member for statement in body if isinstance(statement, ast.ClassDef) for member in statement.body]
    return lines, [0, *(statement.end_lineno for statement in (*body, *members)), len(lines)]


def _changed_statements(name, text):
    """The statements of a file that a changed text changes, with those next to them, and what they become."""
    (own, ends), lines = _own_lines(name), text.splitlines()
    shorter = min(len(own), len(lines))
    first = next((k for k in range(shorter) if own[k] != lines[k]), shorter)
    same = next((k for k in range(shorter - first) if own[-1 - k] != lines[-1 - k]), shorter - first)
    start = max((end for end in ends if end < first), default=0)
    stop = min((end for end in ends if end > len(own) - same), default=len(own))
    return "\n".join(own[start:stop]), "\n".join(lines[start : len(lines) - len(own) + stop])


def killers_not_there(mutant):
    """Tests that are named for a bug and do not exist, in words."""
    found = []
    for killer in mutant.killers:
        path, *names = killer.split("[")[0].split("::")
        text = (ROOT / path).read_text() if (ROOT / path).is_file() else ""
        if not names:
            found.append(f"{mutant.number}: {killer} is a file of tests, not a test")
        elif not all(re.search(rf"^\s*(def|class) {name}\b", text, re.MULTILINE) for name in names):
            found.append(f"{mutant.number}: no {killer}")
    return found


def test_every_bug_fits_the_code_of_today():
    assert [told for mutant in MUTANTS for told in does_not_fit(mutant)] == []


def test_the_killers_of_every_bug_exist():
    assert [told for mutant in MUTANTS for told in killers_not_there(mutant)] == []


@pytest.fixture(scope="module")
def killers():
    """The killers of the live bugs that the default run has, and what pytest says of killers that it does not find."""
    return collected(sorted({killer for mutant in MUTANTS for killer in mutant.killers}))


def collected(tests):
    """Default tests among some, named without parameters too; and what pytest says where one is not there at all."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--collect-only", "-m", DEFAULT]
    done = subprocess.run([*command, *tests], cwd=ROOT, capture_output=True, text=True, check=False)
    names = {line for line in done.stdout.splitlines() if "::" in line}
    return names | {name.partition("[")[0] for name in names}, done.stdout + done.stderr if done.returncode else ""


@pytest.mark.slow
def test_killers_with_parameters_are_collected(killers):
    """A name alone is read from the file; parameters are known only to pytest, and a changed one is no test at all."""
    named = next(killer for mutant in MUTANTS for killer in mutant.killers if "[" in killer)
    assert killers[1] == ""
    assert "not found" in collected([named.replace("[", "[no such ")])[1]


def slow_alone(tests):
    """Live bugs none of whose killers are among some tests."""
    live = [mutant for mutant in MUTANTS if not mutant.absent]
    return [mutant.number for mutant in live if not tests.intersection(mutant.killers)], len(live)


def test_most_bugs_die_in_the_default_run(request):
    """A run of all tests has collected the killers; one of this file alone has pytest collect them."""
    default = [item.nodeid for item in request.session.items if not any(map(item.get_closest_marker, ("slow", "long")))]
    slow, live = slow_alone({*default, *(name.partition("[")[0] for name in default)})
    if live - len(slow) < 380:
        slow, live = slow_alone(request.getfixturevalue("killers")[0])
    assert live - len(slow) >= 380, f"{len(slow)} of {live} live bugs have slow killers alone: {slow}"


def test_what_does_not_fit_is_told():
    idle, broken, gone = edit("NANO = 10**9", "NANO  = 10**9"), edit("NANO = 10**9", "NANO = "), edit("no such", "")
    found = [does_not_fit(Mutant("S1", "", ("x",), (change,), "")) for change in (idle, broken, gone)]
    assert [len(told) for told in found] == [1, 1, 1] and "changes nothing" in found[0][0]
    killers = ("tests/nowhere.py::test_x", "tests/mutants/test_seeded.py", "tests/mutants/test_seeded.py::edit")
    assert len(killers_not_there(Mutant("S1", "", killers, (idle,), ""))) == 2


def edit(find: str, replace: str) -> Edit:
    return Edit("src/dphmm/accounting/budget.py", find, replace)


@pytest.mark.parametrize("find", ["no such text anywhere", "def "])
def test_text_that_is_not_there_exactly_once_does_not_apply(find):
    with pytest.raises(DoesNotApply, match="occurs"):
        Mutant("S1", "", ("x",), (edit(find, ""),), "").changed(ROOT)


@pytest.mark.parametrize(
    "record",
    [
        {"number": "S1", "bug": "", "killers": []},
        {"number": "S1", "bug": "", "killers": [], "edit": [{"file": "a", "find": "b", "replace": "c"}]},
        {
            "number": "S1",
            "bug": "",
            "killers": ["t"],
            "absent": "no code",
            "edit": [{"file": "", "find": "", "replace": ""}],
        },
        {"number": "S1", "bug": "", "killers": ["t"], "absent": "no code", "killer": "t"},
    ],
)
def test_a_record_says_one_thing(record):
    with pytest.raises(ValueError, match="S1"):
        Mutant.of(record)


def test_files_of_the_table_are_read_whole():
    for path in SEEDED.glob("*.toml"):
        assert tomllib.loads(path.read_text()).keys() == {"mutant"}


def test_text_changes_and_comes_back(tmp_path):
    shop = Workshop.__new__(Workshop)
    shop.copy = tmp_path
    shop._moments = iter(range(1, 10))
    (tmp_path / "a.py").write_text("one\n")
    before = (tmp_path / "a.py").stat().st_mtime_ns
    stamps = set()
    for text in ("two\n", "six\n"):
        with pytest.raises(KeyError), shop.changed({"a.py": text}):
            assert (tmp_path / "a.py").read_text() == text
            stamps.add(int((tmp_path / "a.py").stat().st_mtime))
            raise KeyError
    assert len(stamps) == 2  # or stale bytecode of the same size would be run
    assert (tmp_path / "a.py").read_text() == "one\n"
    assert (tmp_path / "a.py").stat().st_mtime_ns == before


def test_another_dphmm_than_the_copys_is_not_tested(tmp_path):
    environment = {
        "PYTHONPATH": str(ROOT / "tests"),
        "MUTANTS_COPY": str(tmp_path),
        "MUTANTS_OUTCOMES": str(tmp_path / "o"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "mutants.outcomes", "tests/test_public.py"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "which is not in" in done.stdout + done.stderr


KILLER = "tests/accounting/test_budget.py::test_a_hair_above_a_billionth_is_charged_as_the_next_and_capped_as_this_one"
OTHER = "tests/accounting/test_budget.py::test_a_cap_that_only_floats_would_hold_is_passed"
TRIALS = {
    "killed": (edit("return -(-numerator * NANO // denominator)", "return numerator * NANO // denominator"), (KILLER,)),
    "survived": (edit("NANO = 10**9", "NANO = 1000**3"), (KILLER,)),
    "broke the tests": (edit("NANO = 10**9", "NANO = "), (KILLER,)),
    "does not apply": (edit("NANO = 10**8", "NANO = 10**9"), (KILLER,)),
    "fails without it": (edit("NANO = 10**9", "NANO = 1000**3"), (KILLER, OTHER + "_not_there")),
}


@pytest.mark.long
def test_the_machinery_tells_what_became_of_a_bug():
    """A test that is named and does not fail leaves a bug alive, too."""
    for outcome, (change, killers) in TRIALS.items():
        if outcome != "fails without it":
            mutant = Mutant("S1", "", killers, (change,), "")
            assert [v.outcome for v in verdicts([mutant], ROOT, 1, lambda verdict: None)] == [outcome]
    idle = Mutant("S1", "", (KILLER, OTHER), (TRIALS["killed"][0],), "")
    assert verdicts([idle], ROOT, 1, lambda verdict: None)[0] == Verdict(idle, "survived", OTHER)


def test_the_summary_counts_what_can_be_planted():
    found = [Verdict(MUTANTS[0], outcome, "") for outcome in ("killed", "killed", "absent", "survived")]
    assert summary(found) == "2 of 3 killed, 1 absent, 1 survived"
    assert [verdict.good for verdict in found] == [True, True, True, False]


@pytest.mark.long
def test_every_seeded_bug_is_killed():
    found = verdicts(MUTANTS, Path(ROOT), 2, lambda verdict: None)
    assert {v.mutant.number: (v.outcome, v.told) for v in found if not v.good} == {}
