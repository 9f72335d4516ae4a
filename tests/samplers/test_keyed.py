"""Keyed words: the documented function of key and context, refused where they would be served twice, and marked.

Claims. Words and tags are HMAC-SHA256 and ChaCha20 as the page of the proof says, which a few plain lines here say
again. Contexts that differ in anything have other words; those that differ in nothing have the same, in another
process too, and compiled and plain samplers make the same integers of them. An overwritten key serves nothing, and
nothing shows a key. Bits of a replayed key never count as secure, however it or they were dressed up. They would fail
for a context that lost a part, for a label that is shared, for parts of a stream that repeat, and for a key that is
asked whether it is secure.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import io
import itertools
import os
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given
from hypothesis import strategies as st

import dphmm
from crafted_bits import CountedBits
from dphmm.errors import InvalidInput
from dphmm.samplers import LatticeBody, LatticeSampler, ReplayBits, SystemBits, entropy
from dphmm.samplers.entropy import JobKey, KeyedBits, encoded, is_secure
from dphmm.samplers.table import TableSampler
from running_example import ANSWERS, EDGES_3B, TRANSITION

#: Keys of the system are replayed here, each test its own.
pytestmark = pytest.mark.replayed_words

CONTEXT = encoded("job", "ann", 1, 4)
OTHER = encoded("job", "ann", 1, 5)


def key_of(seed):
    """The bytes of a replayed key, by definition."""
    return hashlib.sha256(b"dphmm replay job key int %d" % seed).digest()


def plain_words(key, context, n, part=0):
    """The first n words of a part of a context's stream, by definition."""
    stream = hmac.new(key, b"dphmm keyed 1" + context, hashlib.sha256).digest()
    cipher = Cipher(algorithms.ChaCha20(stream, bytes(4) + part.to_bytes(12, "little")), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * n)), dtype="<u8")


class TestWords:
    def test_known_answers(self):
        """Computed with OpenSSL's commands: dgst -mac HMAC, enc -chacha20."""
        key = JobKey.replayed(7)
        expected = [0xEB29423B3638B44E, 0x8608A47519EF0375, 0x672962AFAD117530, 0x39CB63BF390117E7]
        assert key.bits(b"a context").uint64(4).tolist() == expected
        assert key.tag(b"a context").hex() == "e5f7595fea349d4a712e2d9b2e50b6216afa0b47cf58c39c8dc23d0f919f7172"

    @pytest.mark.parametrize("context", [b"", b"x", CONTEXT, bytes(1000)])
    def test_words_and_tags_are_the_documented_functions(self, context):
        key = JobKey.replayed(3)
        words = key.bits(context).uint64(9000)
        np.testing.assert_array_equal(words, plain_words(key_of(3), context, 9000))
        assert words.dtype == np.uint64
        assert key.tag(context) == hmac.new(key_of(3), b"dphmm tag 1" + context, hashlib.sha256).digest()

    def test_a_new_key_is_what_the_system_gave(self, monkeypatch):
        asked = []
        monkeypatch.setattr(entropy.os, "urandom", lambda n: asked.append(n) or bytes(range(1, n + 1)))
        words = JobKey.new().bits(CONTEXT).uint64(5)
        assert asked == [32]
        np.testing.assert_array_equal(words, plain_words(bytes(range(1, 33)), CONTEXT, 5))

    def test_a_stream_is_left_after_its_share_and_no_part_repeats_another(self, monkeypatch):
        monkeypatch.setattr(entropy, "_BYTES_PER_KEY", 8 * 100)
        words = JobKey.replayed(1).bits(CONTEXT).uint64(1000)
        parts = [plain_words(key_of(1), CONTEXT, 100, part) for part in range(10)]
        np.testing.assert_array_equal(words, np.concatenate(parts))
        assert len(np.unique(words)) == 1000

    def test_equal_contexts_have_equal_words_and_others_have_others(self):
        key = JobKey.replayed(1)
        contexts = [b"", b"\0", b"\0\0", CONTEXT, OTHER, CONTEXT + b"\0", b"\0" + CONTEXT, CONTEXT[:-1], CONTEXT * 2]
        contexts += [tail + last for tail in (bytes(63), bytes(64), bytes(5000)) for last in (b"", b"1", b"2")]
        firsts = {context: key.bits(context).uint64(50).tolist() for context in contexts}
        assert [
            (context, words) for context, words in firsts.items() if key.bits(context).uint64(50).tolist() != words
        ] == []
        assert len(set(itertools.chain(*firsts.values()))) == 50 * len(contexts)

    def test_a_tag_is_of_no_use_for_the_words(self):
        """The stream key of no context is the tag of that context, or of one beside it."""
        key = JobKey.replayed(1)
        near = [b"", b"1", b" 1", CONTEXT, b"dphmm keyed 1", b"dphmm tag 1", b"dphmm keyed 1" + CONTEXT]
        tags = {key.tag(context) for context in near}
        streams = {hmac.new(key_of(1), b"dphmm keyed 1" + context, hashlib.sha256).digest() for context in near}
        assert len(tags) == len(streams) == len(near) and not tags & streams
        assert not entropy._STREAMS.startswith(entropy._TAGS) and not entropy._TAGS.startswith(entropy._STREAMS)

    def test_served_words_are_wiped_from_the_buffer(self):
        bits = JobKey.replayed(1).bits(CONTEXT)
        served = bits.uint64(100)
        assert not np.isin(served, entropy._DRAWINGS.get(bits).words._buffer).any()

    @pytest.mark.parametrize("wrong", [None, "text", 1, bytearray(b"x"), memoryview(b"x")])
    def test_a_context_is_bytes(self, wrong):
        for use in (JobKey.replayed(1).bits, JobKey.replayed(1).tag):
            with pytest.raises(InvalidInput, match=f"context: got {type(wrong).__name__}"):
                use(wrong)

    @pytest.mark.parametrize("bits", [JobKey.replayed(1).bits(CONTEXT), ReplayBits(1)], ids=repr)
    @pytest.mark.parametrize("wrong", [-1, True, 1.0])
    def test_a_number_of_words_is_checked(self, bits, wrong):
        with pytest.raises(InvalidInput, match="n: "):
            bits.uint64(wrong)


