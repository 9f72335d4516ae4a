"""The page stands alone, says what must be said in the statement's figures, and does not change with the truth.

Fails for a page that loads something, leaves an answer out, rounds a guarantee downwards, says another figure than the
terminal, or whose bytes tell the truth behind one and the same released file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from fractions import Fraction
from functools import cache
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import dphmm
from commands import run, walk_rows, write_rows
from dphmm.audit import check
from dphmm.choose.planning import error_of_known_states
from dphmm.errors import InvalidInput
from dphmm.report import page, words, write_report
from dphmm.report.content import Prospects, TruePlaces, leaving_words
from dphmm.report.over_steps import OverSteps
from dphmm.report.page import Content
from dphmm.statement.doubt import doubt
from dphmm.statement.files import load_statement
from dphmm.statement.sentences import doubt_words, factor_words, off
from dphmm.statement.story import ANSWERS
from dphmm.statement.verdict import WARNS, ReleaseVerdict, Stay
from report.spoken import spoken
from report.worlds import FIT, WORLDS, of_places, read, released, report, without_policy
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


def made(folder, *options, ledger=False):
    """The page of a world, as text."""
    out = folder / ("page.owner.html" if "--truth" in options else "page.html")
    report(folder, out, *options, "--force", "-q", ledger=ledger)
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
    statement = load_statement(folder / "released" / "released.parquet")
    parts = [
        read(folder).story.verdict.lines[0],
        "What a reader can find out",
        "What is guaranteed, whatever a reader knows",
        "Not protected",
        "Spent",
        "What a reader can find, and when",
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
    told = json.loads(report(folder, folder / "page.html", "--force", "--json").stdout)
    said, found = _Reader((folder / "page.html").read_text()).said, told["found"]
    terminal = report(folder, folder / "page.html", "--force").stderr
    terminal = " ".join(terminal.split())
    own = read(folder).story if name != "delta" else None
    assert own is None or (own.document()["found"] == found and own.document()["verdict"] == told["verdict"])
    mine = [stay for stay in found["stays"]["found"] if stay["after"] == found["stays"]["in_file"]]
    verdict = [told["verdict"][fact] for fact in ("error", "without")]
    assert verdict == [found["error"], found["error_without"]]
    for value in (*verdict, *(stay["error"] for stay in mine)):
        assert off(value, "m") in said and off(value, "m") in terminal
    for bound in (told["guaranteed"][part] for part in ("one_answer", "block", "file")):
        if bound is not None:
            assert doubt_words(bound["doubt"]) in said and doubt_words(bound["doubt"]) in terminal
            assert bound["doubt"] == doubt(Fraction(bound["epsilon"]))
    assert f"{told['published']['answers']} answers" in said


@pytest.mark.parametrize("name", ["grid", "planned", "labels"])
def test_the_verdict_is_the_same_on_page_terminal_json_and_notebook(name, world, report_of):
    """Whole sentences, in one order; and the facts of `--json` are those that the sentences are of."""
    folder = world(name)
    told = report(folder, folder / "page.html", "--force", "--json")
    document, found = json.loads(told.stdout), report_of(name)
    lines, facts = found.story.verdict.lines, json.loads(json.dumps(found.story.document()))
    assert lines and facts == {name: document[name] for name in facts}
    drawn = (folder / "page.html").read_text()
    assert plain(told.stderr.partition("verdict")[2].partition("published")[0]) == " ".join(lines)
    shown = re.search(r'<p class="verdict">(.*?)</p>', drawn, re.S)[1]
    assert [plain(line) for line in re.findall(r"<span class=\"(?:warns|says)\">(.*?)</span> ", shown)] == lines
    cells = re.findall(r"<tr><th scope=row>verdict</th><td>([^<]*)</td></tr>", found._repr_html_())
    assert [unescape(cell) for cell in cells] == lines
    # The figures of what is found: each once, in the same words.
    terminal, card = plain(told.stderr), plain(re.search(r'<section class="card found".*?</section>', drawn, re.S)[0])
    for line in found.found.lines:
        assert line in terminal and f"{line[0].upper()}{line[1:]}" in card and card.count(line[1:]) == 1


def plain(markup):
    """The words of markup, as they are read."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def colours(text):
    """Of the sentences of a page's verdict."""
    return re.findall(r'<span class="(\w+)">', re.search(r'<p class="verdict">.*?</p>', text, re.S)[0])


