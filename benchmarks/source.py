"""The source of a tree, parsed: lines of code, and which file of the package loads or names which."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

#: Libraries that are heavy or optional: functions import them where they are needed.
HEAVY = frozenset([
    "altair", "click", "cryptography", "geopandas", "h3", "highspy", "hmmlearn",
    "importlib.metadata", "IPython", "jinja2", "joblib", "matplotlib", "networkx", "numba",
    "optimistix", "pandas", "polars", "psutil", "pyarrow", "pyogrio", "pyproj",
    "pyspark", "rich", "scipy", "shapely", "sklearn", "starlette", "threadpoolctl", "uvicorn",
    "xarray",
])  # fmt: skip
#: A text that names a module of the package, or all below one ("dphmm.plot."), or a name in one (after a colon).
NAMED = re.compile(r"(dphmm(?:\.\w+)+)(\.?)(?::\w+)?")
#: The rooms whose files may name their own modules by text, as every `__init__` may through `_lazy`: commands are
#: loaded by name.
NAMING_ROOMS = ("dphmm.cli", "dphmm._lazy")


class Import(NamedTuple):
    """A module that another one loads: at once, inside a function, for types only, or named in a text."""

    target: str
    line: int
    inner: bool = False
    types: bool = False
    text: bool = False


class File:
    """A parsed Python file; ``name`` is its module's."""

    def __init__(self, name: str, path: Path, text: str) -> None:
        self.name, self.path, self.text = name, path, text

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return list(ast.walk(self.tree))

    @property
    def package(self) -> str:
        """The package that relative names start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @cached_property
    def docstrings(self) -> list[ast.stmt]:
        """The docstrings of module, classes and functions."""
        return [first for node in self.nodes if (first := docstring(node)) is not None]

    @cached_property
    def prose(self) -> list[str]:
        """The docstrings and comments."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
        return comments + [ast.unparse(node) for node in self.docstrings]

    @cached_property
    def code(self) -> list[str]:
        """The lines with code: no blanks, comments and docstrings. The lines of other texts are code."""
        texts = set[int]()
        for node in self.nodes:
            if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
                texts.update(extent(node)[1:])
        prose = {number for node in self.docstrings for number in extent(node)}
        return [
            line
            for number, line in enumerate(self.text.splitlines(), 1)
            if number not in prose and (number in texts or not re.fullmatch(r"\s*(#.*)?", line))
        ]

    def functions(self) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]]:
        """Each function and its lines without the docstring."""
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = docstring(node)
                yield node, len(extent(node)) - (0 if first is None else len(extent(first)))


def docstring(node: ast.AST) -> ast.stmt | None:
    """The docstring of a module, a class or a function."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
        return node.body[0]
    return None


def extent(node: ast.stmt | ast.expr) -> range:
    """The numbers of the lines of a node."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


class Package:
    """The files of a package and what they load."""

    def __init__(self, files: Iterable[File]) -> None:
        self.files = {file.name: file for file in files}

    @cached_property
    def imports(self) -> dict[str, list[Import]]:
        """The imports of each file, also those by text."""
        return {name: [*self._imports(file, file.tree), *self._named(file)] for name, file in self.files.items()}

    def _imports(self, file: File, node: ast.AST, inner: bool = False, types: bool = False) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for body, only in ((child.body, True), (child.orelse, types)):
                    yield from self._imports(file, ast.Module(body, []), inner, only)
            elif isinstance(child, ast.Import):
                yield from (Import(name.name, child.lineno, inner, types) for name in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = _base(child, file)
                for name in child.names:
                    whole = f"{base}.{name.name}"
                    target = whole if whole in self.files else base
                    yield Import(target, child.lineno, inner, types)
                    # A name of a lazy `__init__` loads its home.
                    if (home := self._homes.get(whole)) is not None and home != file.name:
                        yield Import(home, child.lineno, inner, types)
            elif not isinstance(child, ast.expr):
                # No expression has an import in it, and most of a tree are expressions.
                function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                yield from self._imports(file, child, inner or function, types)

    @cached_property
    def _homes(self) -> dict[str, str]:
        """The modules of names that an `__init__` offers."""
        return {
            f"{file.name}.{name.asname or name.name}": base
            for file in self.files.values()
            if file.name == file.package
            for node in file.nodes
            if isinstance(node, ast.ImportFrom) and (base := _base(node, file)) in self.files
            for name in node.names
        }

    def _named(self, file: File) -> Iterator[Import]:
        """The modules of the package that a file names in a text."""
        for node in file.nodes:
            if isinstance(node, ast.Constant) and (match := NAMED.fullmatch(str(node.value))) is not None:
                module, below = match.groups()
                for name in self.files:
                    if name == module or (below and name.startswith(f"{module}.")):
                        yield Import(name, node.lineno, inner=True, text=True)

    def graph(self, types: bool = False) -> dict[str, set[str]]:
        """The files of the package that each file imports or names; ``types``: those too that it needs for types alone.

        An `__init__` is a file of its own.
        """
        return {
            name: {
                one.target
                for one in imports
                if (types or not one.types) and one.target in self.files and one.target != name
                if not self._is_own(self.files[name], one)
            }
            for name, imports in self.imports.items()
        }

    def _is_own(self, file: File, one: Import) -> bool:
        """True for what a package may name of itself: its modules in its `__init__`, and itself."""
        if not (one.text or one.types):
            return False
        room = next((room for room in NAMING_ROOMS if file.name.startswith(f"{room}.")), None)
        own = file.name if file.name == file.package else room
        return one.target == file.package or (own is not None and one.target.startswith(f"{own}."))

    def circles(self, types: bool = False) -> list[str]:
        """Groups of files that import or name each other, the largest first."""
        graph = self.graph(types)
        beyond = {name: reached(graph, name) for name in graph}
        groups = {" ".join(sorted(other for other in beyond[name] if name in beyond[other])) for name in graph}
        return sorted(groups - {""}, key=lambda group: -group.count(" "))

    def computed(self) -> list[str]:
        """Calls that load a module whose name is computed, outside of the rooms that load their own."""
        return [
            f"{file.path}:{node.lineno} {ast.unparse(node)}"
            for file in self.files.values()
            if file.name != file.package and not file.name.startswith(NAMING_ROOMS)
            for node in file.nodes
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__")
            if not isinstance(node.args[0], ast.Constant)
        ]

    def light(self) -> list[str]:
        """Imports inside functions that load no heavy or optional library, at once or through modules of ours."""
        at_once = {
            name: {one.target for one in imports if not (one.inner or one.types)}
            | {name.rsplit(".", cut)[0] for cut in range(1, name.count("."))}
            for name, imports in self.imports.items()
        }
        return [
            f"{self.files[name].path}:{one.line} {one.target}"
            for name, imports in self.imports.items()
            for one in imports
            if one.inner and not one.types and not one.text
            if not any(
                other in HEAVY or other.split(".")[0] in HEAVY for other in {one.target, *reached(at_once, one.target)}
            )
        ]


def _base(node: ast.ImportFrom, file: File) -> str:
    """The module that a `from` import takes names of."""
    if not node.level:
        return node.module or ""
    parts = file.package.split(".")
    above = ".".join(parts[: len(parts) - node.level + 1])
    return f"{above}.{node.module}" if node.module else above


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """Where a graph leads to from a start: the start itself only where a way leads back."""
    waiting, seen = [start], set[str]()
    while waiting:
        new = graph.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return seen
