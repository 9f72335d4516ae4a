"""Files made to hurt the reader of a page, or whoever makes it: nothing runs, nothing hangs, nothing is passed off.

Claims: the oddest names that a release takes stand on the page as they are, at every step; names, numbers and texts
that no release has are refused in one short line, and soon; words that nothing confirms have no room for a sentence;
the farthest times, answers and costs leave the page whole; were escaping to fail one day, the page's own policy would
stop what got through. It would fail for a page that believes a file, or reads "1e999999999" as a number.
"""

from __future__ import annotations

import re
import signal
from contextlib import contextmanager
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from browser import MISSING, find_browser, quiet
from dphmm.errors import InvalidInput
from dphmm.report import read_report, write_report
from report.worlds import odd, public, report, without_policy

pytestmark = pytest.mark.usefixtures("few_invented_people")
in_browser = pytest.mark.skipif(find_browser() is None, reason=MISSING)
LIE = "ZZZ audited: nothing can be learned"
NEVER = "1e999999999"


@contextmanager
def soon(seconds=20):
    """Fails where something takes longer."""

    def late(*_):
        raise AssertionError(f"still at it after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def refused(folder, tmp_path, *options):
    with soon():
        result = report(folder, tmp_path / "page.html", *options, code=2)
    assert not (tmp_path / "page.html").exists()
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(line) < 400 and line.isprintable()
    return line


CELLS = [
    ("user", "\u202eanna", "name of a user"),
    ("user", "a" * 10**6, "name of a user"),
    ("user", "", "name of a user"),
    ("user", "a\nb", "name of a user"),
    ("plan", LIE, "a text that is no hash"),
    ("cost", float("nan"), "cost: got 90 cells that cannot be read"),
    ("cost", float("inf"), "cost: got 90 cells that cannot be read"),
    ("cost", -1.0, "below 0"),
    ("z_0", 2.0**54, "off the lattice"),
]


@pytest.mark.parametrize(("column", "value", "words"), CELLS, ids=[f"{c} {n}" for n, (c, *_) in enumerate(CELLS)])
def test_cells_that_no_release_has_are_refused(column, value, words, doctored, tmp_path):
    assert words in refused(doctored("pages", {}, column, value), tmp_path)


MEMBERS = [
    *[{path: NEVER} for path in ("epsilon", "totals.cost_sum", "totals.epsilon_sum")],
    {"constraint": f"delta={NEVER}"},
    *[{path: LIE} for path in ("software.version", "policy.kind", "file.sha256", "model.sha256", "constraint")],
    {"policy.parameters": None, "policy.sha256": LIE},
    {"policy.parameters": None, "policy.kind": LIE},
    {"epsilon": "\uff11"},
    {"epsilon": " 1 "},
    {"algorithm_version": 10**400},
    {"published.rows": 10**400},
    {"software.version": "a" * 10**6},
    {"learning": LIE},
    {"space.states": 10**6},
    *[{"file": value} for value in ([1], {"sha256": 3}, {"name": "released.parquet"})],
    {"model.method": LIE},
    *[{"subjects.noun": noun} for noun in ("<b>", "Vessel", "v" * 21, "vessel\n", "two words")],
]


@pytest.mark.parametrize("members", MEMBERS, ids=lambda members: str(members)[:50])
def test_statements_that_hang_or_lie_are_refused(members, doctored, tmp_path):
    refused(doctored("pages", members), tmp_path)


@pytest.mark.parametrize("path", ["file.name", "query"])
def test_what_is_not_confirmed_is_not_shown(path, doctored, tmp_path):
    report(doctored("pages", {path: LIE}), tmp_path / "page.html")
    assert "ZZZ" not in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("name", [b"x\xff.parquet", b"x\xff.csv", "x\u202elmth.parquet".encode(), b"x\n.parquet"])
def test_names_of_files_are_plain_on_a_page_or_refused(name, world, tmp_path):
    """Not UTF-8, or turning about what stands around them: the page says it in escapes."""
    import os
    import shutil

    from dphmm.storage.tables import read_table, write_table

    source, target = world("pages") / "released" / "released.parquet", os.fsdecode(os.fsencode(tmp_path / "in") + name)
    shutil.copy(f"{source}.privacy.json", f"{target}.privacy.json")
    if target.endswith(".csv"):
        write_table(tmp_path / "plain.csv", read_table(source))
        (tmp_path / "plain.csv").rename(target)
    else:
        shutil.copy(source, target)
    if name == b"x\xff.parquet":
        with pytest.raises(InvalidInput, match="a name in UTF-8"):
            read_report(target, *public(world("pages")))
        return
    write_report(tmp_path / "page.html", read_report(target, *public(world("pages"))))
    (shown,) = re.findall('<span class="file">(.*?)</span>', (tmp_path / "page.html").read_text(), re.S)
    assert shown.isprintable() and shown.startswith("inx")


@pytest.fixture(scope="module")
def oddest(tmp_path_factory):
    """A page with the truth, and without."""
    folder = odd(tmp_path_factory.mktemp("odd"))
    more = ("--truth", folder / "walks.csv")
    report(folder, folder / "odd.owner.html", *more)
    report(folder, folder / "odd.html")
    return folder


@pytest.mark.slow
def test_pictures_with_the_oddest_names(oddest, tmp_path):
    for number, user in enumerate(("$\\frac{$", "__proto__", "W" * 200)):
        figures = ("--figures", tmp_path / str(number), "--user", user)
        report(oddest, tmp_path / f"{number}.html", *figures)
        pictures = list((tmp_path / str(number)).iterdir())
        assert pictures and all(ElementTree.parse(path).getroot().tag.endswith("svg") for path in pictures)


@in_browser
@pytest.mark.parametrize("name", ["odd.html", "odd.owner.html"])
def test_the_oddest_names_stand_as_they_are(name, oddest, browser):
    """In the charts of people, and in the tables beside them, of every eighth person at least."""
    tab = browser.open(oddest / name)
    table = pq.read_table(oddest / "released" / "released.parquet").to_pandas()
    headings = tab.ask("[...document.querySelectorAll('figure h3')].map((e) => e.textContent)")
    people = sorted(set(table.user))
    shown = people[:: -(-len(people) // 8)]
    assert [heading for heading in headings if heading in set(people)] == shown
    assert tab.ask(
        "[window.bad, {}.polluted, document.querySelectorAll('img, iframe, main script, main style').length]"
    ) == [None, None, 0]
    quiet(tab, oddest / name)


#: What escaping might one day let through.
INJECTED = (
    "<img src='http://evil.example/1' onerror='window.bad=1'>",
    "<svg onload='window.bad=1'><animate onbegin='window.bad=1' attributeName=x dur=1s></svg>",
    "<iframe srcdoc='<script>parent.bad=1</script>'></iframe><iframe src='javascript:parent.bad=1'></iframe>",
    "<iframe src='data:text/html,<script>parent.bad=1</script>'></iframe>",
    "<object data='http://evil.example/2'></object><embed src='http://evil.example/3'>",
    "<link rel=stylesheet href='http://evil.example/4'><link rel=prefetch href='http://evil.example/5'>",
    "<link rel=modulepreload href='http://evil.example/5b'>",
    "<style>body{background:url(http://evil.example/6)}</style><p style='background:url(http://evil.example/7)'>",
    "<base href='http://evil.example/'><script src='x.js'></script><script type=module>window.bad=1</script>",
    "<script nonce=''>window.bad=1</script><script type=importmap>{}</script>",
    "<video autoplay><source src='http://evil.example/8' onerror='window.bad=1'></video>",
    "<audio src='//evil.example/9' autoplay onerror='window.bad=1'></audio>",
    "<body onload='window.bad=1'><input autofocus onfocus='window.bad=1'><details open ontoggle='window.bad=1'>",
    "<math><mtext><script>window.bad=1</script></math>",
    "<div><template shadowrootmode=open><script>window.bad=1</script></template></div>",
    "<meta http-equiv=Content-Security-Policy content=\"script-src 'unsafe-inline' *\"><script>window.bad=1</script>",
)  # fmt: skip


@in_browser
@pytest.mark.parametrize("number", range(len(INJECTED)))
def test_the_page_s_policy_stops_what_escaping_lets_through(number, oddest, browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text((oddest / "odd.html").read_text().replace("<main>", "<main>" + INJECTED[number]))
    tab = browser.open(path)
    assert tab.ask("new Promise((done) => setTimeout(() => done(window.bad === undefined), 150))")
    # What is asked for and then forbidden never leaves: the browser says so.
    forbidden = {
        e["params"]["requestId"]
        for e in tab.events
        if e["method"] == "Network.loadingFailed" and e["params"].get("blockedReason") == "csp"
    }
    asked = [e["params"] for e in tab.events if e["method"] == "Network.requestWillBeSent"]
    assert not [a["request"]["url"] for a in asked if "evil" in a["request"]["url"] and a["requestId"] not in forbidden]


@in_browser
def test_the_watch_for_injections_can_fail(oddest, browser, tmp_path):
    """Without the policy the same things run and ask."""
    path = tmp_path / "page.html"
    page = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", (oddest / "odd.html").read_text(), count=1)
    path.write_text(page.replace("<main>", "<main>" + INJECTED[0]))
    tab = browser.open(path)
    tab.until(lambda: tab.ask("window.bad === 1"))
    assert any("evil.example" in url for url in tab.requests())


@in_browser
def test_links_and_markup_of_texts_do_nothing(oddest, browser, tmp_path):
    path = tmp_path / "page.html"
    link = "<a id=go href='javascript:window.bad=1'>go</a>"
    link += "<form action='http://evil.example/'><button id=b>x</button></form>"
    path.write_text((oddest / "odd.html").read_text().replace("<main>", f"<main>{link}"))
    tab = browser.open(path)
    tab.click("#go")
    tab.click("#b")
    assert tab.ask("window.bad === undefined") and tab.ask("location.href") == path.resolve().as_uri()
    # Were a script of the page itself ever to make markup of a text, it would be stopped too.
    for sink in ("document.body.innerHTML = '<b>x</b>'", "document.write('x')"):
        tried = f"(() => {{ try {{ {sink}; return 'done'; }} catch (error) {{ return 'stopped'; }} }})()"
        assert tab.ask(tried) == "stopped"


def _times(first):
    begins = first // (300 * 10**6) * 300 * 10**6
    return lambda table: pa.array(begins + (table["step"].to_numpy() - 1) * 300 * 10**6, pa.timestamp("us", "UTC"))


def _last_steps(table):
    return pa.array(np.arange(len(table)) + 2**53 - len(table))


UNDISCLOSED = {"policy.parameters": None, "policy.kind": "edges", "policy.sha256": "0" * 64}
EXTREMES = {
    "the last times": ("grid", {}, "t", _times(2**63 - 10**12)),
    "the first times": ("grid", {}, "t", _times(-(2**63) + 10**12)),
    "five digits of a year": ("grid", {}, "t", _times(253402300800 * 10**6)),
    "answers at the end of floats": ("pages", {}, "z_0", 2.0**53),
    "costs near nothing": ("pages", {**UNDISCLOSED, "totals.cost_sum": "0"}, "cost", 5e-324),
}


def test_steps_at_the_end_of_floats_are_refused(doctored, tmp_path):
    """No belief is followed for so long."""
    assert "got a gap of" in refused(doctored("pages", {}, "step", _last_steps), tmp_path)


@in_browser
@pytest.mark.parametrize("name", EXTREMES)
def test_the_farthest_numbers_leave_the_page_whole(name, doctored, browser, tmp_path):
    folder = doctored(*EXTREMES[name])
    with soon():
        # Of an undisclosed policy a page is made in Python, for somebody who has the table and the model alone.
        (without_policy if UNDISCLOSED.items() <= EXTREMES[name][1].items() else report)(folder, tmp_path / "page.html")
    tab = browser.open(tmp_path / "page.html")
    if tab.ask("!!document.getElementById('step')"):
        tab.ask("document.getElementById('step').focus()")
        tab.press("End", 35)
        assert tab.ask("document.getElementById('step').value === document.getElementById('step').max")
    paths = tab.ask("[...document.querySelectorAll('path')].map((path) => path.getAttribute('d')).join()")
    assert not re.search("NaN|Infinity", paths)
    quiet(tab, tmp_path / "page.html")
