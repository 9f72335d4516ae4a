"""Whom the model was fitted on, from dphmm fit to the statement of dphmm release, by every way of knowing it.

Could fail: "unknown" called private, names of another model believed, a file of people beside a model learned with
privacy, an answer that was drawn before a contradiction was seen, a name or digest of the file in anything published.
"""

from __future__ import annotations

import itertools
import json
import shutil
import stat

import jsonschema
import numpy as np
import pytest

import dphmm
from dphmm.statement.files import load_statement
from dphmm.statement.origin import AGAINST, verdict
from dphmm.statement.parts import document, typed
from dphmm.statement.release import ReleaseStatement, statement_schema
from dphmm.storage.inputs import file_digest
from dphmm.storage.models import load_people, people_path, save_people

PEOPLE = tuple(f"v{number}" for number in range(6))
#: Nobody of the model, some, and everybody.
RELEASED = {"none": ("w0", "w1"), "some": ("w0", "v3")}
REFUSED = "refused"
OF = ("private", "not private", "not recorded")
SAID = ("others", "same", "unknown", None)
FILES = ("absent", "other", "some", "none")

#: What a statement says, by where the model is from, what the owner says, and what lies beside the model: a file of
#: people or none, that of another model, one with some of those released or none. private, people, known by.
TRUE_OWNER, TRUE_NAMES = (True, "others", "owner"), (True, "others", "names")
UNKNOWN = ("unknown", "unknown", None)
EXPECTED = {
    ("private", "others"): [TRUE_OWNER] * 4,
    ("private", "same"): [(True, "same", "owner")] * 4,
    ("private", "unknown"): [(True, "unknown", None)] * 4,
    ("private", None): [(True, "unknown", None)] * 4,
    ("not private", "others"): [TRUE_OWNER, TRUE_OWNER, REFUSED, TRUE_OWNER],
    ("not private", "same"): [(False, "same", "owner"), (False, "same", "owner"), (False, "same", "names"),
                              (False, "same", "owner")],
    ("not private", "unknown"): [UNKNOWN, UNKNOWN, (False, "same", "names"), UNKNOWN],
    ("not private", None): [UNKNOWN, UNKNOWN, (False, "same", "names"), TRUE_NAMES],
    ("not recorded", "others"): [TRUE_OWNER, TRUE_OWNER, REFUSED, TRUE_OWNER],
    ("not recorded", "same"): [("unknown", "same", "owner"), ("unknown", "same", "owner"), ("unknown", "same", "names"),
                               ("unknown", "same", "owner")],
    ("not recorded", "unknown"): [UNKNOWN, UNKNOWN, ("unknown", "same", "names"), UNKNOWN],
    ("not recorded", None): [UNKNOWN, UNKNOWN, ("unknown", "same", "names"), TRUE_NAMES],
}  # fmt: skip
CASES = list(itertools.product(OF, SAID, FILES))


@pytest.fixture(scope="module")
def models(site, tmp_path_factory, run):
    """By where the model is from a folder with a model of the site's states, its policy and whom to release."""
    found = {}
    for of in OF:
        folder = found[of] = tmp_path_factory.mktemp(of.replace(" ", "-"))
        model = folder / "model.npz"
        if of == "private":
            (folder / "names.csv").write_text("state\nalpha\nbeta\ngamma\ndelta\n")
            noise = ("--epsilon", "1", "--max-length", "15", "--states-file", folder / "names.csv")
            run("fit", site / "visits.csv", "-o", model, "--state-column", "state", *noise, "--quiet")
        elif of == "not private":
            run("fit", site / "visits.csv", "-o", model, "--state-column", "state", "--quiet")
        else:
            fitted = dphmm.storage.load_model(site / "model.npz")
            dphmm.storage.save_model(dphmm.MarkovModel(fitted.initial, fitted.transition, space=fitted.space), model)
        run("policy", "complete", model, "-o", folder / "complete.json", "--quiet")
        for among, users in RELEASED.items():
            (folder / f"{among}.csv").write_text("user,state\n" + "".join(f"{user},alpha\n" for user in users))
    return found


def beside(model, kind):
    """Put a file of people beside a model, as ``kind`` says; of a private one it has to be forged."""
    people_path(model).unlink(missing_ok=True)
    if kind == "absent":
        return
    loaded = dphmm.storage.load_model(model)
    other = model.with_name("other.npz")
    twin = dphmm.MarkovModel(loaded.initial, loaded.transition, space=loaded.space, provenance={"private": False})
    dphmm.storage.save_model(twin, other)
    document = json.loads(save_people(other, PEOPLE).read_text())
    if kind != "other":
        document["model_sha256"] = file_digest(model)
    people_path(model).write_text(json.dumps(document))


