"""Models of dependence: what is refused, in one line that names the field, and what forests are made of."""

from __future__ import annotations

import numpy as np
import pytest

from dphmm import MarkovModel
from dphmm.dependent import Chain, Coefficients, Friendship, JointTable, Star, Tree, sensitivity
from dphmm.errors import InvalidInput

FAIR = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Tree([1, 2, 0], [0.5, 0.5], FAIR), "loop"),
        (lambda: Tree([-1, 7], [0.5, 0.5], FAIR), r"parents\[1\]"),
        (lambda: Tree([-1, 0], [0.5, 0.6], FAIR), "root"),
        (lambda: Tree([-1, 0], [0.2, 0.3, 0.5], FAIR), "rows"),
        (lambda: Star(0, [0.5, 0.5], FAIR), "leaves"),
        (lambda: Coefficients([[1, 1.5], [0, 1]]), r"coefficients\[0, 1\]"),
        (lambda: Coefficients([[1, -0.1], [0, 1]]), r"coefficients\[0, 1\]"),
        (lambda: Coefficients([[1, np.nan], [0, 1]]), r"coefficients\[0, 1\]"),
        (lambda: Coefficients(np.ones((2, 3))), "square"),
        (lambda: Friendship([[0.0], [1.0]], [(0, 5)], 3), "unknown user 5"),
        (lambda: Friendship([[0.0], [1.0]], [(1, 1)], 3), "themselves"),
        (lambda: Friendship([[0.0], [1.0]], [(0, 1)], 2, b=0), "b > 0"),
        (lambda: Friendship([[0.0], [1.0]], [(0, 1), (1, 2), (0, 2)], 3).tree(), "loops"),
        (lambda: JointTable({(0, 1): 0.5, (1, 0): 0.6}), "sum"),
        (lambda: JointTable([[0, 1], [0, 1]], [0.5, 0.5]), "twice"),
        (lambda: JointTable([[0, -1]], [1.0]), "from 0"),
        (lambda: Chain([[0.5, 0.6], [0.5, 0.5]], 3), r"transition\[0\]"),
        (lambda: Chain(FAIR), "length"),
        (lambda: Chain(FAIR, 0), "length"),
        (lambda: Chain(FAIR, 3, start=[0.5, 0.6]), "start"),
        (lambda: Chain([FAIR, FAIR]), "start"),
        (lambda: Chain([FAIR, FAIR], 7, start=[0.5, 0.5]), "length"),
        (lambda: Chain(np.eye(2), 3), "2 closed classes"),
        (lambda: Chain(FAIR, 3, start="somewhere"), "start"),
    ],
)
def test_bad_models_get_one_clear_line(make, told):
    with pytest.raises(InvalidInput, match=told) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_a_chain_of_a_markov_model_starts_where_the_model_starts():
    matrix = np.array([[0.9, 0.1], [0.4, 0.6]])
    before = Chain(MarkovModel([1.0, 0.0], matrix), 3)
    at = Chain(MarkovModel([1.0, 0.0], matrix, start="at"), 3)
    assert before.marginal(0) == pytest.approx([0.9, 0.1]) and at.marginal(0) == pytest.approx([1.0, 0.0])
    assert at.possible(0).tolist() == [True, False] and at.possible(1).all()
    assert Chain(MarkovModel([1.0, 0.0], matrix), 3, start="stationary").marginal(2) == pytest.approx([0.8, 0.2])


def test_values_of_probability_zero_do_not_count():
    """The first tuple is known: nothing can be lost of it, and later ones lose less than from a start at random."""
    from dphmm.dependent import Sum, exact_loss

    known = Chain([[0.9, 0.1], [0.4, 0.6]], 2, start=[1.0, 0.0])
    assert exact_loss(known, Sum([0, 1])).laws[0].shape[0] == 1
    assert exact_loss(known, Sum([0, 1])).at(1.0) == pytest.approx(1.0)


def test_impossible_to_underflow():
    """Marginals too small for floats are not divided: the whole loss passes."""
    model = Chain([[1 - 1e-200, 1e-200, 0], [0, 1 - 1e-200, 1e-200], [0, 0, 1.0]], 3, start=[1.0, 0.0, 0.0])
    kernel = model.kernel(2, 1)
    assert kernel.stand_in and kernel.curve.above(1.0) == 1.0


def test_friends_live_near_each_other():
    metres = np.array([[0.0], [1609.344], [16093.44]])
    law = Friendship(metres, [(0, 1)], 2).kernel_between_friends
    weights = (np.array([0.0, 1.0, 10.0]) + 0.196) ** -1.05
    assert law[0] == pytest.approx(weights / weights.sum())


def test_a_tree_of_friends():
    friends = Friendship([[0.0], [1000.0]], [(2, 0), (1, 2), (3, 4)], 5)
    tree = friends.tree(root=2)
    assert tree.parents == [2, 2, -1, -1, 3] and sorted(map(sorted, tree.trees())) == [[0, 1, 2], [3, 4]]


def test_tuples_in_order_fall_into_runs_of_one_kernel():
    """Every tuple but the first is in one run, with the very kernel that it has by itself."""
    moves = np.array([[0.6, 0.4, 0.0], [0.0, 0.7, 0.3], [0.2, 0.0, 0.8]])
    for start in ("stationary", [1.0, 0.0, 0.0]):
        chain = Chain(moves, 40, start=start)
        for step in (1, -1):
            runs = chain.stretches(step)
            seen = [(i, kernel) for kernel, first, last in runs for i in range(first, last + step, step)]
            assert [i for i, _ in seen] == (list(range(1, 40)) if step > 0 else list(range(38, -1, -1)))
            assert [(i, kernel) for i, kernel in seen if chain.kernel(i, i - step) is not kernel] == []


def test_more_laws_than_memory_holds_are_refused(monkeypatch):
    from dphmm.dependent import _chain

    monkeypatch.setattr(_chain, "LARGEST", 100)
    moves = [[0.5, 0.5], [0.2, 0.8]]
    with pytest.raises(InvalidInput, match="length: got 51 tuples of 2 values"):
        Chain(moves, 51, start=[1.0, 0.0])
    assert Chain(moves, 10**6).n == 10**6


def test_a_model_is_no_matrix_of_coefficients():
    with pytest.raises(InvalidInput, match="coefficients: got Chain"):
        sensitivity(Chain([[0.5, 0.5], [0.2, 0.8]], 3))
