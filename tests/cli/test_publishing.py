"""fit and query with --ledger: stored before they are shown, the same again is given, counted for everybody.

It could fail where the same command draws twice, where a stored result differs from what is written, where a cap does
not hold over fits, queries and releases, where a refusal leaves a file, or where account leaves one of them out.
"""

from __future__ import annotations

import json
import shutil
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.accounting import MemoryLedger
from dphmm.accounting.publication import total_replaced
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.storage.ledger import open_ledger
from dphmm.storage.ledger.sqlite import SqliteLedger

STATES = "alpha,beta,gamma,delta"
SEQUENCES = [np.array([0, 1, 1]), np.array([1, 0])]


@pytest.fixture
def fit(site, names, tmp_path, run):
    """A private fit into model.npz, stored in ledger.db."""

    def fitted(*more, event_id="walks", out="model.npz", code=0):
        line = ("--state-column", "state", "--states-file", names, "--epsilon", 1, "--max-length", 20)
        ledger = ("--ledger", tmp_path / "ledger.db", "--id", event_id)
        return run("fit", site / "visits.csv", "-o", tmp_path / out, *line, *ledger, *more, code=code)

    return fitted


@pytest.fixture
def ask(site, tmp_path, run):
    """A histogram into counts.csv, stored in ledger.db."""

    def asked(*more, event_id="visits", data=None, out="counts.csv", dependence="group", code=0):
        line = ("--states", STATES, "--epsilon", 1, "--dependence", dependence)
        ledger = ("--ledger", tmp_path / "ledger.db", "--id", event_id)
        data = site / "visits.csv" if data is None else data
        return run("query", "histogram", data, "-o", tmp_path / out, *line, *ledger, *more, code=code)

    return asked


ROWS = ("--max-rows-per-user", 3)