PARTS = st.one_of(
    st.binary(max_size=4), st.text(max_size=3), st.integers(), st.sampled_from([0, -1, 127, 128, -128, -129, 255, 256])
)


class TestContexts:
    def test_short_lists_never_share_an_encoding(self):
        """Every list of up to three of these: they run into each other wherever a length or a type is left out."""
        head = encoded("a")
        parts = [b"", b"a", b"aa", "", "a", "aa", 0, 97, b"\0", b"s", "s", head, head[:9], 24929, -1, b"\xff"]
        lists = [given for n in range(4) for given in itertools.product(parts, repeat=n)]
        assert len(lists) == 1 + 16 + 16**2 + 16**3
        assert len({encoded(*given) for given in lists}) == len(lists)

    @given(st.lists(PARTS, max_size=6))
    def test_a_list_is_read_back_from_its_encoding(self, parts):
        """A reader of the format, written from its description, gives the list: so no two lists share one."""
        stream, found = io.BytesIO(encoded(*parts)), []
        while letter := stream.read(1):
            part = stream.read(int.from_bytes(stream.read(8), "big"))
            found.append({b"b": bytes, b"s": text_of, b"i": number_of}[letter](part))
        assert found == parts and list(map(type, found)) == list(map(type, parts))

    def test_long_parts_do_not_run_into_each_other(self):
        """The second list is what a length of one byte would take for the first."""
        for size in (256, 2**16, 2**24):
            assert encoded(bytes(size)) != encoded(b"") + bytes(size)
            assert encoded(bytes(size))[1:9] == size.to_bytes(8, "big")

    def test_lone_surrogates_and_long_numbers_have_encodings(self):
        odd = ["\ud800", "\udc00", "\ud800\udc00", "\U00010000", "?", 10**5000, 10**5000 + 1, -(10**5000)]
        assert len({encoded(part) for part in odd}) == len(odd)

    def test_numbers_of_numpy_are_numbers(self):
        assert encoded(np.int64(-5), np.uint64(2**64 - 1)) == encoded(-5, 2**64 - 1)

    @pytest.mark.parametrize("wrong", [None, 1.0, True, np.True_, ["a"], bytearray(b"a")])
    def test_other_types_are_refused(self, wrong):
        with pytest.raises(InvalidInput, match=f"part of a context: got {type(wrong).__name__}"):
            encoded("a", wrong)


