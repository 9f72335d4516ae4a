"""The one decorator of the kernels, and their machine code on disk: one file for each kernel, types and processor.

    FOLDER/points-81f4…/bounds-03ab….nbc

The folder in the middle is named by the syntax trees of the kernel's file and of all that it imports (`sources`), the
file by everything else that machine code depends on. Nothing is named by where dphmm is installed, so a folder that
was filled elsewhere serves here. Numba's own cache keeps an index that two processes can overwrite for each other, and
is then out of step with its data files; here every file stands for itself and is put in place whole.

Machine code depends on the syntax tree of its file and on those of all files that it imports. Kernels inline each
other, so the machine code of one that calls another is stale once that other one changes. Comments, docstrings and
blank lines are in no tree that is compared: to add one compiles nothing.
"""

from __future__ import annotations

import ast
import hashlib
import os
import pickle
import secrets
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, TypeVar, cast

import llvmlite
import numba
import platformdirs
from numba.core import bytecode, event, types
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from dphmm._kernels import process

# Numba names machine code, and the list of Python objects beside it, by function, types and a number that each process
# counts up. A list that was loaded under a name is not loaded again, and code that is compiled under the same name
# appends to it: where two processes had counted alike, the second left a file that asks for objects that nobody has.
# Random numbers of 60 bits are never alike.
bytecode.FunctionIdentity._unique_ids = iter(partial(secrets.randbits, 60), None)  # type: ignore[assignment]

#: The decorator is no kernel; what it asks of the compiler is told to the cache instead.
_DECORATOR = "dphmm._kernels.compiled"


def key_of(module: str, file: Path) -> str:
    """Sixteen hex digits, the same while a module in a file, and all that it imports of its package, are the same."""
    depth = len(module.split(".")) - (file.name != "__init__.py")
    digest = hashlib.sha256()
    for name, path in sorted(read_by(module, file, file.parents[depth]).items()):
        digest.update(f"{name} {_parsed(path.read_bytes())[0]}\n".encode())
    return digest.hexdigest()[:16]


def read_by(module: str, file: Path, root: Path) -> dict[str, Path]:
    """``module`` and every module of its package, below ``root``, that it imports, directly or not: name to file."""
    files, waiting = {module: file}, [file]
    package = module.split(".")[0]
    while waiting:
        for where, what in _parsed(waiting.pop().read_bytes())[1]:
            name = f"{where}.{what}" if what and _file_of(root, f"{where}.{what}") else where
            path = _file_of(root, name) if name.split(".")[0] == package else None
            if path is not None and name not in files and name != _DECORATOR:
                files[name] = path
                waiting.append(path)
    return files


