"""The page in a real browser: every control works, nothing is asked of any network, and it fits a phone.

Skips where no Chromium is installed. Claims: pages of all kinds of states open without a complaint of the console and
without a request; keys, buttons and clicks move the step and what is shown is the library's own answer; names are text;
nothing is wider than a window of 360 pixels; words stand out, light and dark; without scripts the rest is there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import dphmm
from browser import MISSING, find_browser, running
from dphmm.session.retrospect import Hindsight, Published
from dphmm.session.setting import Setting
from report.looks import FAINT_TEXTS
from report.worlds import EVIL, WORLDS, labels, report, wide

pytestmark = pytest.mark.skipif(find_browser() is None, reason=MISSING)
LOOKS = {
    "desktop": {"width": 1200, "height": 900},
    "desktop, dark": {"width": 1200, "height": 900, "dark": True},
    "phone": {"width": 360, "height": 740, "phone": True},
    "phone, dark": {"width": 360, "height": 740, "phone": True, "dark": True},
}


@pytest.fixture(scope="module")
def browser():
    with running(find_browser()) as started:
        try:
            started.send("Browser.getVersion")
        except (RuntimeError, OSError) as error:
            pytest.skip(f"{find_browser()} does not start here ({error})")
        yield started


@pytest.fixture(scope="module")
def page(world):
    """The page of a world, with all there can be on it."""

    def made(name):
        path = world(name) / "all.owner.html"
        if not path.exists():
            folder = world(name)
            more = ("--truth", folder / "walks.csv", "--smoothed", folder / "smoothed.parquet")
            report(folder, path, *more, "--policy", folder / "policy.json", "--ledger", folder / "ledger.db")
        return path

    return made


def quiet(tab, path):
    """Nothing was complained of, and nothing asked for but the page."""
    assert tab.complaints() == []
    assert [url for url in tab.requests() if not url.startswith("data:")] == [path.resolve().as_uri()]


def facts(tab):
    return dict(
        tab.ask("[...document.querySelectorAll('#facts dt')].map(t => [t.textContent, t.nextSibling.textContent])")
    )


def step(tab):
    return tab.ask("document.getElementById('when').textContent")


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", WORLDS)
def test_opens_fits_and_can_be_read(name, look, browser, page):
    tab = browser.open(page(name), **LOOKS[look])
    assert tab.ask("!document.getElementById('explorer').hidden")
    assert tab.ask("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"
    assert tab.ask(FAINT_TEXTS) == []
    tab.press("End", 35)
    quiet(tab, page(name))


def test_the_measure_of_contrast_can_fail(browser, tmp_path):
    path = tmp_path / "faint.html"
    path.write_text("<p style='color:#999'>faint</p><svg><text y='20' fill='#ccc'>words</text></svg><p>plain</p>")
    assert [text for text, _ in browser.open(path).ask(FAINT_TEXTS)] == ["faint", "words"]


def test_the_watch_for_requests_and_errors_can_fail(browser, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text("<img src='http://evil.example/x'><script>throw new Error('oh')</script>")
    tab = browser.open(path)
    assert any("evil.example" in url for url in tab.requests())
    assert any("oh" in complaint for complaint in tab.complaints())


def test_places_are_east_or_west_of_the_corner_never_minus(browser, page):
    tab = browser.open(page("grid"))
    tab.ask("document.getElementById('step').focus()")
    told = []
    for _ in range(12):
        told.append(facts(tab)["released"])
        tab.press("ArrowRight", 39)
    assert all(re.match(r"[0-9,]+\xa0m (east|west), [0-9,]+\xa0m (north|south)", words) for words in told)
    assert any("west" in words or "south" in words for words in told), "no answer of this page is beyond the corner"


def test_keys_buttons_and_clicks_move_the_step(browser, page):
    tab = browser.open(page("grid"))
    tab.ask("document.getElementById('step').focus()")
    assert step(tab).startswith("Step 1 (1 of 12), 2024-05-06 08:00")
    for key, code, found in (
        ("ArrowRight", 39, 2),
        ("ArrowRight", 39, 3),
        ("ArrowLeft", 37, 2),
        ("End", 35, 12),
        ("Home", 36, 1),
    ):
        tab.press(key, code)
        assert step(tab).startswith(f"Step {found} ({found} of 12)")
        assert tab.ask("document.getElementById('step').getAttribute('aria-valuetext')") == step(tab)
    tab.click("#forward")
    tab.click("#forward")
    tab.click("#back")
    assert step(tab).startswith("Step 2 ")
    before = tab.ask("document.querySelector('#degrees .cursor').getAttribute('d')")
    tab.click("#degrees", x=0.95)
    assert step(tab).startswith(("Step 11 ", "Step 12 "))
    assert tab.ask("document.querySelector('#degrees .cursor').getAttribute('d')") != before
    quiet(tab, page("grid"))


def test_it_plays_pauses_and_ends(browser, page):
    tab = browser.open(page("grid"))
    tab.ask("document.getElementById('step').focus()")
    tab.press(" ", 32)
    assert tab.ask("document.getElementById('play').textContent") == "Pause"
    tab.until(lambda: step(tab).startswith("Step 3 "))
    tab.click("#play")
    paused = step(tab)
    assert (
        tab.ask("new Promise(done => setTimeout(() => done(document.getElementById('when').textContent), 600))")
        == paused
    )
    assert tab.ask("document.getElementById('said').textContent").startswith(paused)
    tab.click("#play")
    tab.until(lambda: tab.ask("document.getElementById('play').textContent") == "Play")
    assert step(tab).startswith("Step 12 ")


def test_subjects_layers_and_states_are_chosen(browser, page):
    tab = browser.open(page("grid"))
    tab.ask("document.getElementById('subject').value = '2'; document.getElementById('subject').onchange()")
    table = pq.read_table(page("grid").parent / "released.parquet").to_pandas()
    assert facts(tab)["likeliest state"] == table[table.user == "u3"].estimate.iloc[0]
    for layer, mark in (("truth", ".truth.now"), ("released", ".released.now"), ("hull", ".hull"), ("edges", ".edge")):
        shown = f"!!document.querySelector('#map {mark}')"
        assert tab.ask(shown)
        tab.click(f"[data-layer={layer}]")
        assert not tab.ask(shown), layer
        tab.click(f"[data-layer={layer}]")
    tab.click("#map", 0.2, 0.8)
    assert tab.ask("document.getElementById('around').value") == "picked"
    assert "around x0y0" in facts(tab)
    tab.ask("document.getElementById('map').focus()")
    tab.press("ArrowRight", 39)
    tab.press("ArrowUp", 38)
    assert "around x1y1" in facts(tab)


def library(folder):
    """For each subject its rows, and the plans of them, made again; and the space and the policy."""
    model = dphmm.load_model(folder / "model.npz")
    space, policy = model.space, dphmm.load_policy(folder / "policy.json", model=model)
    statement = json.loads((folder / "released.parquet.privacy.json").read_text())
    choices = {part: statement[part]["name"] for part in ("constraint", "scope", "flat")}
    setting = Setting.of(model, policy, space, 1, start=statement["mechanism"]["start"], **choices)
    hindsight, subjects = Hindsight(setting), []
    table = pq.read_table(folder / "released.parquet").to_pandas()
    for user in table.user.drop_duplicates():
        own = table[table.user == user]
        z = space.frame.to_lattice(own[[f"z_{j}" for j in range(space.dimension)]].to_numpy())
        steps = hindsight.steps(Published(user, own.step.to_numpy(), z, own.plan.tolist()))
        subjects.append((own, [steps._plans.at(row) for row in range(len(own))]))
    return subjects, space, policy


def disagreements(tab, folder):
    """Steps at which the page says otherwise than the library of the likeliest state: (told, expected)."""
    subjects, space, policy = library(folder)
    found = []
    for number, (own, plans) in enumerate(subjects):
        tab.ask(f"document.getElementById('subject').value = '{number}'; document.getElementById('subject').onchange()")
        for row, plan in enumerate(plans):
            state = int(plan.constraint.surrogate[space.index_of(own.estimate.iloc[row])])
            told = facts(tab)[f"around {space.names[state]}"]
            numbers = re.fullmatch(
                r"(\d+) policy neighbours?(?: and (\d+) by protection)?; hidden among (\d+) states?", told
            )
            expected = hidden(plan, policy, state)
            if [int(n or 0) for n in numbers.groups()] != expected:
                found.append((told, expected))
            tab.ask("document.getElementById('forward').click()")
    return found


def hidden(plan, policy, state):
    """How many policy neighbours, how many joined by protection, and among how many states, itself counted."""
    neighbours = set(policy.neighbors(state, plan.constraint).tolist())
    joined = {int(b) for a, b in [*plan.joins, *plan.joins[:, ::-1]] if a == state} - neighbours
    inside = plan.hulls[plan.body_of[state]].contains_lattice(plan.image - plan.image[state])
    same = np.array([plan.hulls[b].digest for b in plan.body_of]) == plan.hulls[plan.body_of[state]].digest
    return [len(neighbours), len(joined), int((inside & same & plan.constraint.support).sum())]


@pytest.mark.parametrize("name", ["delta", "components", "lonely", "constant", "hexagons", "hostile", "solid"])
def test_what_hides_a_state_is_what_the_library_says(name, browser, page):
    """Neighbours in the contracted policy, and the degree of protection, of the likeliest state of every step."""
    assert disagreements(browser.open(page(name)), page(name).parent) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("if (support[other]) found.add(stands[other])", "if (maskOf(plan.set)[other]) found.add(other)"),
        ("<= hull.b[i]", "< hull.b[i]"),
        ("apart < least", "apart <= least"),
        ("if (possible[other] && inside[stands[other]])", "if (planned[other] && inside[other])"),
    ],
)
def test_the_comparison_can_fail(right, wrong, browser, page, tmp_path):
    """One thing wrong in the page's script, and some step says otherwise than the library."""
    text = page("delta").read_text()
    code = re.findall(r"<script>(.*?)</script>", text, re.S)[0]
    assert right in code
    bad = code.replace(right, wrong)
    sums = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (code, bad)]
    (tmp_path / "bad.html").write_text(text.replace(code, bad).replace(*sums))
    assert disagreements(browser.open(tmp_path / "bad.html"), page("delta").parent) != []


