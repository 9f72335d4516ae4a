"""The page stands alone, says what must be said in the statement's figures, and does not change with the truth.

Fails for a page that loads something, leaves an answer out, rounds a guarantee downwards, says another figure than the
terminal, or whose bytes tell the truth behind one and the same released file.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import dphmm
from commands import run, walk_rows, write_rows
from dphmm.errors import InvalidInput
from dphmm.report import page, words, write_report
from dphmm.report.content import Truth
from dphmm.report.over_steps import OverSteps
from dphmm.report.page import Content
from dphmm.statement.files import load_statement
from dphmm.statement.sentences import off, sureness
from dphmm.statement.story import ANSWERS
from report.spoken import spoken
from report.worlds import FIT, WORLDS, of_places, read, released, report
from report.worlds import public as world_of

#: Commands and files draw here: each test replays words of its own.
pytestmark = [pytest.mark.slow, pytest.mark.replayed_words, pytest.mark.usefixtures("few_invented_people")]


class _Reader(HTMLParser):
    """Tags, attributes and visible text of a page; fails on unbalanced tags."""

    VOID = frozenset({"meta", "link", "input"})

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text, self._open = [], [], [], []
        self.feed(text)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self._open and self._open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if not self._open or self._open[-1] not in ("script", "style"):
            self.text.append(data)

    @property
    def said(self):
        return " ".join(" ".join(self.text).split())


def made(folder, *options, policy=True):
    """The page of a world, as text."""
    chosen = ("--policy", folder / "policy.json") if policy else ()
    out = folder / ("page.owner.html" if "--truth" in options else "page.html")
    report(folder, out, *chosen, *options, "--force", "-q")
    return out.read_text()


@pytest.fixture(scope="module")
def page_of(world):
    """page_of("grid"): the page of a world for everybody, made once."""
    return cache(lambda name: made(world(name)))


@pytest.mark.parametrize("name", WORLDS)
def test_the_page_loads_nothing_and_is_well_formed(name, page_of):
    text = page_of(name)
    found = _Reader(text)
    assert not {"iframe", "object", "embed", "img", "image", "video", "audio", "form"} & set(found.tags)
    assert found.tags.count("script") == 2
    for attribute, value in found.attributes:
        assert not attribute.startswith("on") and attribute != "style", attribute
        if attribute in ("src", "href", "xlink:href", "action", "srcset"):
            assert value.startswith(("#", "data:")), value
    assert any(value.startswith("default-src 'none'; script-src 'sha256-") for _, value in found.attributes)
    assert text.startswith("<!doctype html>") and '<html lang="en">' in text
    ids = [value for attribute, value in found.attributes if attribute == "id"]
    assert len(set(ids)) == len(ids)
    labelled = [value for attribute, value in found.attributes if attribute == "aria-labelledby"]
    assert set(labelled) <= set(ids)
    levels = [int(tag[1]) for tag in found.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1 and all(b - a <= 1 for a, b in pairwise(levels))


@pytest.mark.parametrize("name", ["grid", "planned", "labels", "pages"])
def test_every_picture_says_its_finding(name, page_of):
    pictures = re.findall(r'<svg[^>]*aria-label="([^"]*)"', page_of(name))
    assert pictures == [label for label in pictures if len(label) > 10]
    assert page_of(name).count("<svg") == len(pictures)


def test_a_planned_release_answers_in_order(world):
    folder = world("planned")
    said = _Reader(made(folder)).said
    statement = load_statement(folder / "released.parquet")
    parts = ["Guaranteed", "What a reader can still find", "Not protected", "Spent", "What a reader can find, and when"]
    parts += [
        "The guarantee in plain words",
        "Budget: spent and left",
        "What is not protected",
        "Files, figures, checks",
    ]
    places = [said.index(part, said.index("Files") + 5) for part in parts]
    assert places == sorted(places)
    promise = statement.promise.sentence()
    for sentence in (
        *statement.promised,
        *statement.hides_not,
        *statement.sequence.said(whole=statement, promise=promise),
    ):
        assert " ".join(sentence.split()) in said


@pytest.mark.parametrize("name", ["grid", "planned", "delta"])
def test_figures_agree_to_the_digit(name, world):
    """Page, terminal, --json and the library."""
    folder = world(name)
    told = json.loads(
        report(folder, folder / "page.html", "--policy", folder / "policy.json", "--force", "--json").stdout
    )
    said, found = _Reader((folder / "page.html").read_text()).said, told["still_found"]
    terminal = report(folder, folder / "page.html", "--policy", folder / "policy.json", "--force").stderr
    terminal = " ".join(terminal.split())
    for value in (found["error"], found["error_without"], *(stay["error"] for stay in found["stays"]["found"])):
        assert off(value, "m") in said and off(value, "m") in terminal
    assert told["guaranteed"]["one_answer"]["sureness"] in said and f"{told['published']['answers']} answers" in said
    own = read(folder).story.document() if name != "delta" else None
    assert own is None or own["still_found"] == found


def test_the_plan_before_and_the_page_after_expect_the_same(world, monkeypatch):
    """Of 100 invented people, as the page has them."""
    monkeypatch.undo()
    folder = world("planned")
    public = (folder / "model.npz", "--policy", folder / "policy.json", "--path-epsilon", 4, "--per", "1h")
    plan = json.loads(run("plan", *public, "--json").stdout)["plan"]
    found = read(folder)
    schedule = {**plan["schedule"]}
    own = found.schedule.document()
    ladder = {(row["epsilon"], row["releases"]): row["smoothed"] for row in plan["ladder"]}
    key = (own["epsilon"], found.schedule.releases)
    assert schedule["total"] == own["total"] and key in ladder
    assert found.prospects.expected.found.error == pytest.approx(ladder[key], rel=1e-12)


def test_stays_are_the_same_however_many_are_asked_for(report_of):
    found = report_of("planned").prospects
    first = {stay.after: stay.error for stay in found.stays.found}
    assert dict(found.expected.found.stays) == {after: first[after] for after, _ in found.expected.found.stays}


def test_a_guarantee_is_rounded_upwards():
    assert words.factor_words(Fraction(2)) == "7.39" and words.factor_words(Fraction(6)) == "404"
    assert words.factor_words(Fraction(12)) == "162,755" and words.factor_words(Fraction(0)) == "1"
    assert words.factor_words(Fraction(100)) == "10⁴⁴" and sureness(Fraction(2)) == "88.1 %"
    for epsilon in (Fraction(1, 7), Fraction(1), Fraction(9, 4), Fraction(5), Fraction(13)):
        told = float(words.factor_words(epsilon).replace(",", ""))
        assert np.exp(float(epsilon)) <= told <= np.exp(float(epsilon)) * 1.1


def test_what_further_places_lose_is_what_pairs_of_places_lose(report_of):
    """Random pairs of places, no further apart than the page says: none loses more, and some lose more than epsilon."""
    from dphmm.accounting.edge_leakage import losses_between

    found = report_of("grid")
    (far, most), *_ = found.further
    grid, n = found.space, found.space.n_states
    rng = np.random.default_rng(5)
    low, high = grid.answers.min(axis=0) - grid.cell / 2, grid.answers.max(axis=0) + grid.cell / 2
    one = rng.uniform(low, high, (4000, 2))
    other = one + rng.uniform(-far, far, (4000, 2))
    near = (np.hypot(*(one - other).T) <= far) & ((other > low) & (other < high)).all(axis=1)
    cells = [
        np.argmin(np.abs(grid.answers[None] - part[near][:, None]).max(axis=2), axis=1).astype(np.int64)
        for part in (one, other)
    ]
    apart = cells[0] != cells[1]
    losses = losses_between(found.plans[0], cells[0][apart], cells[1][apart], n)
    assert losses.max() <= float(most) * (1 + 1e-12) and losses.max() > 1.01


def test_the_truth_changes_no_byte_of_a_public_page(tmp_path):
    """The same released file and public data; people who were truly elsewhere, and none at all."""
    people = walk_rows([f"p{i}" for i in range(12)], 24, 3)
    for name, seed in (("one", 7), ("other", 8)):
        (tmp_path / name).mkdir()
        of_places(tmp_path / name, walk_rows(["u1", "u2"], 12, seed), people, FIT, "1.5km")
    one, other = tmp_path / "one", tmp_path / "other"
    for file in ("released.parquet", "released.parquet.privacy.json"):
        (other / file).write_bytes((one / file).read_bytes())
    assert made(one) == made(other)
    (one / "walks.csv").unlink()
    assert made(one) == made(other)
    # The watch can fail: with the truth the pages differ.
    assert made(other, "--truth", other / "walks.csv") != made(other)


def test_a_public_page_has_no_truth_and_no_measured_figure(page_of):
    said = _Reader(page_of("grid")).said
    assert "public page: no truth" in said and "OWNER ONLY" not in said and "on average" not in said
    data = json.loads(re.search(r'id="data">(.*?)</script>', page_of("grid"))[1])
    assert not {"truth", "off"} & set(data["people"][0])


def test_an_owner_s_page_says_so_everywhere_and_is_theirs_alone(world):
    folder = world("grid")
    text = made(folder, "--truth", folder / "walks.csv")
    said = _Reader(text).said
    assert "<title>OWNER ONLY: " in text and "OWNER ONLY. This page shows true positions and is not private." in said
    # Nobody of this world is outside: nothing is said of it.
    assert "of rows lie outside every state" not in said and "off on average" in said
    assert (folder / "page.owner.html").stat().st_mode & 0o077 == 0
    made(folder)
    assert (folder / "page.html").stat().st_mode & 0o077 == 0o044 & ~_umask()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_measured_error_is_the_mean_over_rows_in_a_state(world):
    """By hand, from the files."""
    folder = world("grid")
    found = read(folder, truth=folder / "walks.csv")
    true = pd.read_csv(folder / "walks.csv")
    smoothed = pq.read_table(folder / "smoothed.parquet").to_pandas()
    space = found.space
    places = space.projection.to_metres(true.lat.to_numpy(), true.lon.to_numpy())
    errors = space.distances(np.concatenate([person.guess for person in found.persons]), places)
    assert found.found.measured and found.found.error == pytest.approx(float(errors.mean()), rel=1e-9)
    by_mean = space.distances(smoothed[["smoothed_0", "smoothed_1"]].to_numpy(), places)
    assert np.abs(errors - by_mean).max() > 1 and errors.mean() == pytest.approx(by_mean.mean(), rel=0.05)
    assert f"{off(float(errors.mean()), 'm')} off on average" in _Reader(page(found)).said


def test_shares_of_labels_are_those_of_plain_arithmetic(world):
    """Randomised response over four labels, inverted by hand."""
    folder = world("labels")
    found = read(folder)
    table_ = pq.read_table(folder / "released.parquet").to_pandas()
    stay = np.e / (np.e + 3)
    counts = table_[table_.step == 1].z.value_counts()
    for label, share in zip(found.space.names, found.shares[0].share, strict=True):
        told = counts.get(label, 0) / 4
        assert share == pytest.approx((told - (1 - stay) / 3) / (stay - (1 - stay) / 3), abs=1e-6)
    said = _Reader(page(found)).said
    told = said.partition("Numbers of these charts")[2].partition("The guarantee in plain words")[0]
    numbers = [float(number) for number in re.findall(r"(-?[0-9.]+)(?= %| to )", told)]
    assert len(numbers) > 30 and min(numbers) >= 0 and max(numbers) <= 100
    assert "(Hoeffding's inequality)" in said


def test_a_release_that_nobody_was_asked_for_says_so(tmp_path):
    """All rows are there, none has an answer: nothing is spent."""
    folder = tmp_path
    rows = walk_rows(["u1"], 12, 7)[:3]
    write_rows(folder / "people.csv", ["user", "t", "lat", "lon"], walk_rows([f"p{i}" for i in range(12)], 24, 3))
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], rows)
    run("fit", folder / "people.csv", "-o", folder / "model.npz", *FIT)
    run("policy", "radius", folder / "model.npz", "-o", folder / "policy.json", "--radius", "1.5km")
    public = ("--model", folder / "model.npz", "--policy", folder / "policy.json")
    promise = dphmm.SequencePromise(1, per="1h")
    model, policy = world_of(folder)
    plan = dphmm.plan(model, policy, model.space, promise, epsilon=1, people=5)
    assert plan.schedule.at[0] > 3
    dphmm.save_plan(plan, folder / "plan.json")
    run("release", folder / "walks.csv", *public, "--plan", folder / "plan.json", "-o", folder / "released.parquet",
        "--ledger", folder / "ledger.db", "--no-check", code=3)  # fmt: skip
    said = _Reader(made(folder)).said
    assert "No answer has been published." in said and "first at step" in said and "0 of 1" in said
    assert "Budget: spent and left" not in said


def test_a_report_in_a_notebook_is_the_five_answers(report_of):
    html = report_of("planned")._repr_html_()
    for label in ("published", "guaranteed", "still found", "not protected", "spent"):
        assert f">{label}</th>" in html
    # A row for each sentence, whole and with its header: a notebook breaks lines, and a screen reader reads headers.
    rows = re.findall(r"<tr><th scope=row>([^<]*)</th><td>([^<]*)</td></tr>", html)
    story = report_of("planned").story
    due = [(name.replace("_", " "), told) for name in ANSWERS for told in story.words(name)]
    assert [(name, unescape(told)) for name, told in rows] == due and max(len(told) for _, told in rows) > 80


def test_the_page_is_written_at_once_or_not_at_all(tmp_path: Path, report_of):
    found = report_of("grid")
    assert write_report(tmp_path / "report.html", found) == tmp_path / "report.html"
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page(found)
    with pytest.raises(InvalidInput):
        write_report(tmp_path / "nowhere" / "report.html", found)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_tables_of_numbers_are_no_formulas():
    from dphmm.report.page import Figure

    figure = Figure("x", "x", [], "", ["person", "error"], [["=1+1", "2"], ['a,"b"', "-3"]])
    assert "%27%3D1%2B1%2C2" in figure.csv and "%22a%2C%22%22b%22%22%22" in figure.csv


def test_the_file_alone_is_what_was_published_and_what_is_believed(tmp_path):
    """The first twelve rows of a sequence whose ledger has twelve more: only what was spent is of the ledger."""
    import shutil

    (tmp_path / "whole").mkdir()
    folder = WORLDS["grid"](tmp_path / "whole")
    shutil.copytree(folder, first := tmp_path / "first")
    people = (folder / "walks.csv").read_text().splitlines()
    later = [line.replace("T08:", "T09:") for line in people[1:]]
    (folder / "more.csv").write_text("\n".join([*people, *later]) + "\n")
    public = ("--model", folder / "model.npz", "--policy", folder / "policy.json", "--epsilon", 1)
    stored = ("--ledger", folder / "ledger.db", "--resume")
    run("release", folder / "more.csv", *public, "-o", folder / "released.parquet", *stored)
    pages = [made(first, *more) for more in ((), ("--ledger", folder / "ledger.db"))]
    data = [re.search(r'id="data">(.*?)</script>', text)[1] for text in pages]
    assert data[0] == data[1] and '"levels"' in data[0]
    alone, both = map(_Reader, pages)
    more = "another file answers too, and a reader of both finds more"
    assert f"12 answers a day of this file, each allows 73.2 %; {more}." in both.said
    same = both.said.replace(" of this file, each", ", each").replace(f"; {more}", "").replace(" Of this file.", "")
    for card in ("Guaranteed", "What a reader can still find", "Not protected"):
        assert alone.said.partition(card)[2][:300].partition("Spent")[0] in same, card
    assert "12 answers a day, no cap stated" in alone.said and "24 answers a day, no cap stated" in both.said
    assert "No limit for a day: 12 answers a day" in both.said and "budget: all files of the ledger" in both.said


def test_the_delta_set_is_told_as_the_statement_tells_it(page_of):
    said = _Reader(page_of("delta")).said
    assert (
        "not among its own neighbours" not in said and "Every policy edge among possible states keeps epsilon" in said
    )
    assert "answered as its surrogate, the nearest state inside" in said and "the guarantee stays" not in said


def test_all_answers_are_those_of_the_plan_only_where_they_take_the_whole_promise(report_of):
    """Of a larger promise other queries may spend the rest: the terminal's words, not "all 2"."""

    own = report_of("planned")
    assert [name for name, _, _ in words.guarantee(own).long_bars][-1] == "all 2"
    told = own.statement
    more = msgspec.structs.replace(told, sequence=msgspec.structs.replace(told.sequence, total="10"))
    other = replace(own, made=replace(own.made, statement=more))
    assert words.guarantee(other).long_bars[-1][0] == words.ALL
    assert spoken(other, "guarantee_note")[0].startswith("The last bar is of two paths")
    assert "all answers of all queries: at most 99.9955 %" in page(other)
    assert "all answers of all queries" in other.story.words("guaranteed")[1]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("-o.parquet", "check-release ./-o.parquet --model"),
        ("two words.parquet", "check-release 'two words.parquet' --model"),
        ("a;touch b.parquet", "check-release 'a;touch b.parquet' --model"),
        ("released.parquet", "check-release released.parquet --model"),
    ],
)
def test_the_command_to_check_is_safe_to_paste(name, command, report_of):

    assert command in _Reader(page(replace(report_of("grid"), name=name))).said


