"""Machine code on disk is that of the sources that run: of a kernel's own file and of every file that it imports.

Could fail: a callee that changed while its caller runs the old code, a comment that compiles everything again, a folder
that serves only where it was made or only if it can be written, a damaged file that is run, two processes at once.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numba
import pytest
from numba.core import types

from dphmm._kernels import compiled, process
from dphmm._kernels.compiled import key_of, read_by

FILES = {
    "__init__.py": '"""Nothing."""\n',
    "base.py": "from dphmm._kernels.compiled import kernel\nSTEP = 1\n@kernel\ndef one(x):\n    return x + STEP\n",
    "middle.py": "from dphmm._kernels.compiled import kernel\nfrom tiny.base import one\n"
    "@kernel\ndef two(x):\n    return one(one(x))\n",
    "top.py": "from dphmm._kernels.compiled import kernel\nfrom tiny import middle\ntwo = middle.two\n"
    "@kernel\ndef four(x):\n    return two(two(x))\n",
    "apart.py": "from dphmm._kernels.compiled import kernel\n@kernel\ndef ten(x):\n    return x + 10\n",
}
NAMES = ("base", "middle", "top", "apart")
CALLS = {"base": "one", "middle": "two", "top": "four", "apart": "ten"}
#: Nothing that a machine runs.
IDLE = {
    "comment": lambda text: "# why\n\n" + text.replace("    return", "    # how\n    return"),
    "docstring": lambda text: '"""What."""\n' + text.replace("    return", '    """Adds."""\n    return'),
    "spaces": lambda text: text.replace("x + STEP", "(x  +\n        STEP)"),
}
compiling = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
KERNELS = Path(compiled.__file__).parent


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A package of kernels in a folder, and its cache in another; both can be looked at and changed."""
    monkeypatch.setenv(compiled.VARIABLE, str(tmp_path / "kept"))
    monkeypatch.setattr(compiled, "KERNELS", [])
    monkeypatch.setattr(process, "_refused", set())
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path / "here"))
    yield write(tmp_path / "here" / "tiny")
    forget()


def write(folder):
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def forget():
    for name in [name for name in sys.modules if name.split(".")[0] == "tiny"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def run(*names):
    """What each kernel says of 0 as a new process would find it, and which of them were compiled for it."""
    forget()
    compiled.KERNELS.clear()
    modules = {name: importlib.import_module(f"tiny.{name}") for name in names or NAMES}
    said = [getattr(module, CALLS[name])(0) for name, module in modules.items()]
    return said, {one.py_func.__name__ for one in compiled.KERNELS if one.stats.cache_misses}


def keys(folder):
    return {name: key_of(f"tiny.{name}", folder / f"{name}.py") for name in NAMES}


def edit(path, change):
    path.write_text(change(path.read_text()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("idle", IDLE)
def test_what_no_machine_runs_changes_no_key(tiny, name, idle):
    before = keys(tiny)
    text = (tiny / f"{name}.py").read_text()
    edit(tiny / f"{name}.py", IDLE[idle])
    assert idle == "spaces" or (tiny / f"{name}.py").read_text() != text
    assert keys(tiny) == before


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("base", {"base", "middle", "top"}),
        ("middle", {"middle", "top"}),
        ("top", {"top"}),
        ("apart", {"apart"}),
        ("__init__", set()),
    ],
)
def test_a_change_is_in_the_keys_of_its_callers_and_in_no_other(tiny, name, changed):
    before = keys(tiny)
    edit(tiny / f"{name}.py", lambda text: text + "MORE = 1\n")
    after = keys(tiny)
    assert {name for name in NAMES if before[name] != after[name]} == changed


def test_a_relative_import_is_refused(tiny):
    edit(tiny / "top.py", lambda text: text.replace("from tiny import", "from . import"))
    with pytest.raises(ImportError, match="a relative import"):
        keys(tiny)


def test_the_kernels_of_dphmm_import_each_other_and_nothing_that_they_could_be_stale_by():
    for path in sorted(KERNELS.glob("*.py")):
        found = set(read_by(f"dphmm._kernels.{path.stem}", path, KERNELS.parents[1]))
        if path.stem not in ("__init__", "compiled", "cache"):
            assert all(name.startswith("dphmm._kernels.") or name == "dphmm.types" for name in found), path.name
            assert "dphmm._kernels" not in found, path.name
    blocks = read_by("dphmm._kernels.blocks", KERNELS / "blocks.py", KERNELS.parents[1])
    assert {"dphmm._kernels.filter"} <= set(blocks)


def test_a_type_is_told_by_its_fields_too():
    """Numba's own name of a named tuple does not have them, and compiled code reads them by their place."""

    first, second = (
        types.NamedTuple((types.float64, types.float64), namedtuple("Pair", fields)) for fields in ("a b", "b a")
    )
    assert str(first) == str(second)
    assert compiled._spelled(first) != compiled._spelled(second)
    assert compiled._spelled(types.Tuple((first,))) != compiled._spelled(types.Tuple((second,)))


@compiling
@pytest.mark.parametrize("kind", ["kernel", "inlined_kernel"])
def test_a_callee_that_changes_is_not_run_as_it_was(tiny, kind):
    edit(tiny / "base.py", lambda text: text.replace("import kernel", f"import {kind}").replace("@kernel", f"@{kind}"))
    assert run() == ([1, 2, 4, 10], {"one", "two", "four", "ten"})
    assert run() == ([1, 2, 4, 10], set())
    edit(tiny / "base.py", IDLE["comment"])
    edit(tiny / "middle.py", IDLE["docstring"])
    assert run() == ([1, 2, 4, 10], set())
    edit(tiny / "base.py", lambda text: text.replace("STEP = 1", "STEP = 3"))
    # The caller alone, so that its machine code is asked for before anybody compiles the callee.
    own = {"one"} if kind == "kernel" else set()
    assert run("top", "apart") == ([12, 10], {"two", "four"} | own)
    edit(tiny / "base.py", lambda text: text.replace("STEP = 3", "STEP = 1"))
    assert run() == ([1, 2, 4, 10], set())


@compiling
def test_a_folder_serves_elsewhere_and_is_not_written_to(tiny, tmp_path, monkeypatch):
    run()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "kept").rglob("*")}
    assert len([path for path in kept if path.suffix == ".nbc"]) == 4
    shutil.copytree(tiny, tmp_path / "there" / "tiny")
    shutil.rmtree(tiny)
    monkeypatch.syspath_prepend(str(tmp_path / "there"))
    assert run() == ([1, 2, 4, 10], set())
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "kept").rglob("*")} == kept
    # It could fail: with the folder elsewhere, everything is compiled.
    monkeypatch.setenv(compiled.VARIABLE, str(tmp_path / "empty"))
    assert run("apart") == ([10], {"ten"})


