"""Privacy bugs, planted by monkeypatch: each changes one thing that the promise rests on."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dphmm.accounting import budget
from dphmm.markov.filtering import Belief
from dphmm.mechanisms.knorm import DiscreteKNorm
from dphmm.policy._edges import Listed
from dphmm.samplers.body import LatticeBody, LatticeSampler
from dphmm.samplers.uniform import Levels, LevelTable
from dphmm.sensitivity import hull as hulls
from dphmm.sensitivity import protection
from dphmm.sensitivity.exact_hull import PolicyDifferences
from dphmm.session import planner, rounds
from dphmm.session.plan import StepPlan


def stale_hull(monkeypatch):
    """The hull is not recomputed after an edge was added."""
    protect = planner.protect

    def stale(policy, lattice, frame, constraint, **options):
        made = protect(policy, lattice, frame, constraint, **options)
        return replace(made, hull=hulls.hull_of(PolicyDifferences.of(policy, lattice, constraint), frame))

    monkeypatch.setattr(planner, "protect", stale)


def one_sided_differences(monkeypatch):
    """Facets look at f(b) - f(a) with a < b only, not at its negative."""
    protect = planner.protect

    def one_sided(policy, lattice, frame, constraint, **options):
        made = protect(policy, lattice, frame, constraint, **options)
        edges = policy.edges(constraint)
        if len(edges) == 0:
            return made
        along = (lattice[edges[:, 1]] - lattice[edges[:, 0]]) @ made.hull.coordinates.T @ made.hull.normals.T
        offsets = np.minimum(made.hull.offsets, np.maximum(along.max(axis=0), 1))
        return replace(made, hull=replace(made.hull, body=replace(made.hull.body, offsets=offsets)))

    monkeypatch.setattr(planner, "protect", one_sided)


def surrogate_edges_dropped(monkeypatch):
    """Edges are kept only between plan states, not moved along the surrogate map."""

    def contracted(self, within):
        a, b = self.listed.T
        inside = within.plan[a] & within.plan[b]
        return a[inside], b[inside]

    monkeypatch.setattr(Listed, "_contracted", contracted)


def offset_minus_one(monkeypatch):
    """Every facet lies one step too far inside."""
    build = hulls._hull_within_64_bits

    def smaller(source, frame):
        made = build(source, frame)
        return replace(made, body=replace(made.body, offsets=np.maximum(made.body.offsets - 1, 1)))

    monkeypatch.setattr(hulls, "_hull_within_64_bits", smaller)


def self_connection(monkeypatch):
    """The nearest state to an exposed one is itself (Algorithm 1 as printed)."""
    monkeypatch.setattr(protection, "_partner", lambda task, method, state, others: state)


def nobody_exposed(monkeypatch):
    """Exposure is tested as "no state at all within the hull", and a state is within its own."""
    monkeypatch.setattr(protection, "exposed_among", lambda *parts: np.zeros(0, dtype=np.int64))
    monkeypatch.setattr(planner, "nearest_covered", lambda hull, image, states, among: states)


def support_from_floats(monkeypatch):
    """A state with little probability counts as impossible."""
    predict = Belief.predict

    def narrowed(self, model, t):
        after = predict(self, model, t)
        likely = after.support & (after.probability >= min(0.05, after.probability.max()))
        return Belief(np.where(likely, after.log_probability, -np.inf), likely)

    monkeypatch.setattr(Belief, "predict", narrowed)


def plans_cached_by_size(monkeypatch):
    """A plan is found again by how many states are possible, not by which."""
    make = planner.Planner.plan

    def plan(self, support, plan_set, partners=planner.NO_PARTNERS, choice=None):
        kept = vars(self).setdefault("_kept_by_size", {})
        key = (int(support.sum()), int(plan_set.sum()))
        if key not in kept:
            kept[key] = make(self, support, plan_set, partners, choice)
        return kept[key]

    monkeypatch.setattr(planner.Planner, "plan", plan)


def partners_forgotten(monkeypatch):
    """A second query does not keep the partners of the first."""
    monkeypatch.setattr(rounds, "all_partners", lambda records: planner.NO_PARTNERS)


def epsilon_charged_as_cost(monkeypatch):
    """A release is charged eps, whatever two plan states lose."""
    monkeypatch.setattr(planner._Step, "cost", lambda self, body: self.options.epsilon)


def charges_rounded_down(monkeypatch):
    """The ledger rounds a charge down to its unit."""
    monkeypatch.setattr(budget, "nanos_up", lambda cost: int(cost * budget.NANO))


def likelihood_of_another_epsilon(monkeypatch):
    """Beliefs use an eps that is one part in a million too large."""
    weights = DiscreteKNorm._log_weights
    monkeypatch.setattr(DiscreteKNorm, "_log_weights", lambda self, y: weights(self, y) * (1 + 1e-6))


def likelihood_of_the_state_itself(monkeypatch):
    """Beliefs take a drifted state to be answered from its own answer."""

    def own(self, z):
        images = np.array(self.image)
        images[~self.constraint.plan] += 1
        return self.mechanism.log_likelihood_lattice(z, images)

    monkeypatch.setattr(StepPlan, "log_likelihood", own)


def noise_of_another_epsilon(monkeypatch):
    """The sampler draws with an eps 5 % too large."""
    sampler = LatticeSampler.knorm
    monkeypatch.setattr(LatticeSampler, "knorm", lambda body, epsilon: sampler(body, epsilon * Fraction(21, 20)))


def boxes_too_narrow(monkeypatch):
    """The boxes that noise is proposed from cut the body's corners."""
    made = LatticeBody.of.__func__

    def narrow(cls, *parts):
        body = made(cls, *parts)
        return replace(body, widths=tuple(w * Fraction(9, 10) for w in body.widths))

    monkeypatch.setattr(LatticeBody, "of", classmethod(narrow))


def level_table_shifted(monkeypatch):
    """The cumulative weights of the levels are off by one part in a thousand."""
    made = Levels.__dict__["table"].func

    def shifted(self):
        table = made(self)
        return LevelTable(table.low * 0.999, table.high * 0.999, table.half_widths)

    monkeypatch.setattr(Levels, "table", property(shifted))


def _anything(instance):
    return True


def _two_queries(instance):
    return len(instance.queries) == 2


def _narrowed(instance):
    return instance.queries[0].options["constraint"] != "support"


def _tiny(instance):
    return instance.tiny


#: Each bug, a piece of the sentence that must convict it, and the instances that can.
MUTANTS = (
    (stale_hull, "the joined pair", _anything),
    (one_sided_differences, "the policy pair", _tiny),
    (surrogate_edges_dropped, "the policy pair", _anything),
    (offset_minus_one, "loses", _anything),
    (self_connection, "is exposed", _anything),
    (nobody_exposed, "is exposed", _anything),
    (support_from_floats, "the support is not what the history leaves", _anything),
    (plans_cached_by_size, "the support is not what the history leaves", _narrowed),
    (partners_forgotten, "the partner pair", _two_queries),
    (epsilon_charged_as_cost, "costs", _anything),
    (charges_rounded_down, "the ledger's", _tiny),
    (likelihood_of_another_epsilon, "likelihoods at", _anything),
    (likelihood_of_the_state_itself, "likelihoods at", _anything),
    (noise_of_another_epsilon, "has another law", _anything),
    (boxes_too_narrow, "cuts its body", _anything),
    (level_table_shifted, "is outside its bounds", _tiny),
)