class TestFit:
    def test_the_same_fit_is_drawn_once(self, fit, tmp_path, one_json):
        first = one_json(fit("--json"))["publication"]
        again = fit("--json", out="again.npz")
        assert one_json(again)["publication"] == {**first, "drawn": False}
        assert first["drawn"] and first["name"] == "walks"
        assert "nothing was drawn or spent" in again.stderr
        written = (tmp_path / "model.npz").read_bytes()
        assert written == (tmp_path / "again.npz").read_bytes()
        with open_ledger(tmp_path / "ledger.db", read_only=True) as ledger:
            ledger.check()
            (one,) = ledger.publications()
            assert ledger.published(one.name).result == written
        assert (one.relation, one.units, one.epsilon, one.counts) == ("add-remove", 1, 1, True)

    def test_another_id_is_another_fit_and_other_settings_under_one_are_refused(self, fit, tmp_path):
        fit()
        fit(event_id="mine", out="mine.npz")
        with open_ledger(tmp_path / "ledger.db", read_only=True) as ledger:
            assert [one.name for one in ledger.publications()] == ["walks", "mine"]
        assert (tmp_path / "mine.npz").read_bytes() != (tmp_path / "model.npz").read_bytes()
        refused = fit("--initial", "uniform", event_id="mine", out="no.npz", code=2)
        assert '--id: got "mine" with other settings' in refused.stderr
        assert not (tmp_path / "no.npz").exists()

    def test_a_cap_refuses_and_leaves_nothing(self, fit, ask, tmp_path):
        fit("--cap-epsilon", "2.5")
        refused = ask(*ROWS, code=1)
        assert "would lose 3 of one person, cap 2.5" in refused.stderr
        assert sorted(path.name for path in tmp_path.glob("counts*")) == []
        assert "2.5, the cap of all publications" in fit("--cap-epsilon", "4", event_id="n", out="n.npz", code=2).stderr

    def test_without_privacy_it_is_stored_as_what_promises_nothing(self, site, tmp_path, run, one_json):
        line = ("--state-column", "state", "--ledger", tmp_path / "ledger.db", "--id", "plain")
        run("fit", site / "visits.csv", "-o", tmp_path / "m.npz", *line)
        again = run("fit", site / "visits.csv", "-o", tmp_path / "again.npz", *line, "--json")
        assert one_json(again)["publication"]["drawn"] is False
        told = run("account", tmp_path / "ledger.db").stdout
        assert "fit: promises nothing" in told and "there is no bound, because of" in told
        other = tmp_path / "visits.csv"
        other.write_text((site / "visits.csv").read_text() + "v9,alpha\nv9,beta\n")
        refused = run("fit", other, "-o", tmp_path / "o.npz", *line, code=2)
        assert "TRAJ: got other rows than those of plain" in refused.stderr

    @pytest.mark.slow
    @pytest.mark.parametrize("noise", ["laplace", "gaussian"])
    def test_hidden_models_are_drawn_once(self, site, names, tmp_path, run, noise):
        (tmp_path / "pages.csv").write_text("symbol\nalpha\nbeta\ngamma\ndelta\n")
        line = ["fit", site / "visits.csv", "--states", 2, "--symbols", "state", "--symbols-file"]
        line += [
            tmp_path / "pages.csv",
            "--epsilon",
            1,
            "--max-length",
            10,
            "--ledger",
            tmp_path / "ledger.db",
            "--id",
            "h",
        ]
        if noise == "gaussian":
            line += ["--method", "every-iteration", "--iterations", 2, "--delta", "0.001"]
        run(*line, "-o", tmp_path / "h.npz")
        run(*line, "-o", tmp_path / "again.npz")
        assert (tmp_path / "h.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
        with open_ledger(tmp_path / "ledger.db", read_only=True) as ledger:
            (one,) = ledger.publications()
            assert one.loss == ("rho" if noise == "gaussian" else "epsilon")
            assert ledger.facts() == ({"delta": Fraction(1, 1000)} if noise == "gaussian" else {})

    def test_options_of_a_ledger_need_one(self, site, tmp_path, run):
        line = ("fit", site / "visits.csv", "-o", tmp_path / "m.npz", "--state-column", "state")
        assert "--id: got x; expected --ledger" in run(*line, "--id", "x", code=2).stderr
        assert "--id: got nothing; expected a name" in run(*line, "--ledger", tmp_path / "l.db", code=2).stderr
        assert "another file than the ledger" in run(*line, "--ledger", tmp_path / "m.npz", code=2).stderr
        hidden = ("--states", 2, "--symbols", "state", "--ledger", tmp_path / "l.db", "--id", "h")
        assert "--seed: got nothing" in run(*line[:4], *hidden, code=2).stderr

    def test_interrupted_it_tells_whether_the_result_is_stored(self, fit, tmp_path, monkeypatch):
        commit = SqliteLedger._commit

        def interrupted(self, *args):
            raise KeyboardInterrupt

        def interrupted_after(self, *args):
            commit(self, *args)
            raise KeyboardInterrupt

        monkeypatch.setattr(SqliteLedger, "_commit", interrupted)
        assert "interrupted: the result is not stored" in fit(code=130).stderr
        monkeypatch.setattr(SqliteLedger, "_commit", interrupted_after)
        assert "interrupted: the result is stored and paid for" in fit(code=130).stderr
        monkeypatch.undo()
        assert "nothing was drawn or spent" in fit().stderr

    def test_a_seed_promises_nothing(self, fit, tmp_path):
        fit("--seed", 5)
        with open_ledger(tmp_path / "ledger.db", read_only=True) as ledger:
            assert [one.loss for one in ledger.publications()] == ["none"]


class TestQuery:
    def test_a_stored_answer_names_no_list_of_rows_that_were_not_read(self, ask, tmp_path, one_json):
        told = one_json(ask(*ROWS, "--json"))
        assert told["rejected"] == str(tmp_path / "counts.csv.rejected.csv")
        again = ask(*ROWS, "--json", out="again.csv")
        assert one_json(again)["rejected"] is None and not (tmp_path / "again.csv.rejected.csv").exists()
        assert "for the owner" not in ask(*ROWS, out="third.csv").stdout

    def test_the_same_question_is_answered_once(self, ask, tmp_path, one_json):
        first, again = ask(*ROWS, "--json"), ask(*ROWS, "--json", out="again.csv")
        told = [one_json(result) for result in (first, again)]
        assert [each["publication"]["drawn"] for each in told] == [True, False]
        assert (tmp_path / "counts.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
        statements = [json.loads((tmp_path / f"{name}.csv.privacy.json").read_text()) for name in ("counts", "again")]
        for statement in statements:
            statement["file"] = None
        assert statements[0] == statements[1]
        assert "both are paid for" not in ask(*ROWS, "--force").stderr
        assert "both are paid for" in ask(*ROWS, "--force", event_id="anew").stderr

    def test_what_one_person_loses(self, ask, tmp_path):
        """With group and 3 rows, replacing all of them loses epsilon and adding them half of it."""
        from dphmm.accounting.publication import total_present, total_replaced

        ask(*ROWS)
        ask(dependence="independent", event_id="no", out="no.csv")
        ask("--times", 4, dependence="independent", event_id="t", out="t.csv")
        with open_ledger(tmp_path / "ledger.db", read_only=True) as ledger:
            group, alone, timed = ledger.publications()
        assert (total_replaced([group]).epsilon, total_present([group]).epsilon) == (1, Fraction(1, 2))
        assert not alone.bounded
        assert total_replaced([timed]).epsilon == 4

    def test_a_model_of_nobody_knows_whom_promises_nothing(self, site, tmp_path, run):
        """Its states can show one person's, as the statement says."""
        rows = tmp_path / "rows.csv"
        rows.write_text((site / "visits.csv").read_text() + "v9,alpha\n")
        line = ["query", "histogram", rows, "--states", site / "model.npz", "--epsilon", 1]
        line += ["--dependence", "group:3", "--ledger", tmp_path / "ledger.db"]
        run(*line, "--id", "a", "-o", tmp_path / "a.csv")
        run(*line, "--id", "b", "-o", tmp_path / "b.csv", "--model-people", "others")
        with open_ledger(tmp_path / "ledger.db", read_only=True) as ledger:
            assert [one.loss for one in ledger.publications()] == ["none", "epsilon"]

    @pytest.mark.parametrize(
        ("line", "relation", "epsilon"),
        [
            ("kmeans points.csv --columns x,y --box 0:10,0:10 --start 1,1;9,9 --dependence group:3", "add-remove", 1),
            ("degree edges.csv --people 5 --level node --cap 3 --dependence independent", "replace", 1),
            ("degree edges.csv --people 5 --level edge --cap 3 --dependence independent", "add-remove", None),
            ("svm points.csv --columns x --box 0:9 --label c --classes no,yes --dependence group:9", "replace", 1),
        ],
    )  # fmt: skip
    def test_every_question_is_stored_and_given_again(self, tmp_path, monkeypatch, run, line, relation, epsilon):

        if line.startswith("svm"):
            pytest.importorskip("sklearn")
        monkeypatch.chdir(tmp_path)
        (tmp_path / "points.csv").write_text("user,x,y,c\nann,1,1,no\nann,2,1,no\nbob,9,8,yes\ncid,8,99,yes\n")
        (tmp_path / "edges.csv").write_text("a,b\n0,1\n1,2\n2,1\n1,3\n")
        given = ["query", *line.split(), "--epsilon", "1", "--ledger", "l.db", "--id", "one", "-q"]
        run(*given, "-o", "one.parquet")
        run(*given, "-o", "two.parquet")
        one, two = pd.read_parquet("one.parquet"), pd.read_parquet("two.parquet")
        assert one.equals(two)
        with open_ledger("l.db", read_only=True) as ledger:
            (stored,) = ledger.publications()
        assert stored.relation == relation
        assert total_replaced([stored]).epsilon == (float("inf") if epsilon is None else epsilon)


class TestOtherData:
    """Under a known id the stored result is given; that the data changed is said to their owner alone."""

    def told(self, tmp_path, event_id):
        return json.loads((tmp_path / "ledger.db.owner/publications.json").read_text())["publications"][event_id][
            "data"
        ]

    def test_a_query_gives_the_stored_counts_and_no_word_more(self, ask, site, tmp_path):
        data, lines = tmp_path / "visits.csv", (site / "visits.csv").read_text()
        data.write_text(lines)
        ask(*ROWS, data=data)
        assert self.told(tmp_path, "visits") == "those of the stored result"
        same = ask(*ROWS, "--force", data=data, out="again.csv")
        assert self.told(tmp_path, "visits") == "those of the stored result"
        first, again = (tmp_path / "counts.csv").read_bytes(), (tmp_path / "again.csv").read_bytes()
        data.write_text(lines + "v9,alpha\n" * 50)
        changed = ask(*ROWS, "--force", data=data, out="again.csv")
        assert (changed.stdout, changed.stderr) == (same.stdout, same.stderr)
        assert (tmp_path / "again.csv").read_bytes() == again == first
        assert self.told(tmp_path, "visits") == "changed since the result was stored"
        with open_ledger(tmp_path / "ledger.db", read_only=True) as ledger:
            assert len(ledger.publications()) == 1

    def test_the_name_of_the_file_and_its_format_say_nothing(self, ask, site, tmp_path):
        ask(*ROWS)
        pd.read_csv(site / "visits.csv").to_parquet(tmp_path / "export.parquet")
        ask(*ROWS, data=tmp_path / "export.parquet", out="again.csv")
        assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "counts.csv").read_bytes()
        assert self.told(tmp_path, "visits") == "those of the stored result"

    def test_after_a_lost_key_nothing_is_known(self, ask, tmp_path):
        ask(*ROWS)
        (tmp_path / "ledger.db.owner/key").unlink()
        ask(*ROWS, out="again.csv")
        assert self.told(tmp_path, "visits") == "not known"

    def test_a_private_fit_gives_the_stored_model(self, fit, site, tmp_path, run, names):
        fit()
        other = tmp_path / "visits.csv"
        other.write_text((site / "visits.csv").read_text() + "v9,alpha\nv9,beta\n")
        line = ("--state-column", "state", "--states-file", names, "--epsilon", 1, "--max-length", 20)
        told = run("fit", other, "-o", tmp_path / "n.npz", *line, "--ledger", tmp_path / "ledger.db", "--id", "walks")
        assert (tmp_path / "n.npz").read_bytes() == (tmp_path / "model.npz").read_bytes()
        assert "changed" not in told.stdout + told.stderr
        assert self.told(tmp_path, "walks") == "changed since the result was stored"

    def test_in_python_too(self, tmp_path):
        rows = pd.DataFrame({"user": ["ann", "bob"], "step": [1, 1], "state": ["home", "work"]})
        given = {"states": ["home", "work"], "event_id": "visits"}
        with open_ledger(tmp_path / "ledger.db") as ledger:
            first = dphmm.query("histogram", rows, "group:2", 1, ledger=ledger, **given)
            again = dphmm.query("histogram", rows[:1], "group:2", 1, ledger=ledger, **given)
            assert again.table.equals(first.table)
            with pytest.raises(InvalidInput, match="event_id: got nothing"):
                dphmm.query("histogram", rows, "group:2", 1, ledger=ledger, states=["home", "work"])
        assert self.told(tmp_path, "visits") == "changed since the result was stored"


class TestAccount:
    def test_one_account(self, fit, ask, site, tmp_path, run, one_json, release_of):
        fit()
        ask(*ROWS)
        rows = release_of(site, tmp_path, "visits.csv", "complete.json")
        run(*rows)
        told = one_json(run("account", tmp_path / "ledger.db", "--subject", "v0", "--json"))
        (subject,) = told["subjects"]
        assert subject["epsilon"]["exact"] == "15"
        assert subject["with_publications"]["replaced"]["exact"] == "18"
        assert subject["with_publications"]["present"]["exact"] == "3/2"
        assert told["anybody"]["replaced"]["exact"] == "3"
        assert [each["kind"] for each in told["publications"]] == ["fit", "query"]
        text = run("account", tmp_path / "ledger.db").stdout
        assert "2 publications about all persons:" in text
        assert "v0            18; 1.5" in text and "anybody else  3; 1.5" in text
        assert "releases have no such promise" in text

    def test_releases_are_held_to_a_cap_that_publications_share(self, fit, site, tmp_path, run, release_of):
        fit()
        line = release_of(site, tmp_path, "visits.csv", "complete.json")
        refused = run(*line, "--cap-epsilon", 16, code=1).stderr
        assert 'epsilon: step 15 of query "state" for subject "v0" requested 1; spent 16, remaining 0' in refused
        (tmp_path / "ledger.db").unlink()
        shutil.rmtree(tmp_path / "released.owner")
        run(*line, "--cap-epsilon", 16)
        assert "over its cap" in fit(event_id="m2", out="m2.npz", code=1).stderr
        assert not (tmp_path / "m2.npz").exists()

    def test_a_delta_of_ones_own(self, fit, tmp_path, run, one_json):
        fit()
        assert one_json(run("account", tmp_path / "ledger.db", "--delta", "1e-9", "--json"))["delta"] == "1/1000000000"
        assert "--delta" in run("account", tmp_path / "ledger.db", "--delta", "2", code=2).stderr


class TestPython:
    def model(self, ledger, name="walks", epsilon=1, settings=None):
        def fit(admit):
            return dphmm.MarkovModel.fit_private(SEQUENCES, 2, epsilon, 3, owners=["ann", "bob"], admit=admit)

        return dphmm.storage.fit_once(ledger, name, fit, settings)

    def test_a_fit_is_drawn_once(self):
        ledger = MemoryLedger()
        first, again, other = self.model(ledger), self.model(ledger), self.model(ledger, "other")
        assert np.array_equal(first.transition.toarray(), again.transition.toarray())
        assert not np.array_equal(first.transition.toarray(), other.transition.toarray())
        with pytest.raises(InvalidInput, match="another epsilon"):
            self.model(ledger, epsilon=2)
        with pytest.raises(InvalidInput, match="other settings"):
            self.model(ledger, settings={"month": "May"})
        assert len(ledger.publications()) == 2

    def test_no_word_is_drawn_before_it_is_admitted_nor_for_what_is_stored(self, monkeypatch):
        ledger = MemoryLedger()
        with ledger.transaction() as transaction:
            transaction.bind_publications(Fraction(2))
        first = self.model(ledger)
        drawn = []
        monkeypatch.setattr("dphmm.markov.private.planned.release", lambda *given: drawn.append(given))
        assert np.array_equal(self.model(ledger).initial, first.initial)
        with pytest.raises(BudgetExceeded):
            self.model(ledger, "more")
        assert drawn == []

    def test_a_fit_that_admits_nothing_is_not_stored(self):
        ledger = MemoryLedger()
        with pytest.raises(InvalidInput, match="event_id: got 0 admissions"):
            dphmm.storage.fit_once(ledger, "x", lambda admit: dphmm.MarkovModel([1.0, 0.0], np.eye(2)))
        assert ledger.publications() == []

    def test_without_owners_nobody_knows_how_many_sequences_one_person_has(self):
        ledger = MemoryLedger()
        fit = lambda admit: dphmm.MarkovModel.fit_private(SEQUENCES, 2, 1, 3, admit=admit)  # noqa: E731
        dphmm.storage.fit_once(ledger, "walks", fit)
        (one,) = ledger.publications()
        assert (one.unit, one.units, one.bounded) == ("one sequence", None, False)