@pytest.fixture
def released(models, tmp_path, run, release_of):
    """Release as a case says; the result, and the statement if there is one."""

    def release(of, said, file, *more, code=0):
        folder = tmp_path / "in"
        shutil.copytree(models[of], folder)
        beside(folder / "model.npz", file)
        rows = "some.csv" if file == "some" else "none.csv"
        declared = () if said is None else ("--model-people", said)
        result = run(*release_of(folder, tmp_path, rows, "complete.json"), *declared, *more, code=code)
        written = (tmp_path / "released" / "released.csv.privacy.json").exists()
        return result, document(load_statement(tmp_path / "released" / "released.csv")) if written else None

    return release


@pytest.mark.parametrize(("of", "said", "file"), CASES)
def test_the_statement_says_what_is_known_and_no_more(of, said, file, released, tmp_path, one_json):
    expected = EXPECTED[of, said][FILES.index(file)]
    if expected == REFUSED:
        result, _ = released(of, said, file, code=2)
        assert "--model-people: got others" in result.stderr and "v3" not in result.stderr
        assert not (tmp_path / "ledger.db").exists() and not (tmp_path / "released" / "released.csv").exists()
        return
    result, statement = released(of, said, file, "--json")
    jsonschema.validate(statement, statement_schema())
    model, private = statement["model"], statement["private"]
    assert (private, model["people"], model["people_known_by"]) == expected
    assert type(private) is type(expected[0])
    assert verdict(statement["reasons"]) == private
    document = one_json(result)
    assert (document["private"], document["model_people"], document["model_people_known_by"]) == expected
    ignored = "is of another model than model.npz" in result.stderr
    assert ignored == (file == "other" and of != "private")
    # Whatever is not known to be private is said aloud.
    assert ("warning: the model: " in result.stderr) == (private is not True)
    assert ("says private: unknown" in result.stderr) == (private == "unknown")


@pytest.mark.parametrize("of", OF)
def test_words_that_stand_alone_say_how_it_is_known(of, released):
    """A reader of one sentence alone is told who says so, and what was compared."""
    _, written = released(of, None, "none")
    if of == "private":
        return
    statement = typed(written, ReleaseStatement)
    for sentence in (statement.origin, statement.sentence("assumes"), statement.hides_not[-1]):
        assert "as far as user names tell" in sentence and "one person under two names" in sentence
    assert len(statement.promised) == 2


@pytest.mark.parametrize(
    ("of", "said", "first"),
    [
        ("not private", "same", "What follows does not hold for this file: "),
        ("not private", None, "It is not known whether what follows holds for this file: "),
        ("not recorded", "same", "It is not known whether what follows holds for this file: "),
        ("not recorded", None, "It is not known whether what follows holds for this file: "),
    ],
)
def test_a_promise_that_is_not_known_to_hold_says_so_first(of, said, first, released):
    _, written = released(of, said, "absent")
    statement = typed(written, ReleaseStatement)
    assert statement.promised[0].startswith(first)
    assert ("as the data owner says" in statement.sentence("assumes")) == (said is not None)


def test_nothing_of_the_file_is_published(released, tmp_path, models):
    result, _ = released("not private", None, "none")
    document = json.loads(people_path(tmp_path / "in" / "model.npz").read_text())
    published = [
        path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name in ("released", tmp_path.name)
    ]
    names = {"released.csv", "released.csv.privacy.json", "model.npz", "policy.json", "index.json", "ledger.db"}
    assert {path.name for path in published} >= names
    for path in (*published, tmp_path / "in" / "model.npz"):
        content = path.read_bytes()
        for secret in (document["key"], *document["digests"]):
            assert secret.encode() not in content and bytes.fromhex(secret) not in content, path.name
            assert secret not in result.output
        # Nor the hash of the owner's model: that of the published one is another.
        assert document["model_sha256"].encode() not in content, path.name
    assert file_digest(tmp_path / "in" / "model.npz") == document["model_sha256"]


