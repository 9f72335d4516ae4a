"""The covered distance is what commands, statements and pages say of a policy on a map, each the same number.

Claims: `--covers` builds the smallest radius policy; `policy`, `plan --details`, `release` (a file, a stream, a dry
run) and `report` print the same distance, with the factor of one answer; a statement has it and follows the schema;
`check-release` and `report` find a statement with another one; states that are no places have none.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction

import jsonschema
import pytest

import dphmm
from cli.conftest import altered
from dphmm.errors import InvalidInput
from dphmm.statement.files import load_statement
from dphmm.statement.parts import document
from dphmm.statement.release import CoveredDistance, statement_schema
from dphmm.statement.sentences import ANY, factor, length

PLACES = r"places in cells of the model up to 1,000 m apart on the map \(99\d m on the ground\)"


def one_line(text):
    return " ".join(text.split())


def test_covers_and_the_radius_that_it_takes(town, tmp_path, run):
    told = run("policy", "radius", town / "model.npz", "-o", tmp_path / "c.json", "--covers", "1km").stderr
    assert re.search(f"hides {PLACES} from each other", told)
    model = dphmm.storage.load_model(town / "model.npz")
    policy = dphmm.storage.load_policy(tmp_path / "c.json", model=model)
    known = dphmm.storage.load_policy(town / "radius.json", model=model)
    assert policy.edges().tolist() == known.edges().tolist()
    document = json.loads(
        run("policy", "complete", town / "model.npz", "-o", tmp_path / "a.json", "--json", "--quiet").stdout
    )
    assert document["covered_distance"] == {"metres": "any", "ground_metres": "any"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "--covers: got nothing; expected a distance between places, 1km; or --radius instead"),
        (("--covers", "1km", "--radius", "1km"), "--covers: got 1km beside --radius 1km"),
        (("--covers", "1000"), "--covers: got 1000; expected a unit after the number, m or km"),
        (("--covers", "0m"), "--covers: got 0m; expected more than 0"),
    ],
)
def test_one_of_covers_and_radius(town, tmp_path, run, options, told):
    result = run("policy", "radius", town / "model.npz", "-o", tmp_path / "p.json", *options, code=2)
    assert told in result.stderr
    assert not (tmp_path / "p.json").exists()


def test_covers_needs_places(site, tmp_path, run):
    result = run("policy", "radius", site / "model.npz", "-o", tmp_path / "p.json", "--covers", "1km", code=2)
    assert "--covers: got 1km; expected --radius, in answer units: these states are no places" in result.stderr


def test_details_say_it(town, site, run):
    given = ("plan", "--details", town / "model.npz", "--policy", town / "radius.json", "--epsilon", "2")
    text = run(*given).stdout
    assert re.search(rf"covered distance +{PLACES}\n", text)
    assert re.search(r"at most 1,000 m apart on the map .* a factor exp\(2\) = 7.39 more likely", text)
    document = json.loads(run(*given, "--json").stdout)
    assert document["policy"]["covered_distance"]["metres"] == 1000.0
    pages = run("plan", "--details", site / "model.npz", "--policy", site / "complete.json").stdout
    assert "none: the states are no cells of a map" in pages
    assert "apart" not in pages


def test_release_says_it_and_the_statement_has_it(town, tmp_path, run, release_of):
    said = one_line(run(*release_of(town, tmp_path)).stderr)
    assert "guaranteed if two places up to 1,000 m apart seem equally likely, one answer leaves at least 1 in 4" in said
    statement = load_statement(tmp_path / "released" / "released.csv")
    jsonschema.validate(document(statement), statement_schema())
    covered = statement.covered_distance
    model = dphmm.storage.load_model(town / "model.npz")
    assert covered.metres == 1000.0
    assert covered.ground_metres == model.space.on_the_ground(1000.0) < 1000
    (meaning,) = statement.covered
    for part in ("cells of the model", "Where the promise holds", "exp(1) = 2.72", "outside every cell"):
        assert part in meaning


def test_a_dry_run_and_a_stream_say_it(town, tmp_path, run, release_of):
    assert re.search(PLACES, run(*release_of(town, tmp_path), "--dry-run").stdout)
    stream = ("release", "-", "--model", town / "model.npz", "--policy", town / "radius.json", "--epsilon", "1")
    line = '{"user": "u", "t": "2024-05-06T08:00:00Z", "lat": 50.01, "lon": 10.01}\n'
    result = run(*stream, "--ledger", tmp_path / "s.db", input=line)
    assert re.search(PLACES, result.stderr)
    assert "covered" not in run(*stream, "--ledger", tmp_path / "q.db", "--quiet", input=line).stderr


def test_states_that_are_no_places_have_none(site, tmp_path, run):
    told = run(
        "release", site / "visits.csv", "--state-column", "state", "--model", site / "model.npz",
        "--policy", site / "complete.json", "--epsilon", "1", "-o", tmp_path / "r", "--ledger", tmp_path / "l.db",
    )  # fmt: skip
    assert "covered" not in told.stderr
    statement = document(load_statement(tmp_path / "r" / "released.csv"))
    assert statement["covered_distance"] is None
    jsonschema.validate(statement, statement_schema())


def page_of(released, tmp_path, run, *more, code=0):
    arguments = ("report", released / "released", "-o", tmp_path / "page.html")
    result = run(*arguments, "--force", *more, code=code)
    return result.stderr if code else one_line((tmp_path / "page.html").read_text())


@pytest.mark.slow
def test_a_page_says_it_as_the_policy_of_the_folder_confirms_it(released, tmp_path, run):
    (meaning,) = load_statement(released / "released" / "released.csv").covered
    assert meaning in page_of(released, tmp_path, run)


OTHER = "ground_metres': 996.353}; expected"


@pytest.mark.parametrize(
    ("metres", "words"),
    [
        (5000.0, OTHER),
        (ANY, OTHER),
        (-1, OTHER),
        ("far", "covered_distance.metres"),
        (None, "covered_distance.metres"),
        (True, "covered_distance.metres"),
    ],
)
def test_another_distance_in_a_statement_is_found(released, tmp_path, run, metres, words):
    other = altered(
        released, tmp_path / "other", lambda rows, statement: statement["covered_distance"].update(metres=metres)
    )
    assert words in page_of(other, tmp_path, run, code=2)
    assert "covered_distance" in run("check-release", other / "released", code=1).stdout


def test_words_for_every_kind_of_distance():
    grid = dphmm.Grid.from_bounds(10.0, 50.0, 10.056, 50.036, cell=1000)
    one = Fraction(1)
    covered = {metres: CoveredDistance.at(metres, grid) for metres in (ANY, 0.0, 1000.0)}
    words = {metres: distance.sentence("per answer", epsilon=one) for metres, distance in covered.items()}
    assert words[ANY] == "any two places in cells of the model: a factor of at most exp(1) = 2.72 per answer"
    assert words[0.0].startswith("places in one and the same cell of the model: a factor")
    assert words[0.0].endswith("; places in two cells can lose more")
    assert words[1000.0].endswith("; places further apart can lose more")
    schema = {**statement_schema()["properties"]["covered_distance"], "$defs": statement_schema()["$defs"]}
    for metres, distance in covered.items():
        jsonschema.validate(document(distance), schema)
        assert ("can tell more" in distance.sentence(epsilon=one)) == (metres != ANY)
    assert CoveredDistance.of([dphmm.policy.complete(2)], dphmm.StateSpace([0, 1])) is None


@pytest.mark.parametrize(
    ("epsilon", "told"),
    [
        ("0.1", "exp(0.1) = 1.11"),
        ("1", "exp(1) = 2.72"),
        ("2", "exp(2) = 7.39"),
        ("6", "exp(6) = 404"),
        ("7", "exp(7) = 1,097"),
        ("20", "exp(20)"),
        ("1/10000000000000000000000000000000000000000", "= 1.01"),
    ],
)
def test_factors_are_rounded_up(epsilon, told):
    assert told in factor(Fraction(epsilon))


@pytest.mark.parametrize(
    ("metres", "told"),
    [(680.0, "680 m"), (679.999, "679 m"), (9999.9, "9,999 m"), (12_399.0, "12.3 km"), (2.348, "2.34 m")],
)
def test_distances_are_rounded_down(metres, told):
    assert length(metres) == told


def test_covers_that_no_radius_reaches():
    world = dphmm.Grid.from_bounds(-180, -4, 180, 4, cell="500km")
    with pytest.raises(InvalidInput, match="covers"):
        dphmm.policy.radius(world, covers="1km")
