"""Commands take spellings of a name for one person, and ask once where that is likely to be wrong.

It would fail for a release that makes a ledger of look-alikes or of ids without an answer, that asks where nothing is
alike, asks again, or reads names by another rule than the ledger; for a fit or a query that asks; for a pipeline that
takes other options of its data for the same question; and for a stream that has two sessions of one person.
"""

from __future__ import annotations

import json
import sqlite3
from functools import partial

import pytest

from commands import PIPELINE, walk_rows, write_rows
from dphmm.accounting.person import person_key
from dphmm.errors import InvalidInput
from dphmm.setup.releasing import check_spelling
from dphmm.statement.files import load_statement
from dphmm.storage.ledger import open_ledger
from dphmm.storage.tables import read_table

pytestmark = pytest.mark.replayed_words

COLUMNS = ["user", "t", "lat", "lon"]
#: A table in which names are alike: 7 names of 3 people.
ALIKE = [
    ["anna", "2024-05-06T08:00:00Z", 50.01, 10.01],
    ["anna ", "2024-05-06T08:10:00Z", 50.01, 10.01],
    ["Anna", "2024-05-06T08:20:00Z", 50.01, 10.01],
    ["Zo\u00eb", "2024-05-06T08:00:00Z", 50.01, 10.01],
    ["Zoe\u0308", "2024-05-06T08:10:00Z", 50.01, 10.01],
    ["7", "2024-05-06T08:00:00Z", 50.01, 10.01],
    ["7.0", "2024-05-06T08:10:00Z", 50.01, 10.01],
]


def released(folder):
    """User and time of each released row, and how many steps each person has in the ledger."""
    rows = [(row["user"], row["t"].isoformat()) for row in read_table(folder / "released" / "released.csv").to_pylist()]
    with open_ledger(folder / "ledger.db", read_only=True) as ledger:
        return rows, {user: float(ledger.spent(user).epsilon) for user, _ in ledger.sessions()}


class TestARelease:
    def test_names_that_are_alike_are_asked_about_once(self, town, tmp_path, run, release_of):
        rows = write_rows(tmp_path / "rows.csv", COLUMNS, ALIKE)
        line = release_of(town, tmp_path, rows)
        refused = run(*line, code=2).stderr
        assert refused.startswith('error: --spelling: got nothing, and 4 of 7 names are spellings of others: "anna " a')
        assert not (tmp_path / "ledger.db").exists() and not (tmp_path / "released" / "released.csv").exists()
        run(*line, "--spelling", "same")
        found, spent = released(tmp_path)
        assert [user for user, _ in found] == ["anna"] * 3 + ["Zo\u00eb"] * 2 + ["7"] * 2
        assert spent == {"anna": 3, "Zo\u00eb": 2, "7": 2}
        # The ledger knows: it is not asked again, and another rule is refused.
        run(*line)
        assert released(tmp_path) == (found, spent)
        again = run(*line, "--spelling", "exact", code=2).stderr
        assert "spelling: got exact; expected same, which this ledger was made with" in again

    def test_exact_names_are_as_many_people(self, town, tmp_path, run, release_of):
        rows = write_rows(tmp_path / "rows.csv", COLUMNS, ALIKE)
        line = release_of(town, tmp_path, rows)
        run(*line, "--spelling", "exact")
        _, spent = released(tmp_path)
        assert spent == dict.fromkeys((row[0] for row in ALIKE), 1)
        assert load_statement(tmp_path / "released" / "released.csv").subjects.spelling == "exact"
        run(*line)
        assert released(tmp_path)[1] == spent

    @pytest.mark.parametrize(("people", "asks"), [(1000, True), (1001, False)])
    def test_one_in_a_thousand_is_nobody_s_business(self, people, asks):
        """More than one look-alike in 1,000 names."""
        names = [f"user {number}" for number in range(people - 1)]
        ask = partial(check_spelling, None, "no such ledger.db", names, {"User 0": "user 0"})
        if not asks:
            ask()
            return
        with pytest.raises(InvalidInput, match=r"^spelling: got nothing, and 1 of 1,000 names are spellings of others"):
            ask()

    def test_ids_in_which_capitals_count_are_asked_about(self, town, tmp_path, run, release_of):
        rows = walk_rows(("aB3x", "Qz9m", "bob"), steps=2)
        line = release_of(town, tmp_path, write_rows(tmp_path / "rows.csv", COLUMNS, rows))
        refused = run(*line, code=2).stderr
        assert "--spelling: got nothing, and most names look drawn, as " in refused
        run(*line, "--spelling", "exact")

    def test_a_name_of_a_later_unicode_is_set_aside(self, town, tmp_path, run, release_of):
        rows = write_rows(tmp_path / "rows.csv", COLUMNS, [*walk_rows(("ann",), 2), *walk_rows(("a\u0378",), 2)])
        run(*release_of(town, tmp_path, rows), code=3)
        assert released(tmp_path)[1] == {"ann": 2}


