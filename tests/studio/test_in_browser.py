"""The studio in a real browser: by keyboard from an empty page to a released folder, by mouse on the map.

Skips where no Chromium is installed. Claims: nothing is asked of any network but this server, no console complains, the
page fits at 1280 and 390 pixels in light and dark, and an accessibility checker finds nothing; what is drawn by mouse
is the box or area of these degrees; the table's canary is on no page; a change of a second tab is told to the first,
whose own is refused.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dphmm
from browser import MISSING, find_browser, running
from commands import walk_rows, write_rows

pytest.importorskip("starlette")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_browser() is None, reason=MISSING),
    # Words that are replayed have no number for commands that a command starts.
    pytest.mark.system_words(error="1e-12", because="no claim is about what is drawn: they hold for all words"),
]
AXE = Path(os.environ.get("DPHMM_AXE", Path(sys.prefix) / "axe.min.js"))
CANARY = "kanarienvogel"
LOOKS = {
    "desktop": {"width": 1280, "height": 800},
    "phone, dark": {"width": 390, "height": 800, "phone": True, "dark": True},
}
#: Elements that reach beyond the window.
WIDE = """
[...document.body.querySelectorAll("*")].filter((e) => {
  const box = e.getBoundingClientRect();
  return e.getClientRects().length && !e.closest(".scroll, #map, pre, iframe")
    && (box.right > document.documentElement.clientWidth + 1 || box.left < -1);
}).map((e) => [e.tagName, e.id, e.textContent.slice(0, 30)])
"""


@pytest.fixture(scope="module")
def browser():
    with running(find_browser()) as started:
        yield started


@pytest.fixture
def opened(browser, tmp_path):
    """opened("walks.csv", **look): a tab of a studio of its own, in a folder with a table of canaries."""
    rows = [[*row, f"{CANARY}-note"] for row in walk_rows((f"{CANARY}-1", f"{CANARY}-2", f"{CANARY}-3"))]
    write_rows(tmp_path / "walks.csv", ["user", "t", "lat", "lon", "note"], rows)
    servers = []

    def begun(*words, **look):
        command = [sys.executable, "-m", "dphmm", "studio", *words, "--no-open", "--json"]
        servers.append(subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True))
        address = json.loads(servers[-1].stdout.readline())["address"]
        return ready(browser.open(address, **(look or LOOKS["desktop"])), address)

    yield begun
    for server in servers:
        server.send_signal(signal.SIGTERM)
        with server:
            server.wait(60)


def ready(tab, address):
    tab.address = address
    tab.until(lambda: tab.ask("typeof shown !== 'undefined' && shown !== null"))
    return tab


def wait(tab, expression, seconds=150):
    last = time.monotonic() + seconds
    while not tab.ask(expression):
        assert time.monotonic() < last, expression
        time.sleep(0.2)


def focus(tab, wanted):
    """Press Tab until an element has the focus: it can be reached by keyboard."""
    for _ in range(120):
        if tab.ask(f"document.activeElement.matches({json.dumps(wanted)})"):
            return
        tab.press("Tab", 9)
    raise AssertionError(f"{wanted} cannot be reached")


def write(tab, wanted, text):
    focus(tab, wanted)
    tab.ask("document.activeElement.select()")
    tab.send("Input.insertText", text=text)
    tab.press("Tab", 9)


def enter(tab):
    for kind in ("keyDown", "keyUp"):
        tab.send("Input.dispatchKeyEvent", type=kind, key="Enter", windowsVirtualKeyCode=13, text="\r")


def sent(tab):
    wait(tab, "!busy && waiting === null")


def calm(tab):
    """No complaint of the console, and no request but to the server."""
    assert tab.complaints() == []
    others = [url for url in tab.requests() if not url.startswith(("data:", tab.address, "blob:"))]
    assert others == []


def test_by_keyboard_from_an_empty_page_to_a_released_folder(opened, tmp_path):
    tab = opened("walks.csv")
    wait(tab, "of('now').textContent.startsWith('Still open: a box')")
    write(tab, "#box", "10.0, 50.0, 10.056, 50.036")
    sent(tab)
    focus(tab, "#range-cell")
    while tab.ask("of('cell').value") != "1km":
        tab.press("ArrowRight", 39)
    sent(tab)
    for wanted, text in (("#budget", "2"), ("#max_speed", "20km/h")):
        tab.ask("document.activeElement.blur()")
        write(tab, wanted, text)
        sent(tab)
    focus(tab, "details summary")
    enter(tab)
    for wanted, text in (("#step", "5min"), ("#steps", "8")):
        write(tab, wanted, text)
        sent(tab)
    tab.ask("document.activeElement.blur()")
    focus(tab, "#map")
    before = tab.ask("chosen")
    tab.press("ArrowRight", 39)
    wait(tab, f"chosen === {before + 1} && of('looked').children.length >= 3")
    focus(tab, "#area-add")
    enter(tab)
    wait(tab, "shown.draft.areas.length === 1")
    wait(tab, "progress && progress.state === 'planned'")
    assert (
        tab.ask("of('verdict').children.length") >= 1
        and tab.ask("document.querySelectorAll('#pictures img').length") == 2
    )
    wait(tab, "[...document.querySelectorAll('#pictures img')].every((one) => one.complete && one.naturalWidth > 100)")
    focus(tab, "#save")
    enter(tab)
    wait(tab, "of('notice').textContent.startsWith('Saved: release-areas.geojson')")
    assert (tmp_path / "release.toml").read_text() == tab.ask("shown.text")
    tab.ask("document.activeElement.blur()")
    focus(tab, "#ask")
    enter(tab)
    wait(tab, "!of('asked').hidden")
    assert "up to 2" in tab.ask("of('spends').textContent") and "each of 3 people" in tab.ask(
        "of('spends').textContent"
    )
    assert not (tmp_path / "out").exists()
    focus(tab, "#agree")
    enter(tab)
    wait(tab, "progress.run && progress.run.ended", 400)
    assert tab.ask("of('ended').textContent").startswith("Released.")
    wait(tab, "document.querySelector('iframe') !== null")
    assert dphmm.open(tmp_path / "out").statement.published.subjects == 3
    # Names of people are on the report, which is in a frame of its own; nothing of the table is on the page.
    assert CANARY not in tab.ask("document.documentElement.innerHTML").lower()
    calm(tab)


def test_by_mouse_boxes_and_areas_are_those_of_the_degrees(opened):
    tab = opened("walks.csv")
    tab.click("#on-map [value=box]")
    drag(tab, (0.4, 0.3), (0.42, 0.32))
    sent(tab)
    assert tab.ask("shown.draft.box") == pytest.approx([-36, 32.4, -28.8, 36], abs=2)
    write(tab, "#box", "10.0, 50.0, 10.056, 50.036")
    sent(tab)
    tab.click("#on-map [value=area]")
    drag(tab, (0.3, 0.3), (0.5, 0.6))
    wait(tab, "shown.draft.areas.length === 1")
    west, south, east, north = tab.ask("shown.map.frame")
    across, down = east - west, north - south
    expected = [west + 0.3 * across, north - 0.6 * down, west + 0.5 * across, north - 0.3 * down]
    assert tab.ask("shown.draft.areas[0].box") == pytest.approx(expected, abs=across / 100)
    tab.click("#on-map [value=look]")
    tab.click("#map", 0.5, 0.5)
    wait(tab, "of('looked').children.length >= 3")
    assert tab.ask("document.querySelector('#map .chosen') !== null")
    tab.ask("document.querySelector('#areas button').click()")
    wait(tab, "shown.draft.areas.length === 0")
    calm(tab)


def drag(tab, start, end):
    tab.ask("of('map').scrollIntoView({block: 'center'})")
    box = tab.ask("(b => [b.left, b.top, b.width, b.height])(of('map').getBoundingClientRect())")
    at = [{"x": box[0] + x * box[2], "y": box[1] + y * box[3]} for x, y in (start, end)]
    for kind, where in (("mousePressed", at[0]), ("mouseMoved", at[1]), ("mouseReleased", at[1])):
        tab.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **where)


def test_no_change_is_lost_beside_another_and_none_is_dropped_in_silence(opened):
    tab = opened()
    tab.ask(
        "change({ kind: 'labels', labels: ['home', 'work', 'away'] }); change({ pairs: [] }); change({ step: '' }), 0"
    )
    sent(tab)
    draft = tab.ask("shown.draft")
    assert (draft["labels"], draft["pairs"], draft["step"]) == (["home", "work", "away"], [], "")
    for field, text, told in (("pairs", "home work", "is no pair"), ("budget", "", "it cannot be empty; it stays 12")):
        tab.ask(f"of('{field}').value = '{text}', of('{field}').dispatchEvent(new Event('change')), 0")
        sent(tab)
        assert told in tab.ask("of('notice').textContent") and tab.ask("shown.draft.budget") == "12"
    assert tab.ask("of('pairs').value") == "home work" and tab.ask("shown.draft.pairs") == []
    # The first answer about progress after the change says so.
    wait(tab, "of('waits').textContent.includes('There is no table')")
    calm(tab)


def test_a_page_takes_no_change_of_its_own_for_one_of_another_page(opened):
    """An answer that comes late: meanwhile progress already tells the new version."""
    tab = opened()
    wait(tab, "progress !== null")
    tab.ask("""
        globalThis.at_once = fetch, globalThis.fetch = async (path, request) => {
          const answer = await at_once(path, request);
          if (path === "setting") await new Promise((done) => setTimeout(done, 6000));
          return answer;
        },
        globalThis.told = [],
        new MutationObserver(() => told.push(of("notice").textContent)).observe(of("notice"), { childList: true }),
        change({ kind: "labels", labels: ["home", "work"] }), 0""")
    sent(tab)
    assert tab.ask("told.filter((text) => text.includes('Another page'))") == []
    assert tab.ask("shown.draft.labels") == ["home", "work"]


def test_a_picture_of_a_belief_leaves_a_message_about_a_field(opened):
    tab = opened()
    tab.ask("change({ kind: 'labels', labels: ['home', 'work'] }), 0")
    sent(tab)
    wait(tab, "document.querySelectorAll('.share').length === 2")
    tab.ask("say('a field is wrong'), look().then(() => { globalThis.looked = true; }), 0")
    wait(tab, "globalThis.looked === true")
    assert tab.ask("[of('notice').hidden, of('notice').textContent]") == [False, "a field is wrong"]


def test_labels_are_a_list_and_their_beliefs_are_shares(opened):
    tab = opened()
    tab.click(".kinds [value=labels]")
    sent(tab)
    write(tab, "#labels", "home\nwork\naway")
    sent(tab)
    wait(tab, "document.querySelectorAll('.share').length === 3")
    assert sum(tab.ask("[...document.querySelectorAll('.share')].map((e) => parseInt(e.lastChild.textContent))")) in (
        99,
        100,
        101,
    )
    tab.click("#every")
    wait(tab, "shown.draft.pairs !== null")
    write(tab, "#pairs", "home, work")
    sent(tab)
    wait(tab, "document.querySelectorAll('.share .alike').length === 2")
    calm(tab)


def test_a_second_tab_makes_the_first_ones_change_stale(opened, browser):
    first = opened("walks.csv")
    second = ready(browser.open(first.address), first.address)
    first.ask("polling += 1")
    write(second, "#box", "10.0, 50.0, 10.056, 50.036")
    sent(second)
    first.ask("change({cell: '2km'})")
    wait(first, "of('notice').textContent.includes('another page')")
    assert first.ask("shown.draft.cell") == "500m" and first.ask("shown.draft.box") == [10.0, 50.0, 10.056, 50.036]
    write(second, "#covers", "3km")
    wait(first, "shown.draft.covers === '3km'")


@pytest.mark.parametrize("look", LOOKS)
def test_fits_and_can_be_read(opened, look):
    tab = opened(**LOOKS[look])
    assert tab.ask(WIDE) == []
    tab.ask("of('demo').click()")
    wait(tab, "progress && progress.budget && of('looked').children.length >= 3")
    assert tab.ask("document.documentElement.scrollWidth <= innerWidth") and tab.ask(WIDE) == []
    calm(tab)
    if not AXE.exists():
        pytest.skip("no accessibility checker is installed here")
    tab.send("Page.setBypassCSP", enabled=True)
    tab.send("Page.reload")
    tab.until(lambda: sum(event["method"] == "Page.loadEventFired" for event in tab.events) >= 2)
    wait(
        tab, "typeof shown !== 'undefined' && shown && progress && progress.budget && of('looked').children.length >= 3"
    )
    tab.ask(AXE.read_text() + ";1")
    found = (
        "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => [v.id, v.nodes[0].html]))"
    )
    assert tab.ask(found) == []
