"""The documentation site: every public name has its place, every page and anchor that a link names is there.

Claims: `python3 run.py docs` builds without a warning and without the network; no built page loads anything from
elsewhere; the notebooks run, and what they say of their results is so (their last cells); docstrings become the markup
they mean. A page that is in no contents, a link to nothing and a public name that no page lists each fail. The first
search finds no page of the section on research, which has a search and a side bar of its own.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import run

import dphmm

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
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


@pytest.mark.slow
@pytest.mark.replayed_words
def test_the_site_is_built_without_a_warning_and_every_link_leads_somewhere(tmp_path):
    tools()
    assert "--fail-on-warning" in run.BUILD_SITE and "--nitpicky" in run.BUILD_SITE
    done = subprocess.run([sys.executable, *run.BUILD_SITE, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(dead(tmp_path)) == []
    built = {str(path.relative_to(tmp_path).with_suffix("")) for path in tmp_path.rglob("*.html")}
    assert {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")} <= built
    using, research = searched(tmp_path / "searchindex.js"), searched(tmp_path / "research" / "searchindex.js")
    assert {"errata", "theory", "mutation", "proofs/hull", "results/dphmm"} <= research
    assert {"guide", "commands", "files", "api/models"} <= using and not using & research
    assert set(built) - using - research <= {"genindex", "search", "research/search", "py-modindex"}
    assert 'action="research/search.html"' in (tmp_path / "errata.html").read_text()
    assert 'action="search.html"' in (tmp_path / "guide.html").read_text()
    guide, theory = side_bar(tmp_path / "guide.html"), side_bar(tmp_path / "theory.html")
    assert {"commands.html", "research.html"} <= set(guide) and not {"errata.html", "theory.html"} & set(guide)
    assert "errata.html" in theory and "commands.html" not in theory
    for notebook in (DOCS / "notebooks").glob("*.md"):
        assert "cell_output" in (tmp_path / "notebooks" / f"{notebook.stem}.html").read_text(), notebook
        assert list((tmp_path / "_downloads").rglob(f"{notebook.stem}.ipynb"))
    known = "".join(path.read_text() for path in (tmp_path / "api").glob("*.html"))
    assert [name for name in names() if f'id="{name}"' not in known] == []


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
    found = listed()
    top = sorted(name for name in dphmm.__all__ if name not in NAMESPACES and not name.startswith("__"))
    inside = {name for package, there in found.items() if package != "dphmm" for name in there}
    assert set(found["dphmm"]) <= set(top)
    assert [name for name in top if name not in inside and found["dphmm"].count(name) != 1] == []
    assert set(found) == {"dphmm", *(f"dphmm.{name}" for name in NAMESPACES)}


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
