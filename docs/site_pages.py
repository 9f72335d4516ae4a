"""What the site needs beside Sphinx: files of the checkout's root as pages, public names, docstrings as they are.

- A line ``<!-- page: ../SECURITY.md -->`` stands for that file, or the part of it ``from`` one heading ``to`` another.
  Links lead to pages of the site, from wherever a file is; a link to what is not on the site is a warning.
- The page ``research`` and all pages of its contents are a section with its own side bar and its own search.
- Pages in ``notebooks`` are run, and can be taken as Jupyter notebooks.
- ``{public} dphmm.policy`` documents the names of a package's ``__all__``, or those that it lists.
- ``{options} release`` is the table of a command's options and their help; of a group, with the commands that take
  them.
- ``{results} step`` is the table that is stored in results/step.csv, as `benchmarks.stored` keeps what was printed.
- ``{members} release`` is the table of the members of a privacy statement, from its types.
- Docstrings are plain text with backticks and sections of NumPy's form. They are made the markup that autodoc reads.
"""

from __future__ import annotations

import csv
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from os.path import relpath
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.adapters.toctree import TocTree
from sphinx.search import IndexBuilder, js_index
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from statement_members import STATEMENTS, members

from dphmm.cli.app import app as commands

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
LOG = logging.getLogger(__name__)