def test_years_are_those_of_the_clock():
    seconds = [int(np.datetime64(day, "s").astype(int)) for day in ("2026-01-01", "2025-12-31T23:59:59", "2000-01-01")]
    assert [words.year_name(second) for second in seconds] == ["2026", "2025", "2000"]


def test_yearly_shares_begin_in_their_own_year(report_of):

    found = report_of("labels")
    moments = [int(np.datetime64(f"{year}-01-01", "s").astype(int)) for year in (2024, 2025)]
    shares = [replace(found.shares[0], when=when) for when in moments]
    rows = replace(found.rows, time=np.zeros(len(found.rows), dtype=np.int64))
    drawn = page(replace(found, shares=shares, rows=rows))
    assert re.search(r">2024</text><text[^>]*>2025</text>", drawn) and ">2023</text>" not in drawn


def test_a_share_and_its_number_stay_on_one_line(page_of):
    drawn = page_of("planned")
    assert "at epsilon\u00a02" in drawn and "epsilon 2" not in drawn


def test_a_second_query_is_counted_alike_on_page_terminal_and_json(world, tmp_path):
    """Twelve answers of epsilon 1 and twelve of 2: 36 in all, wherever it is told; and whose sureness is whose."""
    import shutil

    folder = tmp_path / "two"
    shutil.copytree(world("grid"), folder)
    public = ("--model", folder / "model.npz", "--policy", folder / "policy.json", "--epsilon", 2)
    other = ("--query", "again", "-o", folder / "again.parquet")
    run("release", folder / "walks.csv", *public, *other, "--ledger", folder / "ledger.db")
    told = report(folder, tmp_path / "page.html", "--ledger", folder / "ledger.db", "--json")
    document, terminal = json.loads(told.stdout), " ".join(told.stderr.split())
    said = _Reader((tmp_path / "page.html").read_text()).said
    assert document["spent"]["epsilon_sum"] == "36" and document["spent"]["counted_in"] == "ledger"
    assert "epsilon sum 36 of the person with most answers" in terminal and "36 of the person with most answers" in said
    more = "another query asks too, and a reader of both finds more"
    assert f"12 answers a day of this file, each allows 73.2 %; {more}" in said
    assert f"each allows 73.2 % of this file; {more}" in terminal
    assert said.count(more) >= 2


