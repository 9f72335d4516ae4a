"""The documentation site: every public name has its place, every page and anchor that a link names is there.

Claims: `python3 run.py docs` builds without a warning and without the network; no built page loads anything from
elsewhere; the notebooks run, and what they say of their results is so (their last cells); docstrings become the markup
they mean. A page that is in no contents, a link to nothing and a public name that no page lists each fail. The first
search finds no page of the section on research, which has a search and a side bar of its own. What people look for is
the first result of the theme's own search, in a browser. The page of commands has every option with its help, the page
of files every member of a statement.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest
import run
from docs.statement_members import STATEMENTS, members

import dphmm
from browser import MISSING, find_browser, running
from dphmm.cli.app import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: {page: what somebody looks for in the first search who must find this page first}.
LOOKED_FOR = {
    "install": ["install"],
    "choosing-a-budget": ["choose epsilon", "how much budget"],
    "your-data": ["semicolon", "time zone"],
    "every-day": ["new rows every day"],
    "data-protection-officer": ["GDPR", "impact assessment"],
}
NAMESPACES = [name for name in dphmm.__all__ if type(getattr(dphmm, name)) is type(re)] + ["spark"]


def tools():
    """Skip where the extra is not installed."""
    if missing := [name for name in ("sphinx", "furo", "myst_nb", "matplotlib") if find_spec(name) is None]:
        pytest.skip(f"no documentation tools are installed here: {', '.join(missing)}")


class Page(HTMLParser):
    """What a page names, what it links to, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids.add(given.get("id"))
        if tag == "a":
            self.links += [given["href"]] if "href" in given else []
        else:
            self.loaded += [given[name] for name in ("src", "href") if given.get(name)]


def dead(folder):
    """Links, and things to load, that lead nowhere or, where they are loaded, out of the folder."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    yield f"{path.name}: loads {link}"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].ids):
                yield f"{path.name}: {link}"


def searched(index):
    """The pages that an index of words finds something in."""
    found = json.loads(index.read_text().removeprefix("Search.setIndex(").removesuffix(")"))
    numbers = [
        number
        for part in ("terms", "titleterms")
        for pages in found[part].values()
        for number in (pages if isinstance(pages, list) else [pages])
    ]
    numbers += [number for title in found["alltitles"].values() for number, _ in title]
    numbers += [entry[0] for there in found["objects"].values() for entry in there]
    return {found["docnames"][number] for number in numbers}


def side_bar(page):
    """The links of a page's contents of its section."""
    text = page.read_text()
    return re.findall(r'href="([^"]*)"', text[text.index('class="sidebar-tree"') : text.index("</aside>")])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site, and what building said."""
    tools()
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, *run.BUILD_SITE, str(folder)]
    return folder, subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.replayed_words
def test_the_site_is_built_without_a_warning_and_every_link_leads_somewhere(site):
    folder, done = site
    assert "--fail-on-warning" in run.BUILD_SITE and "--nitpicky" in run.BUILD_SITE
    assert done.returncode == 0, done.stderr
    assert list(dead(folder)) == []
    built = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.html")}
    assert {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")} <= built
    using, research = searched(folder / "searchindex.js"), searched(folder / "research" / "searchindex.js")
    assert {"errata", "theory", "mutation", "audit", "proofs/hull", "results/dphmm"} <= research
    assert {"install", "guide", "commands", "files", "api/models"} <= using and not using & research
    assert set(built) - using - research <= {"genindex", "search", "research/search", "py-modindex"}
    assert 'action="research/search.html"' in (folder / "errata.html").read_text()
    assert 'action="search.html"' in (folder / "guide.html").read_text()
    guide, theory = side_bar(folder / "guide.html"), side_bar(folder / "theory.html")
    assert {"commands.html", "research.html"} <= set(guide) and not {"errata.html", "theory.html"} & set(guide)
    assert "errata.html" in theory and "commands.html" not in theory
    for notebook in (DOCS / "notebooks").glob("*.md"):
        assert "cell_output" in (folder / "notebooks" / f"{notebook.stem}.html").read_text(), notebook
        assert list((folder / "_downloads").rglob(f"{notebook.stem}.ipynb"))
    known = "".join(path.read_text() for path in (folder / "api").glob("*.html"))
    assert [name for name in names() if f'id="{name}"' not in known] == []


@pytest.mark.slow
@pytest.mark.replayed_words
@pytest.mark.skipif(find_browser() is None, reason=MISSING)
def test_the_first_result_of_a_search_is_the_page_that_is_looked_for(site):
    folder, _ = site
    with running(find_browser()) as browser:
        tab = browser.open(folder / "search.html")
        tab.until(lambda: tab.ask("Search.hasIndex()"))
        for page, texts in LOOKED_FOR.items():
            assert {text: tab.ask(FIRST.format(words=json.dumps(text))) for text in texts} == dict.fromkeys(texts, page)
        tab = browser.open(folder / "research" / "search.html")
        tab.until(lambda: tab.ask("Search.hasIndex()"))
        assert tab.ask(FIRST.format(words=json.dumps("mutation"))) == "mutation"


#: The page of the best result, by the theme's scores; it keeps results with the best one last.
FIRST = "Search._performSearch(...Search._parseQuery({words})).at(-1)[0]"


@pytest.mark.slow
@pytest.mark.replayed_words
def test_the_page_of_commands_has_every_option_and_that_of_files_every_member_of_a_statement(site):
    folder, _ = site
    options = records(app)
    assert len(options) > 200 and options - cells(folder / "commands.html") == set()
    described = {(path, meaning) for found in STATEMENTS.values() for path, _, meaning in members(found)}
    assert len(described) > 100 and described - cells(folder / "files.html") == set()


def records(command):
    """{(names, help)} of the options of a command, as its help has them; of a group, of its commands."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        return set().union(*(records(command.get_command(context, name)) for name in command.list_commands(context)))
    found = [option.get_help_record(context) for option in command.params if isinstance(option, click.Option)]
    return {(names, " ".join(told.split())) for names, told in filter(None, found)}


