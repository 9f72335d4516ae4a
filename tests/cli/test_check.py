"""dphmm check, and releases and pipelines that stop before anything is spent.

Claims: a table that cannot be meant ends with exit code 2 and no ledger, no file, no new row of a ledger that is there;
the same table by --although is released with a warning, and by --no-check without; dphmm check says what is wrong and
writes nothing; a pipeline fits first, whatever its rows are, and stops before the release; what a stopped release
shows is the same for all tables with the same people, moments and rows in states, in every byte.

It would fail for a stop after the ledger was opened, for one that quotes a row, and for a private fit that was left out
or refused because of rows.
"""

from __future__ import annotations

import json

import pytest

from commands import walk_rows, write_rows
from dphmm.statement.files import load_statement
from dphmm.storage.ledger import open_ledger
from independence.commands import NAMES, places, release_arguments, shown_by, site_rows, town_rows
from system_words import guard

pytestmark = pytest.mark.replayed_words

COLUMNS = ["user", "t", "lat", "lon"]
#: Two people in a box whose latitudes and longitudes were taken for each other.
SWAPPED = [
    ["a", "2011-02-11T17:30:00Z", 42.75, -73.85],
    ["a", "2011-02-11T17:45:00Z", 42.76, -73.86],
    ["a", "2011-02-11T18:00:00Z", 42.76, -73.86],
    ["b", "2011-02-11T17:30:00Z", 42.80, -73.50],
    ["b", "2011-02-11T17:45:00Z", 42.80, -73.51],
]
BOX = ("grid", "--bbox", "42.70,-73.95,42.86,-73.38", "--cell", "4km", "--step", "15min", "--max-speed", "30km/h")


@pytest.fixture
def swapped(tmp_path, run):
    """The arguments of a release of the two people, in a folder with a model and a policy of the wrong box."""
    run("model", *BOX, "-o", tmp_path / "m.npz")
    run("policy", "radius", tmp_path / "m.npz", "--covers", "4km", "-o", tmp_path / "p.json")
    rows = write_rows(tmp_path / "people.csv", COLUMNS, SWAPPED)
    public = ("--model", tmp_path / "m.npz", "--policy", tmp_path / "p.json", "--epsilon", 1)
    return ["release", rows, *public, "-o", tmp_path / "r", "--ledger", tmp_path / "l.db"]


def files(folder):
    return {path.name for path in folder.iterdir()}


#: A pipeline whose columns of latitude and longitude have each other's names.
PIPELINE = """[data]
file = "rows.csv"
user-column = "who"
time-column = "when"
[model]
bbox = "10.0,50.0,10.056,50.036"
cell = "1km"
step = "5min"
max-speed = "20km/h"
[policy]
radius = "1.5km"
[release]
path-epsilon = 4
per = "1d"
hours = "08:10"
"""


