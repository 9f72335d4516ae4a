"""dphmm fit --epsilon: nothing of the data is said or written but what has noise, and the promise is told.

Could fail: states or an exit code taken from the data, a count without noise in a summary or a file, a cap that the
command does not pass on, a seed that is not called what it is, an empty table treated as an error.
"""

from __future__ import annotations

import json
import stat
import zipfile
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from commands import BBOX
from dphmm.accounting.event import LearningEvent, NoisyCounts, NotPrivateEvent, described, event_from
from dphmm.statement.learning import Learning
from dphmm.statement.parts import typed
from dphmm.statement.release import ReleaseStatement, statement_schema
from dphmm.storage.models import load_model

GRID = ("--grid", "1km", "--bbox", BBOX)
PRIVATE = ("--epsilon", "1", "--max-length", "20")


@pytest.fixture
def by_name(names):
    return ("--state-column", "state", "--states-file", names, *PRIVATE)


def seeded(tmp_path, run, source, *options, seed=5):
    out = tmp_path / "seeded.npz"
    run("fit", source, "-o", out, *options, "--seed", seed, "--force")
    return out.read_bytes()


def test_states_are_all_cells_and_the_event_is_the_caps(town, tmp_path, run, one_json):
    caps = ("--epsilon", "0.5", "--max-length", "12", "--max-sequences", "3", "--neighbours", "replace")
    result = run("fit", town / "people.csv", "-o", tmp_path / "m.npz", *GRID, "--step", "5min", *caps, "--json")
    document = one_json(result)
    model = load_model(tmp_path / "m.npz")
    assert model.space.n_states == model.n_states == document["states"] == 25
    assert model.step == 300
    event = event_from(model.provenance["privacy"])
    assert isinstance(event, LearningEvent) and event.secure
    assert (event.max_length, event.max_sequences, event.neighbours) == (12, 3, "replace")
    assert str(event.epsilon) == "1/2"
    learning = document["learning"]
    assert (learning["epsilon"], learning["delta"], learning["private"]) == ("0.5", "0", True)
    assert (learning["neighbours"], learning["unit"]) == ("replace", "owner")
    assert "replacing all sequences of one person" in result.stderr and "not covered" in result.stderr
    assert model.provenance["private"] is True
    assert "source_sha256" not in model.provenance and "n_users" not in model.provenance


def test_the_default_cap_is_one_sequence_of_a_person(site, tmp_path, run, by_name):
    result = run("fit", site / "visits.csv", "-o", tmp_path / "m.npz", *by_name)
    assert "of each person the first sequence, of at most 20 steps" in result.stderr
    assert load_model(tmp_path / "m.npz").provenance["privacy"]["max_sequences"] == 1


def test_a_person_is_all_their_trips(tmp_path, run, by_name):
    """With one sequence per person, rows of later trips change nothing; those of another person do."""
    rows = "user,state,trip\n" + "".join(f"a,{name},1\n" for name in ("alpha", "beta", "alpha", "gamma"))
    (tmp_path / "one.csv").write_text(rows)
    (tmp_path / "two.csv").write_text(rows + "a,beta,2\na,delta,2\na,beta,2\n")
    (tmp_path / "other.csv").write_text(rows + "b,beta,2\nb,delta,2\nb,beta,2\n")

    def arrays(source, *more):
        # So little noise that any other count shows.
        seeded(tmp_path, run, tmp_path / source, *by_name, *more, "--epsilon", "1000")
        return load_model(tmp_path / "seeded.npz").transition.toarray().tolist()

    assert arrays("one.csv") == arrays("two.csv")
    assert arrays("one.csv") != arrays("other.csv")
    assert arrays("one.csv", "--max-sequences", 2) != arrays("two.csv", "--max-sequences", 2)


@pytest.mark.parametrize("source", ["user,state\n", "user,state\n,alpha\nu,\n"])
def test_a_table_without_a_row_that_can_be_read_is_data_like_any_other(tmp_path, run, by_name, source):
    (tmp_path / "x.csv").write_text(source)
    run("fit", tmp_path / "x.csv", "-o", tmp_path / "m.npz", *by_name)
    assert load_model(tmp_path / "m.npz").n_states == 4


