"""A page, its terminal and its JSON never say less than a reader finds, nor more than is proved.

Claim: who stays at one place is found by answers of every hour; figures of people who begin where it is known are not
those of people who may begin anywhere; a guarantee is of possible states, and says so where some are not; schedules and
times are those of the rows; nothing is said to confirm where a model came from. It would fail for a page that says that
nothing is found where an estimate finds it, or that repeats a statement's schedule unread.
"""

from __future__ import annotations

import html
import json
import re
import shutil
from dataclasses import replace
from fractions import Fraction

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import choosing
import dphmm
from commands import BBOX, run, write_rows
from dphmm.accounting.budget import Caps
from dphmm.accounting.edge_leakage import losses_between
from dphmm.choose.planning import World
from dphmm.choose.schedule_plan import read_plan
from dphmm.errors import InvalidInput
from dphmm.markov.stochastic import Jump
from dphmm.report import assembling, words, write_report
from dphmm.report.page import Content, page
from dphmm.session.setting import Setting
from dphmm.statement.doubt import doubt
from dphmm.statement.learning import learning_of
from dphmm.statement.sentences import PHRASES, off
from dphmm.statement.verdict import Stay
from dphmm.states.space import LABELS_WRONG
from report.spoken import spoken
from report.worlds import altered, plan_of, read, released, report, with_column

#: Commands and files draw here: each test replays words of its own.
pytestmark = [pytest.mark.replayed_words, pytest.mark.slow]
DAYS = 7


def said(text):
    """The words of a page."""
    text = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


@pytest.fixture(scope="module")
def noon(tmp_path_factory):
    """Four people who stay at home for a week, and are asked once a day, at noon."""
    folder = tmp_path_factory.mktemp("noon")
    run("model", "grid", "--bbox", BBOX, "--cell", "1km", "--step", "1h", "--max-speed", "2km/h",
        "-o", folder / "model.npz")  # fmt: skip
    run("policy", "radius", folder / "model.npz", "-o", folder / "policy.json", "--radius", "1.5km")
    public = (folder / "model.npz", "--policy", folder / "policy.json", "--people", 20)
    run("plan", *public, "--path-epsilon", 6, "--per", "1d", "--epsilon", 6, "-o", folder / "plan.json")
    space = dphmm.storage.load_model(folder / "model.npz").space
    lat, lon = space.to_latlon(space.answers)
    hours = [(f"2024-05-{6 + day:02d}T{hour:02d}:00:00Z") for day in range(DAYS) for hour in range(24)]
    rows = [[f"u{home}", hour, lat[home], lon[home]] for home in (0, 5, 7, 14) for hour in hours]
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], rows)
    return released(folder, "--plan", folder / "plan.json", epsilon=None)


# -- who stays at one place ---------------------------------------------------------------------------------------


def test_answers_at_noon_find_who_stays_all_day(noon):
    """What is said is no more than the error of a reader who takes the median of a week's answers."""
    made = read(noon)
    assert set((made.rows.step[made.rows.asked] - 1) % 24) == {12} and made.rows.asked.sum() == 4 * DAYS
    found = made.found
    stays = {stay.after: stay.error for stay in found.stays}
    second = found.own_stay.error
    assert (found.block, found.blocks, found.own_stay.after) == ("day", DAYS, DAYS)
    assert second < stays[1] < 0.7 * found.stays_without
    space = made.space
    simple = []
    for home, rows in zip((0, 5, 7, 14), made.rows.by_user.values(), strict=True):
        answers = made.rows.z[rows[made.rows.asked[rows]]]
        simple.append(space.distances(np.median(answers, axis=0)[None], space.answers[[home]])[0])
    # These four are at the middles of their cells; invented ones are anywhere in theirs, half a cell away at most.
    assert second < np.mean(simple) + space.cell / 2


