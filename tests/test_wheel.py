"""What is published installs and runs without the checkout: `python3 run.py wheel`.

Claims: wheel and source archive build; README renders where packages are shown; the wheel has the package with its
data files and nothing else; in a fresh environment it imports, and the demo ends with a page.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATA = {
    "dphmm/py.typed",
    "dphmm/report/templates/figures.css",
    "dphmm/report/templates/page.css",
    "dphmm/report/templates/page.html",
    "dphmm/report/templates/words.html",
    "dphmm/report/templates/page.js",
    "dphmm/report/templates/palette.css",
    "dphmm/studio/page/studio.css",
    "dphmm/studio/page/studio.html",
    "dphmm/studio/page/studio.js",
    "dphmm/statement/privacy-statement.schema.json",
}
#: Nothing of the checkout or of the tests reaches the fresh environment.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DPHMM", "VIRTUAL_ENV"))}


def run(*command, cwd):
    """What a command prints; the test fails with it where the command does."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=CLEAN, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def data_files():
    """The files of the package that are no Python."""
    source = ROOT / "src"
    found = (path.relative_to(source) for path in (source / "dphmm").rglob("*") if path.is_file())
    return {path.as_posix() for path in found if path.suffix not in (".py", ".pyc")}


def test_the_data_files_of_the_package_are_known():
    assert data_files() == DATA


@pytest.mark.long
@pytest.mark.system_words(
    error="0", because="the fresh environment has none of the tests' folders; nothing hangs on words"
)
def test_wheel_and_archive_install_and_run_without_the_checkout(tmp_path):
    dist, fresh = tmp_path / "dist", tmp_path / "fresh"
    run(sys.executable, "-m", "build", "--outdir", dist, ROOT, cwd=tmp_path)
    (wheel,), (archive,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    assert "PASSED" in run(sys.executable, "-m", "twine", "check", "--strict", wheel, archive, cwd=tmp_path)

    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"dphmm"}
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "dphmm").rglob("*.py")}
    assert {name for name in names if name.startswith("dphmm/")} == sources | DATA
    assert any(name.endswith("licenses/LICENSE") for name in names)
    with tarfile.open(archive) as files:
        assert not [name for name in files.getnames() if ".venv" in name or name.endswith((".db", ".pyc"))]

    run(sys.executable, "-m", "venv", fresh, cwd=tmp_path)
    python, dphmm = fresh / "bin" / "python", fresh / "bin" / "dphmm"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    where = "import dphmm; print(dphmm.__file__, dphmm.__version__)"
    path, version = run(python, "-I", "-c", where, cwd=tmp_path).split()
    assert Path(path).is_relative_to(fresh)
    assert run(dphmm, "--version", cwd=tmp_path).split() == ["dphmm", version]
    run(dphmm, "demo", "--people", "2", "--days", "1", "--out", "demo", "--quiet", cwd=tmp_path)
    assert "</html>" in (tmp_path / "demo" / "report.html").read_text()
