"""The experiment on private hidden Markov models: rows that depend on cell and seed alone, and totals that are true.

It could fail by lending randomness from one method to another, by printing the paper's nominal epsilon as the true
one, by passing off the last-iteration baseline as private, by counting renamed states as different, or by leaving out
real data without saying so.
"""

from __future__ import annotations

import gzip
import warnings
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dphmm.evaluation import bootstrap_mean
from dphmm.markov.hidden import expected_counts, observations
from experiments import __main__ as command
from experiments import hmm_privacy
from experiments.experiment import Settings, seed_of
from experiments.hmm_privacy import casino as casino_part
from experiments.hmm_privacy import real, tables
from experiments.hmm_privacy.casino import Judge, aligned, casino, half_right, loss, rolled
from experiments.hmm_privacy.methods import (
    BETTER,
    CHAIN,
    DELTA,
    EVEN,
    EVERY,
    INDEPENDENT,
    LAST,
    NO_DATA,
    NOT_PRIVATE,
    normally,
)

pytestmark = pytest.mark.replayed_words

CELL = {
    "part": "casino", "states": 2, "length": 10, "sequences": 12, "data_set": 0, "draws": 2, "removals": 2
}  # fmt: skip
EPSILONS = ("0.3", "3")


def _seed(number: int = 1, cell=CELL) -> np.random.SeedSequence:
    return seed_of(Settings(seed=number), "hmm-privacy", cell)


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return casino_part.measure(CELL, EPSILONS, _seed())


def _frame(rows, cell=CELL) -> pd.DataFrame:
    return pd.DataFrame([{**cell, **row} for row in rows])


@pytest.mark.slow
def test_rows_are_of_the_cell_and_the_seed_alone(rows):
    assert casino_part.measure(CELL, EPSILONS, _seed()) == rows
    assert casino_part.measure(CELL, EPSILONS, _seed(2)) != rows


def test_a_fits_noise_does_not_depend_on_what_else_is_measured(rows, monkeypatch):
    monkeypatch.setattr(casino_part, "BETTER", BETTER[1:2])
    alone = casino_part.measure(CELL, EPSILONS[1:], _seed())
    kept = [row for row in alone if row["method"] == BETTER[1].name]
    assert len(kept) == 2 and kept[0] != kept[1]
    assert kept == [row for row in rows if row["method"] == BETTER[1].name and row["epsilon"] == 3.0]


def test_true_totals_stand_beside_the_nominal_epsilon(rows):
    private = [row for row in rows if "draw" in row and row["method"] != LAST.name]
    assert {row["method"] for row in private} == {EVERY.name, INDEPENDENT, CHAIN, *(method.name for method in BETTER)}
    for row in private:
        total = (2 - 1 / 10) * row["epsilon"]
        assert row["true_epsilon"] == pytest.approx(total, rel=1e-9), row["method"]
        gaussian = row["method"] == BETTER[-1].name
        assert row["guarantee"] == ("delta 1e-06" if gaussian else "pure")
        assert row["delta"] == (float(DELTA) if gaussian else 0.0)
    assert {row["true_epsilon"] for row in rows if row["method"] == NO_DATA} == {0.0}


def test_the_last_iteration_has_no_epsilon_that_is_true(rows):
    found = [row for row in rows if row["method"] == LAST.name and "draw" in row]
    assert len(found) == 4 and "NOT PRIVATE" in LAST.name
    assert all(row["guarantee"] == NOT_PRIVATE and row["true_epsilon"] is None for row in found)


def test_the_warning_is_silenced_here_and_nowhere_else(rows):
    """Warnings are errors in these tests, so ``rows`` shows the first half."""
    start = half_right(casino(2), np.random.default_rng(1))
    with pytest.warns(UserWarning, match=NOT_PRIVATE):
        start.model().fit_private([[0, 1, 5]], epsilon=1, max_length=3, iterations=2, **LAST.options)
    before = list(warnings.filters)
    casino_part.measure({**CELL, "draws": 1}, ("3",), _seed())
    assert warnings.filters == before


@pytest.mark.parametrize("states", [2, 3])
def test_states_are_renamed_to_agree_most(states):
    random = np.random.default_rng(states)
    for _ in range(20):
        path, other = random.integers(states, size=(2, 15))
        best = max((np.array(names)[path] == other).sum() for names in permutations(range(states)))
        assert (aligned(path, other, states) == other).sum() == best
    for names in permutations(range(states)):
        assert np.array_equal(aligned(np.array(names)[path], path, states), path)


