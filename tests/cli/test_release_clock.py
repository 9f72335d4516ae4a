"""dphmm release --zone and --hours by clocks that are put forward and back: kept, stated, checked, and continued.

It could fail where a day of 23 or 25 hours is taken for one of 24, where a time of day that comes twice is asked twice,
or where the checker takes what the ledger has stored for what it should be, or a file edited for the release itself.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

import choosing
import dphmm

pytestmark = pytest.mark.replayed_words

#: Of both changes of the clocks of Berlin the days around, which begin at 23:00 and at 22:00 UTC.
SPRING, AUTUMN = "2024-03-29T23:00Z", "2024-10-25T22:00Z"


@pytest.fixture
def town(tmp_path):
    """A model of hourly steps, a policy, and rows of two people at every hour of three local days."""
    choosing.town(tmp_path, 9)
    for name, begins, hours in (("spring", SPRING, 71), ("autumn", AUTUMN, 73)):
        times = [pd.Timestamp(begins) + pd.Timedelta(hours=hour) for hour in range(hours)]
        rows = [(user, time, str(n % 9)) for user in "ab" for n, time in enumerate(times)]
        pd.DataFrame(rows, columns=["user", "t", "state"]).to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def release(run, town, rows, *options, code=0, out="out", ledger="ledger.db"):
    files = ("--model", town / "model.npz", "--policy", town / "policy.json", "--ledger", town / ledger)
    return run("release", town / f"{rows}.csv", *files, "-o", town / out, *options, code=code)


def check(run, town, *more, code=0, out="out"):
    return run("check-release", town / out, *more, code=code).stdout


BERLIN = ("--path-epsilon", "2", "--per", "1d", "--zone", "Europe/Berlin")


def asked_at(town, out="out"):
    rows = pd.read_csv(town / out / "released.csv", dtype={"user": str})
    own = rows[(rows["user"] == "a") & rows["plan"].notna()]
    return [str(time) for time in pd.to_datetime(own["t"], utc=True).dt.tz_convert("Europe/Berlin")]


@pytest.mark.parametrize(
    ("season", "times"),
    [
        ("spring", ["30 02:00:00+01:00", "30 20:00:00+01:00", "31 20:00:00+02:00"]),
        ("autumn", ["26 02:00:00+02:00", "26 20:00:00+02:00", "27 02:00:00+02:00", "27 20:00:00+01:00"]),
    ],
)
def test_times_of_a_day_are_asked_once_and_what_is_stated_is_checked(run, town, season, times):
    """2:00 is left out in spring and comes twice in autumn."""
    release(run, town, season, *BERLIN, "--hours", "02:00,20:00", "--json", "--model-people", "others")
    assert [time[8:] for time in asked_at(town)][: len(times)] == times
    statement = json.loads((town / "out" / "released.csv.privacy.json").read_text())
    assert statement["sequence"]["zone"] == "Europe/Berlin" and statement["epsilon"] == "1"
    assert statement["schedule"]["hours"] == ["02:00", "20:00"] and "at" not in statement["schedule"]
    shutil.move(town / "out.owner", town / "owner")
    said = check(run, town, "--json", code=5)
    shutil.move(town / "owner", town / "out.owner")
    assert "3 blocks of days of Europe/Berlin, of " + ("23 to 24" if season == "spring" else "24 to 25") in said
    assert "that clocks were as the zone table 20" in said
    assert "nothing is wrong" in check(run, town, "--ledger", town / "ledger.db")
    with_ledger = check(run, town, "--ledger", town / "ledger.db", "--json")
    assert "as the ledger has them" in with_ledger and "0 of them are other days than by the zone table" in with_ledger
    assert (
        "lose at most 2 where they differ within one day by the clock of Europe/Berlin alone"
        in run("read", town / "out").stdout
    )
    before = asked_at(town)
    release(run, town, season, *BERLIN, "--hours", "02:00", "--hours", "20:00", "--model-people", "others")
    assert asked_at(town) == before
    with dphmm.open_ledger(town / "ledger.db") as ledger:
        ledger.check()
        assert len(ledger.blocks("a")) == 3
    told = run("account", town / "ledger.db").stdout
    assert "promised: Where they differ within one day by the clock of Europe/Berlin alone" in told


def test_without_an_epsilon_every_hour_of_the_longest_day_has_its_share(run, town):
    release(run, town, "autumn", *BERLIN, "-q")
    rows = pd.read_csv(town / "out" / "released.csv")
    assert set(rows["epsilon"]) == {2 / 25} and len(rows) == 2 * 73
    assert "nothing is wrong" in check(run, town, "--ledger", town / "ledger.db")


def test_rows_of_a_day_that_break_it_are_refused_with_nothing_spent(run, town):
    said = release(run, town, "spring", *BERLIN, "--epsilon", "1", code=1).stderr
    assert "0 is left there of 2 per 1d by the clock of Europe/Berlin; nothing was drawn or spent" in said
    assert not (town / "out" / "released.csv").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--path-epsilon", "2", "--window", "24", "--zone", "Europe/Berlin"), "--zone: got Europe/Berlin"),
        (("--path-epsilon", "2", "--per", "12h", "--zone", "Europe/Berlin"), "--zone: got Europe/Berlin; expected an"),
        (("--path-epsilon", "2", "--per", "1d", "--hours", "25:00"), "--hours: got 25:00"),
        (("--path-epsilon", "2", "--per", "2d", "--hours", "08:00"), "--hours: got 1 times of a day"),
        (("--path-epsilon", "2", "--per", "1d", "--hours", "08:00", "--schedule", "paced"), "--hours: got 08:00, and"),
        (("--epsilon", "1", "--hours", "08:00"), "--hours: got 08:00; expected --path-epsilon with it"),
        ((*BERLIN, "--hours", "08:00,08:30"), "--hours: got 08:00, 08:30; expected times at least a step of 3600 s"),
        ((*BERLIN, "--hours", "08:00,20:00", "--epsilon", "1.5"), "--hours: got 2 releases of 1.5; expected at most 2"),
    ],
)
def test_options_that_cannot_be_are_refused_in_one_line(run, town, options, said):
    refused = release(run, town, "spring", *options, code=2).stderr
    assert said in refused and refused.count("\n") == 1
    assert not (town / "out" / "released.csv").exists()


def edit(path, change):
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda told: told["schedule"].update(hours=["03:00", "20:00"]), "wrong: schedule: asked, or not asked"),
        (lambda told: told["schedule"].update(at="3,21"), "wrong: schedule: steps and times of a day"),
        (lambda told: told["sequence"].update(zone="Asia/Tokyo"), "wrong"),
        (lambda told: told["sequence"].update(zone="Europe/Atlantis"), "not looked at: days: days of Europe/Atlantis"),
        (lambda told: told["sequence"].update(total="1"), "wrong: promise: each 1d: 2, more than 1"),
    ],
)
def test_an_edited_statement_is_convicted_by_days_of_the_zone(run, town, change, said):
    from dphmm.audit import verify_release

    release(run, town, "autumn", *BERLIN, "--hours", "02:00,20:00", "-q")
    edit(town / "out" / "released.csv.privacy.json", change)
    statement = json.loads((town / "out" / "released.csv.privacy.json").read_text())
    checker = verify_release.Checker(verify_release.ReleaseColumns(town / "out" / "released.csv"), statement)
    lines = [f"{word}: {name}: {figure}" for word, name, figure in checker.run("days", "promise", "schedule").lines]
    assert any(line.startswith(said) for line in lines), lines


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('INSERT INTO block SELECT account, first + 1, "end" + 1 FROM block', "overlap"),
        ("DELETE FROM block", "answers of no stored day"),
        ('UPDATE block SET "end" = first + 2', "answers of no stored day"),
    ],
    ids=["overlap", "none", "short"],
)
def test_a_ledger_whose_days_were_changed_is_convicted(run, town, change, said):
    from dphmm.audit import verify_release

    release(run, town, "autumn", *BERLIN, "--hours", "02:00,20:00", "-q")
    with closing(sqlite3.connect(town / "ledger.db")) as connection, connection:
        connection.execute(change)
    statement = json.loads((town / "out" / "released.csv.privacy.json").read_text())
    file = verify_release.ReleaseColumns(town / "out" / "released.csv")
    lines = verify_release.Checker(file, statement, ledger=town / "ledger.db").run("days").lines
    assert any(word == "wrong" and said in figure for word, _, figure in lines), lines


@pytest.mark.slow
def test_a_report_shows_local_times(run, town):
    release(run, town, "autumn", *BERLIN, "--hours", "02:00,20:00", "-q")
    run("report", town / "out")
    page = (town / "out" / "report.html").read_text()
    assert "Times are local: in Europe/Berlin." in page
    assert "within one day by the clock of Europe/Berlin alone" in page
    assert '"zone":[[1729893600,7200],[1729990800,3600]]' in page.replace(" ", "")


def test_a_plan_for_local_days_is_released_and_checked(run, town):
    """A plan is tried on days of 24 hours; its steps are counted from each local midnight."""
    public = ("--policy", town / "policy.json", "--path-epsilon", "2", "--epsilon", "1", "--people", "6")
    days = ("--per", "1d", "--zone", "Europe/Berlin", "--hours", "7-21")
    said = run("plan", town / "model.npz", *public, *days, "-o", town / "plan.json").stdout
    assert "of Europe/Berlin" in said
    release(run, town, "autumn", "--plan", town / "plan.json", "-q")
    hours = {int(time[11:13]) for time in asked_at(town)}
    assert len(asked_at(town)) == 6 and hours <= set(range(6, 21))
    assert "nothing is wrong" in check(run, town, "--ledger", town / "ledger.db")


def test_a_paced_plan_for_local_days_is_released_and_checked(run, town):
    asked = (*BERLIN, "--epsilon", "1", "--schedule", "paced")
    release(run, town, "spring", *asked, "-q")
    assert 0 < len(asked_at(town)) <= 6
    assert "nothing is wrong" in check(run, town, "--ledger", town / "ledger.db")
    release(run, town, "spring", *asked, "-q")


@pytest.mark.parametrize("zone", ["+02:00", "-05:00"])
def test_times_of_a_day_by_an_offset_are_checked_too(run, town, zone):
    release(run, town, "autumn", "--path-epsilon", "2", "--per", "1d", "--zone", zone, "--hours", "02:00,20:00", "-q")
    assert "nothing is wrong" in check(run, town, "--ledger", town / "ledger.db")
    rows = pd.read_csv(town / "out" / "released.csv", dtype={"user": str})
    asked = pd.to_datetime(rows["t"][rows["plan"].notna()], utc=True).dt.tz_convert(f"UTC{zone}")
    assert set(asked.dt.hour) == {2, 20} and len(asked) >= 10
