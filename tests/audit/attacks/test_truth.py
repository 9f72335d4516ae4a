"""Truth beside a release: only the trajectories that were released are taken for it.

Claims: with times, rows are those of their times, and one that was left out or moved is told; without, a row too many
at the beginning, which would shift all that follow by one without a word, is told too, and with the ledger a shift that
only the first row's number shows. Nothing of the truth is in a message. It would fail for a reader that counts rows and
believes the count, as it was done.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dphmm
from audit.small import SPACE
from audit.test_released import Finished
from crafted_bits import keyed_system_bits
from dphmm.audit import attack
from dphmm.audit.attacks.truth import begins_of, truth_of
from dphmm.audit.released import ReleasedFile
from dphmm.errors import InvalidInput

EVEN = dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6))
STEPPED = dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6), step=300)
STATES = [3, 1, 4, 1, 5, 2, 0, 5]


def rows(users=("ann", "bob"), **columns):
    """Eight rows of each user."""
    parts = [pd.DataFrame({"user": user, "state": list(map(str, STATES)), **columns}) for user in users]
    return pd.concat(parts, ignore_index=True)


def times(minutes=5):
    return {"t": pd.date_range("2024-05-06T08:01", periods=8, freq=f"{minutes}min", tz="UTC")}


KINDS = {
    "no times": (EVEN, rows()),
    "steps": (EVEN, rows(step=np.arange(8) * 2 + 5)),
    "times": (EVEN, rows(**times(7))),
    "times of a model with steps": (STEPPED, rows(**times())),
    "steps of a model with steps": (STEPPED, rows(step=5716608 + np.arange(8))),
}


@pytest.fixture(params=KINDS)
def kind(request, tmp_path):
    model, table = KINDS[request.param]
    return Finished(tmp_path, model=model, table=table), table


def of(one, truth, ledger=False):
    file = ReleasedFile.read(one.path, SPACE)
    known = begins_of(one.ledger, "state", file) if ledger else None
    return truth_of(file, truth, one.public[0], SPACE, known).states


def test_the_rows_that_were_released_are_the_truth(kind):
    one, table = kind
    for ledger in (False, True):
        assert of(one, table, ledger).tolist() == STATES * 2
        # Their order in the file says nothing where there are times or steps.
        if "t" in table or "step" in table:
            assert of(one, table.iloc[::-1], ledger).tolist() == STATES * 2
        assert of(one, pd.concat([table, table.iloc[:8].assign(user="eve")]), ledger).tolist() == STATES * 2


def shifted(table, before):
    """A row more at the beginning of one user, at an earlier time."""
    first = table.iloc[[0]].copy()
    if "t" in table:
        first["t"] -= pd.Timedelta(minutes=before)
    if "step" in table:
        first["step"] -= before
    return pd.concat([first, table], ignore_index=True)


def test_a_row_too_many_at_the_beginning_shifts_nothing(kind):
    one, table = kind
    truth = shifted(table, 5)
    if one.public[0].step is not None or "t" in table:
        assert of(one, truth).tolist() == STATES * 2
        return
    with pytest.raises(
        InvalidInput, match=r"truth: got (\d+ rows of released subjects|other times|no row for)"
    ) as refused:
        of(one, truth)
    assert "\n" not in str(refused.value)


def test_a_row_too_few_is_told(kind):
    one, table = kind
    for drop in (0, 3, 7):
        with pytest.raises(InvalidInput, match=r"truth: got (no row for|other times)"):
            of(one, table.drop(index=drop))


def test_a_shift_within_the_same_count_is_told(kind):
    """One row more at the beginning and one fewer at the end."""
    one, table = kind
    truth = shifted(table, 5).drop(index=8).reset_index(drop=True)
    assert len(truth) == len(table)
    if "t" in table or one.public[0].step is not None:
        with pytest.raises(InvalidInput, match=r"truth: got (no row for|other times)"):
            of(one, truth)
    elif "step" in table:
        with pytest.raises(InvalidInput, match=r"truth: got (no row for|\d+ rows|another first row)"):
            of(one, truth, ledger=True)


def test_the_number_of_the_first_row_is_the_ledger_s(tmp_path):
    """All steps moved alike: the numbers from 1 are the same, and only the ledger knows better."""
    one = Finished(tmp_path, model=EVEN, table=rows(step=np.arange(8) + 5))
    moved = rows(step=np.arange(8) + 4)
    assert of(one, moved).tolist() == STATES * 2
    with pytest.raises(InvalidInput, match="another first row than the ledger says of 2 subjects"):
        of(one, moved, ledger=True)
    with pytest.raises(InvalidInput, match="another first row"):
        attack(one.path, moved, *one.public, ledger=one.ledger)


def test_moved_times_are_told(tmp_path):
    for number, (model, minutes) in enumerate(((EVEN, 7), (STEPPED, 5))):
        (tmp_path / str(number)).mkdir()
        one = Finished(tmp_path / str(number), model=model, table=rows(**times(minutes)))
        moved = rows(**times(minutes))
        moved["t"] += pd.Timedelta(minutes=60)
        with pytest.raises(InvalidInput, match=r"truth: got (no row for|other times than those of 16)"):
            of(one, moved)
        # Within the same time step nothing is moved.
        near = rows(**times(minutes))
        near["t"] += pd.Timedelta(seconds=60)
        if model is STEPPED:
            assert of(one, near).tolist() == STATES * 2
        else:
            with pytest.raises(InvalidInput, match="no row for 16 of 16"):
                of(one, near)


def test_truth_without_the_times_of_the_release_is_refused(tmp_path):
    one = Finished(tmp_path, model=EVEN, table=rows(**times(7)))
    with pytest.raises(InvalidInput, match="rows without times"):
        of(one, rows())


def test_of_a_file_without_places_the_message_names_the_file(tmp_path):
    """Several files are given at once: the name of a column alone does not say which is meant."""
    one = Finished(tmp_path, model=EVEN, table=rows())
    rows().rename(columns={"state": "estimate"}).to_csv(tmp_path / "smoothed.csv", index=False)
    with pytest.raises(InvalidInput, match=r"truth: got smoothed\.csv; expected the trajectories that were released"):
        of(one, tmp_path / "smoothed.csv")


def test_no_message_has_a_true_value(kind):
    one, table = kind
    odd = shifted(table, 5).assign(state="CANARY_7f3a")
    odd.loc[0, "user"] = "CANARY_of_a_user"
    for truth in (odd, odd.iloc[1:].drop(index=[4])):
        try:
            found = of(one, truth, ledger=True)
        except InvalidInput as error:
            assert "CANARY" not in str(error) and "\n" not in str(error)
        else:
            assert (found == -1).all()


def test_an_attack_needs_the_right_truth(tmp_path):
    one = Finished(tmp_path, model=EVEN, table=rows(), bits=keyed_system_bits(4))
    assert attack(one.path, rows(), *one.public, ledger=one.ledger).rows == 16
    with pytest.raises(InvalidInput, match="were not released"):
        attack(one.path, shifted(rows(), 1), *one.public)
