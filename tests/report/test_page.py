"""The page stands alone, says what must be said, and shows data as text only."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.report import ReleaseReport, Scenery, page, write_report
from dphmm.session import Options, Release
from dphmm.storage.statement import Published, privacy_statement
from dphmm.storage.statement_types import ReleaseStatement

GRID = dphmm.Grid.from_bounds(0.0, 0.0, 0.02, 0.02, cell=300.0)
EVIL = '"><script>alert(1)</script><img src=http://evil.example/x>'
STEPS = 150


class _Row(NamedTuple):
    user: str
    time: int | None
    release: Release


def _statement(space: dphmm.StateSpace, policy: dphmm.policy.PolicyGraph, secure: bool, n: int) -> ReleaseStatement:
    from fractions import Fraction

    zero = np.zeros(space.dimension)
    release = Release(
        t=1, z=zero, z_lattice=zero.astype(np.int64), estimate=zero, estimate_state=0, epsilon=Fraction(1),
        cost=Fraction(7, 2), plan_hash="ab" * 32, mechanism="staircase", constant=False, secure=secure,
    )  # fmt: skip
    model = dphmm.MarkovModel(np.full(space.n_states, 1 / space.n_states), np.eye(space.n_states), space=space)
    options = Options.checked(1, dimension=space.dimension)
    published = Published(_Row("ann", None, release) for _ in range(n))
    return privacy_statement(published, model=model, policy=policy, space=space, options=options)


def _table(answers: np.ndarray, users: list[str], times: bool = True) -> pa.Table:
    columns: dict[str, Any] = {"user": pa.array(users, pa.string())}
    if times:
        columns["t"] = pa.array(np.arange(len(users)) * 600_000_000, pa.timestamp("us", tz="UTC"))
    columns["step"] = np.arange(1, len(users) + 1)
    for j in range(answers.shape[1]):
        columns |= {f"z_{j}": answers[:, j] + 40.0 * (j + 1), f"estimate_{j}": answers[:, j] + 10.0}
    columns |= {
        "epsilon": np.ones(len(users)),
        "cost": np.full(len(users), 3.5),
        "plan": ["ab" * 32] * len(users),
    }
    return pa.table(columns)


@pytest.fixture
def on_a_map() -> Callable[..., ReleaseReport]:
    def made(user: str = "ann", secure: bool = True, rows: int = STEPS, **changes: Any) -> ReleaseReport:
        policy = dphmm.policy.radius(GRID, 700)
        truth = GRID.answers[np.resize([0, 0, 0, 1, 2, 9, 10, 10, 10], rows)]
        parts: dict[str, Any] = {
            "title": "A release",
            "released": _table(truth, [user] * rows),
            "space": GRID,
            "statement": _statement(GRID, policy, secure, rows),
            "policy": policy,
            "hull": dphmm.sensitivity_hull(policy, GRID),
            "weights": np.linspace(0, 1, GRID.n_states),
            "truth": truth,
            "simulated": True,
            "scenery": Scenery(water=(GRID.answers[[0, 1, 12]],), roads=(GRID.answers[[0, 5]],)),
        }
        return ReleaseReport(**{**parts, **changes})

    return made


class _Reader(HTMLParser):
    """Tags, attributes and visible text of a page; fails on unbalanced tags."""

    VOID = frozenset({"meta", "link"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.text).split())


def _loads_nothing(text: str) -> None:
    found = _Reader(text)
    assert not {"script", "iframe", "object", "embed", "img", "image", "video", "audio", "form"} & set(found.tags)
    for name, value in found.attributes:
        assert not name.startswith("on"), f"{name} runs code"
        if name in ("src", "href", "xlink:href", "action", "srcset", "data"):
            assert value in ("data:,",) or value.startswith("#"), f"{name}={value} loads something"
    style = "".join(re.findall(r"<style>(.*?)</style>", text, re.DOTALL))
    assert "url(" not in style and "@import" not in style
    assert not re.search(r"(src|href)\s*=\s*[\"']?\s*(https?:)?//", text)


def test_the_page_loads_nothing_and_is_well_formed(on_a_map: Callable[..., ReleaseReport]) -> None:
    text = page(on_a_map())
    assert "http://" not in text and "https://" not in text
    _loads_nothing(text)
    assert "default-src 'none'" in text
    assert text.startswith("<!doctype html>") and '<html lang="en">' in text


@pytest.mark.parametrize("secure", [True, False])
def test_the_page_has_all_promised_parts(on_a_map: Callable[..., ReleaseReport], secure: bool) -> None:
    report = on_a_map(secure=secure)
    said = _Reader(page(report)).said
    for heading in (
        "What was promised",
        "One subject",
        "How far off",
        "Whom a state hides among",
        "What it cost",
        "What is not protected",
        "Parameters and hashes",
    ):
        assert heading in said
    for sentence in (*report.statement.promise.meaning, *report.statement.not_protected):
        assert sentence in said
    for key in ("space", "model", "policy"):
        assert getattr(report.statement, key).sha256 in said
    assert "not a bound for two states of one step" in said and "Theorem 7.2" in said and "3.5" in said
    assert ("Not private:" in said) is not secure


def test_names_are_text_never_markup(on_a_map: Callable[..., ReleaseReport]) -> None:
    report = on_a_map(user=EVIL, title=EVIL, notes=[EVIL])
    text = page(report)
    assert "<script" not in text and "<img" not in text
    found = _Reader(text)
    assert not {"script", "img"} & set(found.tags)
    assert found.said.count("<script>alert(1)</script>") >= 3


def test_state_names_are_text_too(on_a_map: Callable[..., ReleaseReport]) -> None:
    space = dphmm.StateSpace(GRID.lattice, names=[f"{EVIL}{i}" for i in range(GRID.n_states)])
    policy = dphmm.policy.radius(space, 2)
    hull = dphmm.sensitivity_hull(policy, space)
    text = page(on_a_map(space=space, policy=policy, hull=hull, statement=_statement(space, policy, True, 3)))
    _loads_nothing(text.replace("http://evil.example", ""))
    assert "<script" not in text


def test_every_picture_says_in_words_what_it_shows(on_a_map: Callable[..., ReleaseReport]) -> None:
    pictures = re.findall(r"<svg.*?</svg>", page(on_a_map()), re.DOTALL)
    assert len(pictures) == 5
    identifiers: list[str] = []
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        assert root.get("role") == "img"
        named = {child.get("id"): child.text for child in root if child.tag in ("title", "desc")}
        assert set((root.get("aria-labelledby") or "").split()) == set(named)
        assert all(text and len(text) > 5 for text in named.values())
        identifiers += [str(name) for name in named]
    assert len(set(identifiers)) == len(identifiers)


def test_the_truth_of_real_people_is_marked_for_their_owner(on_a_map: Callable[..., ReleaseReport]) -> None:
    simulated, real = on_a_map(), on_a_map(simulated=False)
    assert not simulated.owner_only and real.owner_only
    assert "owner alone" not in _Reader(page(simulated)).said
    text = page(real)
    assert "For the data owner alone." in _Reader(text).said and "<title>OWNER ONLY: " in text


def test_a_page_of_the_owner_can_be_read_by_nobody_else(on_a_map: Callable[..., ReleaseReport], tmp_path: Path) -> None:
    modes = [write_report(tmp_path / f"{real}.html", on_a_map(simulated=not real)).stat().st_mode for real in (0, 1)]
    assert [mode & 0o077 for mode in modes] == [0o044 & ~_umask(), 0]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_row_without_a_true_state_counts_in_no_error(on_a_map: Callable[..., ReleaseReport]) -> None:
    report = on_a_map()
    truth = report.truth.copy()
    truth[1::2] = np.nan
    holed = on_a_map(truth=truth)
    assert holed.mean_error(holed.z) == pytest.approx(np.hypot(40.0, 80.0))
    assert "nan" not in _Reader(page(holed)).said.lower()
    assert "nan" not in _Reader(page(on_a_map(truth=np.full_like(truth, np.nan)))).said.lower()


def test_a_real_release_shows_no_truth(on_a_map: Callable[..., ReleaseReport]) -> None:
    said = _Reader(page(on_a_map(truth=None))).said
    assert "Truth" not in said and "How far off" not in said and "mean error" not in said
    assert "Bayes estimate" in said and "Released" in said


def test_errors_shown_are_the_distances(on_a_map: Callable[..., ReleaseReport]) -> None:
    report = on_a_map()
    # On the ground, by a formula that is within two millionths of the ellipsoid's.
    assert report.errors(report.z) == pytest.approx(np.hypot(40.0, 80.0), rel=2e-6)
    assert report.errors(report.estimate) == pytest.approx(np.hypot(10.0, 10.0), rel=2e-6)
    said = _Reader(page(report)).said
    assert "as released 89 m 89 m 89 m" in said
    assert "Bayes estimate 14 m 14 m 14 m" in said


def test_a_number_and_its_unit_stay_on_one_line(on_a_map: Callable[..., ReleaseReport]) -> None:
    """On a phone too; the scale of the map has a length as well."""
    text = page(on_a_map())
    assert not re.search(r"[0-9] k?m\b", text)
    assert len(re.findall(r"[0-9]\xa0k?m\b", text)) >= 8
    scripts = "".join(path.read_text() for path in files("dphmm.report").joinpath("script").iterdir())
    assert not re.search(r"\} k?m`", scripts)
    assert re.search(r"\.numbers td \{[^}]*white-space: nowrap", text)


def test_the_hull_picture_counts_the_policy_neighbours(on_a_map: Callable[..., ReleaseReport]) -> None:
    report = on_a_map()
    picture = next(p for p in re.findall(r"<svg.*?</svg>", page(report), re.DOTALL) if "hull-words" in p)
    words = ElementTree.fromstring(picture).findtext("desc") or ""
    found = re.fullmatch(r"Cell (\S+) shares a policy edge with (\d+) cells; (\d+) cells, .*", words)
    assert found is not None
    state = GRID.index_of(found[1])
    near = np.linalg.norm(GRID.answers - GRID.answers[state], axis=1) <= 700
    assert int(found[2]) == near.sum() - 1
    assert int(found[3]) == report.hull.contains(GRID.answers - GRID.answers[state]).sum()


def test_answers_on_a_line_get_a_chart_instead_of_a_map() -> None:
    space = dphmm.StateSpace(np.arange(5))
    policy = dphmm.policy.radius(space, 1)
    table = _table(space.answers[np.arange(12) % 5], ["ann"] * 12, times=False)
    report = ReleaseReport("Pages", table, space, _statement(space, policy, True, 12), policy=policy)
    text = page(report)
    _loads_nothing(text)
    assert "time step" in _Reader(text).said and text.count("<svg") == 1


def test_an_empty_release_still_has_a_page(on_a_map: Callable[..., ReleaseReport]) -> None:
    report = on_a_map(rows=0)
    text = page(report)
    _loads_nothing(text)
    assert "What was promised" in text


def test_parts_that_do_not_fit_are_refused(on_a_map: Callable[..., ReleaseReport]) -> None:
    with pytest.raises(InvalidInput, match="truth"):
        on_a_map(truth=np.zeros((3, 2)))
    with pytest.raises(InvalidInput, match="released"):
        on_a_map(released=pa.table({"user": ["a"]}))


def test_the_page_is_written_at_once_or_not_at_all(on_a_map: Callable[..., ReleaseReport], tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert write_report(path, on_a_map()) == path
    assert path.read_text(encoding="utf-8") == page(on_a_map())
    with pytest.raises(InvalidInput):
        write_report(tmp_path / "nowhere" / "report.html", on_a_map())
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