def cells(page):
    """(first cell, last cell) of every row of a page's tables, as text."""
    rows = re.findall(r"<tr\b.*?</tr>", page.read_text(), re.DOTALL)
    found = [re.findall(r"<t[dh]\b.*?</t[dh]>", row, re.DOTALL) for row in rows]
    plain = [[" ".join(unescape(re.sub(r"<[^>]*>", "", cell)).split()) for cell in row] for row in found]
    return {(row[0], row[-1]) for row in plain}


def names():
    """The public names, of the package and of its namespaces, by the one path that the site has them under."""
    for package, there in listed().items():
        others = [] if package == "dphmm" else listed()["dphmm"]
        yield from (f"{package}.{name}" for name in there if name not in others or not same(package, name))


def same(package, name):
    """Whether a package's name is the top's, too."""
    return getattr(dphmm, name, None) is getattr(importlib.import_module(package), name)


def listed():
    """{package: names that pages of the reference list}; a package without names there is listed with all it has."""
    found = {}
    for path in (DOCS / "api").glob("*.md"):
        for package, body in re.findall(r"^```\{public\} (\S+)\n(.*?)```$", path.read_text(), re.DOTALL | re.MULTILINE):
            every = importlib.import_module(package).__all__
            found.setdefault(package, []).extend(body.split() or every)
    return found


def test_every_public_name_is_listed_once_on_a_page_of_the_reference():
    found, top = (
        listed(),
        sorted(name for name in dphmm.__all__ if name not in NAMESPACES and not name.startswith("__")),
    )
    assert sorted(found["dphmm"]) == top
    assert set(found) == {"dphmm", *(f"dphmm.{name}" for name in NAMESPACES)}
    for package in sorted(set(found) - {"dphmm"}):
        own = [name for name in importlib.import_module(package).__all__ if not same(package, name)]
        assert sorted(name for name in found[package] if not same(package, name)) == sorted(own), package


def test_notebooks_use_public_names_alone_and_check_what_they_say():
    found = sorted((DOCS / "notebooks").glob("*.md"))
    assert len(found) == 4
    for path in found:
        cells = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
        assert cells[-1].startswith(":tags: [remove-cell]") and cells[-1].count("assert ") >= 3
        code = "\n".join(re.sub(r"^:tags:.*", "", cell) for cell in cells)
        imported = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
        ours = [
            alias.name
            for node in imported
            for alias in node.names
            if "dphmm" in (getattr(node, "module", ""), alias.name)
        ]
        assert set(ours) <= {"dphmm", "evaluation"}, path
        assert [node.module for node in imported if isinstance(node, ast.ImportFrom)] in ([], ["dphmm"], ["matplotlib"])
        assert re.findall(r"\b_\w+", code.replace("__", "")) == [] and "ReplayBits" not in code


def test_a_dead_link_and_a_script_from_elsewhere_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there">x</a><a href="b.html#gone">y</a><a href="c.html">z</a>')
    (tmp_path / "b.html").write_text(
        '<p id="there"></p><a href="https://example.org">far</a><script src="https://example.org/x.js"></script>'
    )
    assert list(dead(tmp_path)) == ["a.html: b.html#gone", "a.html: c.html", "b.html: loads https://example.org/x.js"]


@pytest.fixture
def pages(monkeypatch):
    """The extension of the site."""
    tools()
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("site_pages")


DOCSTRING = """What is given to \\*.

Parameters
----------
a, b : see `plan`, and estimate_ and x_0;
    docs/theory.md has more.
table : any
- `one`: of a list
- two
t (d,) : a step
and a paragraph.

>>> f(*x_)
'a_'
"""
MARKED_UP = r"""What is given to \\\*.

.. rubric:: Parameters

``a``, ``b``
    see :py:obj:`plan`, and estimate\_ and x_0;
    :doc:`docs/theory.md </theory>` has more.

``table``
    any

- :py:obj:`one`: of a list

- two

``t (d,)``
    a step

and a paragraph.

>>> f(*x_)
'a_'
"""


@pytest.mark.slow
def test_docstrings_become_the_markup_they_mean(pages):
    made = "\n".join(pages.marked_up(DOCSTRING.splitlines()))
    assert re.sub(r"\n{2,}", "\n\n", made).strip() == MARKED_UP.strip()


@pytest.mark.slow
def test_links_lead_to_the_pages_of_files_outside_the_folder(pages):
    moved = pages._moved("[a](docs/guide.md#b) [s](SECURITY.md)", ROOT, DOCS)
    assert moved == "[a](guide.md#b) [s](../SECURITY.md)"
    linked = pages._linked("[s](../../SECURITY.md) [d](../adr) [e](../theory.md#x)", DOCS / "proofs", "proofs/x")
    assert linked == "[s](../security.md) [d](../adr/README.md) [e](../theory.md#x)"
    assert pages._outside_code("a\n```\na\n```\na", str.upper) == "A\n```\na\n```\nA"