def test_the_verdict_stands_first_and_what_warns_has_the_colour_of_danger(report_of):
    """Before the answers' cards; and a sentence that only says something has the colour of the text."""
    style = files("dphmm.report").joinpath("templates", "page.css").read_text(encoding="utf-8")
    assert ".verdict .warns{color:var(--danger)}" in style and ".verdict .says" not in style
    for name, classes in (("grid", ["warns", "says", "says"]), ("planned", ["warns", "says"])):
        text = page(report_of(name))
        places = [text.index(part) for part in ("<h1", '<p class="lead"', '<p class="verdict">', '<div class="cards">')]
        assert places == sorted(places)
        cards = re.findall(r'<section class="card (\w+)', text)
        assert cards == ["found", "guaranteed", "limits", "spent"]
        assert colours(text) == classes
        rules = report_of(name).story.verdict.rules
        assert classes == ["warns" if rule in ("unlimited", "returns") else "says" for rule in rules]
    for rule in WARNS:
        told = replace(report_of("grid"))
        told.__dict__["story"] = replace(told.story, verdict=ReleaseVerdict(rules=[rule, "nothing"]))
        assert colours(page(told)) == ["warns", "says"]
    assert set(WARNS) == {"replayable", "unlimited", "tells", "tells labels", "returns"}


def test_only_a_limit_that_says_something_is_green(report_of):
    """No useful limit has no colour; of a file that is not private there is no table of limits."""
    rows = re.search(r'<table class="doubt">(.*?)</table>', page(report_of("planned")), re.S)[1]
    cells = re.findall(r"<td( class=\"useful\")?>([^<]*)</td>", rows)
    assert [told for _, told in cells] == ["at least 1 in 9 doubt", "at least 1 in 56 doubt", "no useful limit"]
    assert [bool(green) for green, _ in cells] == [True, True, False]
    of_labels = page(report_of("labels"))
    assert report_of("labels").statement.private is False and '<table class="doubt">' not in of_labels
    assert "Nothing: this file is not private." in of_labels and "odds change at most by" not in of_labels


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
    first = {stay.after: stay for stay in found.stays.found}
    assert found.expected.found.stays and all(stay == first[stay.after] for stay in found.expected.found.stays)


def test_a_guarantee_is_rounded_upwards():
    assert factor_words(Fraction(2)) == "7.39" and factor_words(Fraction(6)) == "404"
    assert factor_words(Fraction(12)) == "162,755" and factor_words(Fraction(0)) == "1"
    assert factor_words(Fraction(100)) == "10⁴⁴"
    for epsilon in (Fraction(1, 7), Fraction(1), Fraction(9, 4), Fraction(5), Fraction(13)):
        told = float(factor_words(epsilon).replace(",", ""))
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
    for file in ("released/released.parquet", "released/released.parquet.privacy.json"):
        (other / file).write_bytes((one / file).read_bytes())
    assert made(one) == made(other)
    (one / "walks.csv").unlink()
    assert made(one) == made(other)
    # The watch can fail: with the truth the pages differ.
    assert made(other, "--truth", other / "walks.csv") != made(other)


def test_a_public_page_has_no_truth_and_no_measured_figure(page_of):
    said = _Reader(page_of("grid")).said
    assert "public page: no truth" in said and "OWNER ONLY" not in said and "easured" not in said
    data = json.loads(re.search(r'id="data">(.*?)</script>', page_of("grid"))[1])
    assert not {"truth", "off"} & set(data["people"][0])


def test_an_owner_s_page_says_so_everywhere_and_is_theirs_alone(world):
    folder = world("grid")
    text = made(folder, "--truth", folder / "walks.csv")
    said = _Reader(text).said
    assert "<title>OWNER ONLY: " in text and "OWNER ONLY. This page shows true positions and is not private." in said
    # Nobody of this world is outside: nothing is said of it.
    assert "of rows lie outside every state" not in said and "measured, mean" in said
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
    assert found.truth.mean == pytest.approx(float(errors.mean()), rel=1e-9)
    ninth = off(float(np.quantile(errors, 0.9)), "m")
    by_mean = space.distances(smoothed[["smoothed_0", "smoothed_1"]].to_numpy(), places)
    assert np.abs(errors - by_mean).max() > 1 and errors.mean() == pytest.approx(by_mean.mean(), rel=0.05)
    without = off(found.truth.without, "m")
    shown = f"{off(float(errors.mean()), 'm')} measured, mean {ninth} or less at 9 of 10 rows {without} without"
    assert shown in _Reader(page(found)).said