def test_the_very_file_is_the_same_people_whatever_lies_beside_the_model(town, tmp_path, run, release_of):
    folder = tmp_path / "in"
    shutil.copytree(town, folder)
    (folder / "model.npz.people").unlink()
    run(*release_of(folder, tmp_path, "people.csv"), "--model-people", "unknown")
    statement = document(load_statement(tmp_path / "released" / "released.csv"))
    assert statement["private"] is False and statement["model"]["people_known_by"] == "file"
    again = tmp_path / "again"
    again.mkdir()
    told = run(*release_of(folder, again, "people.csv"), "--model-people", "others", code=2).stderr
    assert "--model-people: got others" in told and not list(again.iterdir())


@pytest.mark.parametrize(
    ("said", "file", "code", "told"),
    [
        (None, "some", 0, "warning: the model: Fitted without privacy on the very people"),
        (None, "none", 0, "note: the model: Fitted without privacy on other people"),
        (None, "absent", 0, "says private: unknown"),
        ("others", "some", 2, "--model-people: got others"),
    ],
)
def test_a_dry_run_warns_and_refuses_like_the_release(said, file, code, told, released, tmp_path):
    result, _ = released("not private", said, file, "--dry-run", code=code)
    assert told in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def lines(*users):
    rows = [{"user": user, "state": "alpha", "step": step} for step, user in enumerate(users)]
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("said", "users", "expected"),
    [
        (None, ("w0", "w1"), (True, "others", "names")),
        (None, ("w0", "v3", "v4"), (False, "same", "names")),
        (None, (), UNKNOWN),
        ("unknown", ("w0", "w1"), UNKNOWN),
        ("others", ("w0", "w1"), (True, "others", "owner")),
        ("others", ("w0", "v3", "w0"), (False, "same", "names")),
        ("same", ("w0",), (False, "same", "owner")),
    ],
)
def test_a_stream_is_judged_by_who_was_answered(said, users, expected, models, tmp_path, run):
    folder = models["not private"]
    save_people(folder / "model.npz", PEOPLE)
    options = ("--model", folder / "model.npz", "--policy", folder / "complete.json", "--epsilon", "1")
    more = ("--ledger", tmp_path / "l.db", "-o", tmp_path / "out")
    declared = () if said is None else ("--model-people", said)
    result = run("release", "-", *options, *more, *declared, input=lines(*users))
    statement = json.loads((tmp_path / "out" / "released.jsonl.privacy.json").read_text())
    jsonschema.validate(statement, statement_schema())
    assert (statement["private"], statement["model"]["people"], statement["model"]["people_known_by"]) == expected
    assert len(result.stdout.splitlines()) == len(users)
    met = "as user names tell: at least one released here"
    assert result.stderr.count(met) == (expected[2] == "names" and expected[1] == "same")


FITS = {
    "counted": ("--state-column", "state"),
    "hidden": ("--states", "2", "--symbols", "state", "--iterations", "3"),
}
PRIVATE = ("--epsilon", "1", "--max-length", "9")


@pytest.mark.parametrize("options", FITS.values(), ids=FITS)
def test_a_fit_without_privacy_writes_its_people(options, site, tmp_path, run, one_json):
    model = tmp_path / "m.npz"
    result = run("fit", site / "visits.csv", "-o", model, *options, "--json")
    assert one_json(result)["people"] == str(people_path(model))
    assert [line for line in result.stderr.splitlines() if "m.npz.people" in line and "for you alone" in line]
    assert stat.S_IMODE(people_path(model).stat().st_mode) == 0o600
    people = load_people(model)
    assert all(people.has_one_of([name]) for name in PEOPLE) and not people.has_one_of(["w0"])
    document = json.loads(people_path(model).read_text())
    assert len(document["digests"]) == len(PEOPLE)
    inside = model.read_bytes()
    assert not any(text.encode() in inside or bytes.fromhex(text) in inside
                   for text in (document["key"], *document["digests"]))  # fmt: skip
    run("fit", site / "visits.csv", "-o", model, *options, "--quiet", "--force")
    assert json.loads(people_path(model).read_text())["key"] != document["key"]


