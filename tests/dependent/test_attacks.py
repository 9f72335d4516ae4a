"""Attacks on queries over dependent records: what was broken once, and what an exact enumeration could not break.

Losses are enumerated in decimals of 50 digits, from the law of the tuples as it was given: nothing of the library's own
kernels, marginals or sums is used. Every model that once lost more than was claimed is kept with its numbers; the rest
are seeded random models with tiny chances, zeros, near-certain moves, absent records, several trees.
"""

from __future__ import annotations

import itertools
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dphmm.accounting.event import per_record_total
from dphmm.accounting.leakage_step import LeakageCurve, Scan
from dphmm.dependent import (
    MECHANISMS,
    AnyQuery,
    Chain,
    Friendship,
    Sum,
    Tree,
    calibrate,
    compare,
    histogram,
    kmeans,
    mean,
    stationary_law,
    together,
    total,
)
from dphmm.dependent._chain import stochastic
from dphmm.dependent._coefficients import tuple_losses
from dphmm.dependent._degrees import histogram_of_degrees, simple_edges
from dphmm.errors import InvalidInput, Refused
from dphmm.samplers.entropy import ReplayBits
from experiments.dependence.baselines import rate_of

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words

DIGITS = Context(prec=50, Emin=-(10**8), Emax=10**8)


@pytest.fixture(autouse=True)
def _many_digits():
    with localcontext(DIGITS):
        yield


def law_of(row):
    exact = [value if isinstance(value, Decimal) else Decimal(float(value)) for value in row]
    return [value / sum(exact) for value in exact]


def joint(parents, root, kernels):
    """{values: Decimal} of a forest whose parents come first; ``kernels``: {child: matrix}."""
    laws = {child: [law_of(row) for row in kernel] for child, kernel in kernels.items()}
    table = {(): Decimal(1)}
    for i, parent in enumerate(parents):
        grown = {}
        for values, chance in table.items():
            for value, p in enumerate(law_of(root) if parent < 0 else laws[i][values[parent]]):
                if p > 0:
                    grown[(*values, value)] = chance * p
        table = grown
    return table


def chain_joint(matrices, start):
    n = len(matrices) + 1
    return joint([i - 1 for i in range(n)], start, dict(enumerate(matrices, start=1)))


def exact_loss(table, values, rate):
    """The largest loss of any tuple."""
    return max(exact_losses(table, values, rate))


def exact_losses(table, values, rate):
    """|log P(s | D_i = x) / P(s | D_i = y)| at most, of Laplace noise on Σ values[i][D_i]: the worst s is a sum."""
    scale = 1 / Decimal(rate.numerator) * Decimal(rate.denominator)
    sums = {outcome: sum(int(f[v]) for f, v in zip(values, outcome, strict=True)) for outcome in table}
    atoms = sorted(set(sums.values()))
    noise = {distance: (-abs(distance) / scale).exp() for distance in {a - b for a in atoms for b in atoms}}
    found = []
    for i in range(len(values)):
        laws, worst = {}, Decimal(0)
        for outcome, chance in table.items():
            law = laws.setdefault(outcome[i], {})
            law[sums[outcome]] = law.get(sums[outcome], Decimal(0)) + chance
        for s in atoms:
            seen = [sum(p * noise[a - s] for a, p in law.items()) / sum(law.values()) for law in laws.values()]
            worst = max(worst, (max(seen) / min(seen)).ln())
        found.append(float(worst))
    return found


def exact_increase(rows, alpha):
    """L(α) in decimals: prefixes of the values sorted by falling quotient."""
    growth = Decimal(alpha).exp() - 1
    worst = Decimal(0)
    for q, d in itertools.permutations([law_of(row) for row in rows], 2):
        order = sorted(range(len(q)), key=lambda j: -(q[j] / d[j] if d[j] else Decimal("Infinity") if q[j] else 0))
        more = less = Decimal(0)
        for j in order:
            more, less = more + q[j], less + d[j]
            worst = max(worst, ((1 + more * growth) / (1 + less * growth)).ln())
    return float(worst)