def test_shares_of_labels_are_those_of_plain_arithmetic(world):
    """Randomised response over four labels, inverted by hand."""
    folder = world("labels")
    found = read(folder)
    table_ = pq.read_table(folder / "released" / "released.parquet").to_pandas()
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
    plan = dphmm.choose.plan(model, policy, model.space, promise, epsilon=1, people=5)
    assert plan.schedule.at[0] > 3
    dphmm.choose.save_plan(plan, folder / "plan.json")
    run("release", folder / "walks.csv", *public, "--plan", folder / "plan.json", "-o", folder / "released",
        "--format", "parquet", "--ledger", folder / "ledger.db", "--no-check", code=3)  # fmt: skip
    said = _Reader(made(folder)).said
    assert "No answer has been published." in said and "first at step" in said and "0 of 1" in said
    assert "Budget: spent and left" not in said


def test_a_report_in_a_notebook_is_the_verdict_and_its_answers(report_of):
    html = report_of("planned")._repr_html_()
    for label in ("verdict", "published", "found", "guaranteed", "spent", "not protected", "not checked"):
        assert f">{label}</th>" in html
    # A row for each sentence, whole and with its header: a notebook breaks lines, and a screen reader reads headers.
    rows = re.findall(r"<tr><th scope=row>([^<]*)</th><td>([^<]*)</td></tr>", html)
    story = report_of("planned").story
    due = [(name.replace("_", " "), told) for name in ("verdict", *ANSWERS) for told in story.words(name)]
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
    (tmp_path / "whole").mkdir()
    folder = WORLDS["grid"](tmp_path / "whole")
    shutil.copytree(folder, first := tmp_path / "first")
    people = (folder / "walks.csv").read_text().splitlines()
    later = [line.replace("T08:", "T09:") for line in people[1:]]
    (folder / "more.csv").write_text("\n".join([*people, *later]) + "\n")
    public = ("--model", folder / "model.npz", "--policy", folder / "policy.json", "--epsilon", 1)
    run("release", folder / "more.csv", *public, "-o", folder / "more", "--ledger", folder / "ledger.db")
    shutil.copy(folder / "ledger.db", first / "ledger.db")
    pages = [made(first, ledger=ledger) for ledger in (False, True)]
    data = [re.search(r'id="data">(.*?)</script>', text)[1] for text in pages]
    assert data[0] == data[1] and '"levels"' in data[0]
    alone, both = map(_Reader, pages)
    more = "another file answers too, and a reader of both finds more"
    assert more not in alone.said and both.said.count(f"Of this file; {more}.") == 1
    same = both.said.replace(f" Of this file; {more}.", "")
    for card in ("What a reader can find out", "Not protected"):
        assert alone.said.partition(card)[2][:300].partition("Spent")[0].partition("What is guar")[0] in same, card
    assert (
        "Spent 12 answers a day Epsilon 12 so far" in alone.said
        and "Spent 24 answers a day Epsilon 24 so far" in both.said
    )
    assert "36 answers." in both.said and "budget: all files of the ledger" in both.said


def test_the_delta_set_is_told_as_the_statement_tells_it(page_of):
    said = _Reader(page_of("delta")).said
    assert (
        "not among its own neighbours" not in said and "Every policy edge among possible states keeps epsilon" in said
    )
    assert "answered as its surrogate, the nearest state inside" in said and "the guarantee stays" not in said


def test_all_answers_are_those_of_the_plan_only_where_they_take_the_whole_promise(report_of):
    """Of a larger promise other queries may spend the rest: the terminal's words, not "all 2"."""

    own = report_of("planned")
    assert [name for name, _ in Content(own).bounds] == ["one answer", "the two of an hour", "the whole file"]
    told = own.statement
    more = msgspec.structs.replace(told, sequence=msgspec.structs.replace(told.sequence, total="10"))
    other = replace(own, made=replace(own.made, statement=more))
    (_, one), (name, bound) = Content(other).bounds
    assert (name, bound.epsilon, bound.doubt) == ("all of an hour", "10", None) and one.doubt == 9
    assert "all answers of an hour: no useful limit" in other.story.words("guaranteed")
    assert spoken(other, "doubt_note")[0].endswith("that seemed equally likely before.")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("-o.parquet", "check-release ./-o.parquet"),
        ("two words.parquet", "check-release 'two words.parquet'"),
        ("a;touch b.parquet", "check-release 'a;touch b.parquet'"),
        ("released.parquet", "check-release released.parquet"),
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
    assert "1,000\u00a0m apart that seemed" in drawn and "at least 1 in 9 doubt" in drawn


