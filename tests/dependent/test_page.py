"""docs/dependent.md: its examples run, and its table says what `compare` says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dependent_models import binary
from dphmm.dependent import MECHANISMS, Sum, compare

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words

PAGE = (Path(__file__).parents[2] / "docs" / "dependent.md").read_text()


def test_the_examples_run(capsys):
    names = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(code, "dependent.md", "exec"), names)
    told = capsys.readouterr().out
    assert "violated" in told and "under stationary Markov chain of 100 tuples" in told


@pytest.mark.slow
@pytest.mark.parametrize("row", [line for line in PAGE.splitlines() if line.startswith("| .")])
def test_the_table(row):
    chances, *cells = [cell.strip() for cell in row.strip("|").split("|")]
    found = compare(binary(*map(float, chances.split(",")), 100), Sum([0, 1]), 1)
    for name, cell in zip(("independent", "dpm", "markov", "optimum", "group"), cells, strict=True):
        scale, loss = re.fullmatch(r"([\d.]+)(?: \*{0,2}\[([\d.]+)\]\*{0,2})?", cell).groups()
        assert float(scale) == pytest.approx(float(found[name].scale), rel=2e-3)
        assert loss is None or float(loss) == pytest.approx(found[name].true_epsilon, abs=6e-3)


def test_every_mechanism_is_on_the_page():
    assert [name for name in MECHANISMS if f'"{name}"' not in PAGE] == []