def test_a_promise_is_counted_over_the_whole_ledger(tmp_path, report_of):
    """Of 4 an hour one query takes its part and another the rest: page, terminal and --json count both."""

    own = report_of("planned")
    users = list(own.rows.by_user)
    beside = replace(own, elsewhere={user: [(1, Fraction(3, 2))] for user in users}, queries=1)
    told, spent = beside.story, spoken(beside, "spent_figure")[0]
    largest, in_all = max(beside.largest_of.values()), beside.in_all
    assert in_all == own.in_all + Fraction(3, 2)
    assert told.spent.epsilon_sum == str(in_all) and told.spent.most == str(largest)
    assert f"in all at most {words.in_short(in_all)}" in told.words("spent")[0]
    assert spent.startswith(f"{words.in_short(largest)} of 4")
    assert json.dumps(told.document())


def test_what_further_places_lose_is_told_of_all_answers_too(report_of):
    """The factor of one answer never stands without that of all of them: losses of two ways add up."""
    own = report_of("grid")
    (_, loss), counts = own.further[0], words.counts_of(own)
    assert counts.most == 12
    every = f"all 12 of a day, of two ways so far apart, by {words.factor_words(12 * loss)}"
    both = f"one answer can multiply the odds by {words.factor_words(loss)}; {every}"
    assert both in " ".join(spoken(own, "not_protected_short"))
    assert both in " ".join(spoken(own, "not_protected_rows"))