def test_a_second_query_is_counted_alike_on_page_terminal_and_json(world, tmp_path):
    """Twelve answers of epsilon 1 and twelve of 2: 36 in all, wherever it is told; found is what the file says."""
    folder = tmp_path / "two"
    shutil.copytree(world("grid"), folder)
    public = ("--model", folder / "model.npz", "--policy", folder / "policy.json", "--epsilon", 2)
    other = ("--query", "again", "-o", folder / "again")
    run("release", folder / "walks.csv", *public, *other, "--ledger", folder / "ledger.db")
    told = report(folder, tmp_path / "page.html", "--json", ledger=True)
    document, terminal = json.loads(told.stdout), " ".join(told.stderr.split())
    said = _Reader((tmp_path / "page.html").read_text()).said
    assert document["spent"]["epsilon_sum"] == "36" and document["spent"]["counted_in"] == "ledger"
    every = (
        "epsilon 36 so far, for the person with most answers (by all files and queries of the ledger); no limit is set"
    )
    assert every in terminal and f"E{every[1:]}" in said
    more = "of this file; another query asks too, and a reader of both finds more"
    assert more in terminal and said.count(f"O{more[1:]}.") == 1
    assert "24 answers a day Epsilon 36 so far" in said


def test_a_promise_is_counted_over_the_whole_ledger(tmp_path, report_of):
    """Of 4 an hour one query takes its part and another the rest: page, terminal and --json count both."""

    own = report_of("planned")
    users = list(own.rows.by_user)
    beside = replace(own, elsewhere={user: [(1, Fraction(3, 2))] for user in users}, queries=1)
    told, spent, note = beside.story, spoken(beside, "spent_figure")[0], spoken(beside, "spent_note")[0]
    largest, in_all = max(beside.largest_of.values()), beside.in_all
    assert in_all == own.in_all + Fraction(3, 2)
    assert told.spent.epsilon_sum == str(in_all) and told.spent.most == str(largest)
    figure, every = f"{words.in_short(largest)} of 4 an hour", f"{words.in_short(in_all)} in all"
    by = "by all files and queries of the ledger"
    assert told.words("spent") == [f"at most {figure} for each person, {every}, {by}"]
    assert (spent, note) == (figure, f"At most, for each person; {every}, {by}.")
    assert json.dumps(told.document())


def test_what_further_places_lose_is_told_of_all_answers_too(report_of):
    """The factor of one answer never stands without that of all of them: losses of two ways add up.

    The first screen has the doubt that one answer leaves, or says that it tells the two apart.
    """
    own = report_of("grid")
    (_, loss), counts = own.further[0], words.counts_of(own)
    assert counts.most == 12
    every = f"all 12 of a day, of two ways so far apart, by {factor_words(12 * loss)}"
    both = f"one answer can multiply the odds by {factor_words(loss)}; {every}"
    assert both in " ".join(spoken(own, "not_protected_rows"))
    short, least = " ".join(spoken(own, "not_protected_short")), doubt(loss)
    assert words.far(own.further[0][0]) in short.replace("\u00a0", " ")
    assert (f"one answer leaves at least 1 in {least} doubt" in short) == (least is not None and least <= 20)
    assert ("one answer can tell two places" in short) == (least is None or least > 20)
    near = replace(own)
    near.__dict__["further"] = [(2000.0, Fraction(2)), (4000.0, Fraction(9))]
    assert "of two places 2\u00a0km apart one answer leaves at least 1 in 9 doubt." in " ".join(
        spoken(near, "not_protected_short")
    )


