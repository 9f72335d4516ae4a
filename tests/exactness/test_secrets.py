"""Models with secrets, by enumeration: every path of latent states, every answer near enough to matter.

What a release promises is about secrets: whom a chain of second order calls (home, work) and (gym, work) is at work.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

import dphmm
import naive_secrets
from dphmm.accounting import MemoryLedger, couplable, policy_leakage, temporal_leakage
from dphmm.session.plan_schedule import PlanSchedule
from dphmm.session.setting import Setting

#: Steps, and a window as wide as the largest ratios need, which answers next to and beyond the states have.
STEPS = 3
WINDOW = range(-4, 12)
SLACK = 1e-9


class World:
    """Five or six latent states of three secrets on a line, sparse moves and random policy edges."""

    def __init__(self, seed, constraint="support", mechanism="discrete-knorm"):
        random = np.random.default_rng(seed)
        n = int(random.integers(5, 7))
        self.secrets = np.concatenate([np.arange(3), random.integers(3, size=n - 3)])
        random.shuffle(self.secrets)
        matrix = random.random((n, n)) * (random.random((n, n)) < 0.15)
        matrix[np.arange(n), random.integers(n, size=n)] += 0.3
        initial = random.random(n) * (random.random(n) < 0.4)
        initial[random.integers(n)] += 0.2
        self.model = dphmm.MarkovModel(
            initial / initial.sum(), matrix / matrix.sum(axis=1, keepdims=True), secrets=self.secrets
        )
        self.chain = (self.model.initial.tolist(), self.model.matrix.toarray().tolist(), self.secrets.tolist())
        self.answers = random.permutation(8)[:3]
        pairs = [(0, 1), (0, 2), (1, 2)]
        self.edges = {pair for pair, kept in zip(pairs, random.random(3) < 0.5, strict=True) if kept}
        policy = dphmm.policy.from_edges(sorted(self.edges), 3)
        space = dphmm.StateSpace(self.answers[:, None])
        self.setting = Setting.of(self.model, policy, space, 1, constraint=constraint, mechanism=mechanism)

    def outcomes(self, position=None, before=()):
        """((plan, z, log-likelihoods (S,)) by step) of every outcome in the window."""
        position = position or self.setting.first()
        plan = self.setting.plan(position)
        for z in [int(self.answers[plan.lowest_state])] if plan.constant else WINDOW:
            answer = np.array([z])
            found = (*before, (plan, z, plan.log_likelihood(answer)))
            if len(found) == STEPS:
                yield found
            else:
                after = position.predict(self.setting.model, position.condition(plan, answer))
                yield from self.outcomes(after, found)


CONSTRAINTS = ["support", "delta=0.3"]
MECHANISMS = ["discrete-knorm", "staircase"]


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("seed", range(6))
def test_beliefs_supports_and_plan_sets_are_those_of_all_latent_paths(seed, constraint):
    """S_t is what possible latent states have as their secret; a delta-set is the fewest secrets, by summed masses."""
    world = World(seed, constraint)
    reach = naive_secrets.possible(world.chain, STEPS)
    chance, schedule = np.random.default_rng(seed), PlanSchedule(world.setting)
    for _ in range(4):
        position, likelihoods = world.setting.first(), []
        for t in range(STEPS):
            plan = world.setting.plan(position)
            mass = naive_secrets.masses(world.chain, t, STEPS, likelihoods)
            due = {world.secrets[x] for x in reach[t]}
            assert set(np.flatnonzero(position.prior.support)) == due == set(np.flatnonzero(schedule.support(t + 1)))
            assert set(np.flatnonzero(position.prior.latent.support)) == reach[t]
            assert np.allclose(position.prior.probability, mass, rtol=0, atol=1e-12)
            assert np.allclose(np.exp(position.prior.log_probability), mass, rtol=0, atol=1e-12)
            assert set(np.flatnonzero(plan.constraint.support)) == due
            planned = due if constraint == "support" else naive_secrets.fewest(mass, 0.3)
            assert set(np.flatnonzero(plan.plan_set)) == planned
            z = np.array([int(world.answers[plan.lowest_state]) if plan.constant else int(chance.choice(WINDOW))])
            posterior = position.condition(plan, z)
            logs = plan.log_likelihood(z)
            likelihoods.append(np.exp(logs - logs[plan.constraint.support].max()).tolist())
            told = naive_secrets.masses(world.chain, t, STEPS, likelihoods)
            assert np.allclose(posterior.probability, told, rtol=0, atol=1e-12)
            position = position.predict(world.model, posterior)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("seed", range(4))
def test_every_possible_secret_hides_with_another_secret(seed, constraint, mechanism):
    """Policy edges among possible secrets keep epsilon, and one without such an edge has a partner: another secret."""
    world = World(seed, constraint, mechanism)
    for outcome in itertools.islice(world.outcomes(), 0, None, 97):
        for plan, _, _ in outcome:
            if plan.constant:
                continue
            possible = np.flatnonzero(plan.constraint.support).tolist()
            logs = np.array([plan.log_likelihood(np.array([z])) for z in WINDOW])
            lost = {(a, b): np.abs(logs[:, a] - logs[:, b]).max() for a in possible for b in possible if a != b}
            edges = [pair for pair in lost if tuple(sorted(pair)) in world.edges]
            assert all(lost[pair] <= 1 + SLACK for pair in edges)
            for a in possible:
                if not any(a in pair for pair in edges):
                    assert min(loss for pair, loss in lost.items() if pair[0] == a) <= 1 + SLACK
            assert all(a != b for a, b in [*plan.partners.tolist(), *plan.joins.tolist()])


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("seed", range(4))
def test_paths_of_latent_states_with_neighbouring_secrets_lose_the_sum(seed, constraint):
    """Two latent paths whose secrets are equal, joined or partners at every step; with one secret path they lose 0."""
    world = World(seed, constraint)
    reach = [sorted(states) for states in naive_secrets.possible(world.chain, STEPS)]
    latent = np.array(list(itertools.product(*reach)))
    secret, first = np.unique(world.secrets[latent], axis=0, return_index=True)
    assert len(secret) < len(latent)
    one, other = np.triu_indices(len(first), 1)
    worst = 0.0
    for outcome in world.outcomes():
        near, lost = np.ones(len(one), dtype=bool), np.zeros(len(one))
        for t, (plan, _, logs) in enumerate(outcome):
            a, b = secret[one, t], secret[other, t]
            joined = {frozenset(pair) for pair in [*world.edges, *map(tuple, plan.partners.tolist())]}
            hidden = np.array([[x == y or frozenset((x, y)) in joined for y in range(3)] for x in range(3)])
            near &= hidden[a, b]
            lost += np.subtract(logs[a], logs[b], where=logs[a] != logs[b], out=np.zeros(len(a)))
        spent = float(sum(plan.promised for plan, _, _ in outcome))
        worst = max(worst, float(np.abs(lost[near]).max(initial=0.0)) - spent)
    assert worst <= SLACK


FIVE = np.array([[0, 0], [2, 1], [3, 4], [7, 3], [30, 30]])


def five_cells():
    """A chain of second order on five cells in a row, by pairs that may occur: its latent pairs, matrix and secrets."""
    moves = {b: {c: 1.0 for c in range(5) if abs(b - c) <= 1} for b in range(5)}
    base = {b: {c: 1 / len(row) for c in row} for b, row in moves.items()}
    pairs, matrix = naive_secrets.second_order({}, [(a, b) for a in range(5) for b in base[a]], base)
    return pairs, np.array(matrix), np.array([b for _, b in pairs])


def losses(plan, window):
    """The largest loss (N, N) of any two states over the answers of a window."""
    logs = np.array([plan.log_likelihood(np.array(z)) for z in window])
    return np.abs(logs[:, :, None] - logs[:, None, :]).max(axis=0)


@pytest.mark.parametrize("mechanism", ["auto", *MECHANISMS])
def test_the_last_of_five_cells_loses_what_is_promised(mechanism):
    """Without secrets the chain over pairs takes two latent states of the last cell for each other's partners."""
    pairs, matrix, secrets = five_cells()
    even = np.full(len(pairs), 1 / len(pairs))
    window = list(itertools.product(range(-8, 40, 2), repeat=2))
    model = dphmm.MarkovModel(even, matrix, secrets=secrets, space=dphmm.StateSpace(FIVE))
    policy = dphmm.policy.from_edges([[0, 1], [2, 3]], 5)
    session = dphmm.ReleaseSession(model, policy, model.space, 1, mechanism=mechanism, protection="nearest")
    lost, cells = losses(session.plan, window), [tuple(image) for image in session.plan.image.tolist()]
    of = [[state for state, cell in enumerate(cells) if cell == tuple(place)] for place in FIVE.tolist()]
    assert lost[np.ix_(of[0], of[1])].max() <= 1 + SLACK and lost[np.ix_(of[2], of[3])].max() <= 1 + SLACK
    assert lost[np.ix_(of[4], [*of[0], *of[1], *of[2], *of[3]])].min(axis=1).max() <= 1 + SLACK
    # By hand: each latent state is a state of its own.
    edges = [(x, y) for x, a in enumerate(secrets) for y, b in enumerate(secrets) if (a, b) in {(0, 1), (2, 3)}]
    by_hand = dphmm.policy.from_edges(edges, len(pairs))
    chain = dphmm.MarkovModel(even, matrix, space=dphmm.StateSpace(FIVE[secrets]))
    alone = dphmm.ReleaseSession(chain, by_hand, chain.space, 1, mechanism=mechanism, protection="nearest")
    lost = losses(alone.plan, window)
    last = np.flatnonzero(secrets == 4)
    assert lost[np.ix_(last, np.flatnonzero(secrets < 4))].min() > 20