def test_fits_and_queries_never_ask(tmp_path, run):
    """An error would say what is in private rows: they take the rule of the ledger, else same."""
    rows = [[user, step, state] for user in ("Ann", "ann", "aB3x") for step, state in enumerate(("home", "work"))]
    data = write_rows(tmp_path / "rows.csv", ["user", "step", "state"], rows)
    names = write_rows(tmp_path / "states.csv", ["state"], [["home"], ["work"]])
    for name, rule in (("new", ()), ("exact", ("--spelling", "exact"))):
        ledger = tmp_path / f"{name}.db"
        fit = ("fit", data, "-o", tmp_path / f"{name}.npz", "--state-column", "state", "--states-file", names)
        run(*fit, "--epsilon", 1, "--max-length", 2, "--ledger", ledger, "--id", "fit", *rule)
        asked = ("query", "histogram", data, "--states", "home,work", "--dependence", "group:2", "--epsilon", 1)
        run(*asked, "-o", tmp_path / f"{name}.csv", "--ledger", ledger, "--id", "one")
        told = json.loads((tmp_path / f"{name}.csv.privacy.json").read_text())
        assert told["subjects"] == {"spelling": "exact" if rule else "same", "noun": "person"}
        other = "same" if rule else "exact"
        more = ("-o", tmp_path / "other.csv", "--ledger", ledger, "--id", "two", "--spelling", other)
        assert f"spelling: got {other}; expected " in run(*asked, *more, code=2).stderr


class TestAPipeline:
    @pytest.fixture
    def folder(self, tmp_path):
        rows = [[*row, row[0], "x"] for row in walk_rows(("Ann", "bob"), steps=4)]
        rows += [[row[0].lower(), *row[1:], row[0], "x"] for row in walk_rows(("Ann",), steps=8)[4:]]
        write_rows(tmp_path / "walks.csv", [*COLUMNS, "person", "note"], rows)
        (tmp_path / "release.toml").write_text(PIPELINE)
        return tmp_path

    def test_it_asks_as_a_release_does_and_hands_the_rule_on(self, run, folder):
        refused = run("run", folder / "release.toml", "-q", code=2).stderr
        assert "spelling: got nothing, and 1 of 3 names are spellings of others" in refused
        (folder / "release.toml").write_text(PIPELINE.replace('walks.csv"', 'walks.csv"\nspelling = "same"'))
        run("run", folder / "release.toml", "-q")
        users = read_table(folder / "out" / "released.parquet").column("user").to_pylist()
        assert users == ["Ann"] * 8 + ["bob"] * 4

    @pytest.mark.parametrize(
        "other", ['user-column = "person"', 'timezone = "Asia/Tokyo"', 'spelling = "exact"', 'spelling = "same"']
    )
    def test_options_that_say_who_and_when_are_part_of_the_question(self, run, folder, other):
        """Other ones would ask everybody again, or leave stored answers at other times."""
        chosen = PIPELINE.replace('walks.csv"', 'walks.csv"\nspelling = "same"')
        (folder / "release.toml").write_text(chosen)
        run("run", folder / "release.toml", "-q")
        before = (folder / "out" / "released.parquet").read_bytes()
        changed = (
            PIPELINE.replace('walks.csv"', f'walks.csv"\n{other}')
            if "spelling" in other
            else chosen.replace('spelling = "same"', f'spelling = "same"\n{other}')
        )
        (folder / "release.toml").write_text(changed)
        if changed == chosen:
            run("run", folder / "release.toml", "-q")
            return
        refused = run("run", folder / "release.toml", "-q", code=2).stderr
        assert "--spend-again" in refused
        assert (folder / "out" / "released.parquet").read_bytes() == before


def test_a_stream_goes_on_with_a_person_under_another_spelling(town, tmp_path, run, release_of):
    """The name that is printed is the first, in this run and in the next."""
    line = [word if word != str(town / "walks.csv") else "-" for word in release_of(town, tmp_path)]
    place = line.index("-o")
    line[place + 1] = str(tmp_path / "first")

    def lines(*users):
        return "".join(
            json.dumps({"user": user, "t": f"2024-05-06T08:{minute:02d}:00Z", "lat": 50.01, "lon": 10.01}) + "\n"
            for minute, user in users
        )

    first = run(*line, input=lines((0, "Ann"), (5, "ann "), (10, "ANN")))
    rows = list(map(json.loads, first.stdout.splitlines()))
    assert [(row["user"], row["step"]) for row in rows] == [("Ann", 1), ("Ann", 2), ("Ann", 3)]
    line[place + 1] = str(tmp_path / "again")
    again = run(*line, input=lines((10, "ann"), (15, "a\u200bnn")))
    more = list(map(json.loads, again.stdout.splitlines()))
    assert [(row["user"], row["step"]) for row in more] == [("Ann", 3), ("Ann", 4)] and more[0] == rows[2]
    with sqlite3.connect(tmp_path / "ledger.db") as ledger:
        assert ledger.execute("SELECT subject, key FROM account").fetchall() == [("Ann", person_key("Ann"))]