def test_who_stays_is_told_alike_by_page_terminal_and_json(noon):
    public = ("--force",)
    told = json.loads(report(noon, noon / "page.html", *public, "--json").stdout)
    stays = told["found"]["stays"]
    assert (stays["block"], stays["in_file"]) == ("day", DAYS)
    week = off({stay["after"]: stay["error"] for stay in stays["found"]}[DAYS], "m")
    without = off(stays["error_without"], "m")
    line = f"gets within {week} of somebody who stays in one place for all 7 days of this file ({without} without)"
    terminal = " ".join(report(noon, noon / "page.html", *public).stderr.split())
    shown = said((noon / "page.html").read_text())
    for text in (read(noon).story.words("found")[1], terminal, shown):
        assert text.count(line) == 1 + (text == shown)
    # One answer a day finds the place within a week: the model hardly moves anybody.
    headline = "A place that somebody returns to is found."
    assert told["verdict"]["rules"][0] == "returns" and headline in terminal
    assert f"{headline} A reader {line}. fewer days, a smaller budget" in shown
    assert f"Who stays at one place: {week} in 7 days" in shown
    assert "night" not in shown and "sleeps" not in shown + terminal
    plan = " ".join(run("plan", noon / "model.npz", "--policy", noon / "policy.json", "--path-epsilon", 6, "--per",
                        "1d", "--epsilon", 6).stdout.split())  # fmt: skip
    assert f" / {week} <- 6" in plan and "who stays at one place, 1 day / 7 days" in plan


# -- beginnings that are public -----------------------------------------------------------------------------------


def test_of_people_who_begin_where_it_is_known_nothing_is_expected(noon, tmp_path):
    """The invented people begin anywhere: their errors, and a guess without the file, say less than is known."""
    for name in ("model.npz", "policy.json", "plan.json", "walks.csv"):
        shutil.copy(noon / name, tmp_path / name)
    if (noon / "model.npz.people").exists():
        shutil.copy(noon / "model.npz.people", tmp_path / "model.npz.people")
    space = dphmm.storage.load_model(noon / "model.npz").space
    model, policy, _ = choosing.public(tmp_path)
    begin = {"initials": {f"u{home}": home for home in (0, 5, 7, 14)}}
    schedule = read_plan(tmp_path / "plan.json", model, policy, space).schedule
    choosing.release(tmp_path, "released.parquet", epsilon=None, schedule=schedule, **begin)
    made = dphmm.report.read_report(tmp_path / "released.parquet", model, policy, progress=False, **begin)
    dphmm.report.write_report(tmp_path / "page.html", made)
    told = made.story.document()
    assert told["found"]["stays"]["found"] == [] and told["guaranteed"]["only_possible"] is True
    assert told["verdict"]["rules"] == ["stays unknown", "blurs"]
    shown = said((tmp_path / "page.html").read_text())
    missing = made.prospects.missing
    assert "people who begin where it is publicly known" in missing
    assert missing in made.story.verdict.lines[0] and missing in shown and "who stays" not in shown


# -- only of possible states --------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [None, "0.001"])
def test_the_guarantee_has_its_condition_where_the_model_excludes_states(jump, tmp_path):
    """Everybody begins in one of two cells: of the others nothing is guaranteed, unless a jump makes all possible."""
    walk = [["0", 50.0045, 10.0070], ["0", 50.0045, 10.0209]]
    rows = [
        [f"p{u}", f"2024-05-06T08:{5 * k:02d}:00Z", lat, lon] for u in range(2) for k, (_, lat, lon) in enumerate(walk)
    ]
    others = [[f"other {name}", *rest] for name, *rest in rows]
    people = write_rows(tmp_path / "people.csv", ["user", "t", "lat", "lon"], others)
    write_rows(tmp_path / "walks.csv", ["user", "t", "lat", "lon"], rows)
    fit = ("--grid", "1km", "--bbox", BBOX, "--step", "5min", "--initial", "first")
    run("fit", people, "-o", tmp_path / "model.npz", *fit, *(() if jump is None else ("--jump", jump)))
    run("policy", "radius", tmp_path / "model.npz", "-o", tmp_path / "policy.json", "--radius", "1.5km")
    released(tmp_path, "--path-epsilon", 2, "--steps", 2)
    given = ("--force",)
    told = json.loads(report(tmp_path, tmp_path / "page.html", *given, "--json").stdout)
    shown = said((tmp_path / "page.html").read_text())
    terminal = " ".join(report(tmp_path, tmp_path / "page.html", *given).stderr.split())
    excludes = jump is None
    assert told["guaranteed"]["only_possible"] is excludes
    assert ("only of places that the model and all earlier answers leave possible" in terminal) is excludes
    assert ("moves that the model calls impossible" in terminal) is excludes
    for told in (
        ", both possible by the model and all earlier answers. Whatever this file says",
        "where both are possible.",
        "It is of states that the model and all earlier answers leave possible",
        "Moves that the model calls impossible",
        "Who moves as the model calls impossible",
    ):
        assert (told in shown) is excludes, told