def test_without_the_policy_no_bound_of_several_answers_is_told(doctored, tmp_path):
    """Page, terminal and --json agree: nothing confirms a promise of a policy that is known by its hash alone."""

    folder = doctored("planned", {"policy.parameters": None})
    story = without_policy(folder, tmp_path / "page.html").story
    document, said = story.document(), _Reader((tmp_path / "page.html").read_text()).said
    terminal, told = " ".join(line for _, line in story.rows()), json.dumps(document, default=str)
    every = doubt_words(doubt(Fraction(4)))
    for text in (said, terminal, told):
        assert every not in text and "4 of 4" not in text and "680 m" not in text
    assert document["guaranteed"]["block"] is None and document["guaranteed"]["covered_distance"] is None
    assert document["spent"]["total"] is None and document["spent"]["most"] is None
    assert "no policy confirms the limit" in terminal and "no policy confirms the limit" in said
    assert "the policy, and with it every limit" in terminal
    assert "without the policy nothing confirms it" in said
    assert document["published"]["noun"] == "noisy position" and "noisy positions" in terminal and "positions" in said
    assert "the part of town" in terminal and "The part of town" in said


@pytest.mark.parametrize("name", ["planned", "labels"])
def test_page_and_terminal_use_the_noun_of_the_statement(name, doctored, tmp_path):
    """Of vessels nothing is said of people but by the privacy statement, whose words are those of the method."""
    folder = doctored(name, {"subjects.noun": "vessel"})
    terminal = " ".join(report(folder, tmp_path / "page.html").stderr.split())
    main = (tmp_path / "page.html").read_text().partition("<main>")[2].partition("</main>")[0]
    said = re.sub(r'(?s)<details>.*?</details>| (?:id|for|class|href|download|aria-labelledby)="[^"]*"', "", main)
    for why in load_statement(folder / "released" / "released.parquet").whys:
        said, terminal = said.replace(why, ""), terminal.replace(why, "")
    assert not re.findall(r"(?i)[^.>]*\b(?:persons?|people|somebody)\b[^.<]*", said + terminal)
    assert re.search(r"for each of \d+ vessels", said) and re.search(r"of \d+ vessels", terminal)


def test_rows_are_compared_with_the_ledger(doctored, tmp_path, monkeypatch):
    """One that has another answer of one row is not the ledger of this file."""
    own = check.ledger_rows

    def another(ledger, users):
        told = own(ledger, users)
        user, query, t, steps, _, *more = told["releases"][0]
        return told | {"releases": [[user, query, t, steps, "1,1", *more], *told["releases"][1:]]}

    monkeypatch.setattr(check, "ledger_rows", another)
    folder = doctored("grid", {})
    with (
        dphmm.open_ledger(folder / "ledger.db", read_only=True) as ledger,
        pytest.raises(InvalidInput, match=r"and ledger: .*not those of"),
    ):
        dphmm.open(folder / "released").read_report(ledger=ledger, progress=False)


def test_a_reader_who_is_no_better_than_a_guess_is_no_promise(report_of):
    """Nothing is told of when somebody leaves home where a guess is as good; and only beside what is measured."""
    own = report_of("grid")
    for error, told in (
        (4300.0, "nothing about when somebody leaves home: guessing 7:40 is better"),
        (1800.0, "nothing about when somebody leaves home: guessing 7:40 is better"),
        (1700.0, "0.5\u00a0h off about when somebody leaves home (0.5\u00a0h by guessing 7:40)"),
    ):
        for zone, time in (("+00:00", "7:40"), ("+02:00", "7:40 (+02:00)")):
            assert leaving_words(error, 1800.0, 27_600.0, zone, "somebody") == told.replace("7:40", time)
        measured = replace(own, truth=truth_at(own, 870.0))
        for one, shown in ((own, False), (measured, True)):
            one = replace(one)
            one.__dict__["leaving"] = told
            assert (f"{told[0].upper()}{told[1:]}." in _Reader(page(one)).said.replace(" h ", "\u00a0h ")) is shown
            # The terminal, --json and the verdict are of public figures.
            assert one.story.document() == own.story.document()
            assert "leaves home" not in " ".join(line for _, line in one.story.rows())


def truth_at(report, error, without=2000.0):
    """The truth of everybody's rows, all in the first state and so far from a reader's guess."""
    where = np.asarray(report.space.own_answers)[np.zeros(len(report.rows), dtype=int)]
    return TruePlaces(where, np.zeros(len(where), dtype=bool), False, np.full(len(where), error), without)


