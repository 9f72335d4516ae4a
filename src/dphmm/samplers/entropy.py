"""Random words: from the operating system for releases, from a seed for tests and simulation, under a key for one job.

Both are ChaCha20 key streams. System bits are keyed by the operating system, take a fresh key after every
2**30 bytes and in every forked child, and wipe each word as it is served. No word is served twice.

Keyed words: the same words for the same context, under a key that lives no longer than one job.
A job on many machines draws some answers twice: a task fails and is repeated, or two attempts of it race. With words
that are a function of the job's key and of all that a draw depends on, every attempt draws the same, so it does not
matter which one is taken. Whoever has the key has every state: nothing here shows it, and it is overwritten when the
job has committed.

Proofs: docs/proofs/randomness.md, docs/proofs/keyed-words.md.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.types import Bits, WordArray

_WORD = np.dtype("<u8")
_KEY_BYTES = 32
_NONCE_BYTES = 12
#: One key serves this many bytes: far below the 2**38 at which a ChaCha20 block counter would repeat.
_BYTES_PER_KEY = 2**30
#: Key stream is made this many words at a time, so that a draw of a few words does not pay for a call.
_BUFFER_WORDS = 2**12
_ZEROS = bytes(8 * 2**14)


class _KeyStream:
    """The ChaCha20 key stream of one key and nonce, as words; at most ``_BYTES_PER_KEY`` of it."""

    def __init__(self, key: bytes, nonce: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

        counter = bytes(4)
        self._cipher = Cipher(algorithms.ChaCha20(key, counter + nonce), mode=None).encryptor()
        self.words_left = _BYTES_PER_KEY // 8

    def fill(self, words: WordArray) -> None:
        target = words.data.cast("B")
        for start in range(0, len(target), len(_ZEROS)):
            part = target[start : start + len(_ZEROS)]
            self._cipher.update_into(_ZEROS[: len(part)], part)
        self.words_left -= len(words)


class _Words:
    """Words of successive key streams, through a small buffer and under one lock."""

    def __init__(self, new_stream: Callable[[], _KeyStream]) -> None:
        self._lock = threading.Lock()
        self._new_stream = new_stream
        self._stream: _KeyStream | None = None
        self._buffer: WordArray = np.empty(0, dtype=np.uint64)
        self._next = 0

    def serve(self, n: int) -> WordArray:
        with self._lock:
            return self._served(n)

    def _make(self, n: int) -> WordArray:
        words = np.empty(n, dtype=_WORD)
        made = 0
        while made < n:
            if self._stream is None or self._stream.words_left == 0:
                self._stream = self._new_stream()
            step = min(n - made, self._stream.words_left)
            self._stream.fill(words[made : made + step])
            made += step
        return words.astype(np.uint64, copy=False)

    def _served(self, n: int) -> WordArray:
        held = self._buffer[self._next : self._next + n]
        self._next += len(held)
        words = held.copy() if len(held) == n else self._continued(held, n)
        held[:] = 0
        return words

    def _continued(self, held: WordArray, n: int) -> WordArray:
        """Words that are held, and as many more as make ``n``."""
        words = np.empty(n, dtype=np.uint64)
        words[: len(held)] = held
        missing = n - len(held)
        if missing >= _BUFFER_WORDS:
            words[len(held) :] = self._make(missing)
        else:
            self._buffer, self._next = self._make(_BUFFER_WORDS), missing
            words[len(held) :] = self._buffer[:missing]
            self._buffer[:missing] = 0
        return words


def _in_parts(key: bytes) -> Callable[[], _KeyStream]:
    """The streams of one key, part after part: the nonce is the number of the part, 12 bytes little-endian."""
    parts = itertools.count()
    return lambda: _KeyStream(key, next(parts).to_bytes(_NONCE_BYTES, "little"))


def _key_of(seed: int | bytes, label: bytes) -> bytes:
    """SHA-256 of the label, " int " or " bytes ", and the seed (an integer in decimal)."""
    if isinstance(seed, bytes):
        return hashlib.sha256(label + b" bytes " + seed).digest()
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        return hashlib.sha256(label + b" int " + str(int(seed)).encode()).digest()
    raise InvalidInput("seed", type(seed).__name__, "an int or bytes")


class _StreamBits:
    """The base of all bits of the package: they are neither pickled nor copied."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError("random bits are not pickled or copied: the copy would repeat the original's words")


