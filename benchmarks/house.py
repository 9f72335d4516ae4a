"""What the source looks like in figures: its size, its functions, its imports, where its tests are, and its words.

    python -m benchmarks.house [--circles] [--inner] [--unmirrored] [--words] [--sizes]

Prints one line a figure; each option also prints what a figure counts. Nothing of the package is imported.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dphmm"
#: Libraries that are heavy or optional: functions import them where they are needed.
HEAVY = frozenset(
    [
        "altair",
        "click",
        "cryptography",
        "geopandas",
        "h3",
        "highspy",
        "hmmlearn",
        "importlib.metadata",
        "jinja2",
        "joblib",
        "matplotlib",
        "networkx",
        "numba",
        "optimistix",
        "pandas",
        "polars",
        "psutil",
        "pyarrow",
        "pyogrio",
        "pyproj",
        "pyspark",
        "rich",
        "scipy",
        "shapely",
        "sklearn",
        "threadpoolctl",
        "IPython",
        "xarray",
    ]
)
#: The page of words; its last table lists those that are not used.
GLOSSARY = ROOT / "docs" / "glossary.md"
#: A word of that table that stored plans have as a key.
STORED = "given_partners"


class Module(NamedTuple):
    """A file of the package, parsed."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @classmethod
    def of(cls, path: Path) -> Module:
        """From a file of the package, or beside it."""
        below = SOURCE.parent if path.is_relative_to(SOURCE.parent) else ROOT
        parts = path.relative_to(below).with_suffix("").parts
        text = path.read_text()
        return cls(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path, text, ast.parse(text))

    @property
    def package(self) -> str:
        """The package that relative names are of."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    def code_lines(self) -> int:
        """The number of lines with code: no blanks, comments and docstrings."""
        skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
        lines = set[int]()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in skipped and token.type != tokenize.ENDMARKER:
                lines.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(self.tree):
            if (own := docstring(node)) is not None:
                lines -= set(range(own.lineno, (own.end_lineno or own.lineno) + 1))
        return len(lines)

    def functions(self) -> Iterator[int]:
        """Lines of each function, without its docstring."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                own = docstring(node)
                told = 0 if own is None else (own.end_lineno or own.lineno) - own.lineno + 1
                yield (node.end_lineno or node.lineno) - node.lineno + 1 - told


def docstring(node: ast.AST) -> ast.Expr | None:
    """The docstring of a module, a class or a function."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not node.body:
        return None
    first = node.body[0]
    told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return first if told and isinstance(first, ast.Expr) else None


class Import(NamedTuple):
    """An import of a module: what, in which line, in a function or not."""

    target: str
    line: int
    inner: bool


class House:
    """All files of the package."""

    def __init__(self, modules: list[Module]) -> None:
        self.modules = {module.name: module for module in modules}
        self._imported: dict[str, list[Import]] = {}

    @classmethod
    def read(cls) -> House:
        """The package of this tree."""
        return cls([Module.of(path) for path in sorted(SOURCE.rglob("*.py"))])

    def imports(self, module: Module) -> list[Import]:
        """What a module imports when it runs: not what only types need."""
        if module.name not in self._imported:
            self._imported[module.name] = list(self._imports(module.tree, module, inner=False))
        return self._imported[module.name]

    def _imports(self, node: ast.AST, module: Module, inner: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for other in child.orelse:
                    yield from self._imports(other, module, inner)
            elif isinstance(child, ast.Import):
                for name in child.names:
                    yield Import(name.name, child.lineno, inner)
            elif isinstance(child, ast.ImportFrom):
                for target in self._targets(child, module):
                    yield Import(target, child.lineno, inner)
            elif not isinstance(child, ast.expr):
                # No expression has an import in it, and most of a tree are expressions.
                deeper = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                yield from self._imports(child, module, inner or deeper)

    def _targets(self, node: ast.ImportFrom, module: Module) -> Iterator[str]:
        base = node.module or ""
        if node.level:
            parts = module.package.split(".")
            above = parts[: len(parts) - node.level + 1]
            base = ".".join([*above, base] if base else above)
        for name in node.names:
            whole = f"{base}.{name.name}"
            yield whole if whole in self.modules else base

    @cached_property
    def graph(self) -> dict[str, set[str]]:
        """Which of our modules imports which, at once or later. A package's own `__init__` is its own file."""
        found = {}
        for name, module in self.modules.items():
            targets = {one.target for one in self.imports(module)}
            found[name] = {target for target in targets if target in self.modules} - {name}
        return found

    def circles(self) -> list[list[str]]:
        """Groups of modules that import each other, the largest first (Tarjan)."""
        return sorted((group for group in components(self.graph) if len(group) > 1), key=len, reverse=True)

    def inner(self) -> list[str]:
        """Imports inside functions that load no heavy or optional library, at once or through modules of ours."""
        found = []
        for module in self.modules.values():
            for one in self.imports(module):
                if one.inner and not self.loads_heavy(one.target):
                    found.append(f"{module.path.relative_to(ROOT)}:{one.line} {one.target}")
        return found

    def loads_heavy(self, name: str) -> bool:
        """Whether importing a module loads a heavy or optional library."""
        waiting, seen = [name], {name}
        while waiting:
            name = waiting.pop()
            if name in HEAVY or name.split(".")[0] in HEAVY:
                return True
            if (module := self.modules.get(name)) is None:
                continue
            parents = {name.rsplit(".", cut)[0] for cut in range(1, name.count("."))}
            loaded = {one.target for one in self.imports(module) if not one.inner} | parents
            waiting += loaded - seen
            seen |= loaded
        return False

    def unmirrored(self) -> list[str]:
        """Files with code whose test is at no mirrored path: tests/PACKAGE/test_NAME.py."""
        return [
            str(module.path.relative_to(ROOT))
            for module in self.modules.values()
            if module.path.name not in ("__init__.py", "__main__.py") and not mirrored(module.path).exists()
        ]


