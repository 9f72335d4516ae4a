"""Results in notebooks: what a table or a line says is there, and no text of a file becomes markup.

It would fail for a name that is not escaped, for a number that is missing, and for a result without a view.
"""

from __future__ import annotations

import pytest

import dphmm
from dphmm._notebook import html_lines, html_table

SPACE = dphmm.StateSpace([0, 1, 2])
MODEL = dphmm.MarkovModel([0.5, 0.25, 0.25], [[0.8, 0.2, 0], [0.1, 0.8, 0.1], [0, 0.2, 0.8]], space=SPACE)
POLICY = dphmm.policy.complete(3)


def test_text_is_escaped_and_numbers_are_short():
    assert "<script" not in html_table(["<script>"], [["<script>"]], "<script>") + html_lines(["<script>"])
    assert "<td>0.3333</td><td></td><td>7</td>" in html_table("abc", [[1 / 3, float("nan"), 7]])


RESULTS = {
    "verify": (
        lambda: dphmm.audit.verify(dphmm.ReleaseSession(MODEL, POLICY, SPACE, 1)),
        "keeps its promise",
    ),
    "compare": (
        lambda: dphmm.dependent.compare(
            dphmm.dependent.Chain([[0.9, 0.1], [0.2, 0.8]], 3), dphmm.dependent.Sum([0, 1]), 1
        ),
        "group",
    ),
    "synthesize": (lambda: dphmm.evaluation.synthesize(MODEL, 2, 3, seed=1), "6 rows of 2 users"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_show_themselves(name):
    made, told = RESULTS[name]
    assert told in made()._repr_html_()


def test_rows_of_people_stay_out_of_a_notebook():
    rows = dphmm.states.Trajectories.from_labels(["ann", "ann"], state=["clinic", "home"])
    shown = rows._repr_html_()
    assert "ann" not in shown and "clinic" not in shown and rows.to_pandas().state.tolist() == ["clinic", "home"]
