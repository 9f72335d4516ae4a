"""The size and the shape of the source in figures, and their limits, which `tests/test_house.py` holds.

    python -m benchmarks.house [--against COMMIT] [--list GAUGE]...

Each gauge is a figure, or a list whose length is the figure; `--list` prints the list. `--against` prints the figures
of a commit beside those of this tree. Nothing of the package is imported here: commands are counted by another process.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.source import File, Package

ROOT = Path(__file__).parents[1]
#: The largest figure that a gauge may show; of those in `LEAST` the smallest.
LIMITS: dict[str, float] = {
    "code lines": 64_087,
    "code lines of tests": 83_635,
    "words of docs": 104_242,
    "circles of imports": 0,
    "circles with types": 0,
    "imports by computed names": 0,
    "imports in functions": 0,
    "keys of release.toml": 120,
    "functions with many parameters": 28,
    "docstrings that begin with a clause, %": 1,
    "names that say nothing": 9,
    "class names with several meanings": 0,
    "short private functions used once": 216,
    "modules without a mirrored test": 30,
    "banned words": 0,
    "seeded bugs that are live": 450,
}
LEAST = ("seeded bugs that are live",)
#: The rooms above the core.
UPPER = ("dependent", "reconstruction", "spark", "studio")
#: What else has lines in the package.
OTHER = (".css", ".html", ".js")
CLAUSES = frozenset(["What", "Who", "Whose", "Whom", "Whether", "How", "Which", "Where", "When", "Why", "Of", "That"])
SILENT = frozenset(["told", "found", "own", "came", "one", "given", "kept"])
#: More are too many: options of a command, parameters of a function; fewer lines are too few: of a private function.
MOST_OPTIONS, MOST_PARAMETERS, FEWEST_LINES = 20, 10, 7
#: Marks of tests that the default command leaves out.
LEFT_OUT = ("long", "slow")
#: Where `pytest --cpu` writes the seconds of processor time of a run.
CPU = Path("build", "tests-cpu.txt")
#: A banned word that stored plans have as a key.
STORED = "given_partners"
#: Options of each command, and the keys of each table of a pipeline, as the command line itself knows them.
PROBE = """
import json
import click
from dphmm.cli.app import app

def commands(command, words=()):
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from commands(command.get_command(click.Context(command), name), (*words, name))
    else:
        yield words, [max(one.opts, key=len).lstrip("-") for one in command.params if isinstance(one, click.Option)]

options = dict(commands(app))
from dphmm.cli.pipeline import STAGES
from dphmm.session.options import PLAN_CHOICES
keys = {f"[setting] {option}" for option in PLAN_CHOICES} | {
    f"[{name}] {option}"
    for name, stage in STAGES.items()
    for words, taken in options.items()
    if all(part in (word, "{kind}") for part, word in zip(stage.words, words))
    for option in stage.members(taken)
}
print(json.dumps({"options": {" ".join(words): len(taken) for words, taken in options.items()}, "keys": sorted(keys)}))
"""


class House:
    """A tree: the package, what stands beside it, its tests and its documents."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files, self.tests = self.read("src"), self.read("tests")
        self.package = Package(self.files)

    def read(self, folder: str) -> list[File]:
        """The Python files of a folder."""
        files = []
        for path in sorted((self.root / folder).rglob("*.py")):
            name = ".".join(path.relative_to(self.root / folder).with_suffix("").parts).removesuffix(".__init__")
            files.append(File(name, path.relative_to(self.root), path.read_text()))
        return files

    @cached_property
    def rooms(self) -> dict[str, int]:
        """Code lines of each room; a file at the top is one."""
        rooms = Counter[str]()
        for file in self.files:
            rooms[file.name.split(".")[1] if "." in file.name else "dphmm"] += len(file.code)
        return dict(sorted(rooms.items()))

    @cached_property
    def other(self) -> list[str]:
        """The lines of templates, script and style."""
        paths = [path for path in (self.root / "src").rglob("*") if path.suffix in OTHER]
        return [line for path in paths for line in path.read_text().splitlines() if line.strip()]

    @cached_property
    def commands(self) -> dict[str, Any] | None:
        """What `PROBE` finds; None where the command line of the tree cannot be loaded."""
        environment = {**os.environ, "PYTHONPATH": str(self.root / "src")}
        ended = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, check=False)
        return None if ended.returncode else json.loads(ended.stdout)

    def pages(self) -> list[Path]:
        """The documents but the glossary, which names the words that are not used."""
        pages = sorted(page for folder in ("docs", "experiments") for page in (self.root / folder).rglob("*.md"))
        return [self.root / "README.md", *(page for page in pages if page.name != "glossary.md")]

    def words(self, *folders: str) -> int:
        """The words of all pages in some folders."""
        paths = [path for folder in folders for path in (self.root / folder).rglob("*.md")]
        return sum(len(path.read_text().split()) for path in paths)

    def functions(self) -> Iterator[tuple[str, str, ast.arguments, int]]:
        """The place, name, parameters and lines of all functions of the package."""
        for file in self.files:
            for node, lines in file.functions():
                yield f"{file.path}:{node.lineno} {node.name}", node.name, node.args, lines


