"""Which words count as secure: the package's own system bits, and keyed bits of a new key, whatever another says.

Claims. A release, a private fit and a query are marked unless their words came from an object whose type is
`SystemBits` or `KeyedBits` itself, with the methods that the package wrote, and from a key that no seed gave: on
every path that stamps a record (what is special to keyed bits: test_keyed.py). Hostile objects say
that they are secure in every way that Python has: an attribute, a property, a base class, a forged `__class__`,
methods of their own. It could fail by asking the object, by `isinstance`, or on a path that was forgotten.
"""

from __future__ import annotations

import os
import pickle

import numpy as np
import pandas as pd
import pytest

import dphmm
from crafted_bits import keyed_system_bits
from dphmm.dependent import classifier, count, degree_distribution, histogram, kmeans, mean, total
from dphmm.dependent import query as asked
from dphmm.errors import InvalidInput
from dphmm.markov.private.chain import fit_chain
from dphmm.release.batch import Batch
from dphmm.samplers.entropy import JobKey, KeyedBits, ReplayBits, SystemBits, default_bits, is_secure
from dphmm.storage.released import FileSums
from dphmm.storage.trajectories import load_trajectories
from running_example import ANSWERS, EDGES_3B, TRANSITION
from statement.told import statement_of

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words

PUBLIC = (
    dphmm.MarkovModel(np.full(6, 1 / 6), TRANSITION),
    dphmm.policy.from_edges(EDGES_3B, 6),
    dphmm.StateSpace(ANSWERS),
)
ROWS = pd.DataFrame({"user": ["ann", "ann", "bob"], "step": [1, 3, 1], "state": ["3", "4", "2"]})
SEQUENCES = [[0, 1, 2], [2, 1]]
TIMES = np.array([[0, 0, 1, 2, 0]])


class _Words:
    """Replayable words; what a hostile object is made of."""

    def __init__(self):
        self._own = ReplayBits(5)

    def uint64(self, n):
        return self._own.uint64(n)


class SaysSo(_Words):
    secure = True


class SaysSoWhenAsked(_Words):
    @property
    def secure(self):
        return True


class SaysItIsAnother(_Words):
    """`isinstance` believes a forged class."""

    secure = True
    __class__ = SystemBits


class AnswersEverything(_Words):
    def __getattr__(self, name):
        return True

    def __eq__(self, other):
        return True

    __hash__ = None


class OtherWords(SystemBits):
    """A class derived from the package's, with words of its own."""

    secure = True

    def __init__(self):
        super().__init__()
        self._own = ReplayBits(5)

    def uint64(self, n):
        return self._own.uint64(n)


class OtherKeys(SystemBits):
    """Only the key stream is another one."""

    def __init__(self):
        super().__init__()
        self._own = ReplayBits(5)

    def _new_stream(self):
        return self._own._new_stream()


class OtherKeyed(KeyedBits):
    """A class derived from the package's keyed bits."""

    secure = True

    def __init__(self):
        super().__init__(JobKey.new(), b"context")


class EqualsEveryClass(type):
    """A table of classes takes a class of this one for each of them."""

    def __eq__(cls, other):
        return True

    def __hash__(cls):
        return hash(SystemBits)


class OfAnEqualClass(_Words, metaclass=EqualsEveryClass):
    pass


class Plain(SystemBits):
    """Nothing is changed, yet: a subclass can change it later."""


def _replay_that_says_so():
    bits = ReplayBits(5)
    bits.secure = True
    return bits


def _replay_by_another_name():
    return type("SystemBits", (ReplayBits,), {"secure": True, "__module__": SystemBits.__module__})(5)


HOSTILE = {
    "replayed": lambda: ReplayBits(5),
    "says so": SaysSo,
    "says so when asked": SaysSoWhenAsked,
    "forged class": SaysItIsAnother,
    "answers everything": AnswersEverything,
    "derived, other words": OtherWords,
    "derived, other keys": OtherKeys,
    "replayed, with an attribute": _replay_that_says_so,
    "replayed, by another name": _replay_by_another_name,
    "keyed, replayed": lambda: JobKey.replayed(5).bits(b"context"),
    "keyed, derived": OtherKeyed,
    "of a class that equals": OfAnEqualClass,
}


def _session(bits):
    ledger = dphmm.accounting.MemoryLedger()
    session = dphmm.ReleaseSession(*PUBLIC, 1, ledger=ledger, bits=bits)
    told = [session.release(3).secure]
    session.skip(2)
    told.append(session.release(2).secure)
    return told + [entry.secure for key in ledger.sessions() for entry in ledger.entries(*key)]


def _resumed(bits):
    ledger = dphmm.accounting.MemoryLedger()
    dphmm.ReleaseSession(*PUBLIC, 1, subject="ann", ledger=ledger, bits=keyed_system_bits(1)).release(3)
    session = dphmm.ReleaseSession.resume(ledger, "ann", *PUBLIC, bits=bits)
    assert session.released(1).secure
    return [session.release(3).secure, ledger.entries("ann", "state")[-1].secure]


def _many(bits, **options):
    ledger = dphmm.accounting.MemoryLedger()
    out = dphmm.release_many(ROWS, *PUBLIC, 1, ledger=ledger, bits=bits, progress=False, **options)
    assert len(out) == len(ROWS)
    return [entry.secure for key in ledger.sessions() for entry in ledger.entries(*key)]


def _hmm(bits, method="ngrams", **options):
    hmm = dphmm.markov.CategoricalHMM(2, n_features=3, random_state=0)
    fitted = hmm.fit_private(
        np.array([[0], [1], [2]]), [3], epsilon=1, max_length=3, method=method, bits=bits, **options
    )
    return [fitted.privacy_.secure]