def forked():
    """u goes to b1 and v to b2, two latent states of one secret b; b1 to p or next to it, b2 to q or next to it."""
    matrix = np.zeros((8, 8))
    for x, y in ((0, 2), (1, 3), (2, 4), (2, 5), (3, 6), (3, 7), (4, 4), (5, 5), (6, 6), (7, 7)):
        matrix[x, y] = 0.5 if x in (2, 3) else 1.0
    space = dphmm.StateSpace(np.array([[0], [1], [0], [0], [1], [10], [11]]))
    initial = [0.5, 0.5, 0, 0, 0, 0, 0, 0]
    model = dphmm.MarkovModel(initial, matrix, start="at", secrets=[0, 1, 2, 2, 3, 4, 5, 6], space=space)
    return model, dphmm.policy.from_edges([[0, 1], [3, 4], [5, 6]], 7)


def test_edges_that_couple_only_within_a_secret_are_not_called_coupled():
    """The secrets u and v lose 11, and three answers of 1: every edge couples among secrets, b1 and b2 do not."""
    model, policy = forked()
    assert couplable(model, policy, 2).holds
    assert not couplable(model, policy, 3).holds
    setting = Setting.of(model, policy, model.space, 1, mechanism="discrete-knorm")
    position, plans = setting.first(), []
    for _ in range(STEPS):
        plans.append(setting.plan(position))
        position = position.predict(model, position.prior)
    assert sum(plan.promised for plan in plans) <= 3
    first, _, third = (plan.log_likelihood(np.array([0])) for plan in plans)
    u, v = (np.exp(third[[3, 4]]).mean(), np.exp(third[[5, 6]]).mean())
    lost = first[0] - first[1] + math.log(u / v)
    assert lost == pytest.approx(11.0)
    found = policy_leakage(model, plans, policy)
    assert found.edges.tolist() == policy.edges().tolist()
    assert lost <= found.worst + SLACK and found.worst == found.total[0, 0]