class SystemBits(_StreamBits):
    """Secure words: ChaCha20 keyed from ``os.urandom``.

    A forked child starts with a fresh key and nothing buffered. A restored virtual machine image is not
    noticed: start a new process after restoring one.
    """

    #: No place for an attribute of the same name as a method: no object of this class makes its words otherwise.
    __slots__ = ("__weakref__", "_words_of")

    def __init__(self) -> None:
        self._words_of: dict[int, _Words] = {}
        _ALL_SYSTEM_BITS.add(self)

    def uint64(self, n: int) -> WordArray:
        """The next ``n`` words (n,), uniform on 0..2**64-1. Safe to call from several threads and after a fork."""
        process = os.getpid()
        words = self._words_of.get(process)
        if words is None:
            # One step of the interpreter: whichever thread of a new process comes first, all take the same.
            words = self._words_of.setdefault(process, _Words(self._new_stream))
            for other in set(self._words_of) - {process}:
                self._words_of.pop(other, None)
        return words.serve(_count(n))

    def _new_stream(self) -> _KeyStream:
        return _KeyStream(os.urandom(_KEY_BYTES), os.urandom(_NONCE_BYTES))

    def _start_afresh(self) -> None:
        self._words_of = {}

    def __repr__(self) -> str:
        return "SystemBits()"


class ReplayBits(_StreamBits):
    """The same words for the same seed, on every machine: for tests and simulation, never for a release.

    The stream is ChaCha20 under the key SHA-256("dphmm replay int " + the seed in decimal), or SHA-256("dphmm
    replay bytes " + the seed) for bytes; counter 0; the nonce is the number of the 2**30-byte part, as 12
    bytes little-endian; the key stream is read as little-endian 64-bit words.
    """

    def __init__(self, seed: int | bytes) -> None:
        self._new_stream = _in_parts(_key_of(seed, b"dphmm replay"))
        self._words = _Words(self._new_stream)

    def uint64(self, n: int) -> WordArray:
        """The next ``n`` words (n,), uniform on 0..2**64-1. Safe to call from several threads."""
        return self._words.serve(_count(n))

    def __repr__(self) -> str:
        return "ReplayBits(...)"


def default_bits(bits: Bits | None = None) -> Bits:
    """The given bits, or the one SystemBits of this process."""
    if bits is None:
        return _process_bits()
    if not callable(getattr(bits, "uint64", None)):
        raise InvalidInput("bits", type(bits).__name__, "None (system bits), or an object with uint64(n)")
    return bits


class _Source:
    """A class of bits that may count as secure, with its methods and slots as they were written."""

    def __init__(self, kind: type[Any], counts: Callable[[Any], bool]) -> None:
        self.kind: Any = kind
        self._counts = counts
        self._parts = {name: part for name, part in vars(kind).items() if hasattr(part, "__get__")}

    def counts(self, bits: Any) -> bool:
        """True if an object of exactly this class is secure; False while a method of the class is replaced."""
        now = vars(self.kind)
        as_written = all(now.get(name) is part for name, part in self._parts.items())
        return as_written and self.kind.__getattribute__ is object.__getattribute__ and self._counts(bits)


#: The package's own; `keyed` adds its own. A list, because a table would ask a stranger's metaclass what it equals.
_SOURCES = [_Source(SystemBits, lambda bits: True)]


def is_secure(bits: Bits) -> bool:
    """True if these are the package's own system bits, or keyed bits of a new job key, as they were written.

    Nothing that an object says of itself counts: not an attribute, not a class derived from these, not one of these
    with a method replaced. A release with words from anything else promises nothing.
    """
    return any(source.counts(bits) for source in _SOURCES if source.kind is type(bits))


