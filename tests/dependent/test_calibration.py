"""Noise scales side by side: the comparison table for binary chains, and which claims are proved.

Every figure is of an independently written prototype, so a wrong recursion or fixed point shows as
another number. A claim that fails must be labelled: the check would fail if anything but a theorem, the
recursion or an exact computation counted as a proof.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dependent_models import CHAINS, binary, rare_star, simplex, xor
from dphmm.dependent import AnyQuery, Chain, Coefficients, Friendship, JointTable, Sum, calibrate, compare
from dphmm.errors import InvalidInput, Refused

COUNT = Sum([0, 1])
#: ε = 1, 100 tuples: independent, dpm and markov with true ε; optimum. Scales.
TABLE = {
    ".4": ((1, 2.05), (2.315, 0.977), (2.257, 1), 2.257),
    ".8": ((1, 4.50), (8.994, 0.964), (8.640, 1), 8.640),
    ".9": ((1, 5.98), (18.90, 0.964), (18.18, 1), 18.18),
    ".98": ((1, 9.27), (62.95, 0.989), (62.24, 1), 62.24),
    ".01/.1": ((1, 8.965), (17.33, 1.209), (20.35, 1), 20.35),
    ".05/.5": ((1, 3.74), (2.80, 1.125), (3.10, 1), 3.10),
    ".001/.1": ((1, 13.6), (18.95, 1.288), (23.15, 1), 23.15),
}


def digits(printed):
    """Half a unit of the last printed digit, and a little."""
    text = repr(printed)
    places = len(text.split(".")[1]) if "." in text else 0
    return 0.51 * 10.0**-places


def agrees(found, printed):
    return abs(float(found) - printed) <= digits(printed)


@pytest.fixture(scope="module", params=CHAINS)
def table(request):
    return request.param, compare(binary(*CHAINS[request.param], 100), COUNT, 1)


@pytest.mark.slow
def test_scales_and_true_losses_of_the_table(table):
    name, found = table
    alone, dpm, markov, optimum = TABLE[name]
    assert agrees(found["independent"].scale, alone[0]) and agrees(found["independent"].true_epsilon, alone[1])
    assert agrees(found["dpm"].scale, dpm[0]) and agrees(found["dpm"].true_epsilon, dpm[1])
    assert agrees(found["markov"].scale, markov[0]) and found["markov"].true_epsilon == pytest.approx(1, abs=1e-6)
    assert agrees(found["optimum"].scale, optimum)
    assert found["group"].scale == 100


def test_what_is_proved_of_the_table(table):
    name, found = table
    symmetric = "/" not in name
    proved = {row.mechanism for row in found if row.proved}
    assert {"markov", "group", "optimum"} <= proved
    assert ("dpm" in proved) == symmetric
    assert "independent" not in proved
    if not symmetric:
        assert found["dpm"].why.startswith("violated")
        with pytest.raises(Refused, match="not 1-DDP"):
            found["dpm"].claim()
    else:
        assert found["dpm"].claim() == 1


def test_nothing_proved_loses_more_than_it_claims(table):
    """The check can fail: it does for "independent" in every chain."""
    _, found = table
    assert all(row.true_epsilon <= 1 + 1e-9 for row in found if row.proved)
    assert found["independent"].true_epsilon > 2


def test_the_mechanism_of_the_paper_grows_without_limit_with_the_length():
    losses = [calibrate(binary(1e-6, 0.1, n), COUNT, 3, "dpm").true_epsilon for n in (100, 200, 400)]
    assert losses == pytest.approx([6.95, 11.67, 19.8], abs=0.05)


def test_a_ring_of_three_states():
    ring = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    found = compare(Chain(ring, 60), Sum([0, 1, 2]), 1)
    scales = {row.mechanism: float(row.scale) for row in found}
    assert scales["dpm"] == pytest.approx(24.5, abs=0.05) and scales["markov"] == pytest.approx(25.5, abs=0.05)
    assert scales["optimum"] == pytest.approx(24.0, abs=0.05)
    assert found["dpm"].true_epsilon == pytest.approx(0.981, abs=5e-4)
    assert found["markov"].true_epsilon == pytest.approx(0.942, abs=5e-4)
    # Below the recursion's scale, so proved by computation only: without it, by nothing.
    assert found["dpm"].why.startswith("exact computation")
    assert not calibrate(Chain(ring, 60), Sum([0, 1, 2]), 1, "dpm", exact=False).proved


@pytest.mark.parametrize("epsilon", [1, 5])
def test_exclusive_or(epsilon):
    found = compare(xor(), COUNT, epsilon)
    assert found["dpm"].scale == pytest.approx(1 / epsilon)
    assert found["dpm"].true_epsilon == pytest.approx(epsilon + math.log(math.cosh(epsilon)), abs=1e-9)
    assert not found["dpm"].proved and found["group"].proved


@pytest.mark.parametrize(("k", "loss"), [(3, 2.67), (5, 13.2), (7, 59.8)])
def test_pairwise_independent_bits(k, loss):
    found = calibrate(simplex(k), COUNT, 1, "dpm")
    assert found.true_epsilon == pytest.approx(math.log(2.0 ** (1 - k) * math.exp(2 ** (k - 1)) + 1 - 2.0 ** (1 - k)))
    assert agrees(found.true_epsilon, loss) and not found.proved


@pytest.mark.parametrize(("leaves", "loss"), [(2, 5.28), (3, 5.51), (5, 5.87)])
def test_leaves_of_a_star(leaves, loss):
    found = compare(rare_star(leaves), COUNT, 5)
    assert agrees(found["dpm"].true_epsilon, loss) and not found["dpm"].proved
    assert found["markov"].proved and found["markov"].true_epsilon <= 5


def test_two_tuples_are_proved():
    pair = JointTable({(x, y): 0.475 if x == y else 0.025 for x in (0, 1) for y in (0, 1)})
    found = calibrate(pair, COUNT, 5, "dpm", exact=False)
    assert found.proved and "two tuples" in found.why
    assert calibrate(pair, COUNT, 5, "dpm").true_epsilon == pytest.approx(5, abs=1e-6)


def test_signs_are_ignored_by_coefficients():
    found = compare(binary(0.9, 0.9, 100), COUNT, 1, ("dpm", "optimum"))
    assert agrees(found["dpm"].scale, 8.99)
    assert float(found["optimum"].scale) == pytest.approx(0.563, abs=1e-3)


def test_symmetric_chains_with_another_start():
    """From the uniform start none is violated; from others some are."""
    worst = 0.0
    rng = np.random.default_rng(0)
    for _ in range(40):
        change, start = rng.uniform(0.02, 0.45), rng.uniform(0.001, 0.3)
        found = calibrate(binary(change, change, 8, [1 - start, start]), COUNT, 0.5, "dpm")
        worst = max(worst, found.true_epsilon)
        assert found.proved == (found.true_epsilon <= 0.5)
        uniform = calibrate(binary(change, change, 8), COUNT, 0.5, "dpm")
        assert uniform.proved and uniform.why.startswith("the recursion")
    assert 0.5 < worst < 0.52


def test_independent_tuples_need_no_more_noise():
    model = Chain([[0.3, 0.7], [0.3, 0.7]], 50)
    found = compare(model, COUNT, 1)
    assert found["markov"].scale == found["independent"].scale == 1
    assert found["independent"].proved and found["dpm"].proved
    assert found["independent"].true_epsilon <= 1 + 1e-12


def test_a_chain_that_never_moves_is_one_group():
    found = compare(Chain(np.eye(2), 30, start=[0.5, 0.5]), COUNT, 1, ("markov", "group"))
    assert found["group"].scale == 30
    assert 30 <= found["markov"].scale <= 30 * (1 + Fraction(1, 500))


def test_unequal_sensitivities():
    """One tuple counts three times as much: the recursion takes it as it is, not all as the worst."""
    values = [np.array([0, 3])] + [np.array([0, 1])] * 9
    found = compare(binary(0.2, 0.3, 10), Sum(values), 1)
    assert found["markov"].true_epsilon <= 1
    assert found["markov"].scale < calibrate(binary(0.2, 0.3, 10), AnyQuery(3), 1).scale
    assert found["group"].scale == 12


def test_coefficients_that_somebody_supplies():
    given = np.array([[1, 0.5, 0], [0.25, 1, 0], [0, 0, 1.0]])
    found = compare(Coefficients(given), AnyQuery(1), 1)
    assert float(found["dpm"].scale) == pytest.approx(1.5) and not found["dpm"].proved
    assert found["group"].scale == 3
    assert compare(Coefficients(given, parts_independent=True), AnyQuery(1), 1)["group"].scale == 2
    assert float(calibrate(Coefficients(given).scaled(0.8), AnyQuery(1), 1, "dpm").scale) == pytest.approx(1.4)
    assert float(calibrate(Coefficients(given).scaled(1.5), AnyQuery(1), 1, "dpm").scale) == pytest.approx(1.75)
    with pytest.raises(InvalidInput, match=r"coefficients\[0, 1\]"):
        Coefficients(given).scaled(3)


def test_friends_of_one_person():
    places = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2) * 1609.344
    star = Friendship(places, [(0, i) for i in range(1, 7)], 7)
    loop = Friendship(places, [(0, 1), (1, 2), (0, 2)], 3)
    found = calibrate(star, AnyQuery(1), 1, "dpm")
    assert 1 < float(found.scale) < 7 and not found.proved
    assert calibrate(star.tree(), AnyQuery(1), 1, "markov").proved
    assert calibrate(loop, AnyQuery(1), 1).mechanism == "group"
    with pytest.raises(InvalidInput, match="markov"):
        calibrate(loop, AnyQuery(1), 1, "markov")


def test_the_table_is_a_table():
    frame = compare(binary(0.2, 0.3, 5), AnyQuery(2), 1).to_pandas()
    assert list(frame.columns) == ["mechanism", "scale", "per_record", "true_epsilon", "bound", "proved", "why"]
    assert len(frame) == 5 and frame.true_epsilon.isna().all()
    missing = frame[frame.scale.isna()]
    assert set(missing.mechanism) == {"optimum"} and not missing.proved.any()


def test_the_plot_says_what_is_not_proved(tmp_path):
    Figure = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed").Figure
    found = compare(binary(0.01, 0.1, 20), COUNT, 1)
    axes = found.plot(ax=Figure().add_subplot())
    assert [label.get_text() for label in axes.get_yticklabels()][::-1] == [row.mechanism for row in found]
    notes = [text.get_text() for text in axes.texts][::-1]
    assert [("not proved" in note) for note in notes] == [not row.proved for row in found]
    axes.figure.savefig(tmp_path / "scales.png")


def test_relabelling_values_changes_nothing():
    rng = np.random.default_rng(3)
    matrix, order = rng.dirichlet(np.ones(4), 4), np.array([2, 0, 3, 1])
    values = np.array([0, 1, 5, 2])
    names = ("dpm", "markov")
    one = compare(Chain(matrix, 8), Sum(values), 1, names)
    other = compare(Chain(matrix[np.ix_(order, order)], 8), Sum(values[order]), 1, names)
    for a, b in zip(one, other, strict=True):
        assert float(a.scale) == pytest.approx(float(b.scale), rel=1e-7)


@pytest.mark.parametrize("epsilon", [-1, 0, math.nan, True, "x"])
def test_bad_epsilon(epsilon):
    with pytest.raises(InvalidInput, match="epsilon"):
        calibrate(xor(), COUNT, epsilon)


def test_bad_mechanism_and_query():
    with pytest.raises(InvalidInput, match="mechanism"):
        calibrate(xor(), COUNT, 1, "magic")
    with pytest.raises(InvalidInput, match="query"):
        calibrate(xor(), Sum([1, 1]), 1)
    with pytest.raises(InvalidInput, match="query: got 3 values for tuple 0"):
        calibrate(binary(0.1, 0.2, 5), Sum([0, 1, 2]), 1)
    with pytest.raises(InvalidInput, match="model"):
        calibrate(np.eye(2), COUNT, 1)