PLACES = 5


def walk():
    """{place: {next place: probability}} of a walk of one place that stays put at walls."""
    found = {b: dict.fromkeys(range(PLACES), 0.0) for b in range(PLACES)}
    for b, row in found.items():
        for move in (-1, 0, 1):
            row[min(max(b + move, 0), PLACES - 1)] += 1 / 3
    return {b: {c: p for c, p in row.items() if p} for b, row in found.items()}


def test_phases_that_people_pass_through_alike_couple():
    """Latent states are a place and a phase, and every place moves as a walk in each phase."""
    moves, phases = walk(), 2
    matrix = np.zeros((PLACES * phases, PLACES * phases))
    for b, phase in itertools.product(range(PLACES), range(phases)):
        for c, p in moves[b].items():
            matrix[b * phases + phase, c * phases + 1 - phase] = p
    secrets = np.repeat(np.arange(PLACES), phases)
    model = dphmm.MarkovModel(np.full(len(secrets), 1 / len(secrets)), matrix, secrets=secrets)
    assert couplable(model, [[a, a + 1] for a in range(PLACES - 1)], 4).holds


def test_pairs_of_places_couple_ahead_and_not_back():
    """The latent state says the place before: (0, 1) and (3, 2) are at neighbouring places, and were three apart."""
    moves = walk()
    pairs, matrix = naive_secrets.second_order({}, [(a, b) for a in moves for b in moves[a]], moves)
    initial = [moves[a][b] / PLACES for a, b in pairs]
    model = dphmm.MarkovModel(initial, matrix, start="at", secrets=[b for _, b in pairs])
    edges = [[a, a + 1] for a in range(PLACES - 1)]
    first = dphmm.MarkovModel(np.full(PLACES, 1 / PLACES), [[moves[a].get(b, 0.0) for b in moves] for a in moves])
    assert couplable(first, edges, 4).holds
    found = couplable(model, edges, 4)
    assert found.hops == hops_by_programs(model, edges, 4) == 3 and found.worst[1] == "backward"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_pairs_of_places_leak_what_their_base_leaks(mechanism):
    """The two worst pairs of two places are far apart; their laws can be carried onto each other between near ones."""
    space = dphmm.StateSpace(np.arange(PLACES)[:, None])
    moves = [[walk()[a].get(b, 0.0) for b in range(PLACES)] for a in range(PLACES)]
    base = dphmm.MarkovModel(np.full(PLACES, 1 / PLACES), moves, space=space)
    policy, worst = dphmm.policy.radius(space, 1), []
    for model in (base, dphmm.MarkovModel.second_order(base)):
        plan = Setting.of(model, policy, space, 1, mechanism=mechanism).first_plan()
        found = policy_leakage(model, [plan] * 4, policy)
        worst.append(found.total)
        assert (found.total <= found.present + found.forward + found.backward + SLACK).all()
    assert np.allclose(worst[0], worst[1], rtol=0, atol=1e-6)
    assert found.present[1, 0] + found.forward[1, 0] + found.backward[1, 0] > found.total[1, 0] + 0.9