def test_very_many_states(browser, tmp_path):
    """The hull is drawn, and the degrees are there, without any cell."""
    wide(tmp_path)
    told = json.loads(report(tmp_path, tmp_path / "report.html", "--json").stdout)
    assert told["bytes"] < 200_000 and told["plans"] > 1
    tab = browser.open(tmp_path / "report.html")
    tab.ask("document.getElementById('step').focus()")
    tab.press("End", 35)
    assert tab.ask("!!document.querySelector('#map .hull') && !document.querySelector('#map .cell')")
    assert "on average" in facts(tab)["degree of protection"]
    tab.click("#map")
    quiet(tab, tmp_path / "report.html")


def test_names_are_text(browser, page):
    tab = browser.open(page("hostile"))
    assert tab.ask("document.querySelector('#subject option').textContent") == EVIL
    assert tab.ask("document.querySelectorAll('img, iframe, main script').length") == 0
    for at in range(4):
        tab.ask(f"document.getElementById('subject').value = '{at}'; document.getElementById('subject').onchange()")
        tab.press("End", 35)
    quiet(tab, page("hostile"))


def test_cells_of_h3_have_their_corners(browser, page):
    """Where the page draws them they are where the library says: a click just inside a corner picks the cell."""
    h3 = pytest.importorskip("h3")
    tab = browser.open(page("hexagons"))
    space = dphmm.load_model(page("hexagons").parent / "model.npz").space
    tab.ask("for (const box of document.querySelectorAll('[data-layer]')) box.checked && box.click()")
    paths = tab.ask("[...document.querySelectorAll('#map .cell')].map(cell => cell.getAttribute('d'))")
    drawn = [np.array(re.findall(r"-?[0-9.]+", part), float).reshape(-1, 2) for d in paths for part in d.split("M")[1:]]
    assert sorted(map(len, drawn)) == sorted(len(h3.cell_to_boundary(name)) for name in space.names)
    centres = np.array([ring.mean(axis=0) for ring in drawn])
    # One scale and one shift take the library's cells to those of the page.
    order = np.lexsort(np.round(centres * [1, -1], 0).T[::-1])
    own = np.lexsort(np.round(space.raw_answers / 10, 0).T[::-1])
    scale = np.ptp(centres[:, 0]) / np.ptp(space.raw_answers[:, 0])
    shift = centres[order[0]] - space.raw_answers[own[0]] * [scale, -scale]
    for state, at in zip(own, order, strict=True):
        corners = space.projection.to_metres(*np.array(h3.cell_to_boundary(space.names[state])).T)
        assert np.abs(drawn[at] - (corners * [scale, -scale] + shift)).max() < 2


