"""The code of docs/spark.md, block after block, as a reader would run it who has the files that it names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import dphmm
from dphmm.cli.app import app
from dphmm.storage.release_folder import ReleaseFolder
from dphmm.storage.table_ledger import opened_to_read
from dphmm.storage.tables import to_arrow, write_table

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
    out = dphmm.open("out")
    assert len(out.estimates(progress=False)) == len(out.rows) == 2400
    out.report("report.html", progress=False)
    folder = str(tmp_path / "released")
    account = CliRunner().invoke(app, ["account", folder])
    assert "100 subjects, 2400 releases, " in account.output, account.output
    assert "synthetic-008\n  state  " in account.output
    with opened_to_read(folder) as ledger:
        clean = out.checked(ledger)
        assert clean.code == 0 and "released: 2,400 rows of 100 users" in clean.lines[0], clean.lines
        # An answer that the table did not give is convicted.
        forged = pd.read_parquet("out/released.parquet")
        answer = [name for name in forged.columns if name.startswith("z_")]
        other = forged.index[forged["z_0"] != forged.loc[3, "z_0"]][0]
        forged.loc[3, answer] = forged.loc[other, answer]
        write_table("out/released.parquet", to_arrow(forged))
        ReleaseFolder.of("out").keep(["released.parquet"])
        convicted = dphmm.open("out").checked(ledger)
    assert convicted.code == 1 and any("ledger" in line for line in convicted.lines), convicted.lines
    table = CliRunner().invoke(app, ["check-release", folder, "--model", "public.npz"])
    assert table.exit_code == 5 and "released: 2,400 rows of 100 users" in table.output, table.output
    assert "wrong: " not in table.output