def hops_by_programs(model, edges, steps):
    """`couplable`'s number by linear programs: each row is carried onto the other, over pairs at most r hops apart."""
    secrets, n = model.secrets, model.n_states
    far = np.full((model.n_secrets, model.n_secrets), np.inf)
    np.fill_diagonal(far, 0)
    for a, b in edges:
        far[a, b] = far[b, a] = 1
    for k in range(model.n_secrets):
        far = np.minimum(far, far[:, k : k + 1] + far[k])
    far = far[np.ix_(secrets, secrets)]
    matrix, laws, worst = model.matrix.toarray(), [model.initial], 0.0
    while len(laws) < steps + (model.start == "before"):
        laws.append(laws[-1] @ matrix)
    laws = laws[-steps:]
    for t, law in enumerate(laws):
        rows = [(matrix, law)] if t + 1 < steps else []
        if t:
            rows.append(((laws[t - 1][:, None] * matrix / np.where(law > 0, law, 1)).T, law))
        for kernel, here in rows:
            for x, y in itertools.combinations(np.flatnonzero(here > 0).tolist(), 2):
                if far[x, y] <= 1:
                    worst = max(worst, carried(kernel[x], kernel[y], far, n))
    return worst


def carried(q, d, far, n):
    """The least r such that a coupling of two rows stays within r hops."""
    for r in sorted(set(far[far < np.inf].tolist())):
        allowed = [(x, y) for x in range(n) for y in range(n) if far[x, y] <= r and q[x] > 0 and d[y] > 0]
        if not allowed:
            continue
        sums = np.zeros((2 * n, len(allowed)))
        for at, (x, y) in enumerate(allowed):
            sums[x, at] = sums[n + y, at] = 1
        due = np.concatenate([q, d])
        found = linprog(np.ones(len(allowed)), A_eq=sums, b_eq=due, bounds=(0, None))
        if found.status == 0:
            return r
    return math.inf