def test_without_the_policy_no_bound_of_several_answers_is_told(doctored, tmp_path):
    """Page, terminal and --json agree: nothing confirms a promise of a policy that is known by its hash alone."""

    folder = doctored("planned", {"policy.parameters": None})
    told = report(folder, tmp_path / "page.html", "--json")
    document, said = json.loads(told.stdout), _Reader((tmp_path / "page.html").read_text()).said
    terminal = " ".join(told.stderr.split())
    every = sureness(Fraction(4))
    for text in (said, terminal, told.stdout):
        assert every not in text and "4 of 4" not in text and "judge by" not in text and "680 m" not in text
    assert document["guaranteed"]["all_answers"] is None and document["guaranteed"]["covered_distance"] is None
    assert document["spent"]["total"] is None and document["spent"]["most"] is None
    assert "without the policy nothing confirms it" in terminal and "which nothing confirms" in said
    assert document["published"]["noun"] == "noisy position" and "noisy positions" in terminal and "positions" in said
    assert "the part of town" in terminal and "Which part of town" in said


def test_rows_are_compared_with_the_ledger_without_the_policy_too(doctored, world, tmp_path, monkeypatch):
    from dphmm.report import assembling

    def refuse(*_):
        raise InvalidInput("ledger", "other rows", "those of the file")

    monkeypatch.setattr(assembling, "_require_stored", refuse)
    folder = doctored("grid", {"policy.parameters": None})
    line = report(folder, tmp_path / "page.html", "--ledger", folder / "ledger.db", code=2).stderr
    assert "error: --ledger: got other rows" in line