def test_no_place_in_the_box_is_data_too_and_so_is_no_row_on_a_map(town, tmp_path, run):
    far = ("--grid", "1km", "--bbox", "20.0,50.0,20.056,50.036", *PRIVATE)
    run("fit", town / "people.csv", "-o", tmp_path / "m.npz", *far)
    (tmp_path / "none.csv").write_text("user,t,lat,lon\n")
    run("fit", tmp_path / "none.csv", "-o", tmp_path / "n.npz", *GRID, "--step", "5min", *PRIVATE)
    assert load_model(tmp_path / "n.npz").n_states == 25


REFUSED = (
    (("--state-column", "state", *PRIVATE), "--states-file: got nothing"),
    (("--h3", "8", *PRIVATE), "--bbox: got nothing; expected W,S,E,N with --h3"),
    (("--grid", "1km", *PRIVATE), "--bbox: got nothing"),
    ((*GRID, "--epsilon", "1"), "--max-length: got nothing"),
    ((*GRID, "--max-length", "9"), "--max-length: got 9; expected --epsilon with it"),
    ((*GRID, "--max-sequences", "9"), "--epsilon with it"),
    ((*GRID, *PRIVATE, "--min-count", "2"), "--min-count: got 2; expected none with --epsilon"),
    ((*GRID, *PRIVATE, "--delta", "1e-6"), "--delta: got 1e-6; expected --states K with it"),
    ((*GRID, *PRIVATE, "--max-sequences", "0"), "--max-sequences: got 0"),
    ((*GRID, "--epsilon", "1", "--max-length", "0"), "--max-length: got 0"),
    ((*GRID, "--epsilon", "1", "--max-length", "1"), "--max-length: got 1; expected at least 2"),
    ((*GRID, "--epsilon", "0", "--max-length", "9"), "--epsilon: got 0"),
    ((*GRID, "--epsilon", "-1", "--max-length", "9"), "--epsilon: got -1"),
    ((*GRID, "--epsilon", "nan", "--max-length", "9"), "--epsilon: got nan"),
    ((*GRID, "--seed", "1"), "--seed: got 1; expected none"),
    (
        (*GRID, *PRIVATE, "--step", "5min", "--gap", "2h"),
        "--gap: got 7200 s; expected at most 20 steps of 300 s, the longest record",
    ),
    (
        ("--state-column", "state", "--states-file", "NAMES", "--moves", "neighbours", *PRIVATE),
        "--moves: got neighbours",
    ),
    (("--h3", "15", "--bbox", BBOX, *PRIVATE), "--h3: got 15, with more cells in the box"),
)


