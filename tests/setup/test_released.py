"""A folder is opened by one argument, says what was published, and gives what a reader makes of it."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput
from report.spoken import spoken

pytestmark = pytest.mark.replayed_words
LEARNED_OF = ("released.csv", "learned.npz")
SETUP = dphmm.Setup.labels(["a", "b", "c"], moves=[[8, 1, 1], [2, 7, 1], [4, 4, 2]])


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    table = pd.DataFrame({"user": ["u"] * 8 + ["v"] * 8, "step": [*range(1, 9)] * 2, "state": list("aaabbbcc") * 2})
    SETUP.plan(4, per=4, epsilon=2, people=20, progress=False).release(table, folder / "out", progress=False)
    return folder / "out"


def test_it_opens_with_the_folder_alone(out):
    released = dphmm.open(out)
    assert released.model.digest == SETUP.model.digest and released.policy.digest == SETUP.policy.digest
    assert released.plan.schedule == released.statement.asking
    lines = repr(released).splitlines()
    assert lines[0].startswith("Released: 8 noisy labels of 2 people") and len(lines) <= 5
    assert lines[-1].startswith("spent: at most 4 of 4")
    assert "guaranteed" in released._repr_html_()
    # The table inside names its folder.
    assert dphmm.open(out / "released.csv").rows.equals(released.rows)


def test_what_a_reader_makes_of_it(out):
    released = dphmm.open(out)
    estimates = released.estimates(progress=False)
    assert len(estimates) == len(released.rows) == 16 and {"smoothed", "probability"} <= set(estimates.columns)
    assert [share.region for share in released.population(progress=False).regions] == ["a", "b", "c"]
    assert {odds.subject for odds in released.odds(["a"], 1, 2)} == {"u", "v"}
    assert released.read_report(progress=False).story.document()["verdict"]["rules"]
    assert json.loads(json.dumps(released.document()))["published"]["answers"] == 8


def test_the_account_of_everybody_is_one_line(out, tmp_path):
    """By hand from the rows: the sums of people, and of blocks of four steps."""
    assert dphmm.open(out).account == "2 people, all alike: 8 each, 4 of 4 every block of 4"
    assert "  stated: account: 2 people, all alike" in "\n".join(dphmm.open(out).check().lines)
    uneven = pd.DataFrame(
        {"user": ["u"] * 8 + ["v"] * 4, "step": [*range(1, 9), *range(1, 5)], "state": list("aaabbbcc") + ["a"] * 4}
    )
    SETUP.plan(4, per=4, epsilon=2, people=20, progress=False).release(uneven, tmp_path / "out", progress=False)
    released = dphmm.open(tmp_path / "out")
    sums = released.rows.groupby("user").epsilon.sum()
    assert released.account == f"2 people: {sums.min():g} to {sums.max():g} each, 4 of 4 every block of 4"
    (tmp_path / "other").mkdir()
    whole = SETUP.plan(9, steps=8, epsilon=1, people=20, progress=False)
    assert " every " not in whole.release(uneven, tmp_path / "other" / "out", progress=False).account


def test_every_reader_takes_another_model_and_says_so(out):
    """A sticky belief model changes estimates, odds and the page; plans, and unbiased shares, stay as they are."""
    released = dphmm.open(out)
    belief = dphmm.MarkovModel([0.1, 0.1, 0.8], 0.05 + 0.85 * np.eye(3), space=released.space, start="at")
    plain, other = (released.estimates(believe=model, progress=False) for model in (None, belief))
    assert plain.user.equals(other.user) and not plain.probability.equals(other.probability)
    before, after = (released.odds(["a"], 1, 2, believe=model)[0] for model in (None, belief))
    assert before.prior != after.prior and before.cost == after.cost
    shares = [released.population(believe=model, progress=False).regions for model in (None, belief)]
    assert [share.linear for share in shares[0]] == [share.linear for share in shares[1]]
    pages = [released.read_report(believe=model, progress=False) for model in (None, released.model, belief)]
    assert ["belief model" in str(spoken(page, "notes")) for page in pages] == [False, False, True]
    assert [plan.hash for plan in pages[0].plans] == [plan.hash for plan in pages[2].plans]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Forty people who go round, which the model does not know; and a release of another truth with their ledger."""
    folder = tmp_path_factory.mktemp("crowd")
    users, steps = np.repeat([f"p{number:02d}" for number in range(40)], 16), np.tile(np.arange(1, 17), 40)
    first = np.repeat(np.arange(40) % 3, 16)
    plan = SETUP.plan(8, per=4, epsilon=2, people=20, progress=False)
    for name, truth in (("out", first + steps), ("other", first * steps)):
        table = pd.DataFrame({"user": users, "step": steps, "state": np.array(list("abc"))[truth % 3]})
        bits = dphmm.ReplayBits(3)
        plan.release(table, folder / name, ledger=folder / "ledger.db", bits=bits, check=False, progress=False)
    return folder