@pytest.mark.parametrize("seed", range(8))
def test_hops_are_those_of_linear_programs(seed):
    """Random chains with secrets: all pairs of latent states whose secrets are joined, or one, in both directions."""
    world = World(seed)
    edges = sorted(world.edges)
    assert couplable(world.model, edges, STEPS).hops == hops_by_programs(world.model, edges, STEPS)


@pytest.mark.parametrize("seed", range(6))
def test_leakage_bounds_what_two_secrets_of_a_step_really_lose(seed):
    """Every outcome of the window and every latent path: policy edges by their leakage, any two secrets by temporal."""
    world = World(seed)
    plans = [world.setting.plan(world.setting.first())]
    position = world.setting.first()
    for _ in range(STEPS - 1):
        position = position.predict(world.model, position.prior)
        plans.append(world.setting.plan(position))
    paths = list(naive_secrets.paths(world.chain, STEPS))
    secrets = np.array([[world.secrets[x] for x in path] for path, _ in paths])
    chances = np.array([chance for _, chance in paths])
    bound = policy_leakage(world.model, plans, sorted(world.edges))
    total = temporal_leakage(world.model, [float(plan.cost) for plan in plans]).total
    logs = [np.array([plan.log_likelihood(np.array([z])) for z in WINDOW]) for plan in plans]
    constants = [plan.constant for plan in plans]
    exact = np.zeros((STEPS, 3, 3))
    for z in itertools.product(range(len(WINDOW)), repeat=STEPS):
        told = [0.0 if constants[t] else logs[t][z[t]][secrets[:, t]] for t in range(STEPS)]
        weight = chances * np.exp(np.sum(np.broadcast_arrays(*told, np.zeros(len(paths)))[:STEPS], axis=0))
        for t in range(STEPS):
            given = np.array(
                [weight[secrets[:, t] == s].sum() / max(chances[secrets[:, t] == s].sum(), 1e-300) for s in range(3)]
            )
            for a, b in itertools.permutations(np.flatnonzero(given > 0).tolist(), 2):
                exact[t, a, b] = max(exact[t, a, b], math.log(given[a] / given[b]))
    assert (exact <= total[:, None, None] + SLACK).all()
    for number, (a, b) in enumerate(sorted(world.edges)):
        for t in range(STEPS):
            if not np.isnan(bound.total[t, number]):
                assert max(exact[t, a, b], exact[t, b, a]) <= bound.total[t, number] + SLACK


@pytest.mark.parametrize("seed", range(3))
def test_two_queries_of_one_subject_keep_one_partner(seed):
    """A secret without an edge hides with one other secret in both queries, and the two answers lose 2 together."""
    world, ledger = World(seed), MemoryLedger()
    spaces = [dphmm.StateSpace(answers[:, None]) for answers in (world.answers, world.answers[::-1] * 2)]
    sessions = [
        dphmm.ReleaseSession(
            world.model, world.setting.policy, space, 1, query=query, ledger=ledger, subject="a",
            mechanism="discrete-knorm", protection="nearest", bits=dphmm.ReplayBits(seed),
        )
        for query, space in zip("xy", spaces, strict=True)
    ]  # fmt: skip
    for _ in range(STEPS):
        plans = []
        for session in sessions:
            release = session.release(int(np.argmax(session.support)))
            plans.append(session.setting.made_again(world_support(world, release.t), ledger.plan(release.plan_hash)))
        if any(plan.constant for plan in plans):
            continue
        fixed = [dict(plan.partners.tolist()) for plan in plans]
        for a in np.flatnonzero(plans[0].constraint.support).tolist():
            others = {b for pair in world.edges if a in pair for b in pair if b != a and plans[0].constraint.support[b]}
            if others:
                continue
            partner = fixed[0][a]
            assert partner != a and fixed[1].get(a, partner) == partner
            for plan, window in zip(plans, (WINDOW, range(-8, 24)), strict=True):
                logs = np.array([plan.log_likelihood(np.array([z])) for z in window])
                assert np.abs(logs[:, a] - logs[:, partner]).max() <= 1 + SLACK