_ALL_SYSTEM_BITS: weakref.WeakSet[SystemBits] = weakref.WeakSet()
_PROCESS_LOCK = threading.Lock()
_PROCESS_BITS: list[SystemBits] = []


def _process_bits() -> SystemBits:
    if not _PROCESS_BITS:
        with _PROCESS_LOCK:
            if not _PROCESS_BITS:
                _PROCESS_BITS.append(SystemBits())
    return _PROCESS_BITS[0]


def _after_fork_in_child() -> None:
    global _PROCESS_LOCK
    _PROCESS_LOCK = threading.Lock()
    for bits in list(_ALL_SYSTEM_BITS):
        bits._start_afresh()


os.register_at_fork(after_in_child=_after_fork_in_child)


def _count(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise InvalidInput("n", n, "a number of words, 0 or more")
    return int(n)


_STREAMS = b"dphmm keyed 1"
_TAGS = b"dphmm tag 1"
_REPLAYED = b"dphmm replay job key"

_Held = TypeVar("_Held")


class _Beside(Generic[_Held]):
    """Values beside objects, by the identity of each: no object can change its value, or pass for an equal one."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[weakref.ref[Any], _Held]] = {}

    def put(self, owner: object, held: _Held) -> None:
        number = id(owner)
        self._held[number] = weakref.ref(owner, lambda _: self._held.pop(number, None)), held

    def get(self, owner: object) -> _Held | None:
        reference, held = self._held.get(id(owner), (None, None))
        return held if reference is not None and reference() is owner else None


class _Secret:
    """The bytes of a job key, all 0 once it was overwritten, and whether a seed gave them."""

    def __init__(self, key: bytes, replayed: bool) -> None:
        self.key, self.replayed = bytearray(key), replayed

    def copied(self) -> bytes:
        """The bytes of the key. Raises InvalidInput where it was overwritten."""
        # What is checked is the copy: another thread may overwrite the key after the check.
        key = bytes(self.key)
        if not any(key):
            raise InvalidInput("job key", "one that was overwritten", "the key of a new job: JobKey.new()")
        return key

    def digest(self, label: bytes, context: bytes) -> bytes:
        """HMAC-SHA256 of the label and the context."""
        if not isinstance(context, bytes):
            raise InvalidInput("context", type(context).__name__, "bytes: encoded(...) of all that a draw depends on")
        return hmac.digest(self.copied(), label + context, "sha256")


class _Drawing:
    """The key, the process and the words of keyed bits."""

    def __init__(self, secret: _Secret, context: bytes) -> None:
        self.secret, self.process = secret, os.getpid()
        self.words = _Words(_in_parts(secret.digest(_STREAMS, context)))


_SECRETS: _Beside[_Secret] = _Beside()
_DRAWINGS: _Beside[_Drawing] = _Beside()


class JobKey:
    """The key of one job, 32 bytes: neither its repr nor its attributes have them.

    A pickle of it holds them. Send it over authenticated, encrypted connections only, and never store it.

    >>> key = JobKey.replayed(1)
    >>> home, work = encoded("job 1", "ann", 1, "home"), encoded("job 1", "ann", 1, "work")
    >>> bool(key.bits(home).uint64(1) == key.bits(home).uint64(1))
    True
    >>> bool(key.bits(home).uint64(1) == key.bits(work).uint64(1))
    False
    """

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        raise TypeError("make a job key by JobKey.new(), or JobKey.replayed(seed) for tests and simulation")

    @staticmethod
    def new() -> JobKey:
        """A key of the operating system's randomness."""
        return _restored(os.urandom(_KEY_BYTES), False)

    @staticmethod
    def replayed(seed: int | bytes) -> JobKey:
        """The same key for the same seed: for tests and simulation. A release under it promises nothing."""
        return _restored(_key_of(seed, _REPLAYED), True)

    @property
    def is_replayed(self) -> bool:
        """True if a seed gave this key, here or in the process that pickled it."""
        return _secret_of(self).replayed

    def bits(self, context: bytes) -> KeyedBits:
        """The words of a context (see `encoded`), from the first. Raises InvalidInput after `overwrite`."""
        return KeyedBits(self, context)

    def tag(self, context: bytes) -> bytes:
        """32 bytes that tell whether two attempts had one context, and nothing else to whoever lacks the key.

        Raises InvalidInput after `overwrite`.
        """
        return _secret_of(self).digest(_TAGS, context)

    def overwrite(self) -> None:
        """Set the key's bytes to 0; the key, and bits made from it, are refused from then on.

        Best effort: it does not reach copies that Python, its libraries or other processes made.
        """
        _secret_of(self).key[:] = bytes(_KEY_BYTES)

    def __reduce__(self) -> tuple[Callable[[bytes, bool], JobKey], tuple[bytes, bool]]:
        secret = _secret_of(self)
        return _restored, (secret.copied(), secret.replayed)

    def __repr__(self) -> str:
        return "JobKey(...)"


class KeyedBits(_StreamBits):
    """The words of one context under a job key: ChaCha20 under HMAC-SHA256(key, "dphmm keyed 1" + context).

    Counter 0; the nonce is the number of the 2**30-byte part, as 12 bytes little-endian; the key stream is read as
    little-endian 64-bit words. They are for one unit of work, in the process that made them: a forked child would go on
    with its parent's words, and is refused.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, key: JobKey, context: bytes) -> None:
        if _DRAWINGS.get(self) is not None:
            raise InvalidInput("bits", "bits that were made before", "new ones: key.bits(context)")
        _DRAWINGS.put(self, _Drawing(_secret_of(key), context))

    def uint64(self, n: int) -> WordArray:
        """The next ``n`` words (n,), uniform on 0..2**64-1 to whoever lacks the key. Safe to call from several threads.

        Raises InvalidInput after the key was overwritten, and in a forked child.
        """
        drawing = _DRAWINGS.get(self)
        if drawing is None or drawing.process != os.getpid():
            raise InvalidInput("bits", "bits that were not made in this process", "its own: key.bits(context)")
        drawing.secret.copied()
        return drawing.words.serve(_count(n))

    def __repr__(self) -> str:
        return "KeyedBits(...)"


def encoded(*parts: bytes | str | int) -> bytes:
    """One text of bytes for a list of parts: lists that differ in a value, a type or their length never share one.

    Each part is a letter for its type, its length as 8 bytes (big-endian), and itself: text as UTF-8, an integer as
    big-endian two's complement. Raises InvalidInput for other types.

    >>> encoded("a", 1).hex(" ")
    '73 00 00 00 00 00 00 00 01 61 69 00 00 00 00 00 00 00 01 01'
    """
    return b"".join(letter + len(part).to_bytes(8, "big") + part for letter, part in map(_typed, parts))


def _typed(part: Any) -> tuple[bytes, bytes]:
    if isinstance(part, bytes):
        return b"b", part
    if isinstance(part, str):
        return b"s", part.encode("utf-8", "surrogatepass")
    if isinstance(part, (int, np.integer)) and not isinstance(part, bool):
        number = int(part)
        return b"i", number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
    raise InvalidInput("part of a context", type(part).__name__, "bytes, a string or an integer")


def _restored(key: bytes, replayed: bool) -> JobKey:
    """A key of these bytes, for pickles."""
    made = object.__new__(JobKey)
    _SECRETS.put(made, _Secret(key, replayed))
    return made


def _secret_of(key: JobKey) -> _Secret:
    held = _SECRETS.get(key)
    if held is None:
        raise InvalidInput("job key", type(key).__name__, "JobKey.new(), or JobKey.replayed(seed)")
    return held


def _is_of_new_key(bits: KeyedBits) -> bool:
    drawing = _DRAWINGS.get(bits)
    return drawing is not None and not drawing.secret.replayed


_SOURCES.append(_Source(KeyedBits, _is_of_new_key))