def code(files: list[File]) -> list[str]:
    """The code lines of files."""
    return [line for file in files for line in file.code]


def characters(lines: list[str]) -> float:
    """The mean length of lines without their indents."""
    return round(mean(len(line.strip()) for line in lines), 1) if lines else 0


def options_of_commands(house: House) -> list[str] | None:
    """The commands with more options than `MOST_OPTIONS`, the largest first."""
    if house.commands is None:
        return None
    ranked = sorted(house.commands["options"].items(), key=lambda item: -item[1])
    return [f"{count} {name}" for name, count in ranked if count > MOST_OPTIONS]


def parameters(house: House) -> list[str]:
    """The public functions with more parameters than `MOST_PARAMETERS`, the largest first."""
    counted = []
    for place, name, taken, _ in house.functions():
        names = [parameter.arg for parameter in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
        count = len(set(names) - {"self", "cls"})
        if count > MOST_PARAMETERS and not name.startswith("_"):
            counted.append((count, place))
    return [f"{count} {place}" for count, place in sorted(counted, reverse=True)]


def untyped(house: House) -> list[str]:
    """The public functions that take any option (`**choices: Any`), whose parameters cannot be counted."""
    return [place for place, name, taken, _ in house.functions() if taken.kwarg and not name.startswith("_")]


def clauses(house: House) -> list[str]:
    """The docstrings that begin with a clause in the place of a noun."""
    return [
        f"{file.path}:{node.lineno} {first[0]}"
        for file in house.files
        for node in file.docstrings
        if (first := re.findall(r"\w+", ast.literal_eval(node.value))[:1]) and first[0] in CLAUSES
    ]


def share_of_clauses(house: House) -> float:
    """The share of docstrings that begin with a clause, in per cent."""
    return round(100 * len(clauses(house)) / max(1, sum(len(file.docstrings) for file in house.files)), 1)


def silent_names(house: House) -> list[str]:
    """The places where a variable gets a name that says nothing."""
    return [
        f"{file.path}:{node.lineno} {node.id}"
        for file in house.files
        for node in file.nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in SILENT
    ]


def class_names(house: House) -> list[str]:
    """The names of classes in more than one module."""
    homes = defaultdict[str, set[str]](set)
    for file in house.files:
        for node in file.nodes:
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(file.name)
    return [f"{name}: {', '.join(sorted(where))}" for name, where in sorted(homes.items()) if len(where) > 1]


def used_once(house: House) -> list[str]:
    """The private functions of fewer lines than `FEWEST_LINES` that one place uses."""
    uses = Counter[str]()
    for file in house.files:
        uses.update(node.id for node in file.nodes if isinstance(node, ast.Name))
        uses.update(node.attr for node in file.nodes if isinstance(node, ast.Attribute))
    return [
        place
        for place, name, _, lines in house.functions()
        if re.match("_[^_]", name) and uses[name] == 1 and lines < FEWEST_LINES
    ]


def without_default_test(house: House) -> list[str]:
    """The files of tests in which the default command runs none."""
    left_out = re.compile(rf"mark\.({'|'.join(LEFT_OUT)})\b")
    # A test, a class of tests or a state machine of Hypothesis, with its decorators.
    test = re.compile(r"(@.*\n)*(def |class )?(test|Test)")
    listed = []
    for file in house.tests:
        texts = [ast.unparse(node) for node in file.tree.body]
        whole = any(text.startswith("pytestmark") and left_out.search(text) for text in texts)
        tests = [start for text in texts if (start := test.match(text)) and not left_out.search(start[0])]
        if file.path.name.startswith("test_") and (whole or not tests):
            listed.append(str(file.path))
    return listed


def unmirrored(house: House) -> list[str]:
    """The modules with code whose test is not at the mirrored path: tests/PACKAGE/test_NAME.py."""
    listed = []
    for file in house.files:
        *folders, name = (part.strip("_") for part in file.path.with_suffix("").parts[2:])
        mirrored = house.root.joinpath("tests", *folders, f"test_{name}.py")
        if not file.path.name.startswith("__") and not mirrored.exists():
            listed.append(str(file.path))
    return listed


def banned(house: House) -> list[str]:
    """The words that names and prose do not use, from the last table of the glossary."""
    page = house.root / "docs" / "glossary.md"
    _, _, last = (page.read_text() if page.exists() else "").partition("## Words that are not used")
    rows = [line.split("|")[1] for line in last.splitlines() if line.startswith("|")]
    return [word.strip() for row in rows[2:] for word in row.split(",")]


def banned_words(house: House) -> list[str]:
    """The places of banned words, as words or as parts of names; a word with a capital as a name alone."""
    parts = [word if word[0].isupper() else f"(?i:{word})" for word in banned(house) if word != STORED]
    # What stored plans name so, and their hashes with it, cannot change: between quotes it is such a key.
    parts.append(f'(?<!"){STORED}(?!")')
    pattern = re.compile(f"(?<![A-Za-z])(?:{'|'.join(parts)})(?![a-z])")
    places = []
    for path in [*(house.root / file.path for file in house.files), *house.pages()]:
        for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
            split = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", line)
            places += [f"{path.relative_to(house.root)}:{number} {word}" for word in pattern.findall(split)]
    return places


def live_bugs(house: House) -> int:
    """The number of seeded bugs that the code can have."""
    texts = [path.read_text() for path in (house.root / "tests/mutants/seeded").glob("*.toml")]
    return sum("absent" not in record for text in texts for record in tomllib.loads(text)["mutant"])


def processor_seconds(house: House) -> float | None:
    """The processor time of the last run of the tests that was measured."""
    path = house.root / CPU
    return float(path.read_text()) if path.exists() else None


GAUGES: dict[str, Callable[[House], list[str] | float | None]] = {
    "files": lambda house: len(house.files),
    "code lines": lambda house: sum(house.rooms.values()),
    "code lines of the core": lambda house: sum(n for room, n in house.rooms.items() if room not in UPPER),
    "code lines of experiments": lambda house: len(code(house.read("experiments"))),
    "code lines of tests": lambda house: len(code(house.tests)),
    "lines of templates, script and style": lambda house: len(house.other),
    "characters per code line": lambda house: characters(code(house.files)),
    "characters per code line of tests": lambda house: characters(code(house.tests)),
    "characters per line of templates": lambda house: characters(house.other),
    "words of docs": lambda house: house.words("docs"),
    "words of results": lambda house: house.words("experiments"),
    "words of docstrings and comments": lambda house: sum(len(" ".join(file.prose).split()) for file in house.files),
    "functions": lambda house: sum(1 for _ in house.functions()),
    "circles of imports": lambda house: house.package.circles(),
    "circles with types": lambda house: house.package.circles(types=True),
    "imports by computed names": lambda house: house.package.computed(),
    "imports in functions": lambda house: house.package.light(),
    "commands with many options": options_of_commands,
    "options of all commands": lambda house: house.commands and sum(house.commands["options"].values()),
    "keys of release.toml": lambda house: house.commands and house.commands["keys"],
    "functions with many parameters": parameters,
    "functions with any parameters": untyped,
    "docstrings that begin with a clause": clauses,
    "docstrings that begin with a clause, %": share_of_clauses,
    "names that say nothing": silent_names,
    "class names with several meanings": class_names,
    "short private functions used once": used_once,
    "modules without a mirrored test": unmirrored,
    "banned words": banned_words,
    "test files without a default test": without_default_test,
    "processor seconds of the tests": processor_seconds,
    "seeded bugs that are live": live_bugs,
}


def figure(house: House, gauge: str) -> float | None:
    """The figure of a gauge: the length of a list; None where it is not measured."""
    value = GAUGES[gauge](house)
    return len(value) if isinstance(value, list) else value


def exceeded(house: House) -> list[str]:
    """The gauges that are beyond their limit."""
    wrong = []
    for gauge, limit in LIMITS.items():
        value = figure(house, gauge)
        if value is not None and (value < limit if gauge in LEAST else value > limit):
            wrong.append(f"{gauge}: {value:,}; the limit is {limit:,}")
    return wrong


def table(houses: list[House]) -> Iterator[str]:
    """A line for each gauge and each room, with a column for each tree."""

    def row(name: str, values: list[float | None], limit: float | None = None) -> str:
        cells = "".join(f"{'not measured' if value is None else f'{value:,}':>14}" for value in values)
        return f"{name:40}{cells}" + ("" if limit is None else f"   limit {limit:,}")

    for gauge in GAUGES:
        yield row(gauge, [figure(house, gauge) for house in houses], LIMITS.get(gauge))
    for room in sorted({room for house in houses for room in house.rooms}):
        yield row(f"  {room}", [house.rooms.get(room, 0) for house in houses])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="COMMIT")
    parser.add_argument("--list", action="append", default=[], choices=list(GAUGES), metavar="GAUGE")
    options = parser.parse_args()
    house = House(ROOT)
    with TemporaryDirectory() as folder:
        houses = [house]
        if options.against:
            archive = subprocess.run(["git", "archive", options.against], cwd=ROOT, capture_output=True, check=True)
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
                tar.extractall(folder, filter="data")
            houses.append(House(Path(folder)))
        print(*table(houses), sep="\n")
    for gauge in options.list:
        listed = GAUGES[gauge](house)
        print(f"\n{gauge}", *(f"  {line}" for line in (listed if isinstance(listed, list) else [listed])), sep="\n")


if __name__ == "__main__":
    main()