def test_similarity_is_1_with_the_same_model_renamed_and_less_with_another():
    random = np.random.default_rng(3)
    truth = casino(3)
    sequences = rolled(truth, 40, 10, random)
    normal = normally(half_right(truth, random), sequences)
    judge = Judge(normal, rolled(truth, 30, 10, random))
    renamed, order = normally(half_right(truth, random), sequences), [2, 0, 1]
    renamed.startprob_, renamed.emissionprob_ = normal.startprob_[order], normal.emissionprob_[order]
    renamed.transmat_ = normal.transmat_[np.ix_(order, order)]
    same, other = judge(renamed), judge(half_right(truth, random).model())
    assert same["similarity"] == same["paths"] == 1.0 and same["change"] == pytest.approx(0.0, abs=1e-12)
    assert 1 / 3 < other["similarity"] < 1.0 and other["paths"] < other["similarity"]
    assert other["change"] == pytest.approx(other["loglik"] - same["loglik"]) and other["change"] != 0.0


def test_the_casino_rolls_as_its_model_says():
    """Chi-square of 4,000 first and last symbols (25.7 at 5 degrees) and first pairs (74.9 at 35), level 1e-4 each."""
    for states in (2, 3):
        truth = casino(states)
        assert np.allclose(truth.initial @ truth.transition, truth.initial)
        rolls = rolled(truth, 4000, 5, np.random.default_rng(states))
        expected = 4000 * truth.initial @ truth.emission
        for position in (0, 4):
            seen = np.bincount(rolls[:, position], minlength=6)
            assert ((seen - expected) ** 2 / expected).sum() < 25.7
        pairs = 4000 * np.einsum("k,kl,ka,lb->ab", truth.initial, truth.transition, truth.emission, truth.emission)
        seen = np.bincount(rolls[:, 0] * 6 + rolls[:, 1], minlength=36).reshape(6, 6)
        assert ((seen - pairs) ** 2 / pairs).sum() < 74.9


def test_the_loss_is_the_claimed_one_at_public_parameters_and_more_after_training(monkeypatch):
    random = np.random.default_rng(4)
    start, sequences = half_right(casino(2), random), rolled(casino(2), 60, 10, random)
    after = [loss(start, sequences, removed) for removed in range(4)]

    def at_start(start, sequences):
        seen = observations(sequences.ravel(), [10] * len(sequences), 6)
        counts = expected_counts(start.model().parameters, seen)
        return np.concatenate([counts.transition.ravel(), counts.emission.ravel()])

    monkeypatch.setattr(casino_part, "_last_counts", at_start)
    assert [loss(start, sequences, removed) for removed in range(4)] == pytest.approx([2 - 1 / 10] * 4)
    assert min(after) > 1.9


def test_tables_have_their_columns_whatever_was_measured(rows):
    found = tables.tables(_frame(rows))
    for name in ("last", "every", "methods-2-states", "methods-3-states", "more-people"):
        assert tuple(found[name].columns) == tables.CASINO, name
    assert tuple(found["real"].columns) == tables.REAL and not len(found["real"])
    assert tuple(found["last-loss"].columns) == tables.LOSS
    assert set(found["last"]["guarantee"]) == {NOT_PRIVATE} and found["last"]["true_epsilon"].isna().all()
    assert list(found["every"]["true_epsilon"]) == pytest.approx([0.57, 5.7])
    assert len(found["methods-2-states"]) == 2 * 11 and not len(found["methods-3-states"])
    assert found["normal"]["similarity"].iloc[0] == 1.0
    assert {figure.table for figure in hmm_privacy.EXPERIMENT.figures} <= set(found)
    for figure in hmm_privacy.EXPERIMENT.figures:
        wanted = {figure.x, figure.y, figure.by, figure.panels, figure.low, figure.high} - {None}
        assert wanted <= set(found[figure.table].columns), figure.name


def test_intervals_are_over_data_sets_not_over_draws():
    """Ten draws of one data set are one observation: they would make the interval a third as wide."""
    rows = [
        {**CELL, "data_set": k, "method": EVERY.name, "guarantee": "pure", "epsilon": 1.0, "true_epsilon": 1.9,
         "delta": 0.0, "similarity": k / 4, "paths": 0.0, "loglik": -1.0, "change": 0.0}
        for k in range(4) for _ in range(10)
    ]  # fmt: skip
    line = tables.tables(pd.DataFrame(rows))["every"].iloc[0]
    assert line["data_sets"] == 4
    assert (line["similarity"], line["low"], line["high"]) == bootstrap_mean([0, 0.25, 0.5, 0.75])
    assert line["high"] - line["low"] > 0.4