def clustered(rng):
    """Two rows whose corners stand a rounding apart: columns of about 1e-17 between the others."""
    m = int(rng.integers(3, 9))
    q, d = rng.dirichlet(np.full(m, 0.6)), rng.dirichlet(np.full(m, 0.6))
    order = np.argsort(-q / np.maximum(d, 1e-300))
    q, d = q[order], d[order]
    columns = []
    for j in range(m):
        columns.append((q[j], d[j]))
        steep, flat = q[j] / d[j], q[j + 1] / d[j + 1] if j + 1 < m else 0.0
        for _ in range(int(rng.integers(0, 6))):
            slope, size = flat + (steep - flat) * rng.random(), 10.0 ** rng.uniform(-18, -15)
            columns.append((size * min(slope, 1.0), size / max(slope, 1.0)))
    rows = np.array(columns).T
    return stochastic(rows / rows.sum(axis=1, keepdims=True), "rows")


def ragged(rng):
    """A kernel of tiny chances, of nearly equal rows, or of a few sizes, some of them 0."""
    k, m, kind = int(rng.integers(2, 7)), int(rng.integers(2, 5)), rng.integers(3)
    rows = 10.0 ** rng.uniform(-20, 0, (m, k))
    if kind == 1:
        rows = np.abs(rng.dirichlet(np.ones(k)) * (1 + 10.0 ** rng.uniform(-17, -1) * rng.standard_normal((m, k))))
    if kind == 2:
        rows = 10.0 ** rng.choice([-17.0, -16.5, -16, -1, -2, 0], (m, k)) * rng.uniform(0.5, 2, (m, k))
    rows = np.where(rng.random((m, k)) < 0.15, 0.0, rows)
    rows[rows.sum(axis=1) == 0] = 1.0
    return stochastic(rows / rows.sum(axis=1, keepdims=True), "rows")


class TestIncrease:
    @pytest.mark.slow
    @pytest.mark.parametrize("make", [clustered, ragged])
    def test_never_below_the_exact_one(self, make):
        """300 kernels × 6 losses each; a search on the hull once gave .1363 for .1569, a scan 39.8 for 160.2."""
        rng = np.random.default_rng(3)
        for _ in range(150):
            rows = make(rng)
            for alpha in (1e-3, 0.3, 1.0, 5.0, 45.0, 200.0):
                least = exact_increase(rows, alpha) * (1 - 1e-13) - 1e-15
                assert LeakageCurve.of(rows).above(alpha) >= least
                assert Scan(rows, np.ones(len(rows), dtype=bool), 0.0).above(alpha) >= least

    @pytest.mark.parametrize("seed", [522, 1322, 1927, 2525, 3184, 5182])
    def test_a_scale_that_was_too_small(self, seed):
        """ "markov", two tuples: D_0 loses α + L(α) by the worst query, .536 of .4 for 1322 (a search on the hull)."""
        rows = clustered(np.random.default_rng(seed))
        model = Tree([-1, 0], [0.999, 0.001], {1: rows})
        for epsilon in ("0.2", "0.4", "1.05", "3", "5.5"):
            rate = calibrate(model, AnyQuery(1), epsilon, "markov").rate
            assert float(rate) + exact_increase(rows, float(rate)) <= float(epsilon)


