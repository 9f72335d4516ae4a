"""The documents tell the truth: README's example runs, its commands exist, links lead somewhere."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import dphmm

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_readme_s_example_runs(tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert "Spent(epsilon=Fraction(1, 1)" in capsys.readouterr().out


def test_ci_runs_the_readme_s_second_command():
    first, second = re.findall(r"^(make \w+)  ", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert first == "make demo"
    assert second in (ROOT / ".ci" / "run").read_text().splitlines()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("name", [n for n in dphmm.__all__ if n != "__version__"])
def test_every_public_name_is_explained(name):
    thing = getattr(dphmm, name)
    assert inspect.getdoc(thing)
    if inspect.isclass(thing):
        for attribute, member in vars(thing).items():
            if not attribute.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                assert inspect.getdoc(getattr(thing, attribute)), f"{name}.{attribute}"