def test_what_was_measured_stands_apart_from_what_is_expected(report_of):
    """Also on the owner's page of a model that is too large to expect anything of: then nothing is found."""
    own = report_of("grid")
    measured = replace(own, truth=truth_at(own, 870.0))
    assert spoken(own, "measured") == []
    assert spoken(measured, "measured")[::2] == ["870 m", "870 m", "2,000 m"]
    timed = replace(measured, truth=replace(measured.truth, kernel=910.0))
    assert spoken(timed, "measured")[-2:] == ["910 m", "without a model"]
    assert "910 m without" in timed.measured_words[0]
    alone = replace(measured, prospects=Prospects(missing="not computed"))
    assert alone.found.stays == () and spoken(alone, "measured") == spoken(measured, "measured")
    assert alone.story.verdict.rules[-2:] == ["stays unknown", "blurs"]
    shown = _Reader(page(alone)).said
    assert "870 m measured, mean" in shown


@pytest.mark.parametrize("name", ["grid", "planned", "labels"])
def test_no_public_figure_depends_on_the_truth(name, world, report_of):
    """What is found, the verdict, each answer and everything a public page has of them; whatever the truth is."""
    folder = world(name)
    own, owners = report_of(name), read(folder, truth=folder / "walks.csv")
    assert own.truth is None and owners.truth is not None
    assert owners.found == own.found and owners.found.document() == own.found.document()
    elsewhere = replace(own, truth=truth_at(own, 5.0))
    for one in (owners, elsewhere, replace(owners, truth=None)):
        assert one.found == own.found and one.story.document() == own.story.document()
        assert one.story.rows() == own.story.rows()
        assert Content(one).bounds == Content(own).bounds
        for part in (r'<p class="verdict">.*?</p>', r'<div class="cards">.*?</div>'):
            assert re.search(part, page(one), re.S)[0] == re.search(part, page(own), re.S)[0]
    assert page(replace(owners, truth=None)) == page(own) and page(owners) != page(own)


def test_the_interval_of_the_ratio_is_that_of_plain_arithmetic(report_of):
    """Over people, each with all their rows: the linearised ratio of two sums, and a quantile of Student's t."""
    own = report_of("planned")
    users = np.array(own.rows.user)
    people = sorted(set(users))
    assert len(people) == 3 and not np.isnan(own.spreads).any()
    x, y = (np.array([float(part[users == user].sum()) for user in people]) for part in (own.spreads, own.alone))
    ratio = x.mean() / y.mean()
    error = np.std(x - ratio * y, ddof=1) / np.sqrt(3) / y.mean()
    # Of two degrees of freedom, from a table.
    assert own.found.ratio == pytest.approx((ratio - 4.302653 * error, ratio + 4.302653 * error), rel=1e-6)
    assert (own.found.halved, own.found.counted) == (int((2 * x <= y).sum()), 3)
    assert own.found.ratio[0] < own.found.error / own.found.without < own.found.ratio[1]
    assert own.story.document()["found"]["ratio"] == list(own.found.ratio)
    # Of rows in no figure nothing counts; of one person, or of a place that is known without the file, there is none.
    two = replace(own, spreads=np.where(users == people[0], np.nan, own.spreads))
    x, y = x[1:], y[1:]
    ratio = x.sum() / y.sum()
    error = np.std(x - ratio * y, ddof=1) / np.sqrt(2) / y.mean()
    assert two.found.ratio == pytest.approx((ratio - 12.706205 * error, ratio + 12.706205 * error), rel=1e-6)
    assert replace(own, spreads=np.where(users == people[0], own.spreads, np.nan)).found.ratio is None
    assert replace(own, alone=np.zeros(len(own.alone))).found.ratio is None
    # Somebody whose place is known without the file is found by it no better.
    known = replace(own, spreads=np.zeros(len(own.spreads)), alone=np.where(users == people[0], 0.0, own.alone))
    assert (known.found.halved, known.found.counted) == (2, 3)
    assert replace(own, alone=np.full(len(own.rows), np.nan)).found.ratio is None


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
    place = (own.rows.step - 1) % steps
    due = [own.alone[place == step].mean() for step in range(steps)]
    assert OverSteps(own).believed[1] == pytest.approx(due)
    assert own.found.without == pytest.approx(own.alone.mean())
    measured = replace(own, truth=truth_at(own, 5.0, 10.0))
    assert OverSteps(measured).believed[1] == pytest.approx(due)
    assert Content(measured).error_figure.heading == Content(own).error_figure.heading