@pytest.mark.parametrize("more", [(), ("--seed", "3")], ids=["secure", "replayable"])
@pytest.mark.parametrize("kind", FITS)
def test_a_private_fit_writes_none_and_removes_what_was_there(kind, more, site, tmp_path, run):
    model, names = tmp_path / "m.npz", tmp_path / "names.csv"
    counted = kind == "counted"
    names.write_text("\n".join(("state" if counted else "symbol", "alpha", "beta", "gamma", "delta\n")))
    listed = ("--states-file" if counted else "--symbols-file", names)
    run("fit", site / "visits.csv", "-o", model, *FITS[kind], "--quiet")
    assert people_path(model).exists()
    for _ in range(2):
        result = run("fit", site / "visits.csv", "-o", model, *FITS[kind], *listed, *PRIVATE, *more, "--force")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["m.npz", "m.npz.rejected.csv", "names.csv"]
        assert ".people" not in result.output


def test_a_file_of_another_kind_is_not_overwritten(site, tmp_path, run):
    (tmp_path / "m.npz.people").write_text("mine\n")
    told = run("fit", site / "visits.csv", "-o", tmp_path / "m.npz", "--state-column", "state", code=2).stderr
    assert told.startswith("error: people of the model: got m.npz.people")
    assert (tmp_path / "m.npz.people").read_text() == "mine\n" and not (tmp_path / "m.npz").exists()


def test_no_digest_of_a_side_file_is_in_what_a_fit_or_release_says(site, tmp_path, run):
    """64 hex digits are those of the model, policy, space, plans or released file; a model keeps that of its table."""
    import re

    names, answers = tmp_path / "names.csv", tmp_path / "answers.csv"
    names.write_text("state\nalpha\nbeta\ngamma\ndelta\n")
    answers.write_text("state,n\nalpha,1\nbeta,2\ngamma,3\ndelta,5\n")
    side = {file_digest(path) for path in (names, answers)}
    fits = {
        "listed": ("--states-file", names),
        "answered": ("--answers", answers),
        "learned": ("--states-file", names, *PRIVATE),
    }
    for kind, options in fits.items():
        folder = tmp_path / kind
        folder.mkdir()
        model, policy = folder / "model.npz", folder / "policy.json"
        run("fit", site / "visits.csv", "-o", model, "--state-column", "state", *options, "--quiet")
        run("policy", "complete", model, "-o", policy, "--quiet")
        (folder / "rows.csv").write_text("user,state\nw,alpha\n")
        out = ("-o", folder / "r", "--ledger", folder / "l.db")
        run("release", folder / "rows.csv", "--model", model, "--policy", policy, "--epsilon", "1", *out, "--quiet")
        loaded, statement = dphmm.storage.load_model(model), document(load_statement(folder / "r" / "released.csv"))
        hashes = re.compile("[0-9a-f]{64}")
        kept = set(hashes.findall(json.dumps(loaded.provenance)))
        assert kept == (set() if kind == "learned" else {file_digest(site / "visits.csv")})
        known = {
            loaded.digest,
            loaded.space.digest,
            statement["policy"]["sha256"],
            file_digest(folder / "r" / "released.csv"),
        }
        known |= {statement["plans"]["sha256"], *statement["plans"]["hashes"]}
        assert set(hashes.findall(json.dumps(statement))) == known
        assert not side & (known | kept) and not kept & known


def test_statements_of_python_callers_are_unknown_unless_they_say(models):
    from dphmm.release.batch import Batch
    from dphmm.states import Trajectories
    from dphmm.storage.released import FileSums
    from statement.told import statement_of

    fitted = dphmm.storage.load_model(models["not private"] / "model.npz")
    policy = dphmm.storage.load_policy(models["not private"] / "complete.json", model=fitted)
    found = {}
    for replayed, said in itertools.product((False, True), ("others", "same", "unknown", None)):
        batch = Batch(fitted, policy, fitted.space, 1, bits=dphmm.ReplayBits(1) if replayed else None)
        rows = Trajectories.from_labels(["w"], step=np.array([0]), state=np.array(["alpha"], dtype=object))
        published = FileSums(row for chunk in batch.run(rows) for row in chunk)
        parts = {"model": fitted, "policy": policy, "space": fitted.space, "options": batch.setting.options}
        whom = {} if said is None else {"model_people": said}
        statement = statement_of(published, **parts, **whom)
        found[replayed, said] = statement.private
        against = len(set(statement.reasons) & AGAINST.keys())
        assert against == replayed + (said == "same")
        assert len(statement.reasons) - against == (not replayed and said in ("unknown", None))
    assert found == {
        (False, "others"): True, (False, "same"): False, (False, "unknown"): "unknown", (False, None): "unknown",
        (True, "others"): False, (True, "same"): False, (True, "unknown"): False, (True, None): False,
    }  # fmt: skip
