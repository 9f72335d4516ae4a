"""Experiments use the package as a reader would, and their randomness and their missing data are said once.

It could fail where an experiment imports a private name without saying why, where the noise of one answer is that of
another, or where a file that is not there is taken for one that is.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.experiment import Settings, bits_of, groups

FOLDER = Path(__file__).parents[2] / "experiments"
#: Types of arguments, and colours: public modules without a list of names.
PUBLIC = {"dphmm.types", "dphmm.plot.axes"}


def unexplained(text):
    """Imports of names that no package lists, where no comment above them says why.

    One comment serves all such imports that follow it.
    """
    lines, found, told = ["", *text.splitlines()], [], -1
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith("dphmm") or node.module in PUBLIC:
            continue
        listed = getattr(import_module(node.module), "__all__", ())
        if all(alias.name in listed for alias in node.names):
            continue
        if lines[node.lineno - 1].lstrip().startswith("#") or node.lineno - 1 == told:
            told = node.end_lineno
        else:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def test_experiments_import_public_names_or_say_why_not():
    found = {str(path.relative_to(FOLDER)): unexplained(path.read_text()) for path in sorted(FOLDER.rglob("*.py"))}
    assert len(found) > 20 and {name: names for name, names in found.items() if names} == {}


def test_a_private_name_is_found():
    private = "from dphmm.session.answer import answer_under\n"
    assert unexplained(private) == ["dphmm.session.answer.answer_under"]
    assert unexplained("import numpy\n# Why.\n" + private) == []
    assert unexplained("# Why.\n" + private + "from dphmm.session.smoothing import likelihood_rows\n") == []
    assert unexplained("from dphmm.session import StepPlan\nfrom dphmm import policy\n") == []


def test_noise_hangs_on_the_cell_and_the_name():
    def words(seed, *label):
        return tuple(bits_of(np.random.SeedSequence(seed), *label).uint64(4).tolist())

    assert words(1, "a", 2) == words(1, "a", 2)
    assert len({words(1, "a", 2), words(1, "a", 3), words(1, "b", 2), words(2, "a", 2)}) == 4


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        (None, "no folder of data: --data or DPHMM_DATA"),
        ((), "no a.csv and no b.csv in the folder of data"),
        (("a.csv",), "no b.csv in the folder of data"),
        (("a.csv", "b.csv"), None),
    ],
)
def test_what_is_missing_is_named(tmp_path, there, reason):
    for name in there or ():
        (tmp_path / name).touch()
    (tmp_path / "c.csv").mkdir()
    settings = Settings(data=None if there is None else tmp_path)
    assert settings.missing("a.csv", "b.csv") == reason
    assert there is None or settings.missing("c.csv") is not None, "a folder is no file"


def test_groups_come_in_the_order_of_the_rows():
    rows = pd.DataFrame({"k": ["b", "a", "b"], "n": [1, 2, 3]})
    assert [(key, part["n"].tolist()) for key, part in groups(rows, ("k",))] == [(("b",), [1, 3]), (("a",), [2])]