@pytest.mark.parametrize(("name", "word"), [("pages", "alpha|beta|gamma|delta"), ("solid", "job [0-9]")])
def test_a_true_state_is_called_by_its_name(name, word, browser, page):
    tab = browser.open(page(name))
    assert re.fullmatch(rf"({word}), at [-0-9., ]+", facts(tab)["truth"])
    assert re.fullmatch(r"[0-9,]+\xa0m east, [0-9,]+\xa0m north", facts(browser.open(page("grid")))["truth"])


@pytest.mark.parametrize("look", LOOKS)
def test_labels_are_told_by_name_and_are_right_or_wrong(look, browser, tmp_path):
    folder = labels(tmp_path)
    more = ("--truth", folder / "walks.csv", "--smoothed", folder / "smoothed.parquet")
    report(folder, tmp_path / "labels.owner.html", *more, "--policy", folder / "policy.json")
    tab = browser.open(tmp_path / "labels.owner.html", **LOOKS[look])
    tab.ask("document.getElementById('step').focus()")
    rows = pq.read_table(folder / "released.parquet").to_pylist()
    smoothed = pq.read_table(folder / "smoothed.parquet").to_pylist()
    for number in range(3):
        told, row = facts(tab), rows[number]
        truth = told["truth"]
        for name, label in (("released", row["z"]), ("Bayes estimate", row["estimate"])):
            assert told[name] == f"{label}: {'right' if label == truth else 'wrong'}"
        assert told["with later answers"].startswith(smoothed[number]["smoothed"] + ": ")
        assert told["likeliest state"] == row["estimate"] and truth in {r["z"] for r in rows}
        tab.press("ArrowRight", 39)
    assert tab.ask("document.documentElement.scrollWidth <= innerWidth")
    quiet(tab, tmp_path / "labels.owner.html")