@compiling
def test_a_folder_that_cannot_be_written_is_said_once_and_kernels_run(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(compiled.VARIABLE, str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="cannot be kept in .*every process compiles them again") as said:
        assert run("apart", "base") == ([10, 1], {"ten", "one"})
    assert len(said) == 1 and "\n" not in str(said[0].message)
    assert not compiled.writable(tmp_path / "file" / "x") and compiled.writable(tmp_path / "new" / "x")


@compiling
def test_no_two_processes_name_their_code_alike(tiny, tmp_path):
    """The objects that code needs, here the dtype of an array, are kept by its name."""
    (tiny / "base.py").write_text(
        "import numpy as np\nfrom dphmm._kernels.compiled import kernel\n"
        "@kernel\ndef one(x):\n    return np.full(2, x + 1)\n"
    )
    (tiny / "middle.py").write_text(FILES["middle.py"].replace("one(one(x))", "one(x)[0]"))
    path = os.pathsep.join([str(tiny.parent), str(KERNELS.parents[1]), os.environ.get("PYTHONPATH", "")])

    def said(calls):
        script = f"from tiny.middle import one, two\nprint({calls})"
        given = {"env": {**os.environ, "PYTHONPATH": path}, "capture_output": True, "text": True}
        return subprocess.run([sys.executable, "-c", script], **given, timeout=300, check=True).stdout

    assert said("one(0), two(0)") == "[1 1] 1\n"
    for file in (tmp_path / "kept").rglob("one-*.nbc"):
        file.unlink()
    # The second process loads the caller, then compiles the callee; the third loads both.
    for _ in range(2):
        assert said("two(0), one(0)") == "1 [1 1]\n"


@compiling
@pytest.mark.parametrize("damage", [lambda code: b"", lambda code: code[:-9], lambda code: code[:-1] + b"?"])
def test_a_damaged_file_is_not_run(tiny, tmp_path, damage):
    run("apart")
    (file,) = (tmp_path / "kept").rglob("*.nbc")
    file.write_bytes(damage(file.read_bytes()))
    assert run("apart") == ([10], {"ten"})
    assert run("apart") == ([10], set())


@pytest.mark.slow
@compiling
def test_two_processes_at_once(tiny, tmp_path):
    script = (
        "import json\nfrom tiny.top import four\nfrom dphmm._kernels.compiled import KERNELS\n"
        "said = four(0), four(0.5), four(True)\n"
        "print(json.dumps([said, sum(sum(one.stats.cache_misses.values()) for one in KERNELS)]))"
    )
    path = os.pathsep.join([str(tiny.parent), str(KERNELS.parents[1]), os.environ.get("PYTHONPATH", "")])
    given = {"env": {**os.environ, "PYTHONPATH": path}, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    both = [subprocess.Popen([sys.executable, "-c", script], **given) for _ in range(2)]
    for one in both:
        out, error = one.communicate(timeout=300)
        assert one.returncode == 0, error
        assert json.loads(out)[0] == [4, 4.5, 5]
    assert not list((tmp_path / "kept").rglob(".*")), "what was set aside is left"
    third = subprocess.run([sys.executable, "-c", script], **given, timeout=300, check=True)
    assert json.loads(third.stdout) == [[4, 4.5, 5], 0]
