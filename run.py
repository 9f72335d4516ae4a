"""Sets up what a command needs in .venv, then runs it: for a machine with Python and nothing else.

    python3 run.py demo     the demo; then open demo-out/report.html
    python3 run.py test     the tests; what follows is for pytest
    python3 run.py docs     the documentation site; then open docs-out/index.html
    python3 run.py wheel    build wheel and archive, install them in a fresh environment, run the demo there
    python3 run.py setup    only sets up

Uses the standard library alone. `make` calls it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LEAST = (3, 11)
PROJECT = ROOT / "pyproject.toml"
#: The site, with every warning an error; a folder for it follows.
BUILD_SITE = ("-m", "sphinx", "-b", "html", "--nitpicky", "--fail-on-warning", "--keep-going", "--quiet", "docs")


class Environment:
    """A virtual environment below the checkout, with the project and an extra installed once per version of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
        self.ready = folder / ".ready"

    def set_up(self, extra: str) -> None:
        """Install the project with an extra, where it is not, or where its requirements are newer."""
        if self.ready.exists() and self.ready.stat().st_mtime >= PROJECT.stat().st_mtime:
            return
        print(f"setting up {self.folder.name} (once, some minutes)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(self.folder)], check=True)
        self.run("python", "-m", "pip", "install", "--quiet", "--upgrade", "pip")
        self.run("python", "-m", "pip", "install", "--quiet", "-e", f".[{extra}]")
        self.ready.touch()

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of the environment in the checkout; end with its exit code where it fails."""
        code = subprocess.run([str(self.programs / program), *arguments], cwd=ROOT, check=False).returncode
        if code:
            raise SystemExit(code)


def main(arguments: list[str]) -> None:
    """Run a command line."""
    if sys.version_info < LEAST:
        raise SystemExit(f"Python: got {sys.version.split()[0]}; expected {'.'.join(map(str, LEAST))} or newer")
    command, *rest = arguments or ["help"]
    if command not in ("setup", "demo", "test", "docs", "wheel") or (rest and command != "test"):
        raise SystemExit(__doc__)
    environment = Environment(ROOT / ".venv")
    environment.set_up("dev")
    if command == "demo":
        environment.run("dphmm", "demo", "--out", "demo-out")
    elif command == "test":
        environment.run("lint-imports")
        environment.run("python", "-m", "pytest", "-n", "2", "-m", "not long", *rest)
    elif command == "docs":
        environment.run("python", *BUILD_SITE, "docs-out")
        print("open docs-out/index.html")
    elif command == "wheel":
        environment.run("python", "-m", "pytest", "-n", "0", "tests/test_wheel.py")


if __name__ == "__main__":
    main(sys.argv[1:])