class TestRareValues:
    """What is possible by structure counts, however rare: floats lost it, and what it says, below 10⁻³⁰⁸."""

    @pytest.mark.parametrize("epsilon", [1, 3])
    def test_a_stationary_law_that_underflows(self, epsilon):
        """Claimed 1, lost 2.03; claimed 3, lost 5.15: the value of stationary probability 4e-398 was impossible."""
        up = 1e-200
        matrix = [[1 - up, up, 0], [0.5, 0.5 - up, up], [0, 1e-3, 0.999]]
        rise, fall = Decimal(up), Decimal(matrix[2][1])
        law = [Decimal(1), 2 * rise, 2 * rise * rise / fall]
        table = chain_joint([matrix] * 5, law)
        model = Chain(matrix, 6)
        assert model.possible(0).all()
        for rate in (
            calibrate(model, Sum([0, 0, 1]), epsilon).rate,
            rate_of("markov-quilt", model, Sum([0, 0, 1]), epsilon),
        ):
            assert exact_loss(table, [[0, 0, 1]] * 6, rate) <= epsilon

    def test_a_start_that_underflows_on_its_first_move(self):
        from dphmm import MarkovModel

        matrix = [[1 - 1e-200, 1e-200, 0], [0.5, 0.5, 1e-200], [0, 0.5, 0.5]]
        model = Chain(MarkovModel([1 - 1e-200, 1e-200, 0], matrix, start="before"), 2)
        assert model.possible(0).all()

    def test_a_law_that_overflows_is_refused(self):
        rare = 1e-170
        matrix = [[0.5, 0.5, 0], [rare, 0.5, 0.5], [0, rare, 1 - rare]]
        for order in itertools.permutations(range(3)):
            turned = np.array(matrix)[np.ix_(order, order)]
            try:
                assert np.isfinite(stationary_law(turned)).all()
            except InvalidInput as said:
                assert "floats" in str(said)

    def test_a_parent_that_underflows(self):
        """A child says which rare value its parent has: of a loss of 700 it was told 0, and lost 401."""
        root = [1 - 1e-200, 1e-200]
        down = [[0.5, 0.5, 0], [1, 0, 1e-200]]
        leaf = [[1 - 1e-270, 1e-270], [1 - 1e-270, 1e-270], [0, 1]]
        model = Tree([-1, 0, 1], root, {1: down, 2: leaf})
        table = joint([-1, 0, 1], root, {1: down, 2: leaf})
        lost = exact_losses(table, [[0, 0], [0, 0, 1], [0, 0]], Fraction(700))
        assert lost[2] > 400
        assert (np.array(lost) <= tuple_losses(model, np.array([0.0, 700.0, 0.0]))).all()

    def test_a_product_that_underflows(self):
        """P(D_1, D_2) = 1e-350 and P(D_2) = 1e-270: the posterior 1e-80 is no 0."""
        start, move = [1 - 1e-250, 1e-250], [[1, 1e-270], [1, 1e-100]]
        for model in (Chain([move], start=start), Tree([-1, 0], start, {1: move})):
            lost = exact_losses(chain_joint([move], start), [[0, 1], [0, 0]], Fraction(500))
            assert lost[1] > 300
            assert lost[1] <= tuple_losses(model, np.array([500.0, 0.0]))[1]

    def test_what_stands_in_for_a_law_is_no_law(self):
        """ "dpm" of two tuples and exact losses took it for one: of other values than are seen, or of a wrong size."""
        chain = Chain(
            [[[0, 0, 0.9, 0.1], [0, 0, 0.1, 0.9], [0, 0, 0.5, 0.5], [0, 0, 1, 0]]], start=[0.5, 0.5, 1e-290, 0]
        )
        tree = Tree([-1, 0], [1, 1e-290], {1: [[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]})
        for model, values in ((chain, [[0, 1, 0, 0], [0, 0, 0, 1]]), (tree, [[0, 1], [0, 1, 2]])):
            found = compare(model, Sum(values), 1)
            assert "dpm" in dict(found.not_applicable)
            assert {row.true_epsilon for row in found} == {None}

    def test_quilts_behind_what_floats_cannot_hold(self):
        """Claimed 1, lost 3.57 over 14 tuples, and more with every further one."""
        low = [[0, 0, 0.5, 0.5, 0], [0, 0, 0.51, 0.49, 0]] + [[0, 0, 0.5, 0.5, 0]] * 3
        rare = [[0, 0, 0.5, 0.5 - 1e-290, 1e-290]] * 5
        down = [[0.5, 0.5, 0, 0, 0]] * 3 + [[0.49, 0.51, 0, 0, 0], [0.5, 0.5, 0, 0, 0]]
        stay = [[0.999, 0.001, 0, 0, 0], [0.001, 0.999, 0, 0, 0]] + [[0.5, 0.5, 0, 0, 0]] * 3
        matrices = [low, rare, down] + [stay] * 7
        start = [0.5, 0.5, 0, 0, 0]
        table = chain_joint(matrices, start)
        model = Chain(matrices, start=start)
        for rate in (rate_of("markov-quilt", model, AnyQuery(1), 1), calibrate(model, AnyQuery(1), 1).rate):
            assert exact_loss(table, [[0, 1, 0, 0, 0]] * 11, rate) <= 1

    def test_sums_too_rare_for_floats(self):
        """Claimed 1 by exact computation, lost 2.56: two chances of 1e-200 in one sum."""
        flip = [[1e-200, 1 - 1e-200], [1 - 1e-200, 1e-200]]
        mixed = [[0.501, 0.499], [0.499, 0.501]]
        model, table = Chain([flip, mixed, flip], start=[0.5, 0.5]), chain_joint([flip, mixed, flip], [0.5, 0.5])
        for row in compare(model, Sum([0, 1]), 1):
            if row.proved:
                assert exact_loss(table, [[0, 1]] * 4, row.rate) <= 1
        assert "optimum" in dict(compare(model, Sum([0, 1]), 1000).not_applicable)


def test_two_friends_are_no_two_tuples():
    """ "dpm" for two friends claimed 5 and lost 5.44: the law of each given the other fits no joint law."""
    rng, worst = np.random.default_rng(0), 0.0
    for trial in range(150):
        k = int(rng.integers(2, 5))
        options = {"b": float(10 ** rng.uniform(-2, 0)), "c": float(rng.uniform(0.3, 3))}
        prior = rng.dirichlet(np.full(k, 0.3)) if trial % 2 else None
        pair = Friendship(rng.uniform(0, 10, k) ** 2, [(0, 1)], 2, unit=1.0, prior=prior, **options)
        f = rng.permutation(np.arange(k) % 3)
        table = joint([-1, 0], pair.prior, {1: pair.kernel_between_friends})
        found = calibrate(pair, Sum(f), 5, "dpm")
        lost = exact_loss(table, [f, f], found.rate)
        worst = max(worst, lost)
        assert not found.proved or lost <= 5
        assert calibrate(pair, Sum(f), 5).mechanism == "group"
        assert exact_loss(table, [f, f], calibrate(pair, Sum(f), 5).rate) <= 5
    assert worst > 5.2
    with pytest.raises(Refused):
        histogram([[0], [1]], pair, 1, n_states=2, mechanism="dpm")


def kernel_of(rng, rows, columns):
    kind = int(rng.integers(5))
    found = rng.dirichlet(np.full(columns, 0.4), rows)
    if kind == 1:
        found = np.where(rng.random((rows, columns)) < 0.4, 0.0, found)
    if kind in (2, 3):
        found = 10.0 ** rng.uniform(-20 if kind == 2 else -200, 0, (rows, columns))
    if kind == 4:
        found = np.eye(rows, columns)[:, rng.permutation(columns)] + 10.0 ** rng.uniform(-12, -1) * found
    found[found.sum(axis=1) == 0, 0] = 1.0
    return found / found.sum(axis=1, keepdims=True)


def model_of(rng, kind):
    """A model, its exact joint law, and how many values each tuple has."""
    n, k = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    start = kernel_of(rng, 1, k)[0]
    if kind == 3:
        parents = [-1] + [int(rng.integers(-1, i)) for i in range(1, n)]
        sizes = [k if parent < 0 else int(rng.integers(2, 4)) for parent in parents]
        kernels = {i: kernel_of(rng, sizes[p], sizes[i]) for i, p in enumerate(parents) if p >= 0}
        return Tree(parents, start, kernels), joint(parents, start, kernels), sizes
    matrices = [kernel_of(rng, k, k)] * (n - 1) if kind < 2 else [kernel_of(rng, k, k) for _ in range(n - 1)]
    if kind == 0:
        model, start = Chain(matrices[0], n), stationary_law(matrices[0])
    else:
        model = Chain(matrices[0], n, start=start) if kind == 1 else Chain(matrices, start=start)
    return model, chain_joint(matrices, start), [k] * n


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(4), ids=["stationary", "started", "inhomogeneous", "forest"])
def test_nothing_proved_loses_more_than_it_claims(kind):
    """400 models here, 650 others when it was written: exact/claimed reached 1.000000, and never passed it."""
    rng, worst, judged = np.random.default_rng(10 + kind), 0.0, 0
    for trial in range(100):
        try:
            model, table, sizes = model_of(rng, kind)
        except InvalidInput:
            # Several closed classes: no stationary law.
            continue
        epsilon = str(rng.choice(["0.01", "0.5", "1", "5", "30", "200"]))
        # Absent records, or outside of the window, are tuples that do not count.
        values = [np.zeros(k, int) if rng.random() < 0.2 else rng.integers(0, 3, k) for k in sizes]
        if all(np.ptp(f) == 0 for f in values):
            values[-1] = np.arange(sizes[-1])
        query = Sum(values) if trial % 2 else AnyQuery([int(np.ptp(f)) for f in values])
        for row in compare(model, query, epsilon, MECHANISMS):
            if row.proved:
                lost = exact_loss(table, values, row.rate) / float(epsilon)
                worst, judged = max(worst, lost), judged + 1
                assert lost <= 1 + 1e-9, (row.mechanism, epsilon, lost)
    assert judged > 250 and worst > 0.95


