"""The code of docs/spark.md, block after block, as a reader would run it who has the files that it names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from dphmm.cli.app import app

pytestmark = pytest.mark.replayed_words

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def blocks():
    """The blocks of the page, and whether each is for a shell."""
    found = re.findall(r"```\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [(block, block.startswith(("pip ", "export ", "dphmm "))) for block in found]


def test_the_code_of_the_page_runs(spark, tmp_path, monkeypatch, capsys):
    """In an empty folder, from the first block to the last; but for how Python and Spark are installed and started."""
    monkeypatch.chdir(tmp_path)
    spark_conf = "spark.sql.execution.pyspark.udf.hideTraceback.enabled"
    spark.conf.set(spark_conf, "false")
    told, names = blocks(), {}
    assert [shell for _, shell in told] == [True] * 3 + [False] * 5
    for block, shell in told:
        if not shell:
            # Java does not follow where Python goes.
            code = re.sub(r'(read|write)\.parquet\("([\w.]+)"\)', rf'\1.parquet("{tmp_path}/\2")', block)
            exec(compile(code, "docs/spark.md", "exec"), names)
        for line in block.splitlines() if shell else ():
            if line.startswith("dphmm "):
                result = CliRunner().invoke(app, shlex.split(line)[1:])
                assert result.exit_code == 0, result.output
    said = capsys.readouterr().out
    assert "\n0\n" in said and names["found"].table["count"].sum() >= 0
    files = ["released.parquet", "--model", "public.npz", "--policy", "policy.json"]
    for command in (["smooth", *files, "-o", "smoothed.parquet"], ["report", *files, "-o", "report.html"]):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
    folder = str(tmp_path / "released")
    account = CliRunner().invoke(app, ["account", folder])
    assert "100 subjects, 2400 releases, " in account.output, account.output
    assert "synthetic-008\n  state  " in account.output
    audit = ["check-release", "--model", "public.npz", "--policy", "policy.json", "--ledger", folder]
    clean = CliRunner().invoke(app, [*audit, "released.parquet"])
    # Another library wrote this file: what stands between its values is not looked at.
    assert clean.exit_code == 5 and "released: 2,400 rows of 100 users" in clean.output, clean.output
    assert "wrong: " not in clean.output
    # An answer that the table did not give is convicted.
    forged = pd.read_parquet("released.parquet")
    answer = [name for name in forged.columns if name.startswith("z_")]
    other = forged.index[forged["z_0"] != forged.loc[3, "z_0"]][0]
    forged.loc[3, answer] = forged.loc[other, answer]
    forged.to_parquet("forged.parquet")
    Path("forged.parquet.privacy.json").write_bytes(Path("released.parquet.privacy.json").read_bytes())
    convicted = CliRunner().invoke(app, [*audit, "forged.parquet"])
    assert convicted.exit_code == 1 and "ledger" in convicted.output, convicted.output
    table = CliRunner().invoke(app, [*audit[:-2], folder])
    assert table.exit_code == 5 and "released: 2,400 rows of 100 users" in table.output, table.output
    assert "wrong: " not in table.output