class TestARelease:
    def test_swapped_axes_are_named_before_anything_is_spent(self, swapped, tmp_path, run):
        before = files(tmp_path)
        told = run(*swapped, code=2)
        assert told.stderr == (
            "error: TRAJ: got less than 5 % of its rows on the map of the model; expected rows on it, with latitude "
            "and longitude not swapped in the table or in the box of the model; dphmm check says more; --although "
            "releases it as it is\n"
        )
        assert told.stdout == "" and files(tmp_path) == before

    def test_a_dry_run_says_what_dphmm_check_says(self, swapped, tmp_path, run, one_json):
        checked = run("check", *swapped[1:8], code=2).stdout
        assert "swapped latitude and longitude would put 100 % on it" in checked and "about 15,000 km away" in checked
        dry = run(*swapped, "--dry-run", code=2).stdout
        figures = [line for line in checked.splitlines() if not line.startswith(("in the ledger", "adds", "left"))]
        assert dry.splitlines()[-len(figures) :] == figures
        assert one_json(run(*swapped, "--dry-run", "--json", code=2))["check"]["swapped"] == 100
        assert "swapped" not in run(*swapped, "--dry-run", "--no-check").stdout
        assert "swapped" in run(*swapped, "--dry-run", "--although").stdout
        assert files(tmp_path) == {"people.csv", "m.npz", "p.json"}

    def test_whoever_means_it_goes_on_and_the_statement_says_whether_it_was_checked(self, swapped, tmp_path, run):
        told = run(*swapped, "--although").stderr
        assert "warning: TRAJ: less than 5 % of its rows on the map of the model; --although releases it as" in told
        assert not load_statement(tmp_path / "r" / "released.csv").checked
        run(*swapped, "--although")
        swapped[-3:] = [tmp_path / "s", "--ledger", tmp_path / "s.db"]
        assert "5 %" not in run(*swapped, "--no-check").stderr
        assert not load_statement(tmp_path / "s" / "released.csv").checked

    def test_nobody_of_a_known_ledger_is_asked_anything(self, town, tmp_path, run, release_of):
        rows = write_rows(tmp_path / "rows.csv", COLUMNS, walk_rows())
        line = release_of(town, tmp_path, rows)
        run(*line)
        assert load_statement(tmp_path / "released" / "released.csv").checked
        made = [path for path in tmp_path.rglob("*") if path.is_file() and path != rows]
        before = {path: path.read_bytes() for path in made}
        write_rows(rows, COLUMNS, [[user, t, lon, lat] for user, t, lat, lon in walk_rows(("u1", "u9"))])
        run(*line, code=2)
        made = [path for path in tmp_path.rglob("*") if path.is_file() and path != rows]
        assert {path: path.read_bytes() for path in made} == before and len(before) > 8

    def test_hours_without_a_row_and_too_few_people(self, town, tmp_path, run, release_of):
        line = release_of(town, tmp_path)
        line[line.index("--epsilon") + 1] = "4"
        line[line.index("--epsilon")] = "--path-epsilon"
        told = run(*line, "--per", "1d", "--hours", "02:00", code=2).stderr
        assert told.startswith("error: TRAJ: got no row at a step that the schedule asks; expected rows at such steps")
        assert files(tmp_path) == set()
        some = run(*line, "--per", "1d", "--hours", "02:00,08:10", "--min-people", 3)
        assert "5 %" not in some.stderr and load_statement(tmp_path / "released" / "released.csv").checked

    def test_rows_are_looked_at_before_a_schedule_is_planned(self, swapped, tmp_path, run, monkeypatch):
        """On many cells a plan takes minutes. An owner who goes on gets it."""
        before, planned = files(tmp_path), []
        monkeypatch.setattr("dphmm.choose.planning.plan", lambda *_, **options: planned.append(options) or exit(7))
        line = [*swapped, "--path-epsilon", 4, "--per", "1d", "--schedule", "planned"]
        for more, told in (
            ((), "less than 5 % of its rows on the map"),
            (("--min-people", 3), "TRAJ: got 2 people; expected at least 3, as --min-people says"),
        ):
            assert told in run(*line, *more, code=2).stderr
        assert planned == [] and files(tmp_path) == before
        for more in ("--although", "--no-check"):
            run(*line, more, code=7)
        assert len(planned) == 2 and files(tmp_path) == before

    def test_what_a_stopped_release_shows_is_the_same_for_every_truth(self, tmp_path):
        """Other places off the map, other names that are no states: every byte. Other ones than these go on."""
        tables = {
            "town": [town_rows(place).replace("50.004000,10.006000", "1.0,1.0") for place in places()],
            "site": [site_rows(name).replace("news", "x").replace("home", "x").replace("shop", "x") for name in NAMES],
        }
        for kind, texts in tables.items():
            shown = []
            for number, text in enumerate(texts):
                (folder := tmp_path / f"{kind}{number}").mkdir()
                with guard.drawing(guard.REPLAYED, "stopped"):
                    shown.append(shown_by(folder, text, release_arguments(kind, "out.csv")))
            stopped = [one for one in shown if one["exit"] == 2]
            assert 6 < len(stopped) < len(shown) and all(one == stopped[0] for one in stopped)
            assert stopped[0]["names"] == {} and stopped[0]["for the owner"] == {}