class TestQuestions:
    @pytest.mark.parametrize("bounds", [("0", "1e-320"), ("-1e400", "1e400"), (0, 10**260)])
    def test_a_mean_between_bounds_that_floats_cannot_divide(self, bounds):
        """0 between 0 and 1e-320 was −2⁶³ steps."""
        with pytest.raises(InvalidInput, match="bounds"):
            mean([0.0, 1e-320, 5.0], "independent", 1, bounds=bounds)

    @pytest.mark.parametrize("box", [(0.0, 1e-320), (-1.7e308, 1.7e308), ([0, 0], [1, "1e-300"]), ("1e400", 1)])
    def test_a_box_that_floats_cannot_divide(self, box):
        with pytest.raises(InvalidInput, match="box"):
            kmeans(np.zeros((3, 2)), "independent", 1, box=box, start=[[0, 0]])

    def test_values_near_the_ends_of_integers(self):
        small = total([[0, 1]], "independent", 1, values=np.array([-100, 100], dtype=np.int8))
        assert small.event.parts[0].sensitivity == 200
        for values in (np.array([0, 2**62, -(2**62)]), np.array([0, 2**63], dtype=np.uint64)):
            with pytest.raises(InvalidInput, match="values"):
                total([[0, 1]], "independent", 1, values=values)

    def test_a_length_whose_square_underflows(self):
        """A row of 1e-190 counted as 1e10 times as long as the norm 1e-200 that it was shortened to."""
        classifier = pytest.importorskip("sklearn") and __import__("dphmm").dependent.classifier
        for norm in (1e-200, 1e200):
            with pytest.raises(InvalidInput, match="norm"):
                classifier([[1e-190], [0.0]], [0, 1], "independent", 1, classes=[0, 1], norm=norm)

    def test_a_gradient_is_certified_with_its_rounding(self):
        """τ widens with rounding, and what is certified is as near to the exact gradient as is said."""
        from dphmm.dependent._linear import _Problem, _rounding, accuracy

        assert accuracy(100, 5, 0.01) == 2.0**-16 * 2 / (100 * 0.01)
        assert accuracy(10**9, 5, 1e-6) == 4 * _rounding(5, 1e-6) / 1e-6 > 2.0**-16 * 2 / (10**9 * 1e-6)
        rng = np.random.default_rng(0)
        rows = rng.uniform(0.5, 0.7, (3_000, 2))
        w = np.array([1.0, -0.4])
        exact = [Fraction(0)] * 2
        for row in rows.tolist():
            margin = sum(Fraction(x) * Fraction(y) for x, y in zip(row, w.tolist(), strict=True))
            slope = -min(max((Fraction(3, 2) - margin), Fraction(0)), Fraction(1))
            exact = [e + Fraction(x) * slope / len(rows) for e, x in zip(exact, row, strict=True)]
        exact = [e + Fraction(0.01) * Fraction(x) for e, x in zip(exact, w.tolist(), strict=True)]
        length = float(np.hypot(*map(float, exact)))
        assert abs(_Problem(rows, "svm", 0.01).sure_slant(w) - length) <= _rounding(2, 0.01)
        assert _Problem(rows, "svm", 0.01).sure_slant(w * 1e3) == np.inf

    def test_noise_that_can_be_replayed_is_in_no_total(self):
        event = histogram([[0, 1]], "independent", 1, n_states=2, bits=ReplayBits(b"attack" * 6)).event
        with pytest.raises(Refused):
            per_record_total(event)
        with pytest.raises(Refused):
            together(Chain([[0.5, 0.5], [0.5, 0.5]], 2), [event])

    def test_every_graph_of_four_people(self):
        """Node level: all 64 graphs, all edges of each person: at most 8 where 4·cap + 2 is counted."""
        edges = list(itertools.combinations(range(4), 2))
        for cap, most in ((1, 4), (2, 8), (3, 8)):
            graphs = {}
            for mask in range(64):
                pairs = np.array([e for bit, e in enumerate(edges) if mask >> bit & 1]).reshape(-1, 2).astype(int)
                graphs[mask] = histogram_of_degrees(simple_edges(pairs, 4), 4, cap, "node")
            moved = 0
            for person in range(4):
                own = sum(1 << bit for bit, e in enumerate(edges) if person in e)
                for one, other in itertools.combinations(graphs, 2):
                    if one & ~own == other & ~own:
                        moved = max(moved, int(np.abs(graphs[one] - graphs[other]).sum()))
            assert moved == most <= 4 * cap + 2
