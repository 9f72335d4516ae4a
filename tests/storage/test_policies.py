"""Policies as files: they come back the same, for the same space and model only."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dphmm import policy
from dphmm.errors import InvalidInput
from dphmm.markov import MarkovModel
from dphmm.policy.graph import KINDS
from dphmm.sensitivity import merge_lonely
from dphmm.states.space import StateSpace
from dphmm.storage.policies import load_policy, load_policy_space, load_setting, save_policy

ANSWERS = np.array([(1, 0), (2, 1), (3, 0), (0, 1), (4, 2), (1, 2)])
SPACE = StateSpace(ANSWERS)


def halves(targets):
    matrix = np.zeros((6, 6))
    for i, pair in enumerate(targets):
        matrix[i, list(pair)] = 0.5
    return matrix


MOVES = halves([(1, 3), (2, 4), (0, 1), (1, 4), (3, 5), (4, 5)])
MODEL = MarkovModel(np.full(6, 1 / 6), MOVES, space=SPACE)
OTHER_SPACE = StateSpace(ANSWERS * 2)
OTHER_MODEL = MarkovModel(np.full(6, 1 / 6), MOVES[::-1], space=SPACE)
EXAMPLES = {
    "complete": policy.complete(6),
    "categorical": policy.categorical("abbccc"),
    "radius": policy.radius(SPACE, "2.5", closed=False),
    "knn": policy.knn(SPACE, 2),
    "transition": policy.transition(MODEL),
    "edges": policy.from_edges([(1, 2), (3, 4)], 6),
    "union": policy.radius(SPACE, 2).union(policy.transition(MODEL)).union(policy.from_edges([(0, 5)], 6)),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "policy.json"


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind, path):
    graph = EXAMPLES[kind]
    save_policy(graph, path, space=SPACE, model=MODEL)
    first = path.read_bytes()
    back = load_policy(path, SPACE, MODEL)
    assert back.kind == kind
    assert back.digest == graph.digest
    assert np.array_equal(back.edges(), graph.edges())
    save_policy(back, path, model=MODEL)
    assert path.read_bytes() == first
    assert load_policy(path, model=MODEL).digest == graph.digest
    document = json.loads(first)
    assert document["format"] == 1
    assert document["kind"] == kind
    assert document["space"] == SPACE.digest
    assert document["model"] == (MODEL.digest if kind in ("transition", "union") else None)
    assert [p.name for p in path.parent.iterdir()] == ["policy.json"]


def test_what_can_be_rebuilt_is_not_stored(path):
    side = np.argwhere(np.ones((60, 60)))
    space = StateSpace(side)
    graph = policy.radius(space, 5).union(policy.complete(3600))
    save_policy(graph, path, space)
    assert path.stat().st_size < 2000
    assert load_policy(path, space).digest == graph.digest


@pytest.mark.parametrize("kind", KINDS)
def test_another_space_is_refused_by_hash(kind, path):
    save_policy(EXAMPLES[kind], path, SPACE, MODEL)
    with pytest.raises(InvalidInput) as caught:
        load_policy(path, OTHER_SPACE, MODEL)
    assert SPACE.digest[:16] in str(caught.value)
    assert OTHER_SPACE.digest[:16] in str(caught.value)


@pytest.mark.parametrize("kind", ["transition", "union"])
def test_another_model_is_refused_by_hash(kind, path):
    save_policy(EXAMPLES[kind], path, SPACE, MODEL)
    with pytest.raises(InvalidInput) as caught:
        load_policy(path, SPACE, OTHER_MODEL)
    assert MODEL.digest[:16] in str(caught.value)
    assert OTHER_MODEL.digest[:16] in str(caught.value)
    with pytest.raises(InvalidInput, match="model"):
        load_policy(path, SPACE)


def test_another_model_is_fine_where_none_matters(path):
    save_policy(EXAMPLES["radius"], path, SPACE, MODEL)
    assert load_policy(path, SPACE, OTHER_MODEL).digest == EXAMPLES["radius"].digest
    with pytest.raises(InvalidInput, match="space"):
        load_policy(path)


def test_without_a_space(path):
    save_policy(EXAMPLES["edges"], path)
    assert json.loads(path.read_text())["space"] is None
    assert load_policy(path).digest == EXAMPLES["edges"].digest
    assert load_policy(path, OTHER_SPACE).digest == EXAMPLES["edges"].digest
    with pytest.raises(InvalidInput, match="5 states"):
        load_policy(path, StateSpace(ANSWERS[:5]))


def test_what_could_not_be_loaded_is_not_saved(path):
    for graph, space, model in (
        (EXAMPLES["radius"], None, None),
        (EXAMPLES["radius"], OTHER_SPACE, None),
        (EXAMPLES["transition"], SPACE, None),
        (EXAMPLES["transition"], SPACE, OTHER_MODEL),
        (EXAMPLES["union"], SPACE, None),
        (EXAMPLES["complete"], StateSpace(ANSWERS[:5]), None),
    ):
        with pytest.raises(InvalidInput):
            save_policy(graph, path, space, model)
        assert not path.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 3}, "format 3.*upgrade"),
        ({"format": True}, "format"),
        ({"format": 0}, "format 0"),
        ({"format": "1"}, "format"),
        ({"kind": "secret"}, "one of categorical, complete"),
        ({"parameters": {}}, "n_states"),
        ({"parameters": {"n_states": -1}}, "N: got -1"),
        ({"parameters": {"n_states": 6, "kind": "edges"}}, "kind"),
        ({"parameters": {"n_states": 6, "more": 1}}, "fit"),
        ({"parameters": []}, "format, kind"),
        ({"space": 5}, "hash or null"),
        ({"model": []}, "hash or null"),
        ({"more": 1}, "more"),
        ({"merges": [[0, 1]]}, "merges"),
        ({"format": 2}, "merges"),
        ({"format": 2, "merges": []}, "pairs of a merged state"),
        ({"format": 2, "merges": [[0, 1, 2]]}, "pairs of a merged state"),
        ({"format": 2, "merges": [[True, 0]]}, "pairs of a merged state"),
        ({"format": 2, "merges": {"0": 1}}, "pairs of a merged state"),
        ({"format": 2, "merges": [[0, 1]]}, "load_policy_space"),
    ],
)
def test_damaged_files_are_refused(path, change, message):
    save_policy(EXAMPLES["complete"], path)
    document = json.loads(path.read_text()) | change
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidInput, match=message) as caught:
        load_policy(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 6]], r"edges\[0\]"),
        ([[1, 0]], "fit"),
        ([[0, 1], [0, 1]], "fit"),
        ([[0, 1], [0]], "edges"),
        ([[0.0, 1.0]], "edges"),
        ("all", "edges"),
    ],
)
def test_forged_edges_are_refused(path, edges, message):
    save_policy(EXAMPLES["edges"], path)
    document = json.loads(path.read_text())
    document["parameters"]["edges"] = edges
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidInput, match=message):
        load_policy(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "format": 1}', '{"format": NaN}', "\xff", "[" * 10**5])
def test_files_that_are_no_policy(path, text):
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InvalidInput):
        load_policy(path)


def test_missing_file(path):
    with pytest.raises(InvalidInput, match="existing file"):
        load_policy(path)


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    save_policy(EXAMPLES["complete"], path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        save_policy(EXAMPLES["edges"], path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["policy.json"]


LONELY = StateSpace(np.array([[0, 0], [1, 0], [0, 1], [9, 9]]))


@pytest.mark.parametrize("kind", ["radius", "edges"])
def test_a_policy_with_merged_states_brings_its_space(path, kind):
    graph = policy.radius(LONELY, 1) if kind == "radius" else policy.from_edges([(0, 1), (0, 2)], 4)
    merged = merge_lonely(graph, LONELY)
    save_policy(merged.policy, path, merged.space)
    assert json.loads(path.read_text())["format"] == 2 and json.loads(path.read_text())["merges"] == [[3, 1]]
    model = MarkovModel(np.full(4, 0.25), np.eye(4), space=LONELY)
    space = load_policy_space(path, model.space)
    assert space.digest == merged.space.digest == load_policy_space(path, space).digest
    assert load_policy(path, space, model).digest == merged.policy.digest
    # Without the merges an edge of a merged state would be as long as the way to its partner.
    for wrong in ((path,), (path, LONELY), (path, None, model)):
        with pytest.raises(InvalidInput, match="load_policy_space"):
            load_policy(*wrong)
    with pytest.raises(InvalidInput, match="hash"):
        load_policy_space(path, StateSpace(np.array([[0, 0], [1, 0], [0, 1], [9, 8]])))


def test_a_setting_stands_beside_the_policy_and_is_no_part_of_it(path):
    chosen, setting = policy.complete(6), {"constraint": "delta=0.1", "start": "at"}
    save_policy(chosen, path, SPACE, setting=setting)
    assert load_setting(path) == setting and load_policy(path, SPACE).digest == chosen.digest
    before = path.read_bytes()
    for wrong in ({"constraint": "all"}, {"mechanism": "no.npz"}, {"protection": "none"}):
        with pytest.raises(InvalidInput):
            save_policy(chosen, path, SPACE, setting=wrong)
    assert path.read_bytes() == before
    for wrong in ({"delta": "0.1"}, {"start": 1}, ["start"]):
        path.write_text(json.dumps({**json.loads(before), "setting": wrong}))
        with pytest.raises(InvalidInput, match="setting: got"):
            load_policy(path, SPACE)


def test_a_policy_without_merges_is_written_as_before(path):
    save_policy(policy.radius(LONELY, 1), path, LONELY)
    assert path.read_text().startswith('{"format": 1, "kind": "radius", "model": null, "parameters":')
    assert load_policy_space(path, LONELY) is LONELY
