"""The documents tell the truth: README's example runs, its commands exist, links lead somewhere."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import dphmm
from registered import chosen_mechanisms, policy_kinds

ROOT = Path(__file__).parents[1]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [
    ROOT / "README.md",
    CONTRIBUTING,
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "experiments").rglob("*.md")),
]


@pytest.mark.replayed_words
def test_the_readme_s_example_runs(tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert "Spent(epsilon=Fraction(1, 1)" in capsys.readouterr().out


@pytest.mark.replayed_words
def test_the_readme_s_budget_a_day_prints_what_it_says(tmp_path, monkeypatch):
    """Its commands, one after the other, on the people of the demo's city; the page of the report is not drawn."""
    from click.testing import CliRunner

    from dphmm.cli.app import app
    from dphmm.evaluation.city import simulate_city
    from dphmm.storage.trajectories import save_trajectories

    text = (ROOT / "README.md").read_text()
    part = text[text.index("## A budget a day") : text.index("## In Python")]
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


def test_the_readme_s_first_figures_are_those_of_its_plan():
    """The budget, the answers and both errors of its second paragraph are in the table that `dphmm plan` printed."""
    text = (ROOT / "README.md").read_text()
    (said,) = re.findall(
        r"a budget of (\d+) a day\nbuys six .* is then expected to be ([\d,]+ m) off\s.*?it would be ([\d,]+ m)",
        text,
        re.DOTALL,
    )
    total, error, without = said
    assert re.search(rf"^ +{total} +6 x 2 +{error} .*<- {total}$", text, re.MULTILINE)
    assert re.search(rf"^ +without the file +{without} ", text, re.MULTILINE)


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
    (row,) = re.findall(r"\n\| `--mechanism` \| (`auto` .*) \|\n", page)
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
