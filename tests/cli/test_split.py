"""dphmm split: two files, both or none, and a seed is warned of."""

from __future__ import annotations

import pyarrow.parquet as pq


def test_two_files_with_nobody_in_both(tmp_path, run, one_json):
    lines = [f"u{i % 9},2024-05-06T08:{i:02}:00Z,1,2" for i in range(60)]
    (tmp_path / "x.csv").write_text("\n".join(["user,t,lat,lon", *lines]) + "\n")
    outputs = (tmp_path / "model.parquet", tmp_path / "people.parquet")
    result = run("split", tmp_path / "x.csv", "-o", *outputs, "--json", "--seed", "1")
    assert "--seed: anybody with it" in result.stderr
    people = [set(pq.read_table(path).column("user").to_pylist()) for path in outputs]
    assert one_json(result)["people"] == [len(people[0]), len(people[1])]
    assert len(people[0] | people[1]) == 9 and not people[0] & people[1]
    assert "--force" in run("split", tmp_path / "x.csv", "-o", *outputs, code=2).stderr
    assert "--seed" not in run("split", tmp_path / "x.csv", "-o", *outputs, "--force").stderr
    assert (
        "--share: got 2" in run("split", tmp_path / "x.csv", "--share", "2", "-o", *outputs, "--force", code=2).stderr
    )
    assert (
        "--user-column: got who"
        in run("split", tmp_path / "x.csv", "--user-column", "who", "-o", *outputs, "--force", code=2).stderr
    )