def test_a_reader_who_is_no_better_than_a_guess_is_no_promise(report_of):

    from dphmm.report.content import Leaving

    own = report_of("grid")
    for error, figure, beside in (
        (4300.0, "1.2\u00a0h", "30\u00a0min by guessing 7:40 UTC"),
        (1700.0, "28\u00a0min", "30\u00a0min by guessing 7:40 UTC"),
    ):
        told = replace(own)
        told.__dict__["leaving"] = Leaving(error, 1800.0, 27_600.0)
        assert spoken(told, "found_lines")[-2:] == [figure, f"off about when somebody left home ({beside})"]
        # The terminal has the same words in the same order, and --json the figures.
        kept = told.story.document()["still_found"]
        assert kept["leaving"] == {"error_seconds": error, "guess_seconds": 1800.0, "guess": "7:40", "zone": "+00:00"}
        assert f"when somebody left home: {figure} off ({beside})" in told.story.words("still_found")
    assert Leaving(20.0, 0.0, 27_600.0).beside.startswith("less than a minute by guessing 7:40")


def test_what_was_measured_is_told_where_nothing_was_expected(report_of):
    """On the owner's page of a model that is too large to expect anything of."""

    from dphmm.report.content import Prospects, Truth

    own = report_of("grid")
    where = np.asarray(own.space.own_answers)[np.zeros(len(own.rows), dtype=int)]
    truth = Truth(where, np.zeros(len(where), dtype=bool), np.full(len(where), 870.0), 2000.0)
    found = replace(own, prospects=Prospects(missing="Not computed."), truth=truth).found
    assert (found.error, found.without, found.measured, list(found.stays)) == (870.0, 2000.0, True, [])
    assert found.document()["stays"]["error_without"] is None
    assert found.lines == ["where somebody is: 870 m off on average (2,000 m without the file)"]
    assert replace(own, prospects=Prospects(missing="Not computed.")).found is None