def test_an_injected_script_would_not_run(browser, page, tmp_path):
    """The page's own policy stops what escaping might one day let through."""
    path = tmp_path / "page.html"
    path.write_text(page("grid").read_text().replace("<main>", "<main><script>window.bad = 1</script><p onclick='1'>"))
    tab = browser.open(path)
    assert tab.ask("window.bad === undefined")
    assert any("Content Security Policy" in complaint for complaint in tab.complaints())


@pytest.mark.parametrize("name", ["grid", "pages"])
def test_without_scripts_the_rest_is_there(name, browser, page):
    tab = browser.open(page(name), scripts=False)
    tab.send("Emulation.setScriptExecutionDisabled", value=False)
    assert tab.ask("document.getElementById('explorer').hidden")
    said = tab.ask("document.body.innerText")
    for heading in ("What was promised", "One subject", "How far off", "What it cost", "What is not protected"):
        assert heading in said
    assert "For the data owner alone." in said


def test_every_control_has_a_name(browser, page):
    tab = browser.open(page("grid"))
    tree = tab.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "slider", "combobox", "checkbox", "image", "img"}
    controls = [node for node in tree if node.get("role", {}).get("value") in roles and not node["ignored"]]
    unnamed = [node["role"]["value"] for node in controls if not node.get("name", {}).get("value", "").strip()]
    assert len(controls) >= 15 and unnamed == []


@pytest.mark.parametrize("look", LOOKS)
def test_the_picture(look, browser, page, tmp_path):
    """A screenshot in which truth, answers, estimate and hull can be seen, each in its own colour."""
    Image = pytest.importorskip("PIL.Image")

    tab = browser.open(page("grid"), **LOOKS[look])
    for _ in range(4):
        tab.ask("document.getElementById('forward').click()")
    tab.ask("document.getElementById('explorer').scrollIntoView()")
    shot = tab.screenshot(tmp_path / "page.png")
    if os.environ.get("DPHMM_SCREENSHOTS"):
        shutil.copy(shot, Path(os.environ["DPHMM_SCREENSHOTS"]) / f"{look.replace(', ', '-')}.png")
    seen = np.asarray(Image.open(shot).convert("RGB")).reshape(-1, 3).astype(np.int64)
    root = "getComputedStyle(document.documentElement).getPropertyValue"
    for kind in ("released", "estimate", "smoothed", "truth", "neighbor"):
        colour = tab.ask(f"{root}('--{kind}').trim()")
        wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
        assert (np.abs(seen - wanted).max(axis=1) <= 3).sum() >= 30, kind
