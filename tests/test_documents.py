"""The documents tell the truth: README's example runs twice, its commands exist, links lead somewhere."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

import pytest

import dphmm
from dphmm.statement.verdict import ReleaseVerdict
from registered import chosen_mechanisms, policy_kinds

ROOT = Path(__file__).parents[1]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
CHOOSING = ROOT / "docs" / "choosing-a-budget.md"
OFFICER = ROOT / "docs" / "data-protection-officer.md"
GUIDE = ROOT / "docs" / "guide.md"
PAGES = [
    ROOT / "README.md",
    CONTRIBUTING,
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "experiments").rglob("*.md")),
]


@pytest.mark.replayed_words
def test_the_readme_s_example_runs_twice_and_says_the_same(tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    said = []
    for _ in range(2):
        exec(compile(code, "README.md", "exec"), {})
        said.append(capsys.readouterr().out)
    assert (
        said[0].splitlines()[-3:] == said[1].splitlines()[-3:] and "Released: 2 noisy positions of 1 person" in said[0]
    )
    with dphmm.open_ledger(tmp_path / "ledger.db", read_only=True) as ledger:
        assert dphmm.accounting.ledger_summary(ledger).subjects[0].queries[0].releases == 2


@pytest.mark.replayed_words
def test_the_guide_s_example_runs(tmp_path, monkeypatch, capsys):
    part = GUIDE.read_text().partition("## One person in Python")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", part, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "guide.md", "exec"), {})
    assert "Spent(epsilon=Fraction(1, 1)" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.replayed_words
def test_a_budget_a_day_prints_what_the_page_says(tmp_path, monkeypatch):
    """Its commands, one after the other, on the people of the demo's city; the page of the report is not drawn."""
    from click.testing import CliRunner

    from dphmm.cli.app import app
    from dphmm.evaluation.city import simulate_city
    from dphmm.storage.trajectories import save_trajectories

    part = CHOOSING.read_text().partition("## A budget a day")[2].partition("\n## ")[0]
    blocks = re.findall(r"```\n(.*?)```", part, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    save_trajectories(tmp_path / "people.parquet", simulate_city().released_people)
    for commands, printed in (blocks[:2], blocks[2:]):
        said = []
        for line in commands.splitlines():
            if not line.startswith("dphmm report"):
                result = CliRunner().invoke(app, line.split()[1:])
                assert result.exit_code == 0, result.output
                said += [one.rstrip() for one in (result.stdout + result.stderr).splitlines()]
        assert [line for line in printed.splitlines() if line not in said] == []


def test_the_readme_s_table_is_that_of_the_plan():
    """Each line of its table is one that `dphmm plan` printed on the page about budgets."""
    table = re.findall(r"^\| (?!budget)(.*) \|$", (ROOT / "README.md").read_text().replace("**", ""), re.MULTILINE)
    printed = CHOOSING.read_text()
    assert [line.split(" | ")[0] for line in table] == ["3", "12", "no file"]
    for line in table:
        budget, answers, error, stays = line.split(" | ")
        if budget == "no file":
            assert answers == "0" and re.search(rf"^ +without the file +{error} +{stays}$", printed, re.MULTILINE)
        else:
            assert re.search(rf"^ +{budget} +{answers} x \d +{error} +{stays}( |$)", printed, re.MULTILINE), line


def test_the_officer_s_page_has_the_sentences_of_every_verdict():
    """In the order of the rules; what it leaves open is what figures fill in."""
    part = OFFICER.read_text().partition("## What a verdict says")[2].partition("\n## ")[0]
    told = [line.split(" | ")[0].removeprefix("| ") for line in part.splitlines() if line.startswith("| ")][1:]
    facts = {"error": 5.0, "without": 9.0, "unit": "m", "near": 5.0, "block": "day", "after": 4, "tried": 7}
    spoken = {
        rule: ReleaseVerdict(rules=[rule], **facts).lines[0] for rule in ReleaseVerdict.says if "unknown" not in rule
    }
    rules = ["replayable", "unlimited", "tells", "no nearer", "returns", "will return", "blurs", "labels"]
    for rule, sentence in zip(rules, told, strict=True):
        said = re.split(r"\b(?:X|N|M)\b", sentence.rstrip("."))
        assert all(part.strip(" .") in spoken[rule] for part in said), (rule, sentence, spoken[rule])


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 900
    assert len((ROOT / "CHANGELOG.md").read_text().split()) <= 500


def rooms():
    """The packages and modules that the contributor's page puts in a table of jobs."""
    table = CONTRIBUTING.read_text().partition("## Where things are")[2].partition("\n## ")[0]
    named = [re.findall(r"`([\w/.]+)`", line.split("|")[1]) for line in table.splitlines() if line.startswith("| `")]
    return {name.rstrip("/") for names in named for name in names}


def test_the_contributor_s_page_names_every_room():
    there = {path.name for path in (ROOT / "src" / "dphmm").iterdir() if (path / "__init__.py").exists()}
    assert there | {"experiments"} <= rooms() and all(
        (ROOT / "src" / "dphmm" / name).exists() or (ROOT / name).exists() for name in rooms()
    )


def test_the_ideas_of_the_contributor_s_page_are_where_it_says():
    places = re.findall(r"`(src/[\w/.]+)::(\w+)`", CONTRIBUTING.read_text())
    assert len(places) == 14
    for path, name in places:
        assert re.search(rf"^(def|class) {name}\b", (ROOT / path).read_text(), re.MULTILINE), (path, name)


def excerpts(text):
    """The blocks of code of a page, each with the file that is named last before it."""
    for before, block in re.findall(r"(.*?)```python\n(.*?)```", text, flags=re.DOTALL):
        yield re.findall(r"`((?:src|tests)/[\w/]+\.py)`", before)[-1], block


def test_the_files_to_write_like_are_as_the_contributor_s_page_shows_them():
    part = CONTRIBUTING.read_text().partition("## Five files to write like")[2].partition("\n## ")[0]
    shown = list(excerpts(part))
    assert len(shown) == 5
    for path, block in shown:
        text = (ROOT / path).read_text()
        assert any(textwrap.indent(block, " " * spaces) in text for spaces in (4, 8, 12)), path


def dead_links(page):
    """Links of a page to files that are not there."""
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    return [target for target in targets if "://" not in target and not (page.parent / target).exists()]


def test_links_lead_somewhere():
    assert {str(page): dead for page in PAGES if (dead := dead_links(page))} == {}


def test_a_dead_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[here](page.md), [there](nothing.md#heading), [far](https://example.org/)")
    assert dead_links(page) == ["nothing.md"]


def test_every_mechanism_and_every_kind_of_policy_is_among_the_commands():
    page = (ROOT / "docs" / "commands.md").read_text()
    assert [kind for kind in policy_kinds() if f"\n| `{kind}` |" not in page] == []
    (row,) = re.findall(r"\n\| `mechanism` \| (`auto` .*) \|\n", page)
    assert [name for name in chosen_mechanisms() if f"`{name}`" not in row] == []


def unexplained(name, thing):
    """The thing and those of its public methods and properties that have no docstring."""
    members = vars(thing).items() if inspect.isclass(thing) else ()
    public = [a for a, m in members if not a.startswith("_") and (inspect.isfunction(m) or isinstance(m, property))]
    own = [] if inspect.getdoc(thing) else [name]
    return own + [f"{name}.{a}" for a in public if not inspect.getdoc(getattr(thing, a))]


def test_every_public_name_is_explained():
    names = [name for name in dphmm.__all__ if name != "__version__"]
    assert [told for name in names for told in unexplained(name, getattr(dphmm, name))] == []