def _query(found):
    return [found.event.secure]


POINTS = np.array([[0.1, 0.2], [0.8, 0.9], [0.4, 0.1]])
PATHS = {
    "session": _session,
    "resumed session": _resumed,
    "many": _many,
    "many, each with a session": lambda bits: _many(bits, constraint="delta=0.1"),
    "many, tables": lambda bits: _many(bits, mechanism="optimal-table"),
    "chain": lambda bits: [fit_chain(SEQUENCES, 3, 1, 4, bits=bits)[1].secure],
    "hmm": _hmm,
    "hmm, every iteration": lambda bits: _hmm(bits, "every-iteration", iterations=2),
    "histogram": lambda bits: _query(histogram(TIMES, "independent", 1, n_states=3, bits=bits)),
    "count": lambda bits: _query(count(TIMES, "independent", 1, n_states=3, states=[1], bits=bits)),
    "total": lambda bits: _query(total(TIMES, "independent", 1, values=[0, 1, 5], bits=bits)),
    "mean": lambda bits: _query(mean([0, 1, 1], "independent", 1, bounds=(0, 1), bits=bits)),
    "kmeans": lambda bits: _query(
        kmeans(POINTS, "independent", 1, box=(0, 1), start=[[0, 0], [1, 1]], iterations=2, bits=bits)
    ),
    "degrees": lambda bits: _query(degree_distribution([(0, 1)], 3, "independent", 1, level="edge", cap=2, bits=bits)),
    "classifier": lambda bits: _query(classifier(POINTS, [0, 1, 0], "independent", 1, classes=(0, 1), bits=bits)),
    "question by name": lambda bits: _query(asked("histogram", TIMES, "independent", 1, n_states=3, bits=bits)),
}


@pytest.mark.parametrize("path", PATHS)
def test_whatever_an_object_says_its_releases_are_marked(path):
    told = {kind: PATHS[path](hostile()) for kind, hostile in HOSTILE.items()}
    assert all(told.values())
    assert [kind for kind, stamps in told.items() if any(stamps)] == []


@pytest.mark.parametrize("path", PATHS)
def test_the_packages_own_are_not_marked(path):
    for own in (keyed_system_bits(5), JobKey.new().bits(b"context")):
        told = PATHS[path](own)
        assert told and all(told)


def test_the_process_stream_and_new_system_bits_are_secure():
    assert is_secure(default_bits()) and is_secure(SystemBits())


def test_a_subclass_that_changes_nothing_is_not_the_class():
    assert not is_secure(Plain())


def test_no_object_of_the_class_has_a_method_of_its_own():
    bits = SystemBits()
    for name in ("uint64", "_new_stream", "secure", "anything"):
        for put in (setattr, object.__setattr__):
            with pytest.raises(AttributeError):
                put(bits, name, lambda *_: np.zeros(1, np.uint64))
    assert not hasattr(bits, "__dict__")


@pytest.mark.parametrize("name", ["uint64", "_new_stream", "_words_of", "__getattribute__"])
def test_a_method_replaced_in_the_class_is_another_source(monkeypatch, name):
    """Also for an object that was made before, and only as long as it is replaced."""
    bits = keyed_system_bits(5)
    with monkeypatch.context() as patch:
        kept = getattr(SystemBits, name)

        class Same:
            """Passes for what it replaces wherever it is compared."""

            __slots__ = ()

            def __get__(self, instance, owner):
                return self if instance is None else kept.__get__(instance, owner)

            def __call__(self, *arguments):
                return kept(*arguments)

            def __eq__(self, other):
                return True

            __hash__ = None

        patch.setattr(SystemBits, name, Same(), raising=False)
        assert not is_secure(bits)
    assert is_secure(bits)


def test_an_object_whose_class_is_exchanged_counts_as_what_it_became():
    class Other(SystemBits):
        __slots__ = ()

        def uint64(self, n):
            return np.zeros(n, np.uint64)

    bits = keyed_system_bits(5)
    bits.__class__ = Other
    assert not is_secure(bits)


def test_looking_at_the_class_does_not_mark_it():
    """Python keeps what it is asked about a class in the class."""
    assert SystemBits.__annotations__ is not None and SystemBits.__doc__ and dir(SystemBits)
    assert is_secure(keyed_system_bits(5))


def test_what_was_pickled_or_made_without_a_beginning_serves_no_words():
    with pytest.raises(TypeError, match="not pickled or copied"):
        pickle.dumps(SystemBits())
    hollow = object.__new__(SystemBits)
    with pytest.raises(AttributeError):
        hollow.uint64(1)


def test_a_forked_child_is_as_secure_as_its_parent():
    bits, hostile = SystemBits(), OtherWords()
    child = os.fork()
    if child == 0:
        os._exit(0 if is_secure(bits) and is_secure(default_bits()) and not is_secure(hostile) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_statement_of_a_release_says_not_private():
    assert _stated(keyed_system_bits(1)).randomness.secure is True
    for hostile in HOSTILE.values():
        stated = _stated(hostile())
        assert stated.randomness.secure is False and stated.private is False
        assert stated.reasons == ["replayable bits"]


def _stated(bits):
    batch = Batch(*PUBLIC, 1, bits=bits)
    rows = [row for chunk in batch.run(load_trajectories(ROWS).trajectories) for row in chunk]
    parts = dict(zip(("model", "policy", "space"), PUBLIC, strict=True))
    return statement_of(FileSums(rows), options=batch.setting.options, **parts)


def test_bits_without_words_are_refused():
    class Silent:
        secure = True

    with pytest.raises(InvalidInput, match=r"bits: got Silent; expected None \(system bits\)"):
        default_bits(Silent())
