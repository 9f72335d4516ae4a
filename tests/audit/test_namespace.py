"""`dphmm.audit` is a namespace of functions: a submodule of the same name must not replace one at its second use."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import dphmm

NAMES = list(dphmm.audit.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_what_they_are(name):
    import dphmm.audit.black_box
    import dphmm.audit.verify

    for _ in range(2):
        assert callable(getattr(dphmm.audit, name)) and inspect.getdoc(getattr(dphmm.audit, name))


def test_public_classes_are_explained():
    for name in NAMES:
        thing = getattr(dphmm.audit, name)
        for attribute, member in vars(thing).items() if inspect.isclass(thing) else ():
            if not attribute.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                assert inspect.getdoc(getattr(thing, attribute)), f"{name}.{attribute}"


def test_importing_it_is_light():
    code = "import sys, dphmm.audit; print(','.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split(",")
    assert {"pyarrow", "pandas", "scipy.stats"}.isdisjoint(loaded)