@pytest.mark.parametrize("zone,told", [("+00:00", "in UTC."), ("+02:00", "local: UTC+02:00.")])
def test_the_foot_says_which_clock_the_page_has(zone, told, report_of):

    own = report_of("planned")
    there = replace(own)
    there.__dict__["promise"] = replace(own.promise, zone=zone)
    assert f"Times are {told}" in page(there)


def test_without_the_file_there_is_a_guess_for_each_step(world):
    """Drawn by step; beside what was measured as a mean, with a caption."""

    own = read(world("planned"))
    steps = own.prospects.expected.steps
    curves, _ = OverSteps(own).drawn
    place = (own.rows.step - 1) % steps
    due = [own.alone[place == step].mean() for step in range(steps)]
    assert curves.without == pytest.approx(due) and "for each step" not in Content(own).error_figure.caption
    assert own.found.without == pytest.approx(own.alone.mean())
    where, outside = (
        np.asarray(own.space.own_answers)[np.zeros(len(own.rows), dtype=int)],
        np.zeros(len(own.rows), bool),
    )
    measured = replace(own, truth=Truth(where, outside, np.full(len(where), 5.0), 10.0))
    curves, _ = OverSteps(measured).drawn
    assert set(curves.without) == {10.0} and "a guess for each step" in Content(measured).error_figure.caption


