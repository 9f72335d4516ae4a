"""What the machine code of a file of kernels depends on: its syntax tree, and those of all files that it imports.

Kernels inline each other, so the machine code of one that calls another is stale once that other one changes.
Comments, docstrings and blank lines are in no tree that is compared: to add one compiles nothing.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

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
    found, waiting = {module: file}, [file]
    package = module.split(".")[0]
    while waiting:
        for where, what in _parsed(waiting.pop().read_bytes())[1]:
            name = f"{where}.{what}" if what and _file_of(root, f"{where}.{what}") else where
            path = _file_of(root, name) if name.split(".")[0] == package else None
            if path is not None and name not in found and name != _DECORATOR:
                found[name] = path
                waiting.append(path)
    return found


def _file_of(root: Path, name: str) -> Path | None:
    place = root.joinpath(*name.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


@cache
def _parsed(source: bytes) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The digest of a syntax tree without docstrings; what is imported: a module, and the name asked of it, or none."""
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
