"""A package offers the names of its imports, each from its module, also out of a zip file.

Fails where an import is missed because a formatter broke its line, or where a name is loaded before it is used.
"""

from __future__ import annotations

import ast
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

import dphmm

ROOT = Path(dphmm.__file__).parent
PACKAGES = [path for path in ROOT.rglob("__init__.py") if "= lazy(__name__)" in path.read_text()]


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.parent.name)
def test_the_names_are_those_that_type_checkers_see(path):
    package = import_module(".".join(path.parent.relative_to(ROOT.parent).parts))
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    names = {name.name for node in imports for name in node.names if name.name == name.asname}
    assert set(package.__all__) - {"__version__"} == names == set(dir(package)) - {"__version__"}
    # Those of Spark need it: the tests of Spark call each of them.
    assert path.parent.name == "spark" or [name for name in names if not hasattr(package, name)] == []


def test_a_package_in_a_zip_file_loads_a_name_at_its_first_use(tmp_path, monkeypatch):
    lazily = "from typing import TYPE_CHECKING\nfrom dphmm._lazy import lazy\nif TYPE_CHECKING:\n"
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as file:
        names = "    from zipped.below import one as one\n    from zipped import below as below\n"
        file.writestr("zipped/__init__.py", f"{lazily}{names}\n__getattr__, __dir__, __all__ = lazy(__name__)\n")
        file.writestr("zipped/below.py", "one = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "zipped.zip"))
    package = import_module("zipped")
    assert package.__all__ == ["below", "one"] and "zipped.below" not in sys.modules
    assert package.one == 1 and package.below.one == 1
    with pytest.raises(AttributeError, match=r"'zipped' has no attribute 'two'"):
        package.two  # noqa: B018