def test_what_is_excluded_loses_more_than_the_bound():
    """Two cells that the policy joins, both impossible at a step: their surrogates lie on different sides."""
    line = dphmm.StateSpace(np.arange(9))
    ends = np.zeros(9)
    ends[[0, 1, 7, 8]] = 0.25
    model = dphmm.MarkovModel(ends, np.eye(9), space=line, start="at")
    near = dphmm.policy.radius(line, 2)
    setting = Setting.of(model, near, line, 1)
    assert not setting.excludes_no_state
    plan = setting.first_plan()
    lost = losses_between(plan, np.array([3]), np.array([5]), 9)
    assert 5 in near.neighbors(3) and float(lost[0]) > 1
    everywhere = Setting.of(dphmm.MarkovModel(np.full(9, 1 / 9), np.eye(9), space=line), near, line, 1)
    assert everywhere.excludes_no_state
    moved = dphmm.MarkovModel(ends, np.eye(9), space=line, jump=Jump.of(0.01, 9))
    assert Setting.of(moved, near, line, 1).excludes_no_state
    assert not Setting.of(moved, near, line, 1, start="at").excludes_no_state


# -- where the model came from ------------------------------------------------------------------------------------


def test_nothing_is_said_to_confirm_where_the_model_came_from(noon):
    told = report(noon, noon / "page.html", "--force").stderr
    shown = said((noon / "page.html").read_text())
    assert "not checked the model's origin: only its file says it" in " ".join(told.split())
    assert (
        "No fit on anybody's data: the model is made from the map alone. So the files say; this page cannot check it."
        in shown
    )
    assert f"{PHRASES['ORIGIN'][0].upper()}{PHRASES['ORIGIN'][1:]}." in shown


# -- schedules and times against the rows -------------------------------------------------------------------------


def edited(noon, folder, change, times=None, *, timeless=False):
    """A copy of the release whose statement and times were changed, its hash made right again."""

    def rows(table):
        if times is not None:
            cells = times(table.column("t").to_pandas())
            table = with_column(table, "t", pa.array(cells, table.schema.field("t").type))
        return table.drop_columns(["t"]) if timeless else table

    return altered(noon, folder, change, rows)


SCHEDULES = {
    "another step": lambda told: told["schedule"].update(at="9"),
    "none": lambda told: told.pop("schedule"),
    "fewer answers than there are": lambda told: told["sequence"].update(per=None, steps=24 * DAYS, total="42"),
}
WORDS = {
    "another step": "and schedule: asked, or no",
    "none": "rows without an answer, and the statement says 0",
    "fewer answers than there are": "schedule: at most 7 answers of a person in a block, and room for 1",
    "every second day": "promise: more than 6 in a block, wherever it begins",
    "two a day": "schedule: room for 1 answers in a block is stated, and it is 2",
}


@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_schedule_that_the_rows_do_not_follow_is_refused(kind, noon, tmp_path):
    folder = edited(noon, tmp_path, SCHEDULES[kind])
    refused = report(folder, folder / "page.html", code=2)
    assert WORDS[kind] in refused.stderr and not (folder / "page.html").exists()


@pytest.mark.parametrize("kind", ["as it was", "none", "every second day", "two a day"])
def test_without_times_rows_follow_a_schedule_from_some_hour_on(kind, noon, tmp_path):
    """Of a file without times nobody knows when step 1 was, but one answer a day is none every second day."""
    changes = {
        "as it was": lambda told: None,
        "none": SCHEDULES["none"],
        "every second day": lambda told: told["sequence"].update(per="2d"),
        "two a day": lambda told: (told["schedule"].update(at="7,13"), told["sequence"].update(total="12")),
    }
    folder = edited(noon, tmp_path, changes[kind], timeless=True)
    kept = kind == "as it was"
    told = report(folder, folder / "page.html", code=0 if kept else 2).stderr
    assert (folder / "page.html").exists() is kept and (kept or WORDS[kind] in told)


@pytest.mark.parametrize("timeless", [False, True])
def test_a_total_that_the_rows_pass_is_refused(timeless, noon, tmp_path):
    """A paced schedule may ask at any named step, but no oftener than its total allows: here once in two days."""
    folder = edited(
        noon,
        tmp_path,
        lambda told: (
            told["sequence"].update(per="2d"),
            told["schedule"].update(name="paced", spreads=[100.0], at="1-48"),
        ),
        timeless=timeless,
    )
    refused = report(folder, folder / "page.html", code=2)
    assert "promise: more than 6 in a block, wherever it begins: 'u0'" in refused.stderr