def text_of(part):
    return part.decode("utf-8", "surrogatepass")


def number_of(part):
    return int.from_bytes(part, "big", signed=True)


DISC = LatticeBody(((2, 1), (1, 2), (-1, 2), (-2, 1)), (6, 6, 6, 6), (Fraction(3), Fraction(3)), ((1, 0), (0, 1)))
WEIGHTS = np.array([[2**62, 2**63, 2**62 - 1, 1], [1, 1, 2**63, 2**63 - 2]], dtype=object)


class ByRows:
    """A table's sampler, asked for m columns."""

    def __init__(self):
        self._table = TableSampler(WEIGHTS, 64)

    def draw(self, m, bits):
        return self._table.draw(np.arange(m) % 2, bits)

    def draw_plainly(self, m, bits):
        return self._table.draw_plainly(np.arange(m) % 2, bits)


SAMPLERS = {
    "knorm": lambda: LatticeSampler.knorm(DISC, Fraction(1, 2)),
    "knorm, small epsilon": lambda: LatticeSampler.knorm(DISC, Fraction(1, 2**20)),
    "staircase": lambda: LatticeSampler.staircase(DISC, Fraction(2), Fraction(1, 3)),
    "table": ByRows,
}


class TestDraws:
    @pytest.mark.parametrize("kind", SAMPLERS)
    def test_compiled_and_plain_samplers_make_the_same_integers_of_them(self, kind):
        """However many are asked for at once, and with as many words read: draws are a function of the words."""
        key, sampler = JobKey.replayed(2), SAMPLERS[kind]()
        compiled, plain, single = (CountedBits(key.bits(CONTEXT)) for _ in range(3))
        drawn = sampler.draw(300, compiled)
        np.testing.assert_array_equal(drawn, sampler.draw_plainly(300, plain))
        if kind != "table":
            np.testing.assert_array_equal(drawn, np.concatenate([sampler.draw(1, single) for _ in range(300)]))
            assert single.served == plain.served
        assert compiled.served == plain.served
        assert (drawn != sampler.draw(300, key.bits(OTHER))).any()

    def test_two_attempts_at_a_batch_give_the_same_rows(self):
        first, again, other = (released(JobKey.replayed(1).bits(context)) for context in (CONTEXT, CONTEXT, OTHER))
        pd.testing.assert_frame_equal(first, again)
        assert not first.equals(other)


def released(bits):
    rows = pd.DataFrame({"user": ["ann"] * 20, "step": range(1, 21), "state": ["3", "4"] * 10})
    public = dphmm.MarkovModel(np.full(6, 1 / 6), TRANSITION), dphmm.policy.from_edges(EDGES_3B, 6)
    return dphmm.release_many(rows, *public, dphmm.StateSpace(ANSWERS), "0.5", bits=bits, progress=False)


