from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pyarrow as pa

import dphmm.storage.importers as importers
from dphmm.storage.importers import IMPORTERS
from dphmm.storage.tables import write_table


def test_every_importer_is_registered():
    made = set()
    for module in pkgutil.iter_modules(importers.__path__):
        loaded = importlib.import_module(f"{importers.__name__}.{module.name}")
        made |= {v for k, v in vars(loaded).items() if k.startswith("import_") and v.__module__ == loaded.__name__}
    assert made == set(IMPORTERS.values())
    assert all(function.__name__ == f"import_{name}" for name, function in IMPORTERS.items())
    assert set(IMPORTERS) == {"geolife", "gowalla", "csv", "sequences"}


def test_csv_takes_the_names_of_its_columns(tmp_path):
    table = pa.table({"who": ["b", "a", "b"], "k": [3, 1, 2], "page": ["x", "y", None]})
    seen = []
    for suffix in (".csv", ".parquet", ".csv.gz"):
        write_table(tmp_path / f"x{suffix}", table)
        rows, report, rejected = IMPORTERS["csv"](
            tmp_path / f"x{suffix}",
            user_column="who",
            order_column="k",
            state_column="page",
            progress=lambda done, total: seen.append((done, total)),
        )
        assert rows.users == ("a", "b") and rows.state.tolist() == ["y", "x"] and rows.step.tolist() == [0, 0]
        assert report.rows == 3 and report.dropped == {"missing_state": 1}
        assert rejected.to_pylist() == [{"row": 3, "reason": "missing_state"}]
    assert seen == [(1, 1)] * 3


def test_importing_the_importers_loads_nothing_heavy():
    heavy = "{'pandas', 'pyarrow', 'scipy.spatial', 'numba', 'h3', 'polars'}"
    code = f"import sys, dphmm.states, dphmm.storage.importers; print({heavy} & set(sys.modules) or 'none')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "none\n"