def test_a_paced_schedule_is_told_as_what_the_statement_says(noon, tmp_path):
    folder = edited(noon, tmp_path, lambda told: told["schedule"].update(name="paced", spreads=[100.0]))
    (folder / "released" / "plan.json").unlink()
    given = ("--force",)
    told = report(folder, folder / "page.html", *given).stderr
    words = "at times chosen from what was already published"
    assert words in " ".join(told.split()) and words in said((folder / "page.html").read_text())


HOUR = pd.Timedelta(hours=1)
TIMES = {
    "one row elsewhere": lambda t: t.where(t.index != 13, t + 9600 * HOUR),
    "all at one instant": lambda t: t.where(t == t.iloc[0], t.iloc[0]),
    "shifted by half a day": lambda t: t + 12 * HOUR,
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_that_are_not_those_of_the_steps_are_refused(kind, noon, tmp_path):
    folder = edited(noon, tmp_path, lambda told: None, TIMES[kind])
    refused = report(folder, folder / "page.html", code=2)
    assert any(f"and {check}: " in refused.stderr for check in ("times", "schedule", "promise"))
    assert not (folder / "page.html").exists()


def test_times_of_other_days_than_the_ledgers_are_refused(noon, tmp_path):
    folder = edited(noon, tmp_path, lambda told: None, lambda t: t + 48 * HOUR)
    given = ("--force",)
    report(folder, folder / "page.html", *given)
    refused = report(folder, folder / "page.html", *given, ledger=True, code=2)
    assert "and ledger: " in refused.stderr and "steps begin at other times" in refused.stderr


# -- one answer a block -------------------------------------------------------------------------------------------


def test_of_one_answer_a_block_the_bound_is_on_every_chart(noon, tmp_path):
    made = read(noon)
    assert [(name, bound.epsilon, bound.doubt) for name, bound in Content(made).bounds] == [
        ("one answer", "6", doubt(Fraction(6))),
        ("the whole file", "42", None),
    ]
    report(noon, tmp_path / "page.html")
    shown = said((tmp_path / "page.html").read_text())
    assert "one answer at least 1 in 405 doubt the whole file no useful limit" in shown
    assert "one answer × 404 at least 1 in 405 doubt" in shown


# -- what is the owner's alone, and other words -------------------------------------------------------------------


def test_whatever_shows_the_truth_of_real_people_says_so(noon, tmp_path):
    """Downloads, notebooks and pictures leave the page whose banner says it."""
    public, owners = read(noon), read(noon, truth=noon / "walks.csv")
    mark = "OWNER ONLY: "
    for made, marked in ((public, False), (owners, True)):
        assert (mark in made._repr_html_()) is marked
        for chart in (dphmm.plot.belief, dphmm.plot.error, dphmm.plot.day):
            figure = chart(made)
            assert figure.heading.startswith(mark) is marked and (mark.strip() in figure.svg) is marked
        drawn = page(made)
        assert ('download="error.owner.csv"' in drawn) is marked and ('download="error.csv"' in drawn) is not marked
        assert "classList.contains('owner-only') ? '.owner' : ''" in drawn
    write_report(tmp_path / "page.html", public)
    before = (tmp_path / "page.html").read_bytes()
    with pytest.raises(
        InvalidInput, match=r"path: got .* expected another name for the owner's page, as page.owner.html"
    ):
        write_report(tmp_path / "page.html", owners)
    assert (tmp_path / "page.html").read_bytes() == before
    write_report(tmp_path / "page.owner.html", owners)
    write_report(tmp_path / "page.owner.html", owners)


def test_the_cap_of_a_day_has_a_key_of_its_own(noon):
    """The cap of the sum over all time is another one, and there is none."""
    given = ("--force", "--json")
    told = json.loads(report(noon, noon / "page.html", *given).stdout)
    spent = told["spent"]
    assert spent["cap"] is None
    assert (spent["total"], spent["of"], spent["counted_in"]) == ("6", "a day", "file")
    assert told["not_checked"]["codes"] == ["origin", "ledger"]
    assert "6 a day, as the statement says" in said((noon / "page.html").read_text())
    told = json.loads(report(noon, noon / "page.html", *given, ledger=True).stdout)
    assert told["spent"]["counted_in"] == "ledger" and told["not_checked"]["codes"] == ["origin"]
    assert "6 a day, enforced by the ledger" in said((noon / "page.html").read_text())


def test_a_promise_with_blocks_that_begin_elsewhere_is_told_apart():
    for one, other, told in (
        (dphmm.SequencePromise(4, per=24, passed=3), dphmm.SequencePromise(4, per=24, passed=9),
         "got 4 per 24 steps with 9 steps of the first block before step 1; expected 4 per 24 steps with 3 steps"),
        (dphmm.SequencePromise(4, per="1d"), dphmm.SequencePromise(4, per="1d", zone="+02:00"),
         r"got 4 per 1d by the clock \+02:00; expected 4 per 1d by the clock \+00:00"),
        (dphmm.SequencePromise(4, steps=24), dphmm.SequencePromise(5, steps=24),
         "got 5 over 24 steps; expected 4 over 24 steps, which"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=told):
            Caps(promise=one).joined(Caps(promise=other), '"anna"')


# -- what a chart does not say by itself ----------------------------------------------------------------------------


def test_the_parts_of_a_chart_of_stays_are_named_below_it(noon):
    """A word inside the shaded strip read as the name of the line above it, which ended without a reason."""
    made = read(noon)
    figure = Content(made).nights_figure
    assert "Shaded: less than one cell, 1,000 m." in figure.caption
    assert "inside one" not in str(figure.drawings[0]) and "an answer at every step" in str(figure.drawings[0])
    last = made.prospects.unlimited.found[-1].after
    assert f"No budget: an answer at every step, computed for {last} days." in figure.caption


def test_labels_have_a_key_and_few_people_are_told_to_be_few(world):
    """Strips of a phone have no room for names; shares of a handful of people are anything."""
    folder = world("labels")
    made = read(folder)
    content = Content(made)
    assert content.label_key == list(enumerate(made.space.names))
    drawn = page(made)
    for number, name in content.label_key:
        assert f'<i class="label-{number}"></i>{html.escape(name, quote=False)}'[:28] in drawn
    few = f"{made.shares[-1].people} people are too few to tell the shares."
    assert few in drawn
    certain = replace(made, shares=[replace(share, low=share.share, high=share.share) for share in made.shares])
    assert "too few to tell the shares" not in page(certain)


def test_what_helps_is_told_in_the_blocks_that_the_stays_are_of(noon):
    """Two blocks of a week are not helped by fewer days."""
    made = read(noon)
    for what, helps in (("day", "fewer days, a smaller budget"), ("week", "fewer weeks, a smaller budget"),
                        ("sequence", "a shorter sequence, a smaller budget")):  # fmt: skip
        found = replace(made.prospects.expected.found, block=what)
        prospects = replace(made.prospects, expected=made.prospects.expected._replace(found=found))
        told = spoken(replace(made, prospects=prospects), "not_protected_rows")
        assert told[2] == helps


def test_what_is_told_of_places_one_returns_to_is_never_empty(noon):
    """Also of labels, of which the verdict has no such sentence, and where nobody has a whole day."""
    made = read(noon)
    for changed, told in (
        ({}, "A place that somebody returns to is found. A reader gets within "),
        ({"blocks": 0}, "Somebody who returns to one place is found, to within "),
        ({"unit": LABELS_WRONG, "error": 0.4, "without": 0.6, "stays_without": 0.5,
          "stays": [Stay(1, 1.0, 0.2, 0.0)], "blocks": 1},
         "A reader names the right label in 60 of 100 rows (40 without the file) and that of somebody who keeps one "
         "label for one day in 80 of 100 (50 without)."),
        ({"unit": LABELS_WRONG, "blocks": 0}, "It shows again in every answer, and answers add up."),
        ({"stays": ()}, "It shows again in every answer, and answers add up."),
    ):  # fmt: skip
        one = replace(made)
        one.__dict__["found"] = replace(made.found, **changed)
        assert spoken(one, "not_protected_rows")[1].startswith(told)


def test_the_set_of_a_page_that_is_not_private_names_its_reader(noon):
    """With the seed of the noise the true state is read off: a factor without that reader would be false."""
    made = read(noon)
    replayable = msgspec.structs.replace(made.statement.randomness, replayable_rows=1)
    statement = msgspec.structs.replace(made.statement, randomness=replayable)
    other = replace(made, made=replace(made.made, statement=statement))
    assert PHRASES["REPLAYABLE"] not in spoken(made, "joined_to_one", 9)[0]
    assert spoken(other, "joined_to_one", 9)[0].endswith(f"All of it {PHRASES['REPLAYABLE']}.")


def test_a_total_is_over_what_its_promise_is_over():
    for promise, told in (
        (dphmm.SequencePromise(4, window=1), "in any step"),
        (dphmm.SequencePromise(4, window=7), "in any 7 steps"),
        (dphmm.SequencePromise(4, steps=9), "in all"),
        (dphmm.SequencePromise(4, per="7d"), "a week"),
        (dphmm.SequencePromise(4, per="12h"), "in each 12h"),
    ):
        assert words.over_words(promise) == told


# -- rows of less than whole blocks ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def short(noon, tmp_path_factory):
    """The same four people, and one with a single row."""
    folder = tmp_path_factory.mktemp("short")
    for name in ("model.npz", "policy.json", "plan.json"):
        shutil.copy(noon / name, folder / name)
    rows = (noon / "walks.csv").read_text().splitlines()
    (folder / "walks.csv").write_text("\n".join([*rows, rows[1].replace("u0", "late", 1)]) + "\n")
    return released(folder, "--plan", folder / "plan.json", epsilon=None, code=3)


def test_one_short_record_takes_from_nobody_what_is_found_of_who_stays(noon, short):
    """Four people have whole weeks: that a fifth has one row hides nothing of theirs."""
    whole, made = read(noon), read(short, plan=plan_of(short))
    assert made.whole_blocks == whole.whole_blocks > 0
    assert made.found.own_stay == whole.found.own_stay and made.found.stays == whole.found.stays
    spoken = said(page(made))
    assert "for all 7 days of this file" in spoken and "who stays at one place: of simulated people." in spoken
    assert (
        f"Over {made.prospects.ladder[0].over}" in spoken
        and "What is expected of the rows of this file is what a reader" in spoken
    )
    assert made.found.people == "the rows of this file"
    assert made.story.document()["found"]["stays"] == whole.story.document()["found"]["stays"]


def test_a_model_learned_with_replayable_noise_is_not_called_private(noon):
    made = read(noon)
    learned = dphmm.MarkovModel.fit_private(
        [[0, 1, 0], [1, 1, 0]], 2, epsilon=1, max_length=3, bits=dphmm.ReplayBits(1)
    )
    told = learning_of(learned)
    assert told.private is False
    other = replace(made, made=replace(made.made, statement=msgspec.structs.replace(made.statement, learning=told)))
    assert spoken(other, "model_from") == [
        "The model was learned with noise that can be replayed: nothing protects those it was learned from."
    ]


def test_answers_of_windows_are_counted_in_windows(tmp_path):
    """Twelve answers in all are not twelve in any four steps."""
    model = dphmm.MarkovModel([0.25] * 4, np.full((4, 4), 0.25), space=dphmm.StateSpace([0, 1, 2, 3]))
    dphmm.storage.save_model(model, tmp_path / "model.npz")
    dphmm.storage.save_policy(dphmm.policy.complete(4), tmp_path / "policy.json", space=model.space)
    write_rows(tmp_path / "walks.csv", ["user", "step", "state"], [["anna", step, step % 4] for step in range(1, 13)])
    folder = released(tmp_path, "--path-epsilon", 4, "--window", 4, epsilon=None)
    made = read(folder)
    assert made.answers_of == {"anna": 4} and made.in_all == 12
    assert spoken(made, "spent_figure") == ["4 of 4 in any 4 steps"]
    assert spoken(made, "spent_note") == ["At most, for each person; 12 in all, by this file."]
    assert words.spending_groups(made) == [("1 person", "4", "4", "12")]


@pytest.mark.parametrize(("kind", "told"), [("planned", 300), ("paced", 12)])
def test_the_page_says_how_many_stayed(kind, told, noon, tmp_path):
    """As many as were followed: of a paced schedule no more than there are invented people."""
    own = read(noon)
    promise, spreads = own.schedule.promise, (0.0,) if kind == "paced" else ()
    schedule = dphmm.accounting.Schedule(promise, own.schedule.exact, [13], spreads)
    world = World(own.made.model, own.made.policy, own.made.space, promise, kind, people=12)
    made = assembling.prospects_in(world, schedule, scheduled=False)
    assert (made.people, made.stayers) == (12, told)
    shown = said(page(replace(own, prospects=made)))
    who = "12 people who move as the model says, invented anew for this page"
    assert f"means over {who}, and {told} who stay at one place" in shown
    assert ("fewer than the 300 of other files" in shown) == (kind == "paced")
