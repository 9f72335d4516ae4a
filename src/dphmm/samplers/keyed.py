"""Keyed words: the same words for the same context, under a key that lives no longer than one job.

A job on many machines draws some answers twice: a task fails and is repeated, or two attempts of it race. With words
that are a function of the job's key and of all that a draw depends on, every attempt draws the same, so it does not
matter which one is taken. Whoever has the key has every state: nothing here shows it, and it is overwritten when the
job has committed.

Proof: docs/proofs/keyed-words.md.
"""

from __future__ import annotations

import hmac
import os
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.samplers.entropy import _SOURCES, _count, _in_parts, _key_of, _Source, _StreamBits, _Words
from dphmm.types import WordArray

_KEY_BYTES = 32
_STREAMS = b"dphmm keyed 1"
_TAGS = b"dphmm tag 1"
_REPLAYED = b"dphmm replay job key"

_Held = TypeVar("_Held")


class _Beside(Generic[_Held]):
    """What is kept beside objects, by their identity: no object can change it, or pass for another that it equals."""

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
    """What keyed bits serve, under which key, and in which process."""

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
        """The same key for the same seed: for tests and simulation. What is drawn under it promises nothing."""
        return _restored(_key_of(seed, _REPLAYED), True)

    @property
    def is_replayed(self) -> bool:
        """Whether a seed gave this key, here or in the process that pickled it."""
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
    """A key of these bytes: what a pickle calls."""
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