#: Files and folders of the checkout that are pages of the site under another name.
ELSEWHERE = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "examples": "examples.md",
    "docs/adr": "adr/README.md",
    "experiments/dependence/results.md": "results/dependence.md",
    "experiments/dphmm/results.md": "results/dphmm.md",
    "experiments/hmm_privacy/results.md": "results/hmm-privacy.md",
    "experiments/location_sets/results.md": "results/location-sets.md",
    "experiments/optimum/results.md": "results/optimum.md",
    "experiments/steps/results.md": "results/steps.md",
}
#: The first page of the second section. Its pages have a side bar of their own and are not in the first search.
RESEARCH = "research"
#: Its own search, in place of that of the first section.
SEARCH = {"search": "research/search", "searchindex.js": "research/searchindex.js"}
#: Pages that list those of their folder, and whether their own text does so already.
FOLDERS = {"proofs/README": ":hidden:", "adr/README": ":titlesonly:"}
_PAGE = re.compile(r"<!-- page: (?P<file>\S+?)(?: from: (?P<first>.+?))?(?: to: (?P<last>.+?))? -->\n?")
_LINK = re.compile(r"\]\((?P<file>[^)#\s:]+)(?P<anchor>#[^)]*)?\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')


# -- pages ----------------------------------------------------------------------------------------------------------


def write_page(app: Sphinx, page: str, source: list[str]) -> None:
    """The text of a page as Sphinx reads it."""
    path = Path(app.env.doc2path(page))
    source[0] = _PAGE.sub(lambda found: _part(app, page, found), source[0])
    if page in FOLDERS:
        source[0] += f"\n```{{toctree}}\n{FOLDERS[page]}\n:glob:\n\n*\n```\n"
    if page.startswith("notebooks/"):
        source[0] += f"\nTake this page as a notebook: {{nb-download}}`{Path(page).name}.ipynb`\n"
    source[0] = _ANCHOR.sub(r"(\1)=", _outside_code(source[0], lambda text: _linked(text, path.parent, page)))


def _part(app: Sphinx, page: str, found: re.Match[str]) -> str:
    """A file of the checkout, or the part of it that begins with one line and ends before another."""
    path = (DOCS / page).parent.joinpath(found["file"]).resolve()
    app.env.note_dependency(str(path))
    text = path.read_text()
    begin = text.index(found["first"] + "\n") if found["first"] else 0
    end = text.index(found["last"] + "\n") if found["last"] else len(text)
    here = (DOCS / page).parent
    return _outside_code(text[begin:end], lambda part: _moved(part, path.parent, here))


def _outside_code(text: str, change: Any) -> str:
    return "".join(part if part.startswith("```") else change(part) for part in _FENCED.split(text))


def _moved(text: str, origin: Path, here: Path) -> str:
    """Links of a file's text as they are written in another folder."""
    return _LINK.sub(lambda link: f"]({relpath(origin / link['file'], here)}{link['anchor'] or ''})", text)


def _linked(text: str, here: Path, page: str) -> str:
    """Links to files of the checkout as links to their pages."""

    def one(link: re.Match[str]) -> str:
        path = (here / link["file"]).resolve()
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
        if name in ELSEWHERE:
            path = DOCS / ELSEWHERE[name]
        if not path.is_relative_to(DOCS) or not path.is_file():
            LOG.warning("%s is not on the site", link["file"], location=page)
        return f"]({relpath(path, here)}{link['anchor'] or ''})"

    return _LINK.sub(one, text)


# -- two sections ---------------------------------------------------------------------------------------------------


def research_pages(env: BuildEnvironment) -> set[str]:
    """The pages of the section "Research and assurance"."""
    pages: set[str] = set()
    left = [RESEARCH]
    while left:
        pages.add(page := left.pop())
        left += [below for below in env.toctree_includes.get(page, ()) if below not in pages]
    return pages


def leave_out_of_search(app: Sphinx, env: BuildEnvironment) -> None:
    """The first search finds no page of the second section."""
    for page in research_pages(env):
        env.metadata[page]["nosearch"] = True


def write_research_search(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The second section's index of words, and the page that searches it."""
    env = app.env
    empty = {name: type(words)() for name, words in vars(env).items() if name.startswith("_search_index_")}
    index: Any = IndexBuilder(SimpleNamespace(**vars(env) | empty), "en", {}, "")
    for page in sorted(research_pages(env)):
        index.feed(page, str(env.doc2path(page, base=False)), env.titles[page].astext(), env.get_doctree(page))
    path = Path(app.outdir, SEARCH["searchindex.js"])
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        index.dump(file, js_index)
    yield SEARCH["search"], {}, "search.html"


def give_side_bar(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The side bar has the pages and the search of one section; each contents say how deep theirs go."""
    env, builder, link = app.env, app.builder, context["pathto"]
    research = page in research_pages(env) or page == SEARCH["search"]
    first = RESEARCH if research else app.config.root_doc

    def toctree(**_: Any) -> str:
        contents = [
            TocTree(env).resolve(page, builder, node, titles_only=True, includehidden=True)
            for node in env.get_doctree(first).findall(addnodes.toctree)
        ]
        return "".join(builder.render_partial(part)["fragment"] for part in contents if part is not None)

    context["toctree"] = toctree
    if research:
        context["pathto"] = lambda name, *resource: link(SEARCH.get(name, name), *resource)


# -- public names ---------------------------------------------------------------------------------------------------


class Public(SphinxDirective):
    """A table of a package's public names, and then each of them: those of its content, or all."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """What autosummary and autodoc make of the names."""
        package = self.arguments[0]
        there, top = import_module(package), import_module("dphmm")
        all_names = [name for name in there.__all__ if getattr(top, name, None) is not getattr(there, name)]
        names = " ".join(self.content).split() or all_names
        explained = [name for name in names if callable(getattr(there, name))]
        lines = [f".. py:currentmodule:: {package}", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in explained] + [""]
        for name in names:
            lines += [*_asked(name, getattr(there, name)), ""]
        return self.parse_rst(lines)

    def parse_rst(self, lines: list[str]) -> list[nodes.Node]:
        """These lines of reStructuredText, on a page of Markdown."""
        block = ["```{eval-rst}", *lines, "```"]
        return self.parse_text_to_nodes(StringList(block, self.env.docname), allow_section_headings=False)


def _asked(name: str, thing: Any) -> list[str]:
    if inspect.isclass(thing):
        return [f".. autoclass:: {name}", "   :members:"]
    return [f".. autofunction:: {name}"] if callable(thing) else [f".. py:data:: {name}"]


def leave_out(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Methods that another package put into a class are documented there."""
    own = getattr(thing, "__module__", None) or "dphmm"
    return None if own.startswith("dphmm") else True


# -- commands and statements ------------------------------------------------------------------------------------------


class Options(SphinxDirective):
    """A table of the options of a command, or of all commands of a group."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table."""
        return self.parse_text_to_nodes(_table(options_of(self.arguments[0])))


def options_of(name: str) -> list[tuple[str, ...]]:
    """The header and the rows of the table of a command's options: what they are called, and their help."""
    context = click.Context(commands)
    command = commands.get_command(context, name)
    assert command is not None, f"there is no command {name}"
    if not isinstance(command, click.Group):
        return [("option", "meaning"), *((option, meaning) for option, meaning in _options(command))]
    takers: dict[tuple[str, str], list[str]] = {}
    parts = command.list_commands(context)
    for part in parts:
        for option in _options(command.get_command(context, part)):
            takers.setdefault(option, []).append(part)
    every = len(parts)
    return [
        ("option", "of", "meaning"),
        *(
            (option, "all" if len(of) == every else ", ".join(f"`{part}`" for part in of), meaning)
            for (option, meaning), of in takers.items()
        ),
    ]


def _options(command: click.Command | None) -> Iterator[tuple[str, str]]:
    assert command is not None
    context = click.Context(command)
    for option in command.params:
        record = option.get_help_record(context)
        if record is not None and isinstance(option, click.Option):
            called = record[0].replace("|", "\\|")
            yield f"`{called}`", _cell(record[1])


class Members(SphinxDirective):
    """A table of the members of a privacy statement: of a release, a query or a synthesis."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table."""
        rows = members(STATEMENTS[self.arguments[0]])
        made = [(f"`{path}`", form, _cell(meaning)) for path, form, meaning in rows]
        return self.parse_text_to_nodes(_table([("member", "form", "meaning"), *made]))


class Results(SphinxDirective):
    """A table of stored results, whose cells are Markdown."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table."""
        path = DOCS / "results" / f"{self.arguments[0]}.csv"
        self.env.note_dependency(str(path))
        with path.open(newline="", encoding="utf-8") as file:
            rows = [tuple(cell.replace("|", "\\|") for cell in row) for row in csv.reader(file)]
        return self.parse_text_to_nodes(_table(rows))


def _cell(text: str) -> str:
    """Text as it is, in a cell of a table of Markdown."""
    return re.sub(r"([\\*_\[\]<>|`])", r"\\\1", " ".join(text.split()))


def _table(rows: list[tuple[str, ...]]) -> str:
    header, *others = rows
    lines = [header, ("---",) * len(header), *others]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# -- docstrings -----------------------------------------------------------------------------------------------------

_LITERAL = re.compile(r"(``.+?``|:[\w:]+:`.+?`|`[^`]+`)")
#: "name : text", also of several names, or with the shape of an array.
_ENTRY = re.compile(r"(?P<names>[\w*]+(?: \([^)]*\))?(?:, [\w*]+(?: \([^)]*\))?)*) : (?P<text>.*)")
_IN_SECTION = re.compile(r"(?P<names>\S.*?) : (?P<text>.*)")
_SECTIONS = ("Parameters", "Returns", "Yields", "Raises", "Examples", "Example", "Notes")
_SPECIAL = re.compile(r"([*|\\]|(?<=\w)_(?!\w))")
_FILE = re.compile(r"docs/((?:proofs/|adr/)?[\w-]+)\.md")


def mark_up(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """A docstring's lines as reStructuredText."""
    lines[:] = marked_up(lines)


def marked_up(lines: list[str]) -> list[str]:
    """Lines of a docstring as reStructuredText: sections, lists, names, and nothing that is markup by accident."""
    made: list[str] = []
    section, entry = "", False
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line in _SECTIONS and below and set(below) == {"-"}:
            section, entry = line, False
            made += ["", f".. rubric:: {section}", ""]
        elif line and set(line) == {"-"} and section:
            continue
        elif _in_example(made) or line.lstrip().startswith(">>>"):
            made += ["", line] if made and made[-1] and not _in_example(made) else [line]
        elif found := (_IN_SECTION if section in ("Parameters", "Raises") else _ENTRY).fullmatch(line):
            entry = True
            made += ["", ", ".join(f"``{one}``" for one in found["names"].split(", ")), f"    {_inline(found['text'])}"]
        elif line.startswith("- "):
            made += ["", _inline(line)]
        else:
            if entry and line and not line.startswith(" "):
                made.append("")
            entry = entry and line.startswith(" ")
            made.append(_inline(line))
    return made


def _in_example(made: list[str]) -> bool:
    """Whether the last lines are an example that no empty line has ended."""
    for line in reversed(made):
        if not line.strip():
            return False
        if line.lstrip().startswith(">>>"):
            return True
    return False


def _inline(line: str) -> str:
    parts = _LITERAL.split(line)
    return "".join(_name(part) if at % 2 else _plain(part) for at, part in enumerate(parts))


def _plain(text: str) -> str:
    """Text without markup, in which a page of this folder is a link."""
    return _FILE.sub(r":doc:`\g<0> </\1>`", _SPECIAL.sub(r"\\\1", text))


def _name(literal: str) -> str:
    """What stands in backticks: a link where it is the name of something public, else code."""
    if literal.startswith((":", "``")):
        return literal
    name = literal.strip("`")
    return f":py:obj:`{name}`" if re.fullmatch(r"[\w.]+", name) else f"``{name}``"


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx."""
    app.connect("source-read", write_page)
    app.connect("env-check-consistency", leave_out_of_search)
    app.connect("html-page-context", give_side_bar, priority=400)
    app.connect("html-collect-pages", write_research_search)
    app.connect("autodoc-process-docstring", mark_up)
    app.connect("autodoc-skip-member", leave_out)
    app.add_directive("public", Public)
    app.add_directive("options", Options)
    app.add_directive("members", Members)
    app.add_directive("results", Results)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