@pytest.mark.parametrize(("options", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_refusals_are_one_line_and_write_nothing(site, town, tmp_path, run, names, options, said):
    given = [names if option == "NAMES" else option for option in options]
    source = site / "visits.csv" if "--state-column" in given else town / "people.csv"
    result = run("fit", source, "-o", tmp_path / "m.npz", *given, code=2)
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "m.npz").exists()


def test_a_list_of_names_that_looks_like_the_data_is_refused_without_a_name(site, tmp_path, run):
    listed = ("--state-column", "state", "--states-file", site / "visits.csv", *PRIVATE)
    result = run("fit", site / "visits.csv", "-o", tmp_path / "m.npz", *listed, code=2)
    assert "--states-file: got visits.csv, which is TRAJ" in result.stderr
    assert "alpha" not in result.stderr


@pytest.mark.parametrize(("written", "said"), [("", "with no rows"), ("only\n", "--states-file: got 1; expected")])
def test_a_list_of_no_or_one_name_is_refused(site, tmp_path, run, names, written, said):
    names.write_text(f"state\n{written}")
    listed = ("--state-column", "state", "--states-file", names, *PRIVATE)
    assert said in run("fit", site / "visits.csv", "-o", tmp_path / "m.npz", *listed, code=2).stderr


def test_h3_cells_are_those_of_the_box(town, tmp_path, run):
    pytest.importorskip("h3")
    run("fit", town / "people.csv", "-o", tmp_path / "a.npz", "--h3", "7", "--bbox", BBOX, *PRIVATE)
    one = tmp_path / "one.csv"
    one.write_text("user,t,lat,lon\nu,2024-01-01T00:00:00Z,50.01,10.01\n")
    run("fit", one, "-o", tmp_path / "b.npz", "--h3", "7", "--bbox", BBOX, *PRIVATE)
    spaces = [load_model(tmp_path / name).space for name in ("a.npz", "b.npz")]
    assert spaces[0].digest == spaces[1].digest
    inside = np.random.default_rng(3).random((2000, 2)) * [0.036, 0.056] + [50.0, 10.0]
    assert (spaces[0].locate(inside[:, 0], inside[:, 1]) >= 0).mean() > 0.999


def test_moves_of_large_grids_are_those_of_neighbours(town, tmp_path, run, one_json):
    fine = ("--grid", "60m", "--bbox", BBOX, *PRIVATE, "--json")
    document = one_json(run("fit", town / "people.csv", "-o", tmp_path / "m.npz", *fine))
    assert document["states"] > 3000 and document["moves"] == "neighbours"
    assert document["possible_transitions"] <= 9 * document["states"]
    small = one_json(run("fit", town / "people.csv", "-o", tmp_path / "n.npz", *GRID, *PRIVATE, "--json"))
    assert small["possible_transitions"] == 25 * 25
    near = ("--moves", "neighbours", "--json")
    chosen = one_json(run("fit", town / "people.csv", "-o", tmp_path / "o.npz", *GRID, *PRIVATE, *near))
    assert chosen["possible_transitions"] < 25 * 25


def test_noise_is_fresh_unless_a_seed_says_loudly_that_it_is_not(site, tmp_path, run, by_name):
    outs = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for out in outs:
        run("fit", site / "visits.csv", "-o", out, *by_name)
    assert outs[0].read_bytes() != outs[1].read_bytes()
    assert seeded(tmp_path, run, site / "visits.csv", *by_name) == seeded(tmp_path, run, site / "visits.csv", *by_name)
    loud = run("fit", site / "visits.csv", "-o", tmp_path / "c.npz", *by_name, "--seed", "5", "-q")
    assert "NOT PRIVATE" in loud.stderr
    assert load_model(tmp_path / "c.npz").provenance["private"] is False


# Names and digits that occur nowhere else, one in every column that a person's row has.
CANARIES = ("CANARY_user", "CANARY_state", "01937465", "867531", "8675309")


def test_canaries_of_a_map(tmp_path, run):
    folder = tmp_path / "in"
    folder.mkdir()
    rows = [
        f"CANARY_user,2024-05-06T08:{m:02d}:31.867531Z,50.01937465,10.0{1 + m % 3},8675309" for m in range(0, 50, 5)
    ]
    rows += ["CANARY_user,CANARY_state,50.01937465,10.01,8675309", ",2024-05-06T08:03:00Z,50.01937465,10,8675309"]
    (folder / "x.csv").write_text("user,t,lat,lon,trip\n" + "\n".join(rows) + "\n")
    for extra in ((), ("--json",), ("-q",), ("--seed", "1")):
        fit = run(
            "fit", folder / "x.csv", "-o", tmp_path / "m.npz", *GRID, "--step", "5min", *PRIVATE, "--force", *extra
        )
        _nothing_of(tmp_path, fit)


def test_canaries_of_names_and_no_count_of_rows(tmp_path, run, by_name):
    """357 people of one row too many each, of whom 211 have a name that is no state, and 97 rows cannot be read."""
    folder = tmp_path / "in"
    folder.mkdir()
    rows = [f"u{k},{'CANARY_state' if k < 211 else 'alpha'}\nu{k},alpha" for k in range(357)] + [",alpha"] * 97
    (folder / "x.csv").write_text("user,state\n" + "\n".join(rows) + "\n")
    for extra in ((), ("--json",)):
        fit = run("fit", folder / "x.csv", "-o", tmp_path / "m.npz", *by_name, "--force", *extra)
        said = _nothing_of(tmp_path, fit)
        for count in ("357", "211", "97", "714", "811", "146"):
            assert count not in said


def test_all_that_is_said_and_described_is_the_same_for_any_data(site, tmp_path, run, by_name):
    """Outputs and the model's description depend on public choices alone: noise is in the model's numbers only."""
    tables = (
        (site / "visits.csv").read_text(),
        "user,state\n",
        "user,state,trip\nx,alpha,7\n,,\ny,beta,8\ny,nowhere,8\n",
    )
    found = set()
    for table in tables:
        (tmp_path / "x.csv").write_text(table)
        fit = run("fit", tmp_path / "x.csv", "-o", tmp_path / "m.npz", *by_name, "--json", "--force")
        model = load_model(tmp_path / "m.npz")
        found.add((fit.stdout, fit.stderr, json.dumps(model.provenance), model.space.digest, model.step))
    assert len(found) == 1


def test_the_canaries_can_be_seen(tmp_path, run):
    """The same rows, fitted without privacy, are told by count: the check above looks where it should."""
    (tmp_path / "x.csv").write_text("user,state\n" + "".join(f"u{k},alpha\nu{k},beta\n" for k in range(357)))
    fit = run("fit", tmp_path / "x.csv", "-o", tmp_path / "m.npz", "--state-column", "state")
    assert "357" in fit.stderr and "714" in fit.stderr


def _nothing_of(folder, result):
    """No canary in what was printed, nor in the model's description or names."""
    with zipfile.ZipFile(folder / "m.npz") as archive:
        meta = archive.read("meta.npy")[128:].decode()
    provenance = json.dumps(load_model(folder / "m.npz").provenance)
    said = result.stdout + result.stderr + meta + provenance
    whole = (folder / "m.npz").read_bytes() + said.encode()
    for canary in CANARIES:
        assert canary.encode() not in whole
    # The folder's name has numbers of its own.
    return (result.stdout + result.stderr + provenance).replace(str(folder), "")


def test_a_row_that_is_none_is_listed_for_the_owner_alone(tmp_path, run, by_name, rows_of):
    (tmp_path / "x.csv").write_text("user,state\nCANARY_user,alpha,8675309\na,alpha\n,CANARY_state\n")
    result = run("fit", tmp_path / "x.csv", "-o", tmp_path / "m.npz", *by_name)
    _nothing_of(tmp_path, result)
    assert "line 2" not in result.stderr and "m.npz.rejected.csv" in result.stderr
    listed = tmp_path / "m.npz.rejected.csv"
    assert rows_of(listed) == [{"line": "2", "reason": "ragged_row"}, {"line": "4", "reason": "missing_user"}]
    assert stat.S_IMODE(listed.stat().st_mode) == 0o600
    # The list is there where nothing is on it, so that its being there says nothing.
    (tmp_path / "x.csv").write_text("user,state\na,alpha\n")
    assert run("fit", tmp_path / "x.csv", "-o", tmp_path / "m.npz", *by_name, "--force").stderr == result.stderr
    assert rows_of(listed) == [] and stat.S_IMODE(listed.stat().st_mode) == 0o600
    listed.write_text("mine")
    (tmp_path / "m.npz").unlink()
    assert "--force" in run("fit", tmp_path / "x.csv", "-o", tmp_path / "m.npz", *by_name, code=2).stderr
    assert listed.read_text() == "mine"


@pytest.fixture(scope="module")
def learned(site, tmp_path_factory, run):
    """The site's folder with a model learned with epsilon 1, its policy and its visits."""
    folder = tmp_path_factory.mktemp("learned")
    (folder / "names.csv").write_text("state\nalpha\nbeta\ngamma\ndelta\n")
    (folder / "visits.csv").write_bytes((site / "visits.csv").read_bytes())
    options = ("--state-column", "state", "--states-file", folder / "names.csv", *PRIVATE)
    run("fit", folder / "visits.csv", "-o", folder / "model.npz", *options)
    run("policy", "complete", folder / "model.npz", "-o", folder / "complete.json")
    return folder


@pytest.mark.slow
def test_a_release_tells_both_guarantees_and_what_they_give_together(learned, tmp_path, run, release_of):
    import jsonschema

    result = run(*release_of(learned, tmp_path, "visits.csv", "complete.json"))
    said = " ".join(result.stderr.split())
    assert "learning epsilon 1, delta 0: bounds the loss of adding or removing" in said
    statement = json.loads((tmp_path / "released" / "released.csv.privacy.json").read_text())
    jsonschema.validate(statement, statement_schema())
    learning = statement["learning"]
    assert learning["epsilon"] == "1"
    together = float(learning["together"]["epsilon"])
    # Replacing a person costs the model twice what adding them does.
    assert together == pytest.approx(2 + float(statement["totals"]["cost_sum"]))
    assert f"together epsilon {learning['together']['epsilon']}" in said
    assert "people of a learned model" in statement["not_protected"]
    assert statement["model"]["private"] is True
    assert statement["private"] is True
    for member in learning:
        short = {**statement, "learning": {name: learning[name] for name in learning if name != member}}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(short, statement_schema())


@pytest.mark.parametrize("whose", ["file", "ledger"])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)], ids=["laplace", "gaussian"])
def test_what_both_lose_together_says_what_it_counts_and_where_it_holds(whose, delta):
    """For a reader of this sentence alone: one fit, whose rows, which steps and histories, and what adds to it."""
    noise = NoisyCounts("counts", "gaussian" if delta else "laplace", Fraction(9), Fraction(9))
    event = LearningEvent((noise,), "add-remove", 9, 1, True, delta, unit="owner")
    said = Learning.of(event, Fraction(3)).both(ledger=whose == "ledger")
    rows = {"file": "the rows of this file that are of that person", "ledger": "the releases of that person in this"}
    for words in ("this one fit", rows[whose], "at all their steps", "histories that the model leaves possible",
                  "not counted are other models of the same people", "answers of queries", "other files or ledgers",
                  "people who depend on that person"):  # fmt: skip
        assert words in said
    assert ("a cap has bounded the sum of costs in advance" in said) == (delta > 0)