def mirrored(path: Path) -> Path:
    """Where the test of a file is."""
    below = path.relative_to(SOURCE)
    parts = [part.lstrip("_") for part in below.parent.parts]
    return ROOT / "tests" / Path(*parts) / f"test_{below.stem.strip('_')}.py"


def components(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected groups of a graph."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            found.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10_000)
    for name in graph:
        if name not in index:
            visit(name)
    return found


def banned() -> list[str]:
    """Words that names and prose do not use, from the last table of the glossary."""
    _, _, last = GLOSSARY.read_text().partition("## Words that are not used")
    rows = [line.split("|")[1] for line in last.splitlines() if line.startswith("|")]
    return [word.strip() for row in rows[2:] for word in row.split(",")]


def words(paths: list[Path]) -> list[str]:
    """Where banned words stand, as words or as parts of names; a word with a capital as a name alone."""
    parts = [word if word[0].isupper() else f"(?i:{word})" for word in banned() if word != STORED]
    # What stored plans name so, and their hashes with it, cannot change: between quotes it is such a key.
    parts.append(f'(?<!"){STORED}(?!")')
    pattern = re.compile(f"(?<![A-Za-z])(?:{'|'.join(parts)})(?![a-z])")
    found = []
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            split = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", line)
            found += [f"{path.relative_to(ROOT)}:{number} {one}" for one in pattern.findall(split)]
    return found


def pages() -> list[Path]:
    """The documents but the glossary, which names the words that are not used."""
    found = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "experiments").rglob("*.md")]
    return [ROOT / "README.md", *sorted(page for page in found if page != GLOSSARY)]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("circles", "inner", "unmirrored", "words", "sizes"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    house = House.read()
    lines = {module.path: module.code_lines() for module in house.modules.values()}
    lengths = sorted(length for module in house.modules.values() for length in module.functions())
    circles, inner, unmirrored = house.circles(), house.inner(), house.unmirrored()
    prose = words([*lines, *pages()])
    with_code = len(house.modules) - sum(path.name in ("__init__.py", "__main__.py") for path in lines)
    print(f"files                 {len(lines)}")
    print(f"code lines            {sum(lines.values()):,}")
    beside = sum(Module.of(path).code_lines() for path in (ROOT / "experiments").rglob("*.py"))
    print(f"  of experiments      {beside:,} beside the package")
    print(f"functions             {len(lengths):,}: median {statistics.median(lengths):.0f} lines, "
          f"90 % up to {lengths[9 * len(lengths) // 10]}, longest {lengths[-1]}")  # fmt: skip
    print(f"circles of imports    {len(circles)}, with {sum(map(len, circles))} files")
    print(f"imports in functions  {len(inner)} that load no heavy or optional library")
    print(f"tests mirrored        {100 * (1 - len(unmirrored) / with_code):.0f} % of {with_code} modules")
    print(f"banned words          {len(prose)}")
    if given.sizes:
        rooms = Counter[str]()
        for path, count in lines.items():
            rooms[str(path.parent.relative_to(SOURCE))] += count
        print(*(f"  {room:22}{count:7,}" for room, count in sorted(rooms.items())), sep="\n")
    if given.circles:
        print(*("  " + " ".join(group) for group in circles), sep="\n")
    for wanted, listed in ((given.inner, inner), (given.unmirrored, unmirrored), (given.words, prose)):
        if wanted:
            print(*(f"  {one}" for one in listed), sep="\n")


if __name__ == "__main__":
    main()