def test_a_cell_is_called_found_where_a_reader_gets_as_near_as_by_knowing_it(world):
    """As near as who knows the cell, within a tenth; of zones see tests/report/test_beliefs.py."""

    from dphmm.schedule_plan import Stay

    own = read(world("planned"))
    assert 0.36 < own.least_off / own.space.unmerged.cell < 0.40
    expected = own.prospects.expected
    near, far = 1.05 * own.least_off, 1.2 * own.least_off
    for of_days, page_words, terminal, found_after in (
        ({1: 900.0, 7: near}, ["hour", "seven such hours: its cell is found"], "7 such hours: its cell is found", 7),
        ({1: 900.0, 7: far}, ["hour", "seven such hours"], "7 such hours", None),
        ({1: near, 7: near}, ["hour: its cell is found", "seven such hours"], "1 hour: its cell is found", 1),
        ({1: 900.0, 2: near, 5: near}, ["the two hours of this file: its cell is found", "five such hours"],
         "the 2 hours of this file: its cell is found", 2),
        ({1: 900.0, 3: near, 7: near}, ["hour", "seven such hours: its cell is found after three"],
         "7 such hours: its cell is found after 3", 3),
    ):  # fmt: skip
        stays = own.prospects.stays
        kept = tuple(Stay(after, 1.0, error, "mean") for after, error in of_days.items())
        told = replace(own, prospects=replace(own.prospects, stays=replace(stays, found=kept), expected=expected))
        told.__dict__["begins_alike"] = True
        assert told.whole_blocks == 2
        lines = spoken(told, "found_lines")[3::2]
        assert [(word, line) for word, line in zip(page_words, lines, strict=True) if word not in line] == [], lines
        assert ["its cell is found" in line for line in lines] == ["its cell" in word for word in page_words]
        assert terminal in told.found.lines[1] and told.found.lines[1].count("is found") == (found_after is not None)
        assert told.story.document()["still_found"]["stays"]["state_found_after"] == found_after