def _small_data(folder: Path) -> Path:
    random = np.random.default_rng(5)
    lines = [" ".join(map(str, random.integers(1, 18, size=size))) for size in random.integers(3, 70, size=30)]
    with gzip.open(folder / "msnbc323.seq.gz", "wt") as file:
        file.write("\n".join(["% a comment", " ".join(f"page{k}" for k in range(17)), *lines]) + "\n")
    return folder


def test_what_is_skipped_is_said(tmp_path):
    none = hmm_privacy.cells(Settings(quick=True))[-2:]
    assert [cell["part"] for cell in none] == ["skipped"] * 2 and "--data" in none[0]["reason"]
    some = hmm_privacy.cells(Settings(quick=True, data=_small_data(tmp_path)))[-2:]
    assert [cell["part"] for cell in some] == ["real", "skipped"] and some[1]["reason"].startswith("no mvad.csv.gz")
    lines = [{**cell, **row} for cell in none for row in hmm_privacy.measure(Settings(), cell, _seed())]
    table = tables.tables(pd.DataFrame(lines))["skipped"]
    assert list(table["data"]) == ["msnbc323", "mvad"] and list(table.columns) == ["data", "reason"]


def test_real_sequences_get_their_own_totals(tmp_path):
    folder = _small_data(tmp_path)
    cell = {"part": "real", "data": "msnbc323", "split": 0, "draws": 1}
    rows = real.measure(Settings(data=folder), cell, ("2",), _seed(cell=cell))
    assert rows == real.measure(Settings(data=folder), cell, ("2",), _seed(cell=cell))
    private = {row["method"]: row for row in rows if "draw" in row}
    assert set(private) == {INDEPENDENT, CHAIN, *(method.name for method in BETTER)}
    assert [row for row in private.values() if row["true_epsilon"] != pytest.approx(2.0, rel=1e-9)] == []
    others = {row["method"]: row for row in rows if "draw" not in row}
    assert others[real.BAUM_WELCH]["guarantee"] == NOT_PRIVATE
    assert others[EVEN]["loglik"] == pytest.approx(-np.log(17))
    table = tables.tables(_frame(rows, cell))["real"]
    normal = table[table["method"] == real.BAUM_WELCH]
    assert len(table) == len(rows) and list(normal["change"]) == [0.0]


def test_people_who_judge_are_not_learned_from(tmp_path, monkeypatch):
    folder = _small_data(tmp_path)
    parts = []
    monkeypatch.setattr(real, "_ordinary", lambda data, known, start: parts.append(known))
    monkeypatch.setattr(real, "_ordinary_chain", lambda data, known: None)
    monkeypatch.setattr(real, "_per_symbol", lambda model, sequences: parts.append(sequences) or 0.0)
    real.measure(Settings(data=folder), {"data": "msnbc323", "draws": 0}, ("1",), _seed())
    known, held_out = ([tuple(sequence) for sequence in part] for part in parts[:2])
    assert (len(known), len(held_out)) == (24, 6) and not set(known) & set(held_out)
    assert max(map(len, known + held_out)) == real.DATA_SETS["msnbc323"].length == 50


def test_the_real_files_are_read_whole(data_folder):
    for name, people, longest in (("msnbc323", 323, 362), ("mvad", 712, 72)):
        data = real.DATA_SETS[name]
        if not (data_folder / data.file).is_file():
            pytest.skip(f"this real data is not here: {data.file}")
        found = real.sequences_of(data_folder / data.file, data)
        assert len(found) == people and max(map(len, found)) == longest
        assert len(np.unique(np.concatenate(found))) == data.symbols


@pytest.mark.slow
def test_it_runs_from_data_to_its_page(tmp_path, monkeypatch, capsys):
    """With two epsilons, one figure, and synthetic sequences in place of the real ones."""
    first = replace(hmm_privacy.EXPERIMENT, figures=hmm_privacy.EXPERIMENT.figures[:1])
    monkeypatch.setattr(hmm_privacy, "EXPERIMENT", first)
    monkeypatch.setattr(hmm_privacy, "_FEW", ("1", "2"))
    monkeypatch.setattr(hmm_privacy, "_FEW_REAL", ("1",))
    data, folder = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    assert command.main(["hmm-privacy", "-o", str(folder), "--quick", "--data", str(_small_data(data))]) == 0
    assert "warning: left out: mvad" in capsys.readouterr().err
    page = (folder / "results.md").read_text()
    assert "paper: last iteration, NOT PRIVATE" in page and "no mvad.csv.gz" in page
    assert (folder / "last.svg").exists() and (folder / "real.csv").exists()
