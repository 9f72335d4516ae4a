"""dphmm fit --states K --symbols COL: hidden Markov models from the command line, plain and private.

Could fail: symbols taken from the data of a private fit, an option that no method heeds passed over in silence, the
paper's last-iteration experiment recorded as private, a nominal epsilon told instead of the true one.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import dphmm
from dphmm.accounting.event import LearningEvent, NotPrivateEvent

HIDDEN = ("--states", "2", "--symbols", "state")


@pytest.fixture
def private(tmp_path):
    (tmp_path / "symbols.csv").write_text("symbol\nalpha\nbeta\ngamma\ndelta\nunseen\n")
    return (*HIDDEN, "--symbols-file", tmp_path / "symbols.csv", "--epsilon", "1", "--max-length", "15")


def test_a_plain_model_is_the_librarys_and_says_that_it_is_not_private(site, tmp_path, run, one_json):
    fit = ("fit", site / "visits.csv", "-o", tmp_path / "h.npz", *HIDDEN, "--starts", "2", "--iterations", "7")
    result = run(*fit, "--seed", "3", "--json")
    counted = one_json(result)
    assert counted["private"] is False and "without privacy" in result.stderr
    assert (counted["rows"], counted["users"], counted["sequences"], counted["symbols"]) == (90, 6, 6, 4)
    loaded = dphmm.storage.load_hidden_model(tmp_path / "h.npz")
    assert loaded.symbols_ == ("alpha", "beta", "delta", "gamma")
    assert isinstance(loaded.privacy_, NotPrivateEvent)
    assert loaded.provenance_["source"] == "visits.csv"
    rows = [line.split(",") for line in (site / "visits.csv").read_text().split()[1:]]
    X = np.array([loaded.symbols_.index(name) for _, name in rows])
    own = dphmm.markov.CategoricalHMM(2, n_features=4, n_starts=2, n_iter=7, random_state=3).fit(X, [15] * 6)
    np.testing.assert_array_equal(own.emissionprob_, loaded.emissionprob_)
    assert counted["log_likelihood"] == own.monitor_.history[-1]
    first = (tmp_path / "h.npz").read_bytes()
    run(*fit, "--seed", "3", "--force", "-q")
    assert (tmp_path / "h.npz").read_bytes() == first


def test_rows_that_cannot_be_read_are_counted_and_exit_3(site, tmp_path, run, one_json):
    (tmp_path / "x.csv").write_text((site / "visits.csv").read_text() + "v0,\a\n")
    result = run("fit", tmp_path / "x.csv", "-o", tmp_path / "h.npz", *HIDDEN, "--iterations", "2", "--json", code=3)
    assert one_json(result)["rejected"] == {"missing_state": 1}


def test_the_share_of_symbols_that_are_not_listed_is_told(site, tmp_path, run, one_json):
    lines = (site / "visits.csv").read_text().split()[1:]
    others = sum(line.endswith(",delta") for line in lines)
    (tmp_path / "symbols.csv").write_text("symbol\nalpha\nbeta\ngamma\n")
    fit = ("fit", site / "visits.csv", "-o", tmp_path / "h.npz", *HIDDEN, "--iterations", "2")
    counted = one_json(run(*fit, "--symbols-file", tmp_path / "symbols.csv", "--json"))
    assert 0 < others < len(lines) and counted["share_outside"] == others / len(lines)


def test_a_private_model_has_the_public_symbols_and_its_event(site, tmp_path, run, one_json, private):
    result = run("fit", site / "visits.csv", "-o", tmp_path / "h.npz", *private, "--json")
    document = one_json(result)
    loaded = dphmm.storage.load_hidden_model(tmp_path / "h.npz")
    assert loaded.symbols_ == ("alpha", "beta", "gamma", "delta", "unseen")
    assert isinstance(loaded.privacy_, LearningEvent) and loaded.privacy_.secure
    assert loaded.privacy_.epsilon == 1 and loaded.privacy_.max_length == 15
    assert document["private"] is True and document["learning"]["epsilon"] == "1"
    assert "adding or removing all sequences of one person" in result.stderr
    assert "source_sha256" not in loaded.provenance_
    # Five symbols and two hidden states: words of two, of which a record of 15 steps has 14.
    published = [{"name": "2-grams", "noise": "laplace", "sensitivity": "14", "scale": "14"}]
    assert (document["order"], document["starts"], document["published"]) == (2, 10, published)
    account = run("account", "--model", tmp_path / "h.npz").stdout
    for said in (result.stderr, account):
        lines = [line.split(maxsplit=1) for line in said.splitlines()]
        assert ["published", "2-grams: laplace noise, L1 sensitivity 14, scale 14"] in lines
        assert ["order", "2"] in lines and ["starts", "10"] in lines
    model = one_json(run("account", "--model", tmp_path / "h.npz", "--json"))["model"]
    assert model["published"] == published and model["choices"] == {"order": 2, "starts": 10}
    assert "epsilon 1, delta 0" in account


def test_the_size_is_refused_before_a_row_is_read(tmp_path, run):
    """A table that would be refused itself is not looked at."""
    (tmp_path / "x.csv").write_text("no,columns\n")
    result = run("fit", tmp_path / "x.csv", "-o", tmp_path / "h.npz", "--states", "100000", "--symbols", "page", code=2)
    assert "--states: got 100000; expected at most 11585: " in result.stderr


def test_emissions_have_a_limit_too(site, tmp_path, run, private, monkeypatch):
    from dphmm.cli import fit_hidden

    monkeypatch.setattr(fit_hidden, "MOST_NUMBERS", 9)
    result = run("fit", site / "visits.csv", "-o", tmp_path / "h.npz", *private, code=2)
    assert "--states: got 2; expected at most 1 for 5 symbols" in result.stderr
    monkeypatch.setattr(fit_hidden, "MOST_NUMBERS", 10)
    run("fit", site / "visits.csv", "-o", tmp_path / "h.npz", *private)


def test_parts_with_equal_noise_are_one_line(site, tmp_path, run, private):
    every = ("--method", "paper-every-iteration", "--iterations", "3")
    said = run("fit", site / "visits.csv", "-o", tmp_path / "h.npz", *private, *every).stderr
    lines = [line for line in said.splitlines() if line.startswith("published")]
    assert len(lines) == 2 and all("3 parts, each: laplace noise" in line for line in lines)


def test_every_iteration_with_gaussian_noise(site, tmp_path, run, private):
    gaussian = ("--method", "every-iteration", "--delta", "1e-6", "--iterations", "3")
    run("fit", site / "visits.csv", "-o", tmp_path / "h.npz", *private, *gaussian)
    event = dphmm.storage.load_hidden_model(tmp_path / "h.npz").privacy_
    assert len(event.parts) == 3 and not event.pure
    assert event.epsilon <= 1 and float(event.delta) == 1e-6


def test_the_papers_methods_are_told_by_what_they_really_lose(site, tmp_path, run, one_json, private):
    every = ("--method", "paper-every-iteration", "--iterations", "2", "--json")
    result = run("fit", site / "visits.csv", "-o", tmp_path / "e.npz", *private, *every)
    assert one_json(result)["learning"]["epsilon"] == "29/15"
    assert "loses more" in result.stderr
    last = ("--method", "paper-last-iteration-not-private", "--iterations", "2", "--json", "-q")
    result = run("fit", site / "visits.csv", "-o", tmp_path / "l.npz", *private, *last)
    document = one_json(result)
    assert document["private"] is False and document["learning"] is None
    assert "NOT PRIVATE" in result.stderr and "NOT PRIVATE" in document["not_private_because"]
    assert "has no noise" not in document["left_out"] and document["left_out"].startswith("rows that cannot be read")
    aloud = run("fit", site / "visits.csv", "-o", tmp_path / "l.npz", *private, *last[:4], "--force")
    assert "how many is not told" not in aloud.stderr
    loaded = dphmm.storage.load_hidden_model(tmp_path / "l.npz")
    assert isinstance(loaded.privacy_, NotPrivateEvent) and loaded.provenance_["private"] is False
    assert "NO PRIVACY" in run("account", "--model", tmp_path / "l.npz").stdout


def test_no_row_is_data_too(tmp_path, run, private):
    (tmp_path / "x.csv").write_text("user,state\n")
    for options in (("--order", "2"), ("--method", "every-iteration")):
        run("fit", tmp_path / "x.csv", "-o", tmp_path / "h.npz", *private, *options, "--force")
        assert dphmm.storage.load_hidden_model(tmp_path / "h.npz").emissionprob_.shape == (2, 5)


@pytest.mark.parametrize("choice", [("--order", "2"), ("--method", "every-iteration")])
def test_all_that_is_said_and_described_is_the_same_for_any_data(site, tmp_path, run, private, choice):
    """Of a choice that leaves the number of states alone; else it follows from the noisy histogram."""
    found = set()
    for table in ((site / "visits.csv").read_text(), "user,state\n", "user,state\nx,alpha\nx,\nx,nowhere\nx,beta\n"):
        (tmp_path / "x.csv").write_text(table)
        options = (*private, *choice, "--json", "--force")
        fit = run("fit", tmp_path / "x.csv", "-o", tmp_path / "h.npz", *options)
        loaded = dphmm.storage.load_hidden_model(tmp_path / "h.npz")
        found.add((fit.stdout, fit.stderr, json.dumps(loaded.provenance_), loaded.symbols_))
    assert len(found) == 1


def test_a_seed_repeats_a_private_fit_and_is_loud(site, tmp_path, run, private):
    found = []
    for name in ("a.npz", "b.npz"):
        result = run("fit", site / "visits.csv", "-o", tmp_path / name, *private, "--seed", "8", "-q")
        assert "NOT PRIVATE" in result.stderr
        found.append((tmp_path / name).read_bytes())
    assert found[0] == found[1]
    assert dphmm.storage.load_hidden_model(tmp_path / "a.npz").provenance_["private"] is False


def test_canaries(tmp_path, run, private):
    rows = [f"CANARY_user{k},{'CANARY_symbol' if k % 3 else 'alpha'}\nCANARY_user{k},beta" for k in range(357)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.csv").write_text("user,state\n" + "\n".join([*rows, ",alpha"]) + "\n")
    methods = ("ngrams", "every-iteration", "paper-every-iteration", "paper-last-iteration-not-private")
    for method in methods:
        for extra in ((), ("--json",)):
            options = (*private, "--method", method, "--force", *extra)
            options += () if method == "ngrams" else ("--iterations", "2")
            result = run("fit", tmp_path / "in" / "x.csv", "-o", tmp_path / "h.npz", *options)
            said = (
                result.stdout
                + result.stderr
                + json.dumps(dphmm.storage.load_hidden_model(tmp_path / "h.npz").provenance_)
            )
            assert "CANARY" not in said and b"CANARY" not in (tmp_path / "h.npz").read_bytes()
            # The folder's name has numbers of its own.
            counted = said.replace(str(tmp_path), "")
            assert [count for count in ("357", "714", "238", "119") if count in counted] == []


REFUSED = (
    (("--states", "2"), "--symbols: got nothing"),
    (("--symbols", "state"), "--symbols: got state; expected --states K with it"),
    ((*HIDDEN, "--grid", "1km"), "--grid: got 1km; expected none with --states"),
    ((*HIDDEN, "--method", "ngrams"), "--method: got ngrams; expected --epsilon with it"),
    ((*HIDDEN, "--epsilon", "1", "--max-length", "9"), "--symbols-file: got nothing"),
    (("--states", "0", "--symbols", "state"), "--states: got 0"),
    (("--states", "11586", "--symbols", "state"), "--states: got 11586; expected at most 11585"),
    (("--states", "2", "--symbols", "page"), "--symbols: got page; expected one of user, state"),
    ((*HIDDEN, "--starts", "0"), "--starts: got 0"),
    ((*HIDDEN, "--iterations", "0"), "--iterations: got 0"),
    ((*HIDDEN, "--seed", "-1"), "--seed: got -1"),
)
PRIVATE_REFUSED = (
    (("--delta", "1e-6"), "--delta: got 1e-6; expected none: Gaussian noise is for --method every-iteration"),
    (("--method", "every-iteration", "--starts", "3"), "--starts: got 3"),
    (("--method", "every-iteration", "--order", "2"), "--order: got 2; expected none"),
    (("--order", "40"), "--order: got 40"),
    (("--moves", "all"), "--moves: got all; expected none with --states"),
)


@pytest.mark.parametrize(
    ("alone", "options", "said"),
    [*((True, *row) for row in REFUSED), *((False, *row) for row in PRIVATE_REFUSED)],
    ids=[said for _, said in (*REFUSED, *PRIVATE_REFUSED)],
)
def test_refusals_are_one_line(site, tmp_path, run, private, alone, options, said):
    given = options if alone else (*private, *options)
    result = run("fit", site / "visits.csv", "-o", tmp_path / "h.npz", *given, code=2)
    assert said in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "h.npz").exists()


KNOWN = ("--state-column", "place", "--symbols", "seen")
ROWS = """user,place,seen
ann,home,tea
ann,work,tea
ann,work,
ann,,coffee
ann,home,coffee
bob,work,milk
bob,pub,tea
bob,work,tea
cid,work,tea
"""


def test_known_states_are_counted(tmp_path, run, one_json):
    """A row counts where both names do; one that lacks a name is left out, and cuts."""
    (tmp_path / "x.csv").write_text(ROWS)
    counted = one_json(run("fit", tmp_path / "x.csv", "-o", tmp_path / "h.npz", *KNOWN, "--json", code=3))
    assert (counted["states"], counted["symbols"], counted["rejected"]) == (3, 3, {"missing_state": 2})
    assert "log_likelihood" not in counted
    loaded = dphmm.storage.load_hidden_model(tmp_path / "h.npz")
    assert loaded.provenance_["states"] == ["home", "pub", "work"] and loaded.symbols_ == ("coffee", "milk", "tea")
    own = dphmm.markov.CategoricalHMM(3, n_features=3)
    own.fit([[2, 2], [0], [1, 2, 2], [2]], states=[[0, 2], [0], [2, 1, 2], [2]])
    for name in ("startprob_", "transmat_", "emissionprob_"):
        np.testing.assert_array_equal(getattr(own, name), getattr(loaded, name))


def test_known_states_with_privacy(tmp_path, run, one_json):
    """The library's fit to the same sequences; a row of a name that is not listed is left out, and cuts."""
    (tmp_path / "x.csv").write_text(ROWS)
    (tmp_path / "states.csv").write_text("state\nwork\nhome\n")
    (tmp_path / "symbols.csv").write_text("symbol\ntea\ncoffee\nmilk\n")
    public = ("--states-file", tmp_path / "states.csv", "--symbols-file", tmp_path / "symbols.csv")
    caps = ("--epsilon", "2", "--max-length", "2", "--max-sequences", "2", "--seed", "4", "--json")
    document = one_json(run("fit", tmp_path / "x.csv", "-o", tmp_path / "h.npz", *KNOWN, *public, *caps))
    published = {"name": "counts of known states", "noise": "laplace", "sensitivity": "8", "scale": "4"}
    assert document["published"] == [published] and (document["states"], document["symbols"]) == (2, 3)
    loaded = dphmm.storage.load_hidden_model(tmp_path / "h.npz")
    own = dphmm.markov.CategoricalHMM(2, n_features=3, random_state=4)
    own.fit_private(
        [[0, 0], [1], [2], [0], [0]], states=[[1, 0], [1], [0], [0], [0]], owners=["ann", "ann", "bob", "bob", "cid"],
        epsilon=2, max_length=2, max_sequences=2, bits=dphmm.ReplayBits(4),
    )  # fmt: skip
    for name in ("startprob_", "transmat_", "emissionprob_"):
        np.testing.assert_array_equal(getattr(own, name), getattr(loaded, name))
    dry = run("fit", tmp_path / "x.csv", *KNOWN, *public, *caps, "--dry-run", "--about", "50").stdout
    assert json.loads(dry)["dry_run"] is True
    for options, said in (
        ((*KNOWN, *public[2:], *caps), "--states-file: got nothing; expected a table of the names"),
        ((*KNOWN, *public, "--order", "2", *caps), "--order: got 2; expected none with --state-column"),
        (("--state-column", "no", "--symbols", "seen"), "got no such column; expected one of user, place, seen"),
    ):
        assert said in run("fit", tmp_path / "x.csv", "-o", tmp_path / "n.npz", *options, code=2).stderr


def test_a_hidden_model_is_not_released_with(site, tmp_path, run, release_of):
    run("fit", site / "visits.csv", "-o", tmp_path / "model.npz", *HIDDEN, "--iterations", "2", "-q")
    for name in ("visits.csv", "complete.json"):
        (tmp_path / name).write_bytes((site / name).read_bytes())
    result = run(*release_of(tmp_path, tmp_path, "visits.csv", "complete.json"), code=2)
    assert "got a hidden Markov model; expected a Markov model" in result.stderr
