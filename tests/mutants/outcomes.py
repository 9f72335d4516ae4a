"""A pytest plugin: refuse to test any other dphmm than the copy's, and write down how each test ended.

MUTANTS_COPY is the folder of the copy, MUTANTS_OUTCOMES the file to write to.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def pytest_sessionstart() -> None:
    import dphmm

    copy = Path(os.environ["MUTANTS_COPY"]).resolve()
    if copy not in Path(dphmm.__file__).resolve().parents:
        raise SystemExit(f"the tests would import {dphmm.__file__}, which is not in {copy}")


def pytest_runtest_logreport(report: Any) -> None:
    if report.when == "call" or report.failed:
        said = str(report.longrepr).strip().splitlines()[-1] if report.failed else ""
        with Path(os.environ["MUTANTS_OUTCOMES"]).open("a") as file:
            print(json.dumps([report.nodeid, report.outcome, said]), file=file)