def test_readers_take_the_model_that_the_release_learned(crowd):
    """It is nearer by the likelihoods of those left out, is named by the index, and is set aside by naming another."""
    released = dphmm.open(crowd / "out")
    learned = released.learned
    assert learned.family in ("tilt", "mix") and learned.gain > learned.error and not learned.reason
    assert learned.people == 40 and released.folder.others() == []
    plain, own = (released.estimates(believe=model, progress=False) for model in (released.model, learned.model))
    assert released.estimates(progress=False).equals(own) and not plain.equals(own)
    assert own.probability.mean() > plain.probability.mean()
    pages = [released.read_report(believe=model, progress=False) for model in (None, released.model)]
    assert ["released answers of 40 people" in str(spoken(page, "notes")) for page in pages] == [True, False]
    again = released.learn(progress=False)
    assert again.model.digest == learned.model.digest and again.document() == learned.document()


def test_what_is_learned_hangs_on_the_released_file_alone(crowd):
    """Another truth, whose answers are those in the ledger: the same table, and the same learned model, to the byte."""
    files = [[(crowd / folder / name).read_bytes() for folder in ("out", "other")] for name in LEARNED_OF]
    assert all(one == other for one, other in files)


def test_a_model_that_was_learned_from_another_table_is_not_read_with(crowd, tmp_path):
    folder = tmp_path / "out"
    shutil.copytree(crowd / "out", folder)
    lines = (folder / "released.csv").read_text().splitlines(keepends=True)
    (folder / "released.csv").write_text("".join(lines[:-1]))
    found = dphmm.open(folder).learned
    assert found.family == "public" and "learned from its table" in found.reason


def test_few_people_leave_no_learned_model_nor_an_older_one(out, crowd):
    released = dphmm.open(out)
    shutil.copy(crowd / "out" / "learned.npz", out)
    released.folder.keep(["learned.npz"])
    released.learn(keep=True, progress=False)
    assert not (out / "learned.npz").exists() and released.learned.model is released.model
    assert "at least 10" in released.learn(keep=True, progress=False).reason and released.folder.others() == []


def test_page_and_repr_say_the_same(out):
    released = dphmm.open(out)
    page = released.read_report(progress=False).story
    assert page.published == released.story.published and page.spent == released.story.spent
    assert page.guaranteed == released.story.guaranteed


def test_the_page_lies_in_the_folder_and_one_with_the_truth_does_not(out):
    released = dphmm.open(out)
    assert released.report(progress=False) == out / "report.html" and released.folder.others() == []
    truth = pd.DataFrame({"user": ["u"] * 8 + ["v"] * 8, "step": [*range(1, 9)] * 2, "state": list("aaabbbcc") * 2})
    written = released.report(truth=truth, progress=False)
    assert written.parent == out.with_name("out.owner") and released.folder.others() == []


def test_it_is_checked(out):
    released = dphmm.open(out)
    assert not released.check().convicted
    assert released.check(out.parent / "ledger.db").findings == ()


def test_what_is_no_release_is_refused_in_one_line(tmp_path, out):
    with pytest.raises(InvalidInput, match="which does not exist"):
        dphmm.open(tmp_path / "nothing")
    with pytest.raises(InvalidInput, match="is no folder of a release"):
        dphmm.open(tmp_path)


def test_rows_that_were_released_elsewhere_have_a_folder_of_their_own(out, tmp_path):
    released = dphmm.open(out)
    public = released.model, released.policy, released.space
    written = dphmm.Released.write(tmp_path / "copy", released.rows, released.statement, public)
    assert written.rows.equals(released.rows) and not written.check().convicted
    with pytest.raises(InvalidInput, match="which has a release"):
        dphmm.Released.write(tmp_path / "copy", released.rows, released.statement, public)


def test_what_a_reader_finds_is_not_told_of_rows_with_a_hole(tmp_path):
    """A plan's invented people have a row at every step; whoever has not is told by the report."""
    table = pd.DataFrame({"user": "u", "step": [*range(1, 9)], "state": "a"})
    plan = SETUP.plan(4, per=4, epsilon=2, people=20, progress=False)
    whole = plan.release(table, tmp_path / "whole", progress=False)
    holed = plan.release(table[table["step"] != 4], tmp_path / "holed", ledger=tmp_path / "other.db", progress=False)
    assert whole.document()["found"] is not None and holed.document()["found"] is None


def test_a_moment_is_one_row_and_its_map(tmp_path):
    setup = dphmm.Setup.grid((13.30, 52.48, 13.34, 52.51), cell="500m", step="1h", max_speed="20km/h", covers="1km")
    times = pd.date_range("2024-05-06T08:00Z", periods=6, freq="h")
    table = pd.DataFrame({"user": "anna", "t": times, "lat": 52.49, "lon": 13.31})
    out = setup.plan(epsilon=1).release(table, tmp_path / "out", bits=dphmm.ReplayBits(5), progress=False)
    moment, row = out.at("anna", "10:00"), out.rows.iloc[2]
    assert (moment.number, moment.row["z_0"]) == (2, row["z_0"]) and repr(moment).startswith("anna, ")
    assert out.at("anna", "2024-05-06T10:00Z").row == moment.row == out.at("anna", int(row["step"])).row
    assert moment.map().rows[0][0] == "published answer"
    for person, at, field in (("eve", "10:00", "person"), ("anna", "10:30", "moment"), ("anna", "soon", "moment")):
        with pytest.raises(InvalidInput, match=f"^{field}: got "):
            out.at(person, at)