def test_a_dry_run_and_details_tell_them_too(learned, tmp_path, run, release_of, one_json):
    arguments = release_of(learned, tmp_path, "visits.csv", "complete.json")
    dry = run(*arguments, "--dry-run")
    assert "learning" in dry.stdout and "the sum of a person's costs, and 2" in dry.stdout
    assert one_json(run(*arguments, "--dry-run", "--json"))["learning"]["epsilon"] == "1"
    assert one_json(run("plan", "--details", learned / "model.npz", "--json"))["model"]["learning"]["epsilon"] == "1"
    assert "epsilon 1, delta 0" in run("plan", "--details", learned / "model.npz").stdout


def test_account_tells_what_a_model_cost(learned, town, tmp_path, run, release_of, one_json):
    assert "epsilon 1, delta 0" in run("account", "--model", learned / "model.npz").stdout
    assert one_json(run("account", "--model", learned / "model.npz", "--json"))["model"]["learning"]["epsilon"] == "1"
    run(*release_of(learned, tmp_path, "visits.csv", "complete.json"), "-q")
    both = run("account", tmp_path / "ledger.db", "--model", learned / "model.npz").stdout
    assert "6 subjects" in both and "epsilon 1, delta 0" in both
    # Along a path of states the cost of a release, which the model's is added to, is more than its epsilon.
    model = dphmm.storage.load_model(learned / "model.npz")
    with dphmm.open_ledger(tmp_path / "path.db") as ledger:
        path = dphmm.policy.from_edges([(0, 1), (1, 2), (2, 3)], 4)
        session = dphmm.ReleaseSession(model, path, model.space, 1, ledger=ledger, bits=dphmm.ReplayBits(1))
        session.release(0)
        spent = session.spent
    learning = one_json(run("account", tmp_path / "path.db", "--model", learned / "model.npz", "--json"))
    together = float(learning["model"]["learning"]["together"]["epsilon"])
    assert spent.cost > spent.epsilon and together == pytest.approx(2 + float(spent.cost))
    assert "NO PRIVACY: it was fitted without privacy" in run("account", "--model", town / "model.npz").stdout
    assert "LEDGER: got nothing" in run("account", code=2).stderr
    assert "LEDGER: got nothing" in run("account", "--model", learned / "model.npz", "--subject", "a", code=2).stderr


