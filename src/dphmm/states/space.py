"""States and their answers. States are 0..N-1 inside, names at the edges; answers are snapped once.

`check_names` says what may be a name of a state or a user.

Two kinds of spaces have states that are names, such as page categories, jobs, diagnoses: `category_space` gives each
name a number as its answer, and of `Labels` the name itself is the answer. Maps are in grid.py and hexes.py.

Proof: docs/proofs/hops.md (labels).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm._cached import cached_property
from dphmm._checks import state_mask
from dphmm.errors import InvalidInput
from dphmm.states.lattice import NO_MERGES, Lattice, as_answers, check_lattice, checked_merges, snap
from dphmm.types import FloatArray, IntArray, States

#: Longest name, in characters.
LONGEST_NAME = 200
# Control characters, line and paragraph separators, and the marks that reorder text on a screen.
FORBIDDEN = "[\\x00-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
_FORBIDDEN = re.compile(FORBIDDEN)
#: What names may be answered with where no table of answers is given.
ANSWERS_OF_NAMES = ("labels", "ordinal")
#: The label after the last one of a sequence whose length is not told.
END = "END"
#: What errors of labels are counted in: the share of them, from 0 to 1.
LABELS_WRONG = "of labels wrong"
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?", re.ASCII)
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0+", re.ASCII)
#: The kinds of spaces by name.
SPACES: dict[str, type[StateSpace]] = {}
Space = TypeVar("Space", bound="type[StateSpace]")


def whole_name(name: str) -> str:
    """A whole number without the zeros after its point ("3" of "3.00"), all other names as they stand."""
    return whole[1] if (whole := _WHOLE.fullmatch(name)) else name


def _whole_number(name: str) -> tuple[str, str, str]:
    """The parts of a whole number that zeros after its point do not change, without a branch."""
    before, point, after = name.partition(".")
    return before, after.strip("0"), point[len(after) :]


@lru_cache(maxsize=1)
def numbers_as_names(n: int) -> tuple[str, ...]:
    """The names of n states that have but their numbers. Spaces of one size share them, as every digest reads them."""
    return tuple(map(str, range(n)))


def check_names(names: Sequence[str], n: int) -> tuple[str, ...]:
    """Names as a tuple: ``n`` distinct printable strings of 1 to 200 characters, or InvalidInput."""
    if isinstance(names, str):
        raise InvalidInput("names", "one string", f"a list of {n} strings")
    labels = tuple(names)
    if len(labels) != n:
        raise InvalidInput("names", f"{len(labels)} names", f"{n}, one per state")
    first: dict[str, int] = {}
    for state, name in enumerate(labels):
        _check_name(name, state)
        if first.setdefault(str(name), state) != state:
            raise InvalidInput(f"names[{state}]", name, f"a name other than that of state {first[name]}")
    return tuple(map(str, labels))


def _check_name(name: object, state: int) -> None:
    field = f"names[{state}]"
    if not isinstance(name, str):
        raise InvalidInput(field, type(name).__name__, "a string")
    if not 0 < len(name) <= LONGEST_NAME:
        raise InvalidInput(field, f"{len(name)} characters", f"1 to {LONGEST_NAME}")
    if _FORBIDDEN.search(name):
        raise InvalidInput(field, ascii(name), "no control characters or text-direction marks")


#: What a space is saved as: numbers and text for JSON, and arrays. Never a pickle.
Description = tuple[dict[str, Any], dict[str, NDArray[Any]]]


def registered(space: Space) -> Space:
    """Make a kind of space known: saved spaces of this kind are restored by it (class decorator)."""
    SPACES[space.kind] = space
    return space


@registered
class StateSpace:
    """N states with their answers to the measurement query, a table (N, d).

    ``answers`` (N, d) or (N,), finite, in any unit; ``names`` N distinct strings (default "0", "1", ...);
    ``pitch`` the lattice step per axis in answer units (default: integers stay as they are, other axes get
    the largest pitch whose snapping error is at most 1 % of the smallest gap). Everything here is public.

    Raises InvalidInput naming the state for a missing, ragged or non-finite answer and for a bad name.
    """

    kind: ClassVar[str] = "plain"
    #: Whether places in degrees have states here (`MapSpace`), and what answers, and so errors, are counted in.
    on_map: ClassVar[bool] = False
    #: Whether answers are names (`Labels`): no distance, no mean, only right or wrong.
    has_labels: ClassVar[bool] = False
    unit: ClassVar[str] = "answer units"
    #: Merged states and their partners int64 (m, 2), by merged state; none unless `merged` made this space.
    merges: IntArray = NO_MERGES
    _before_merging: StateSpace | None = None

    def __init__(self, answers: ArrayLike, names: Sequence[str] | None = None, pitch: ArrayLike | None = None) -> None:
        raw = as_answers(answers)
        lattice, frame = snap(raw, pitch)
        self._place(lattice, frame, raw, names)

    def _place(self, lattice: IntArray, frame: Lattice, raw: FloatArray | None, names: Sequence[str] | None) -> None:
        """Set the public arrays; ``raw`` None means that the answers are the lattice points."""
        self.lattice = _read_only(lattice)
        self.frame = frame
        self.answers = _read_only(frame.to_answers(lattice))
        as_given = raw is None or np.array_equal(raw, self.answers)
        self.raw_answers = self.answers if raw is None or as_given else _read_only(raw)
        self._given_names = None if names is None else check_names(names, len(lattice))

    @classmethod
    def categories(cls, names: Sequence[str], answers: str | Mapping[str, Any] | ArrayLike = "ordinal") -> StateSpace:
        """A space of named categories: see ``dphmm.states.space.category_space``."""
        return category_space(names, answers)

    @classmethod
    def labels(cls, names: Sequence[str]) -> StateSpace:
        """A space whose answers are the names themselves: see ``dphmm.states.space.Labels``."""
        return Labels(names)

    def merged(self, merges: Mapping[int, int] | ArrayLike) -> Self:
        """This space with some states answered as others: ``answers[x]`` is the answer of x's partner.

        ``merges`` : merged state -> partner, a mapping or pairs (m, 2); merges that the space has stay. Names, places
        and `locate` stay those of every state itself (`plain`). Example: ``space.merged({4: 7})``.

        Raises InvalidInput for a state with two partners and for a partner that is merged itself.
        """
        plain = self.unmerged
        pairs = checked_merges(np.vstack([self.merges, checked_merges(merges, self.n_states)]), self.n_states)
        if len(pairs) == len(self.merges):
            return self
        everyone = np.arange(self.n_states, dtype=np.int64)
        answered_as = everyone.copy()
        answered_as[pairs[:, 0]] = pairs[:, 1]
        space = type(self).__new__(type(self))
        space._place(plain.lattice[answered_as], plain.frame, plain._raw_rows(answered_as), plain._given_names)
        plain._share_with(space, everyone)
        space.merges, space._before_merging = pairs, plain
        return space

    @property
    def unmerged(self) -> Self:
        """The same states, each with its own answer; the space itself where no state is merged."""
        return self if self._before_merging is None else self._before_merging  # type: ignore[return-value]

    @property
    def own_answers(self) -> FloatArray:
        """The answers (N, d) of the states themselves: `answers` but for merged ones. Estimates and errors use them."""
        return self.unmerged.answers

    @property
    def n_states(self) -> int:
        """Number of states N."""
        return len(self.lattice)

    @property
    def dimension(self) -> int:
        """Number of axes d of an answer."""
        return self.frame.dimension

    @property
    def pitch(self) -> FloatArray:
        """Lattice step per axis (d,), answer units."""
        return self.frame.pitch

    @cached_property
    def snap_error(self) -> FloatArray:
        """Largest distance (d,) from an answer as given to its lattice point, per axis, answer units."""
        error: FloatArray = np.abs(self.raw_answers - self.answers).max(axis=0)
        return error

    @property
    def is_lattice(self) -> bool:
        """True if the answers, before any snapping, are lattice points (within 1e-9 of a pitch)."""
        return bool((self.snap_error < 1e-9 * self.pitch).all())

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the states, in order."""
        return self.unmerged._default_names() if self._given_names is None else self._given_names

    @property
    def given_names(self) -> tuple[str, ...] | None:
        """The names that the states were given; None where they have but their numbers, or those of their places."""
        return self._given_names

    def _default_names(self) -> tuple[str, ...]:
        return numbers_as_names(self.n_states)

    @cached_property
    def _states_by_name(self) -> dict[str, int]:
        return {name: state for state, name in enumerate(self.names)}

    @cached_property
    def _states_by_whole_number(self) -> dict[tuple[str, str, str], int]:
        states = dict[tuple[str, str, str], int]()
        for state, name in enumerate(self.names):
            key = _whole_number(name)
            if key == (whole_name(name), "", "") and _NUMBER.fullmatch(key[0]):
                states[key] = -1 if key in states else state
        return states

    def index_of(self, name: str) -> int:
        """The state with this name, or -1. "3", "3.0" and "3.00" are one name, unless two states have two of them."""
        # Both are looked up, whatever the name is: true states must not decide which lines run.
        return self._states_by_name.get(name, self._states_by_whole_number.get(_whole_number(name), -1))

    def indices_of(self, names: ArrayLike) -> IntArray:
        """States int64 (n,) of many names; -1 where there is none."""
        labels, inverse = _distinct(np.asarray(names, dtype=object).ravel())
        states = [-1 if label is None else self.index_of(str(label)) for label in labels]
        return np.array(states, dtype=np.int64)[inverse] if states else np.empty(0, dtype=np.int64)

    def subset(self, states: States) -> Self:
        """The space of some states (mask or numbers) in the order of their numbers; keeps names, kind and merges.

        Raises InvalidInput for no state, and for a merged state without its partner.
        """
        numbers = np.flatnonzero(state_mask(states, self.n_states, "states"))
        if len(numbers) == 0:
            raise InvalidInput("states", "no state", "at least 1 state")
        if len(self.merges):
            return self.unmerged.subset(numbers).merged(_renumbered(self.merges, numbers))
        space = type(self).__new__(type(self))
        names = None if self._names_follow_lattice else tuple(self.names[i] for i in numbers)
        space._place(self.lattice[numbers], self.frame, self._raw_rows(numbers), names)
        self._share_with(space, numbers)
        return space

    #: Whether names are made from the lattice point, so that a subset need not carry them.
    _names_follow_lattice: ClassVar[bool] = False

    def _share_with(self, part: Self, kept: IntArray) -> None:
        """Hand the facts of a subclass beyond lattice and names to a subset of this space."""

    def _raw_rows(self, kept: IntArray) -> FloatArray | None:
        return None if self.raw_answers is self.answers else self.raw_answers[kept]

    def to_latlon(self, answers: ArrayLike) -> tuple[FloatArray, FloatArray] | None:
        """Latitudes and longitudes (n,) of answers (n, d) on map spaces; None here."""
        return None

    def distances(self, answers: ArrayLike, others: ArrayLike) -> FloatArray:
        """Distances between answers (..., d), broadcast: Euclidean, in answer units; on a map, metres on the ground."""
        apart = np.asarray(answers, dtype=np.float64) - np.asarray(others, dtype=np.float64)
        return np.asarray(np.linalg.norm(apart, axis=-1))

    def well_formed(self, name: str) -> bool:
        """True if a text has the form of a state's name, even without such a state: any text but "" has it here."""
        return bool(name)

    @cached_property
    def digest(self) -> str:
        """Hex SHA-256 of lattice, pitch, origin, names and place: the same for equal spaces on every machine."""
        if len(self.merges):
            return hashlib.sha256(f"{self.unmerged.digest} merged {self.merges.tolist()}".encode()).hexdigest()
        sha = hashlib.sha256(f"dphmm space 1 {self.lattice.shape}".encode())
        for part in (self.lattice.astype("<i8"), self.frame.pitch, self.frame.origin):
            sha.update(np.ascontiguousarray(part).astype(part.dtype.newbyteorder("<")).tobytes())
        sha.update("\n".join(self.names).encode())
        sha.update(self._whereabouts().encode())
        return sha.hexdigest()

    def _whereabouts(self) -> str:
        """The text that tells equal answers at other places apart."""
        return ""

    def describe(self) -> Description:
        """The description that saves this space: dicts for JSON and of arrays; ``from_description`` restores it."""
        if len(self.merges):
            description = self.unmerged.describe()
            return description[0], description[1] | {"merges": self.merges}
        meta: dict[str, Any] = {
            "kind": self.kind,
            "pitch": self.frame.pitch.tolist(),
            "origin": self.frame.origin.tolist(),
        }
        if self._given_names is not None:
            meta["names"] = list(self._given_names)
        arrays: dict[str, NDArray[Any]] = {"lattice": self.lattice}
        if self.raw_answers is not self.answers:
            arrays["raw_answers"] = self.raw_answers
        return meta, arrays

    @staticmethod
    def from_description(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> StateSpace:
        """The space of any registered kind that was described so; see ``dphmm.states.space``."""
        return from_description(meta, arrays)

    @classmethod
    def _restore(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        space = cls.__new__(cls)
        frame = Lattice(np.asarray(meta["pitch"]), np.asarray(meta["origin"]))
        lattice = arrays["lattice"]
        if lattice.dtype != np.int64 or lattice.ndim != 2 or lattice.shape[1] != frame.dimension:
            raise InvalidInput("lattice", f"{lattice.dtype} {lattice.shape}", "int64 (N, d)")
        check_lattice(lattice)
        raw = None if "raw_answers" not in arrays else as_answers(arrays["raw_answers"])
        if raw is not None and raw.shape != lattice.shape:
            raise InvalidInput("raw_answers", f"shape {raw.shape}", f"shape {lattice.shape}")
        space._place(lattice, frame, raw, meta.get("names"))
        return space

    def __len__(self) -> int:
        return self.n_states

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_states={self.n_states}, dimension={self.dimension})"


def lattice_answers(answers: StateSpace | ArrayLike) -> tuple[IntArray, Lattice]:
    """Lattice points int64 (N, d) and their lattice, from a StateSpace or an integer-valued array (N, d) or (N,).

    Raises InvalidInput for floats that are not integers: a StateSpace snaps them.
    """
    if isinstance(answers, StateSpace):
        return answers.lattice, answers.frame
    values = as_answers(answers)
    if (values != np.rint(values)).any():
        raise InvalidInput("answers", "floats that are not integers", "a StateSpace, which snaps them, or integers")
    lattice = values.astype(np.int64)
    check_lattice(lattice)
    return lattice, Lattice.unit(lattice.shape[1])


def _renumbered(merges: IntArray, kept: IntArray) -> IntArray:
    """The merges among the states of a subset, in its numbers."""
    inside = merges[np.isin(merges[:, 0], kept)]
    missing = inside[~np.isin(inside[:, 1], kept)]
    if len(missing):
        fault = f"state {missing[0, 0]} without state {missing[0, 1]}, which it is answered as"
        raise InvalidInput("states", fault, "merged states with their partners")
    numbers: IntArray = np.searchsorted(kept, inside)
    return numbers


def _distinct(labels: NDArray[Any]) -> tuple[list[Any], IntArray]:
    codes: dict[Any, int] = {}
    inverse = np.fromiter((codes.setdefault(label, len(codes)) for label in labels), np.int64, len(labels))
    return list(codes), inverse


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@registered
class Labels(StateSpace):
    """N states, each answered with its own name; a wrong name is wrong, whichever it is.

    Inside, the answer of state i is the number i, which orders nothing and measures nothing: distances are 0 and 1, and
    so are errors. Made by `StateSpace.labels`.

    Examples
    --------
    >>> space = StateSpace.labels(["news", "shop", "sport"])
    >>> space.label_of(2)
    'sport'
    """

    kind: ClassVar[str] = "labels"
    has_labels: ClassVar[bool] = True
    unit: ClassVar[str] = LABELS_WRONG

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(np.arange(len(names)), names)

    def label_of(self, number: int) -> str:
        """The name that an answer stands for. Raises InvalidInput for a number that no state has."""
        if not 0 <= number < self.n_states:
            raise InvalidInput("z", str(number), f"the number of a label, 0 to {self.n_states - 1}")
        return self.names[number]

    def labels_of(self, numbers: ArrayLike) -> NDArray[np.object_]:
        """The names (n,) that answers (n,) or (n, 1) stand for."""
        return np.array(self.names, dtype=object)[np.asarray(numbers, dtype=np.int64).reshape(-1)]

    def subset(self, states: States) -> Self:
        """The space of some labels, in the order of their numbers. Raises InvalidInput as `StateSpace.subset`."""
        part = super().subset(states)
        return part if len(part.merges) else type(self)(part.names)

    def distances(self, answers: ArrayLike, others: ArrayLike) -> FloatArray:
        """1 where answers (..., 1) are different labels, 0 where they are one."""
        # Of an unknown label, NaN, nothing is known.
        apart = np.abs(np.asarray(answers, np.float64) - np.asarray(others, np.float64)).max(axis=-1)
        return np.asarray(np.sign(apart))

    def _whereabouts(self) -> str:
        return "labels"

    @classmethod
    def _restore(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        space = super()._restore(meta, arrays)
        numbered = np.arange(space.n_states)[:, None]
        if not (np.array_equal(space.lattice, numbered) and np.array_equal(space.answers, numbered)):
            raise InvalidInput("lattice", "other numbers than those of the labels", "0, 1, ... in order")
        if space.given_names is None:
            raise KeyError("names")
        return space


def from_description(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> StateSpace:
    """The space that ``describe`` described. Raises InvalidInput for an unknown kind, a missing or a wrong part."""
    kind = meta.get("kind")
    if not isinstance(kind, str) or kind not in SPACES:
        raise InvalidInput("kind", kind, "one of " + ", ".join(sorted(SPACES)))
    try:
        others = {name: array for name, array in arrays.items() if name != "merges"}
        return SPACES[kind]._restore(meta, others).merged(arrays.get("merges", ()))
    except KeyError as missing:
        raise InvalidInput("space", "a description without " + str(missing.args[0]), "a complete one") from None
    except InvalidInput:
        raise
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("space", "parts of another type", f"the description of a {kind} space") from None


def category_space(names: Sequence[str], answers: str | Mapping[str, Any] | ArrayLike = "ordinal") -> StateSpace:
    """A space of named categories, state i being ``names[i]``.

    ``answers``: "ordinal" (0, 1, ... in the order of the names), a table name -> number or vector with
    exactly these names, or an array (N,) or (N, d). Raises InvalidInput for a name without an answer or an
    answer without a name.
    """
    labels = check_names(names, len(names))
    if isinstance(answers, str):
        if answers != "ordinal":
            raise InvalidInput("answers", answers, '"ordinal" or a table of answers')
        return StateSpace(np.arange(len(labels)), labels)
    if isinstance(answers, Mapping):
        missing = next((name for name in labels if name not in answers), None)
        if missing is not None:
            raise InvalidInput("answers", f"no answer for {missing!r}", "one for every name")
        known = set(labels)
        extra = next((name for name in answers if name not in known), None)
        if extra is not None:
            raise InvalidInput("answers", f"an answer for {extra!r}", "only names of states")
        return StateSpace([answers[name] for name in labels], labels)
    return StateSpace(answers, labels)


def space_of_names(names: Sequence[str], answers: str | None = None) -> StateSpace:
    """The space of names that nobody gave answers for: "labels" or "ordinal".

    ``answers`` None: labels, unless all names are plain numbers, which are numbered in their order. Raises InvalidInput
    for another word.
    """
    kind = answers or ("ordinal" if all(_NUMBER.fullmatch(name) for name in names) else "labels")
    if kind not in ANSWERS_OF_NAMES:
        raise InvalidInput("answers", kind, "labels, ordinal, or a table of answers")
    return StateSpace.labels(names) if kind == "labels" else category_space(names)


def ordered_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """The distinct labels in order: by value and with whole names if all are plain numbers, else by character."""
    distinct = set(labels)
    if all(_NUMBER.fullmatch(label) for label in distinct):
        return tuple(sorted(sorted(set(map(whole_name, distinct))), key=Fraction))
    return tuple(sorted(distinct))