class TestACheck:
    def test_a_good_table_has_nothing_to_stop_for(self, town, tmp_path, run, one_json):
        line = ("check", town / "walks.csv", "--model", town / "model.npz")
        told = run(*line)
        assert told.stdout.splitlines()[:2] == [
            "rows             36 of 3 people",
            "rows per person  at most 12, those of a time step as one",
        ]
        assert told.stderr == "" and files(tmp_path) == set()
        found = one_json(run(*line, "--path-epsilon", 12, "--per", "1d", "--epsilon", "1/2", "--json"))
        assert (found["in_states"], found["stops"]) == (100, [])
        assert found["budget"] == {"known": 0, "adds": "6", "left": "12", "left_after": "6", "of": "12 per 1d"}

    def test_what_is_left_is_read_from_the_ledger_which_stays_as_it_is(self, town, released, run):
        ledger = released / "ledger.db"
        before = ledger.read_bytes(), files(released)
        line = ("check", town / "walks.csv", "--model", town / "model.npz", "--policy", town / "radius.json")
        told = run(*line, "--epsilon", 1, "--cap-epsilon", 20, "--ledger", ledger).stdout
        assert (
            "in the ledger    3 of 3 people" in told
            and "epsilon 8 of 20 in all, the least of any person and step; 8 afterwards" in told
        )
        assert (ledger.read_bytes(), files(released)) == before

    def test_a_pipeline_is_looked_at_before_it_runs(self, town, tmp_path, run, one_json):
        """The rows by its options, its model and its plan; nothing is left behind."""
        write_rows(tmp_path / "rows.csv", ["who", "when", "lon", "lat"], [[*row[:2], *row[2:]] for row in walk_rows()])
        (tmp_path / "release.toml").write_text(PIPELINE)
        told = run("check", "--setup", tmp_path / "release.toml", code=2)
        assert "swapped latitude and longitude would put 100 % on it" in told.stdout and told.stderr == ""
        assert files(tmp_path) == {"rows.csv", "release.toml"}
        swapped_columns = PIPELINE.replace("[model]", 'lat-column = "lon"\nlon-column = "lat"\n[model]')
        (tmp_path / "release.toml").write_text(swapped_columns)
        figures = one_json(run("check", "--setup", tmp_path / "release.toml", "--json"))
        assert (figures["in_states"], figures["steps"], figures["steps_with_rows"]) == (100, 1, 1)
        assert figures["budget"] == {"known": 0, "adds": "4", "left": "4", "left_after": "0", "of": "4 per 1d"}
        run("run", tmp_path / "release.toml", "-q")
        again = one_json(run("check", "--setup", tmp_path / "release.toml", "--json"))["budget"]
        assert again == {"known": 3, "adds": "4", "left": "0", "left_after": "0", "of": "4 per 1d"}

    def test_other_columns_of_a_pipeline_that_may_be_the_persons_are_named(self, tmp_path, run):
        """An import keeps none of them; a file without names has none."""
        rows = [[number, *row[1:], "V1"] for number, row in enumerate(walk_rows(("bus",), 8))]
        write_rows(tmp_path / "rows.csv", ["who", "when", "lat", "lon", "vehicle_id"], rows)
        (tmp_path / "release.toml").write_text(PIPELINE)
        first = run("check", "--setup", tmp_path / "release.toml").stdout.splitlines()[0]
        assert 'is this column the person, or is it "vehicle_id"? The promise' in first and first.startswith("who ")
        (tmp_path / "release.toml").write_text(PIPELINE.replace("[release]", '[release]\nnoun = "bus"'))
        told = run("check", "--setup", tmp_path / "release.toml").stdout
        assert "each bus has 1 row: is this column the bus, or" in told and "8 of 8 buses" in told
        write_rows(tmp_path / "rows.csv", rows[0], rows[1:])
        (tmp_path / "release.toml").write_text(
            PIPELINE.replace("[model]", 'names = "who,when,lat,lon,device"\n[model]')
        )
        first = run("check", "--setup", tmp_path / "release.toml").stdout.splitlines()[0]
        assert first.startswith("who ") and first.endswith("each of its values")

    def test_rows_that_an_import_leaves_out_are_told_of(self, town, tmp_path, run, one_json):
        rows = walk_rows()
        spoiled = [[row[0], row[1].removesuffix("Z"), *row[2:]] if k % 2 else row for k, row in enumerate(rows)]
        write_rows(tmp_path / "rows.csv", ["who", "when", "lat", "lon"], spoiled)
        (tmp_path / "release.toml").write_text(PIPELINE)
        figures = one_json(run("check", "--setup", tmp_path / "release.toml", "--json"))
        assert figures["rows"] == len(rows) and figures["rejected"] == {"time_without_zone": len(rows) // 2}
        said = run("check", "--setup", tmp_path / "release.toml").stdout
        assert f"set aside        {len(rows) // 2} time_without_zone" in said

    def test_what_names_no_rows_no_model_or_too_much_is_refused(self, town, tmp_path, run):
        (tmp_path / "release.toml").write_text(PIPELINE)
        setup = ("--setup", tmp_path / "release.toml")
        assert "TRAJ: got nothing; expected the rows and the model" in run("check", code=2).stderr
        told = run("check", tmp_path / "release.toml", code=2).stderr
        assert "release.toml, a pipeline; expected dphmm check --setup" in told
        assert "--model: got nothing" in run("check", town / "walks.csv", code=2).stderr
        assert "release.toml, and other options; expected it" in run("check", *setup, "--epsilon", 1, code=2).stderr
        assert "--about: got 5; expected a pipeline with" in run("check", *setup, "--about", 5, code=2).stderr
        assert "--about: got 5; expected --setup" in run("check", "--about", 5, code=2).stderr
        assert "[data] file: got rows.csv; expected a file that exists" in run("check", *setup, code=2).stderr
        (tmp_path / "rows.csv").write_text("who,when\n")
        assert "error: " in run("check", *setup, code=2).stderr

    def test_rows_without_times_that_continue_nothing_are_told_of(self, site, tmp_path, run, release_of):
        line = release_of(site, tmp_path, "visits.csv", "complete.json")
        run(*line)
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        rows = write_rows(tmp_path / "other.csv", ["user", "state"], [["v0", "alpha"], ["v0", "beta"]])
        more = ("--model", site / "model.npz", "--epsilon", 1, "--policy", line[5], "--ledger", tmp_path / "ledger.db")
        assert "rows without times that do not continue" in run("check", rows, *more, code=2).stdout
        assert "stops" not in run("check", site / "visits.csv", *more).stdout
        rows.unlink()
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before

    def test_a_stream_is_not_checked(self, town, run):
        assert "TRAJ: got -" in run("check", "-", "--model", town / "model.npz", code=2).stderr


#: A form of careers whose codes were written as 00, and are 0 in the list of states.
CAREERS = """folder = "out"
[data]
kind = "sequences"
file = "life.csv"
user-column = "id"
columns = "a15:a17"
[split]
[fit]
state-column = "state"
epsilon = 1
max-length = 3
states-file = "states.csv"
[policy]
kind = "complete"
[plan]
path-epsilon = 4
steps = 3
[release]
"""


class TestAPipeline:
    @pytest.mark.slow
    def test_rows_are_looked_at_before_a_policy_and_a_plan_are_made(self, tmp_path, run):
        """Nothing is spent by either, so what takes longest comes last."""
        write_rows(tmp_path / "rows.csv", ["who", "when", "lon", "lat"], walk_rows())
        planned = PIPELINE.replace("[release]", "[plan]").replace('hours = "08:10"', "[release]")
        (tmp_path / "release.toml").write_text(planned)
        told = run("run", tmp_path / "release.toml", code=2).stderr
        assert "TRAJ: got less than 5 % of its rows on the map of the model" in told and "policy:" not in told
        assert (
            not {"policy.json", "plan.json"} & files(tmp_path / "out.owner") and not (tmp_path / "ledger.db").exists()
        )
        (tmp_path / "release.toml").write_text(planned + "although = true\n")
        told = run("run", tmp_path / "release.toml", code=3).stderr
        assert "plan: dphmm plan" in told and "[release] although releases it as it is" in told

    @pytest.fixture
    def folder(self, tmp_path):
        rows = ["000", "011", "000", "113", "001", "033"]
        codes = [[f"p{number}", *(f"0{code}" for code in row)] for number, row in enumerate(rows, 1)]
        write_rows(tmp_path / "life.csv", ["id", "a15", "a16", "a17"], codes)
        write_rows(tmp_path / "states.csv", ["state"], [[code] for code in "0123"])
        (tmp_path / "life.toml").write_text(CAREERS)
        return tmp_path

    def test_a_check_of_it_draws_no_fit(self, run, folder):
        for fitted in (False, True):
            before = files(folder)
            told = run("check", "--setup", folder / "life.toml", code=2).stdout
            assert 'no states: "00", "01", "03"' in told and "stops            less than 5 %" in told
            # A plan is of the model that was drawn.
            assert ("that are asked have rows" in told) == fitted and files(folder) == before
            assert ("3 of the 3 that may be asked have rows" in told) != fitted
            run("run", folder / "life.toml", "-q", code=2)

    @pytest.mark.parametrize(("hours", "steps", "code"), [("8-9", "12 of the 12", 0), ("2-4", "0 of the 24", 2)])
    def test_where_a_plan_may_ask_is_looked_at_before_its_model_is_drawn(self, hours, steps, code, tmp_path, run):
        """Hours are public, and whether a row lies in them hangs on no fit."""
        write_rows(tmp_path / "rows.csv", ["who", "when", "lat", "lon"], walk_rows())
        fitted = PIPELINE.replace("[model]", "[split]\n[fit]\nepsilon = 1\ncap-epsilon = 3\nmax-length = 9")
        fitted = fitted.replace("cell", "grid")
        planned = fitted.replace("[release]", f'[plan]\nhours = "{hours}"').replace('hours = "08:10"', "[release]")
        (tmp_path / "release.toml").write_text(planned)
        for about, beside in (((), ""), (("--about", 30), ", 27 % of the people")):
            told = run("check", "--setup", tmp_path / "release.toml", *about, code=code).stdout
            noise = "discrete Laplace, scale 8, on the transitions: expected error 7.979 in each number"
            assert f"noise            fit: {noise}{beside}\n" in told
        assert ("stops            no row at a step that the schedule asks" in told) == (code == 2)
        assert f"{steps} that may be asked have rows" in told
        assert "of the first run's, a share of 0.5 is fitted on and never released\n" in told
        assert "not looked at    moves, and which of these steps its plan asks" in told and "adds   " in told
        (tmp_path / "release.toml").write_text(fitted.replace("max-length = 9", "max-length = 0"))
        assert "error: [fit] max-length: got 0" in run("check", "--setup", tmp_path / "release.toml", code=2).stderr

    def test_the_fit_comes_first_and_the_release_stops(self, run, folder):
        told = run("run", folder / "life.toml", code=2).stderr
        look = f"dphmm check --setup {folder / 'life.toml'} looks at the rows before anything is spent"
        assert told.splitlines()[0].endswith(look) and "policy: dphmm policy" not in told
        assert "TRAJ: got less than 5 % of its rows in states of the model; expected names as the model has" in told
        assert "the private fit is done, and its epsilon 1 is spent: nobody was released" in told
        assert (folder / "out.owner" / "model.npz").exists() and not (folder / "out").exists()
        with open_ledger(folder / "ledger.db", read_only=True) as ledger:
            assert [publication.name for publication in ledger.publications()] == ["fit of out"]
            assert ledger.sessions() == []
        # The second run has the same fit, and stops again.
        before = (folder / "ledger.db").read_bytes()
        assert look not in run("run", folder / "life.toml", code=2).stderr
        assert (folder / "ledger.db").read_bytes() == before

    def test_who_means_it_says_so_in_the_file_and_that_is_no_other_question(self, run, folder):
        run("run", folder / "life.toml", "-q", code=2)
        (folder / "life.toml").write_text(CAREERS.replace("[release]", "[release]\nalthough = true"))
        run("run", folder / "life.toml", "-q")
        answers = (folder / "out" / "released.parquet").read_bytes()
        (folder / "life.toml").write_text(CAREERS.replace("[release]", "[release]\nno-check = true\nmin-people = 2"))
        assert json.loads(run("run", folder / "life.toml", "--json").stdout)["stages"]["release"] == "done"
        assert (folder / "out" / "released.parquet").read_bytes() == answers