def test_several_answers_are_of_two_paths_and_one_of_its_moment(report_of):
    """Without a promise, too: a later answer alone can tell more of a step than its own."""
    own = report_of("grid")
    assert own.promise is None
    said = spoken(own, "guarantee_at_length")[0]
    assert "the answer of a moment changes the odds between them, about where somebody is at that moment" in said
    assert "Answers of other moments tell of it as well, and may tell more" in said
    figure = Content(own).bars_figure
    assert figure.caption == "Several answers: of two ways that are, at every moment, equal or joined by the policy."
    assert spoken(own, "guaranteed")[0].endswith("after the answer of that moment.")
    assert "answers of other moments can tell more about that moment" in own.story.words("guaranteed")


def test_rows_without_an_answer_are_said(report_of):
    assert "rows have no answer" in spoken(report_of("planned"), "lead")[0]
    own = report_of("planned").story
    assert own.spent.counted_in == "file" and "in all at most 8, by the answers of this file" in own.words("spent")[0]


def test_columns_of_the_most_say_so(page_of, report_of):
    """The largest day of somebody is not what they had every day."""

    said = _Reader(page_of("grid")).said
    assert "people most answers a day ε, largest day ε in all cap" in said and "answers a day ε a day" not in said
    pers = ("an hour", "in any 4 steps", "in each 12 steps", "in all")
    heads = {per: Content.most_heads.fget(SimpleNamespace(per=per)) for per in pers}
    assert heads == {
        "an hour": ("most answers an hour", "ε, largest hour"),
        "in any 4 steps": ("most answers in any 4 steps", "ε, most in any 4 steps"),
        "in each 12 steps": ("most answers in each 12 steps", "ε, most in each 12 steps"),
        "in all": ("answers in all", ""),
    }


def test_totals_of_many_days_have_separators(report_of):
    """ "747 times 8, which is 5976" beside "2,981"."""
    found = report_of("planned")
    blocks = [("u1", [(block, 1, Fraction(4)) for block in range(1500)])]
    object.__setattr__(many := replace(found), "in_file", blocks)
    assert "Totals add: 1,500 times 4, which is 6,000" in spoken(many, "guarantee_at_length")[-1]
    assert words.grouped(Fraction(12345, 2)) == "6,172.5" and words.grouped(Fraction(7)) == "7"


def test_rows_after_a_whole_sequence_are_told_of(tmp_path, report_of):
    """A plan of ten steps asks nobody later: that is not to be found in the count of rows without an answer."""
    from dphmm.report.assembling import _after_sequence

    rng = np.random.default_rng(5)
    names = ("alpha", "beta", "gamma", "delta")
    lengths = {"v0": 15, "v1": 12, "v2": 8}
    visits = [[user, names[page_]] for user, length in lengths.items() for page_ in rng.integers(0, 4, length)]
    write_rows(tmp_path / "walks.csv", ["user", "state"], visits)
    run("fit", tmp_path / "walks.csv", "-o", tmp_path / "model.npz", "--state-column", "state")
    run("policy", "complete", tmp_path / "model.npz", "-o", tmp_path / "policy.json")
    public = (tmp_path / "model.npz", "--policy", tmp_path / "policy.json")
    sequence = ("--path-epsilon", 4, "--steps", 10, "--people", 20)
    run("plan", *public, *sequence, "-o", tmp_path / "plan.json")
    released(tmp_path, "--plan", tmp_path / "plan.json", epsilon=None, smoothed=False)
    told = "7 of 35 rows are after step 10, the last of the sequence that the total is of: they have no answer."
    assert told in made(tmp_path)
    found = read(tmp_path)
    within, all_asked = np.minimum(found.rows.step, 10), np.ones(len(found.rows), dtype=bool)
    assert _after_sequence(replace(found.rows, step=within), found.made) == ""
    assert _after_sequence(replace(found.rows, asked=all_asked), found.made) == ""
    assert _after_sequence(found.rows, report_of("planned").made) == ""


def test_a_cell_that_hides_alone_is_not_told_as_a_set(page_of):
    """Of 16 cells two are joined: the one in the middle of the map hides among no others of the policy."""
    said = _Reader(page_of("lonely")).said
    assert "these 1 cells" not in said and "The policy joins no other cell to the one in the middle" in said
    assert (
        "two cells that the policy joins" in said and "one and the same cell" not in said.partition("Not protected")[0]
    )