class TestKeys:
    @pytest.mark.parametrize("make", [lambda: JobKey.replayed(5), JobKey.new])
    def test_a_key_goes_to_another_process_and_keeps_its_kind(self, make):
        key = make()
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            there = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(key, protocol)), protocol))
            assert type(there) is JobKey and there.is_replayed is key.is_replayed
            np.testing.assert_array_equal(there.bits(CONTEXT).uint64(100), key.bits(CONTEXT).uint64(100))
            assert there.tag(CONTEXT) == key.tag(CONTEXT)
            assert is_secure(there.bits(CONTEXT)) is is_secure(key.bits(CONTEXT)) is not key.is_replayed

    def test_a_new_interpreter_draws_the_same_words(self):
        code = (
            "import pickle, sys; key = pickle.load(sys.stdin.buffer); print(key.is_replayed, key.bits(b'x').uint64(3))"
        )
        key = JobKey.replayed(5)
        done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(key), capture_output=True, timeout=60)
        assert done.stdout.decode() == f"True {key.bits(b'x').uint64(3)}\n", done.stderr

    @pytest.mark.parametrize("make", [lambda: JobKey.replayed(5), JobKey.new])
    def test_an_overwritten_key_is_refused_everywhere(self, make):
        key = make()
        before, held = key.bits(CONTEXT), entropy._SECRETS.get(key).key
        before.uint64(1)
        assert any(held)
        key.overwrite()
        assert held == bytes(32)
        uses = [
            lambda: key.bits(CONTEXT),
            lambda: KeyedBits(key, CONTEXT),
            lambda: key.tag(CONTEXT),
            lambda: pickle.dumps(key),
            lambda: copy.copy(key),
            lambda: before.uint64(1),
        ]
        for use in uses:
            with pytest.raises(InvalidInput, match="job key: got one that was overwritten"):
                use()
        key.overwrite()
        assert repr(key) == "JobKey(...)"

    def test_the_pickle_of_nothing_is_no_key(self):
        """Bytes of 0 are what an overwritten key has, wherever they come from."""
        forged = pickle.dumps(JobKey.replayed(5)).replace(key_of(5), bytes(32))
        with pytest.raises(InvalidInput, match="overwritten"):
            pickle.loads(forged).bits(CONTEXT)

    def test_overwriting_one_copy_leaves_the_others(self):
        key = JobKey.replayed(5)
        other = pickle.loads(pickle.dumps(key))
        key.overwrite()
        np.testing.assert_array_equal(other.bits(CONTEXT).uint64(5), plain_words(key_of(5), CONTEXT, 5))

    def test_nothing_that_is_printed_shows_a_key_or_a_context(self):
        key = JobKey.replayed(5)
        bits = key.bits(CONTEXT)
        bits.uint64(1)
        held = (entropy._SECRETS.get(key), entropy._DRAWINGS.get(bits))
        shown = {repr(key), str(key), f"{key}", repr(bits), str(bits), *map(repr, held)}
        assert {repr(key), repr(bits)} == {"JobKey(...)", "KeyedBits(...)"}
        assert not any(secret in text for text in shown for secret in (str(key_of(5)), key_of(5).hex(), "ann"))
        assert not hasattr(key, "__dict__") and not hasattr(bits, "__dict__")

    def test_bits_are_not_pickled_or_copied(self):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="not pickled or copied"):
                attempt(JobKey.replayed(5).bits(CONTEXT))

    def test_a_key_is_made_by_name(self):
        with pytest.raises(TypeError, match=r"JobKey\.new\(\)"):
            JobKey()

    def test_what_is_no_key_gives_no_bits(self):
        class Equal(JobKey):
            def __eq__(self, other):
                return True

            def __hash__(self):
                return hash(true)

        true = JobKey.new()
        for wrong in (b"k" * 32, None, object.__new__(JobKey), object.__new__(Equal)):
            with pytest.raises(InvalidInput, match="job key: got"):
                KeyedBits(wrong, CONTEXT)
        for use in (lambda key: key.is_replayed, lambda key: key.tag(b""), pickle.dumps, JobKey.overwrite):
            with pytest.raises(InvalidInput, match="job key: got"):
                use(object.__new__(JobKey))

    def test_nothing_is_kept_of_what_is_gone(self):
        before = len(entropy._SECRETS._held), len(entropy._DRAWINGS._held)
        for _ in range(100):
            JobKey.replayed(5).bits(CONTEXT).uint64(1)
        assert (len(entropy._SECRETS._held), len(entropy._DRAWINGS._held)) == before

    def test_a_forked_child_is_refused_its_parents_bits_and_makes_its_own(self):
        key = JobKey.replayed(5)
        bits = key.bits(CONTEXT)
        bits.uint64(1)
        child = os.fork()
        if child == 0:
            try:
                bits.uint64(1)
            except InvalidInput:
                same = key.bits(CONTEXT).uint64(5).tolist() == plain_words(key_of(5), CONTEXT, 5).tolist()
                os._exit(0 if same else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0


class Derived(KeyedBits):
    """Nothing is changed, yet: a subclass can change it later."""

    __slots__ = ()


class SameLayout(entropy._StreamBits):
    """Objects of this class can be made ones of `KeyedBits`."""

    __slots__ = ("__weakref__",)


class EqualsEveryClass(type):
    def __eq__(cls, other):
        return True

    def __hash__(cls):
        return hash(KeyedBits)


class OfAnEqualClass(metaclass=EqualsEveryClass):
    def uint64(self, n):
        return np.zeros(n, np.uint64)


def _replayed():
    return JobKey.replayed(5).bits(CONTEXT)


def _of_unpickled():
    return pickle.loads(pickle.dumps(copy.deepcopy(JobKey.replayed(5)))).bits(CONTEXT)


def _begun_again():
    bits = _replayed()
    with pytest.raises(InvalidInput, match="bits that were made before"):
        bits.__init__(JobKey.new(), CONTEXT)
    return bits


def _of_exchanged_class(kind):
    bits = object.__new__(SameLayout) if kind is KeyedBits else _replayed()
    bits.__class__ = kind
    return bits


def _beside_new_bits():
    """The objects of a secure key are alive, and equal."""
    keep = JobKey.new().bits(CONTEXT)

    class Equal(KeyedBits):
        __slots__ = ()

        def __eq__(self, other):
            return True

        def __hash__(self):
            return hash(keep)

    return Equal(JobKey.replayed(5), CONTEXT)


INSECURE = {
    "replayed": _replayed,
    "replayed, then pickled": _of_unpickled,
    "begun again with a new key": _begun_again,
    "derived": lambda: Derived(JobKey.new(), CONTEXT),
    "derived, equal to secure ones": _beside_new_bits,
    "made a derived one": lambda: _of_exchanged_class(Derived),
    "another object, made one of these": lambda: _of_exchanged_class(KeyedBits),
    "without a beginning": lambda: object.__new__(KeyedBits),
    "of a class that equals": OfAnEqualClass,
    "replayed, by another name": lambda: type("KeyedBits", (ReplayBits,), {"__module__": entropy.__name__})(5),
    "the key itself": JobKey.new,
}


class TestSecure:
    def test_bits_of_a_new_key_are_secure_and_nothing_else_is(self):
        assert is_secure(JobKey.new().bits(CONTEXT)) and is_secure(KeyedBits(JobKey.new(), CONTEXT))
        assert [kind for kind, made in INSECURE.items() if is_secure(made()) is not False] == []

    @pytest.mark.parametrize("name", ["secure", "is_replayed", "replayed", "_replayed", "_secret", "bits", "uint64"])
    def test_neither_keys_nor_bits_take_attributes(self, name):
        key = JobKey.replayed(5)
        bits = key.bits(CONTEXT)
        for thing in (key, bits):
            for put in (setattr, object.__setattr__):
                with pytest.raises(AttributeError):
                    put(thing, name, False)
        assert key.is_replayed and not is_secure(bits)

    def test_keyed_bits_do_not_become_system_bits(self):
        with pytest.raises(TypeError, match="layout"):
            _replayed().__class__ = SystemBits

    def test_a_pickle_cannot_add_to_what_a_key_says(self):
        """State that a crafted pickle sets has no place to go: keys have no attributes."""

        class Says:
            def __reduce__(self):
                return entropy._restored, (key_of(5), True), {"is_replayed": False}

        with pytest.raises(AttributeError):
            pickle.loads(pickle.dumps(Says()))

    def test_keys_of_a_derived_class_are_plain_ones(self):
        class Mine(JobKey):
            is_replayed = False

        for made, secure in ((Mine.new(), True), (Mine.replayed(5), False)):
            assert type(made) is JobKey and is_secure(made.bits(CONTEXT)) is secure

    @pytest.mark.parametrize("name", ["uint64", "__init__", "__getattribute__", "__weakref__"])
    def test_a_method_replaced_in_the_class_is_another_source(self, monkeypatch, name):
        """Also for bits that were made before, and only as long as it is replaced."""
        bits = JobKey.new().bits(CONTEXT)
        with monkeypatch.context() as patch:
            patch.setattr(KeyedBits, name, lambda *given: np.zeros(1, np.uint64), raising=False)
            assert not is_secure(bits)
        assert is_secure(bits)

    @pytest.mark.parametrize("name", ["is_replayed", "bits", "__reduce__", "new"])
    def test_a_method_replaced_in_the_class_of_keys_changes_no_verdict(self, monkeypatch, name):
        monkeypatch.setattr(JobKey, name, False)
        assert not is_secure(KeyedBits(JobKey.replayed(5), CONTEXT))

    def test_looking_at_the_class_does_not_mark_it(self):
        assert KeyedBits.__annotations__ is not None and KeyedBits.__doc__ and dir(KeyedBits)
        assert is_secure(JobKey.new().bits(CONTEXT))