def test_a_place_is_found_where_a_reader_gets_as_near_as_by_knowing_its_cell(report_of):
    """As near as who knows the cell, within a tenth; of zones see tests/report/test_beliefs.py."""
    own = report_of("planned")
    cell = own.space.unmerged.cell
    assert 0.36 < own.found.known / cell < 0.40
    assert own.found.known == pytest.approx(error_of_known_states(own.space), rel=1e-3)
    near, far = 1.05 * own.found.known, 1.2 * own.found.known
    assert own.whole_blocks == 2
    uncovered = msgspec.structs.replace(own.statement, covered_distance=None)
    for of_hours, rule, after in (
        ({1: 900.0, 7: near}, "will return", 7),
        ({1: 900.0, 7: far}, "not within", None),
        ({1: near, 7: near}, "returns", 1),
        ({1: 900.0, 2: near, 5: near}, "returns", 2),
        ({1: 900.0, 3: near, 7: near}, "will return", 3),
    ):
        kept = tuple(Stay(number, 1.0, error, error) for number, error in of_hours.items())
        prospects = replace(own.prospects, stays=replace(own.prospects.stays, found=kept))
        told = replace(own, prospects=prospects, made=replace(own.made, statement=uncovered))
        told.__dict__["begins_alike"] = True
        verdict = told.story.verdict
        assert (verdict.rules[0], verdict.after) == (rule, after)
        assert verdict.near == pytest.approx(1.1 * own.found.known)
        assert verdict.lines[0] in _Reader(page(told)).said.replace("\u00a0", " ")


def test_several_answers_are_of_two_paths_and_one_of_its_moment(report_of):
    """Without a promise, too: a later answer alone can tell more of a step than its own."""
    own = report_of("grid")
    assert own.promise is None
    said = spoken(own, "guarantee_at_length")[0]
    assert "the answer of a moment changes the odds between them, about where somebody is at that moment" in said
    assert "Answers of other moments tell of it as well, and may tell more" in said
    # After the whole file nothing useful is left to be told of two ways; where there is, it is said of what.
    assert "two ways" not in spoken(own, "doubt_note")[0]
    note = spoken(report_of("planned"), "doubt_note")[0]
    assert note.endswith("; after several answers between two ways that look alike at every moment.")
    guaranteed = report_of("planned").story.words("guaranteed")
    assert guaranteed[1].endswith(" doubt between two ways that look alike at every moment")


def test_rows_without_an_answer_are_said(report_of):
    assert "rows have no answer" in spoken(report_of("planned"), "lead")[0]
    own = report_of("planned").story
    assert own.spent.counted_in == "file" and own.words("spent")[0].endswith(", 8 in all, by this file")


def test_columns_of_the_most_say_so(page_of, report_of):
    """The largest day of somebody is not what they had every day."""

    said = _Reader(page_of("grid")).said
    assert "people most answers a day ε, largest day ε in all cap" in said and "answers a day ε a day" not in said
    for per, heads in (
        ("an hour", ["most answers an hour", "ε, largest hour"]),
        ("in any 4 steps", ["most answers in any 4 steps", "ε, most in any 4 steps"]),
        ("in all", ["answers in all"]),
    ):
        assert [*spoken(report_of("grid"), "most_head", per), *spoken(report_of("grid"), "largest_head", per)] == heads


def test_totals_of_many_days_have_separators(report_of):
    """ "747 times 8, which is 5976" beside "2,981"."""
    found = report_of("planned")
    blocks = [("u1", [(block, 1, Fraction(4)) for block in range(1500)])]
    object.__setattr__(many := replace(found), "in_file", blocks)
    assert "Totals add: 1,500 times 4, which is 6,000" in spoken(many, "guarantee_at_length")[-1]
    assert words.grouped(Fraction(12345, 2)) == "6,172.5" and words.grouped(Fraction(7)) == "7"


def test_rows_after_a_whole_sequence_are_told_of(tmp_path, report_of):
    """A plan of ten steps asks nobody later: that is not to be found in the count of rows without an answer."""
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
    assert replace(found, rows=replace(found.rows, step=within)).after_sequence == 0
    assert replace(found, rows=replace(found.rows, asked=all_asked)).after_sequence == 0
    assert report_of("planned").after_sequence == 0


def test_a_cell_that_hides_alone_is_not_told_as_a_set(page_of):
    """Of 16 cells two are joined: the one in the middle of the map hides among no others of the policy."""
    said = _Reader(page_of("lonely")).said
    assert "these 1 cells" not in said and "The policy joins no other cell to the one in the middle" in said
    assert (
        "two cells that the policy joins" in said and "one and the same cell" not in said.partition("Not protected")[0]
    )