def world_support(world, t):
    reach = naive_secrets.possible(world.chain, t)[-1]
    return np.isin(np.arange(3), [world.secrets[x] for x in reach])


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("seed", range(4))
def test_smoothed_steps_are_those_of_all_latent_paths(seed, constraint):
    """Marginals, likeliest secret, likeliest path and the odds of an event, given the answers of a session."""
    from dphmm.session.odds import EventWatch, PathEvent
    from dphmm.session.smoothing import AnswerHistory, Smoother

    world = World(seed, constraint)
    position, z, hashes, likelihoods = world.setting.first(), [], [], []
    chance = np.random.default_rng(seed)
    for _ in range(STEPS):
        plan = world.setting.plan(position)
        z.append([int(world.answers[plan.lowest_state]) if plan.constant else int(chance.choice(WINDOW))])
        hashes.append(plan.hash)
        logs = plan.log_likelihood(np.array(z[-1]))
        likelihoods.append(np.exp(logs - logs[plan.constraint.support].max()).tolist())
        position = position.predict(world.model, position.condition(plan, np.array(z[-1])))
    history = AnswerHistory("a", np.arange(1, STEPS + 1), np.array(z), hashes)
    smoothed = Smoother(world.setting).smooth(history, marginals=True, path=True)
    due = np.array([naive_secrets.masses(world.chain, t, STEPS, likelihoods) for t in range(STEPS)])
    assert np.allclose(smoothed.marginals, due, rtol=0, atol=1e-12)
    assert np.allclose(smoothed.mean, due @ world.answers[:, None], rtol=0, atol=1e-10)
    assert smoothed.state.tolist() == due.argmax(axis=1).tolist()
    assert np.allclose(smoothed.probability, due.max(axis=1), rtol=0, atol=1e-12)
    weighed = naive_secrets.weighed(world.chain, STEPS, likelihoods)
    best = max(weighed, key=lambda one: one[1])
    ways = [path for path, chance in weighed if chance >= best[1] * (1 - 1e-9)]
    assert smoothed.path.tolist() in [world.secrets[list(path)].tolist() for path in ways]
    states = np.array([True, False, False])
    odds = EventWatch(world.setting, PathEvent.of(states, 3, 2, STEPS)).odds(history)
    happened = math.fsum(p for path, p in weighed if any(world.secrets[x] == 0 for x in path[1:]))
    assert odds.posterior.probability == pytest.approx(happened, abs=1e-12)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_transition_policies_are_those_of_double_loops(seed, order):
    world = World(seed)
    edges = dphmm.policy.transition(world.model, order).edges()
    assert {tuple(edge) for edge in edges.tolist()} == naive_secrets.followers(world.chain, order)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_model_whose_states_are_their_own_secrets_is_todays_to_the_byte(constraint):
    random = np.random.default_rng(3)
    matrix = random.random((6, 6))
    given = random.dirichlet(np.ones(6)), matrix / matrix.sum(axis=1, keepdims=True)
    space = dphmm.StateSpace(random.permutation(12)[:6][:, None])
    policy = dphmm.policy.radius(space, 3)
    plain, named = (dphmm.MarkovModel(*given, space=space, secrets=own) for own in (None, np.arange(6)))
    assert named.secrets is None and plain.digest == named.digest and plain.notes == named.notes
    released = []
    for model in (plain, named):
        session = dphmm.ReleaseSession(model, policy, space, 1, constraint=constraint, bits=dphmm.ReplayBits(4))
        released.append([session.release(state) for state in (0, 3, 5, 1)])
    assert [one.plan_hash for one in released[0]] == [one.plan_hash for one in released[1]]
    assert np.array_equal([one.z for one in released[0]], [one.z for one in released[1]])


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_renamed_latent_states_change_no_plan(constraint):
    """Another order of the latent states is another model, with the same plans and the same beliefs about secrets."""
    world = World(2, constraint)
    order = np.random.default_rng(0).permutation(world.model.n_states)
    matrix = world.model.matrix.toarray()[np.ix_(order, order)]
    other = dphmm.MarkovModel(world.model.initial[order], matrix, secrets=world.secrets[order])
    assert other.digest != world.model.digest
    given = world.setting.policy, world.setting.space, 1
    renamed = Setting.of(other, *given, constraint=constraint, mechanism="discrete-knorm")
    first, second = world.setting.first(), renamed.first()
    assert world.setting.plan(first).hash == renamed.plan(second).hash
    assert np.allclose(first.prior.probability, second.prior.probability, rtol=0, atol=1e-15)
