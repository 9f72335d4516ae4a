"""The code of docs/spark.md, block after block, as a reader would run it who has the files that it names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dphmm
from dphmm.cli.app import app
from spark.worlds import MODEL, POLICY, SPACE, people, rows

pytestmark = pytest.mark.replayed_words

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def blocks():
    """The blocks of Python: not what a shell runs."""
    found = re.findall(r"```\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [block for block in found if not block.startswith("pip ")]


def test_the_code_of_the_page_runs(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    public = dphmm.MarkovModel(MODEL.initial, MODEL.transition, space=SPACE)
    dphmm.save_model(public, "public.npz")
    dphmm.save_policy(POLICY, "policy.json", SPACE, public)
    walks, visits = rows(1, people(9), 1, 4), rows(2, people(9), 1, 4)
    home = np.array(["home", "work", "other"])[visits["step"] % 3]
    for name, table in (("visits", visits), ("walks", walks)):
        table.to_parquet(name)
    spark_conf = "spark.sql.execution.pyspark.udf.hideTraceback.enabled"
    spark.conf.set(spark_conf, "false")
    told = blocks()
    assert len(told) == 4 and [block.startswith("import dphmm\n") for block in told] == [True, False, False, False]
    names = {}
    for number, block in enumerate(told):
        if number == 3:
            visits.assign(state=home).to_parquet("visits")
            pd.DataFrame({"a": [1, 2, 3], "b": [2, 3, 70]}).to_parquet("edges")
        code = block.replace("/data/released", str(tmp_path / "released"))
        # Java does not follow where Python goes.
        code = re.sub(r'read\.parquet\("(\w+)"\)', rf'read.parquet("{tmp_path}/\1")', code)
        exec(compile(code, "docs/spark.md", "exec"), names)
    said = capsys.readouterr().out
    assert "\n0\n" in said and names["found"].table["count"].sum() >= 0
    files = ["released.parquet", "--model", "public.npz", "--policy", "policy.json"]
    for command in (["smooth", *files, "-o", "smoothed.parquet"], ["report", *files, "-o", "report.html"]):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
    folder = str(tmp_path / "released")
    account = CliRunner().invoke(app, ["account", folder])
    assert f"9 subjects, {len(visits)} releases, " in account.output and "user 8\n  state  " in account.output
    audit = ["audit", "--model", "public.npz", "--policy", "policy.json", "--ledger", folder, "--released"]
    clean = CliRunner().invoke(app, [*audit, "released.parquet"])
    assert clean.exit_code == 0 and f"released: {len(visits)} rows of 9 users" in clean.output, clean.output
    # An answer that the table did not give is convicted.
    forged = pd.read_parquet("released.parquet")
    forged.loc[3, "z_0"] += 1
    forged.to_parquet("forged.parquet")
    Path("forged.parquet.privacy.json").write_bytes(Path("released.parquet.privacy.json").read_bytes())
    convicted = CliRunner().invoke(app, [*audit, "forged.parquet"])
    assert convicted.exit_code == 1 and "ledger" in convicted.output, convicted.output
    refused = CliRunner().invoke(app, [*audit, folder])
    words = "expected a file; docs/spark.md shows how the folder of a release table becomes one"
    assert refused.exit_code == 2 and words in refused.output and refused.output.count("\n") == 1