def _file_of(root: Path, name: str) -> Path | None:
    place = root.joinpath(*name.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


@cache
def _parsed(source: bytes) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The digest of a syntax tree without docstrings, and its imports: a module, and the name asked of it, or none."""
    tree = ast.parse(source)
    imported: list[tuple[str, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            del node.body[0]
        elif isinstance(node, ast.Import):
            imported += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                raise ImportError(f"line {node.lineno}: a relative import; a file of kernels names the whole module")
            imported += [(node.module, alias.name) for alias in node.names]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(imported)


#: Where kernels are kept, where somebody says so.
VARIABLE = "DPHMM_KERNELS"
_DIGEST = 32


def folder() -> Path:
    """The folder of compiled kernels: $DPHMM_KERNELS, or Numba's own setting, or the user's cache."""
    chosen = os.environ.get(VARIABLE) or numba.config.CACHE_DIR  # type: ignore[attr-defined]
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("dphmm")) / "kernels"


def writable(place: Path) -> bool:
    """True if compiled kernels can be kept in a folder, which need not be there yet."""
    there = next(path for path in (place.absolute(), *place.absolute().parents) if path.exists())
    return there.is_dir() and os.access(there, os.W_OK)


class KernelCache:
    """The cache of one kernel, in the words that a dispatcher of Numba has for it."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        # The key is that of the source as it is now: read later, it could be of an edit that is not what runs.
        module, file = function.__module__, Path(function.__code__.co_filename).resolve()
        self._name = f"{module.split('.')[-1]}-{key_of(module, file)}"
        self._function, self._options = function.__qualname__, options

    @property
    def cache_path(self) -> Path:
        """The folder of this kernel's files; it need not be there."""
        return folder() / self._name

    def kept(self) -> list[Path]:
        """The files of this kernel that are there, for any types, processor and compiler."""
        return sorted(self.cache_path.glob(f"{self._function}-*.nbc"))

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The code compiled for these types, here or elsewhere; None without any, and for a damaged file."""
        target.refresh()
        wanted = self._described(signature, target.codegen())
        try:
            stored = self._file(wanted).read_bytes()
        except OSError:
            return None
        body = stored[_DIGEST:]
        if hashlib.sha256(body).digest() != stored[:_DIGEST]:
            return None
        described, reduced = pickle.loads(body)
        return CompileResult._rebuild(target, *reduced) if described == wanted else None  # type: ignore[no-untyped-call]

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep the compiled code in the folder; if that fails, it lives as long as the process."""
        if compiled.library.has_dynamic_globals:
            return
        described = self._described(signature, compiled.codegen)
        body: bytes = dumps((described, compiled._reduce()))  # type: ignore[no-untyped-call]
        file = self._file(described)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=file.parent, prefix=".", ignore_cleanup_errors=True) as aside:
                whole = Path(aside) / file.name
                whole.write_bytes(hashlib.sha256(body).digest() + body)
                whole.replace(file)
        except OSError as error:
            process.unkept(folder(), error)

    def flush(self) -> None:
        """Forget the compiled code of this kernel."""
        for file in self.kept():
            file.unlink(missing_ok=True)

    def _described(self, signature: Any, codegen: Any) -> str:
        """The dependencies of machine code beside the sources: compiler, Python, processor, types."""
        versions = numba.__version__, llvmlite.__version__, sys.implementation.cache_tag
        return repr((versions, self._options, codegen.magic_tuple(), [_spelled(of) for of in signature]))

    def _file(self, described: str) -> Path:
        return self.cache_path / f"{self._function}-{hashlib.sha256(described.encode()).hexdigest()[:16]}.nbc"


def _spelled(of: Any) -> str:
    """The name of a type, with fields and module of a named tuple, which Numba's name leaves out."""
    named, tuples = cast(Any, types.BaseNamedTuple), cast(Any, types.BaseTuple)
    if isinstance(of, named):
        label = f"{of.instance_class.__module__}.{of.instance_class.__qualname__}"
        return (
            f"{label}({', '.join(f'{name}: {_spelled(part)}' for name, part in zip(of.fields, of.types, strict=True))})"
        )
    if isinstance(of, tuples):
        return f"({', '.join(map(_spelled, of))})"
    return str(of)


P = ParamSpec("P")
R = TypeVar("R")

#: Every kernel that was imported; none where Numba is told to compile nothing.
KERNELS: list[Any] = []
_OPTIONS: dict[str, Any] = {"nogil": True}


class _Announcer(event.Listener):
    """A listener to Numba's compilations; code that is found on disk is none."""

    def on_start(self, started: event.Event) -> None:
        if process.tell is not None:
            cache = getattr(started.data["dispatcher"], "_cache", None)
            process.tell(isinstance(cache, KernelCache) and writable(cache.cache_path))

    def on_end(self, _: event.Event) -> None:
        """Nothing happens at the end."""


class _Calls(event.Listener):
    """Numba broadcasts when it takes the lock of LLVM, and when it gives it back."""

    def on_start(self, _: event.Event) -> None:
        process.llvm_calls += 1

    def on_end(self, _: event.Event) -> None:
        process.llvm_calls -= 1


event.register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]
event.register("numba:llvm_lock", _Calls())  # type: ignore[no-untyped-call]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` on first use; its machine code is kept on disk between processes."""
    return _compiled(function, _OPTIONS)


def summing_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """The same for a sum of many numbers, whose order the compiler may choose: four times as fast."""
    return _compiled(function, {**_OPTIONS, "fastmath": {"reassoc"}})


def inlined_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """The same for a short loop that other kernels call: they compile it as a part of their own code.

    A call by itself took up to a third longer.
    """
    return _compiled(function, {**_OPTIONS, "inline": "always"})


def _compiled(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    compiled: Any = numba.njit(**options)(function)
    if compiled is not function:
        compiled._cache = KernelCache(function, options)
        KERNELS.append(compiled)
    return cast("Callable[P, R]", compiled)


def compiles() -> bool:
    """True if kernels are compiled at all: with NUMBA_DISABLE_JIT=1 they are plain Python."""
    return not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