def rewritten(folder, tmp_path, **changes):
    model = load_model(folder / "model.npz")
    origin = {**model.provenance, **changes}
    changed = dphmm.MarkovModel(model.initial, model.transition, space=model.space, provenance=origin)
    dphmm.storage.save_model(changed, tmp_path / "model.npz")
    for name in ("visits.csv", "complete.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return tmp_path


def test_a_model_with_replayable_noise_or_with_none_stays_labelled(learned, tmp_path, run, release_of):
    privacy = {**load_model(learned / "model.npz").provenance["privacy"], "secure": False, "private": False}
    folder = rewritten(learned, tmp_path, private=False, privacy=privacy)
    result = run(*release_of(folder, tmp_path, "visits.csv", "complete.json"), "--model-people", "same", "-q")
    assert "noise can be replayed" in result.stderr and "warning" in result.stderr
    statement = json.loads((tmp_path / "released" / "released.csv.privacy.json").read_text())
    assert statement["private"] is False and statement["learning"]["private"] is False
    assert "nothing is promised" in typed(statement, ReleaseStatement).learning.both()


def test_a_model_that_says_it_is_not_private_is_called_so(learned, tmp_path, run, release_of):
    folder = rewritten(learned, tmp_path, private=False, privacy=described(NotPrivateEvent("NOT PRIVATE: a baseline")))
    result = run(*release_of(folder, tmp_path, "visits.csv", "complete.json"), "-q")
    assert "NOT PRIVATE: a baseline" in result.stderr
    statement = json.loads((tmp_path / "released" / "released.csv.privacy.json").read_text())
    assert statement["learning"] is None and typed(statement, ReleaseStatement).origin.startswith("NOT PRIVATE")
    assert "NO PRIVACY: NOT PRIVATE: a baseline" in run("account", "--model", tmp_path / "model.npz").stdout


def test_a_record_that_contradicts_itself_is_refused_before_anything_is_drawn(learned, tmp_path, run, release_of):
    privacy = {**load_model(learned / "model.npz").provenance["privacy"], "epsilon": "0.1"}
    folder = rewritten(learned, tmp_path, privacy=privacy)
    result = run(*release_of(folder, tmp_path, "visits.csv", "complete.json"), code=2)
    assert "what its parts give" in result.stderr
    assert not (tmp_path / "ledger.db").exists()


def test_what_was_published_is_told(learned, tmp_path, run, one_json, by_name):
    fit = run("fit", learned / "visits.csv", "-o", tmp_path / "m.npz", *by_name, "--json")
    published = one_json(fit)["published"]
    assert [(part["noise"], part["sensitivity"], part["scale"]) for part in published] == [("laplace", "20", "20")]
    account = run("account", "--model", tmp_path / "m.npz").stdout
    for said in (fit.stderr, account):
        assert f"{published[0]['name']}: laplace noise, L1 sensitivity 20, scale 20" in said
    model = one_json(run("account", "--model", tmp_path / "m.npz", "--json"))["model"]
    assert model["published"] == published


def test_nothing_is_together_for_a_model_of_other_people(learned, tmp_path, run, release_of):
    import jsonschema

    arguments = (*release_of(learned, tmp_path, "visits.csv", "complete.json"), "--model-people", "others")
    left_out = "together     left out: the model is of other people than those released, as the data owner says"
    dry = run(*arguments, "--dry-run")
    assert left_out.split() == next(line.split() for line in dry.stdout.splitlines() if line.startswith("together"))
    assert " ".join(left_out.split()) in " ".join(run(*arguments).stderr.split())
    statement = json.loads((tmp_path / "released" / "released.csv.privacy.json").read_text())
    jsonschema.validate(statement, statement_schema())
    assert statement["learning"]["together"] is None


def test_a_stream_tells_nothing_together_for_a_model_of_other_people(learned, tmp_path, run):
    options = ("--model", learned / "model.npz", "--policy", learned / "complete.json", "--epsilon", "1")
    more = ("--ledger", tmp_path / "l.db", "--model-people", "others")
    said = run("release", "-", *options, *more, input='{"user": "a", "step": 1, "state": "alpha"}\n').stderr
    assert "left out: the model is of other people" in said and "the sum of a person's costs" not in said


def test_a_record_without_a_member_names_the_file_and_the_remedy(learned, tmp_path, run, release_of, private_hidden):
    privacy = dict(load_model(learned / "model.npz").provenance["privacy"])
    del privacy["unit"]
    folder = rewritten(learned, tmp_path, privacy=privacy)
    model = folder / "model.npz"
    commands = (
        release_of(folder, tmp_path, "visits.csv", "complete.json"),
        ("plan", "--details", model),
        ("account", "--model", model),
        ("account", "--model", private_hidden),
    )
    for command in commands:
        said = run(*command, code=2).stderr
        option = "--model " if "--model" in command else ""
        file = private_hidden if private_hidden in command else model
        assert said.startswith(f"error: {option}{file}: got a record of its")
        assert "fit the model again" in said and said.count("\n") == 1


@pytest.fixture
def private_hidden(site, tmp_path, run, monkeypatch):
    """A hidden model with a record that has no unit."""
    from dphmm.storage import hidden_models

    def without_unit(event):
        return {name: value for name, value in described(event).items() if name != "unit"}

    (tmp_path / "symbols.csv").write_text("symbol\nalpha\nbeta\ngamma\ndelta\n")
    symbols = ("--states", "2", "--symbols", "state", "--symbols-file", tmp_path / "symbols.csv")
    with monkeypatch.context() as patch:
        patch.setattr(hidden_models, "described", without_unit)
        run("fit", site / "visits.csv", "-o", tmp_path / "no-unit.npz", *symbols, *PRIVATE)
    return tmp_path / "no-unit.npz"


def test_details_say_that_people_are_not_told(learned, town, run, one_json):
    said = run("plan", "--details", learned / "model.npz").stdout
    assert "fitted on people" in said and "not told (learned privately)" in said
    assert one_json(run("plan", "--details", learned / "model.npz", "--json"))["model"]["fitted_on_people"] is None
    assert "not told" not in run("plan", "--details", town / "model.npz").stdout


class TestDryRun:
    """A private fit is told by options and columns alone; its noise and its account are those of the run."""

    HIDDEN = ("--states", 2, "--symbols", "state")

    @pytest.fixture
    def tables(self, site, tmp_path):
        """The table as it is, without a row, and with a row that no run could read."""
        text = (site / "visits.csv").read_text()
        header = text.split("\n")[0]
        for name, rows in (("visits", text), ("empty", f"{header}\n"), ("broken", f'{header}\nann,"1\n\x00,')):
            (tmp_path / f"{name}.csv").write_text(rows)
        return tmp_path

    @pytest.mark.parametrize("hidden", [False, True])
    def test_no_row_is_read_and_nothing_is_left_behind(self, tables, run, names, by_name, hidden):
        chosen = (*self.HIDDEN, "--symbols-file", symbols(tables), *PRIVATE) if hidden else by_name
        line = (*chosen, "--dry-run", "--about", 40, "--ledger", tables / "l.db", "--id", "walks")
        before = sorted(tables.iterdir())
        told = [run("fit", tables / f"{name}.csv", *line) for name in ("visits", "empty", "broken")]
        assert len({(one.stdout, one.stderr.replace("warning", "")) for one in told}) == 1
        said = told[0].stderr
        assert "discrete Laplace, scale " in said and "% of the people" in said
        assert "a person would have lost at most 2 there, replaced, and at most 1 of being in the data" in said
        assert "dry run: no row was read; nothing was drawn, spent, stored or written" in said
        assert sorted(tables.iterdir()) == before

    @pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
    def test_its_noise_and_its_account_are_those_of_the_run(self, tables, run, one_json, by_name, neighbours):
        line = (tables / "visits.csv", *by_name, "--neighbours", neighbours, "--ledger", tables / "l.db", "--id", "a")
        document = one_json(run("fit", *line, "--dry-run", "--json"))
        run("fit", *line, "-o", tables / "m.npz")
        event = event_from(load_model(tables / "m.npz").provenance["privacy"])
        assert [(part["of"], part["scale"]) for part in document["noise"]] == [
            (part.name, str(part.scale)) for part in event.parts
        ]
        with dphmm.open_ledger(tables / "l.db", read_only=True) as ledger:
            replaced = dphmm.accounting.ledger_summary(ledger).totals_of(Fraction(0)).replaced.value
        assert document["account"]["replaced"] == str(replaced) and document["neighbours"] == neighbours
        assert "this id is stored: nothing would be drawn" in run("fit", *line, "--dry-run").stderr

    def test_what_cannot_be_told_is_refused(self, tables, run, names, by_name, site):
        plain = (site / "visits.csv", "--state-column", "state", "--dry-run")
        assert "--dry-run: got a fit without --epsilon" in run("fit", *plain, code=2).stderr
        paper = (*self.HIDDEN, "--symbols-file", symbols(tables), "--method", "paper-last-iteration-not-private")
        said = run("fit", tables / "visits.csv", *paper, *PRIVATE, "--dry-run", code=2).stderr
        assert "--method: got one without privacy" in said
        wrong = (tables / "visits.csv", *by_name, "--step", "5min", "--dry-run")
        assert "a column t of times" in run("fit", *wrong, code=2).stderr


def symbols(folder):
    """A public table of the symbols."""
    path = folder / "symbols.csv"
    path.write_text("symbol\nalpha\nbeta\n")
    return path
