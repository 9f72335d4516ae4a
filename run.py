"""Sets up what a command needs in .venv, then runs it: for a machine with Python and nothing else.

    python3 run.py demo     the demo; then open demo-out/report.html
    python3 run.py test     the tests, without those marked slow; what follows is for pytest
    python3 run.py test --all  the slow tests too
    python3 run.py docs     the documentation site; then open docs-out/index.html
    python3 run.py wheel    build wheel and archive, install them in a fresh environment, run the demo there
    python3 run.py setup    sets up what all of these and `make lint` need

Each installs only what it needs: the demo the package alone.

Uses the standard library alone. `make` calls it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LEAST = (3, 11)
PROJECT = ROOT / "pyproject.toml"
#: The extra of pyproject.toml that a command needs; the demo needs none.
EXTRAS = {"demo": "", "test": "test", "test --all": "dev", "docs": "docs", "wheel": "dev", "setup": "dev"}
#: The site, with every warning an error; a folder for it follows.
BUILD_SITE = ("-m", "sphinx", "-b", "html", "--nitpicky", "--fail-on-warning", "--keep-going", "--quiet", "docs")


class Environment:
    """A virtual environment below the checkout, with the project and its extras."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / ("Scripts" if sys.platform == "win32" else "bin")

    def set_up(self, extra: str) -> None:
        """Install the project with an extra, unless that was done since its requirements last changed."""
        ready = self.folder / f".ready-{extra or 'demo'}"
        if ready.exists() and ready.stat().st_mtime >= PROJECT.stat().st_mtime:
            return
        print(f"setting up {self.folder.name} (once, some minutes)", flush=True)
        if not self.programs.exists():
            subprocess.run([sys.executable, "-m", "venv", str(self.folder)], check=True)
        project = f".[{extra}]" if extra else "."
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", project)
        ready.touch()

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of the environment in the checkout; end with its exit code where it fails.

        Bytecode is written whatever the caller's shell says: without it each run rewrites the assertions of all tests.
        """
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        command = [str(self.programs / program), *arguments]
        code = subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode
        if code:
            raise SystemExit(code)


def main(arguments: list[str]) -> None:
    """Run a command line."""
    if sys.version_info < LEAST:
        raise SystemExit(f"Python: got {sys.version.split()[0]}; expected {'.'.join(map(str, LEAST))} or newer")
    command, *rest = arguments or ["help"]
    slow_too = command == "test" and "--all" in rest
    if command not in EXTRAS or (rest and command != "test"):
        raise SystemExit(__doc__)
    environment = Environment(ROOT / ".venv")
    environment.set_up(EXTRAS["test --all" if slow_too else command])
    if command == "demo":
        environment.run("dphmm", "demo", "--out", "demo-out")
    elif command == "test":
        marks = "not long" if slow_too else "not long and not slow"
        rest = [word for word in rest if word != "--all"]
        environment.run("python", "-m", "pytest", "-n", "2", "-m", marks, *rest)
    elif command == "docs":
        environment.run("python", *BUILD_SITE, "docs-out")
        print("open docs-out/index.html")
    elif command == "wheel":
        environment.run("python", "-m", "pytest", "-n", "0", "tests/test_wheel.py")


if __name__ == "__main__":
    main(sys.argv[1:])
