"""Randomness: words (`SystemBits`, `ReplayBits`), and exact noise on lattice points (`LatticeSampler`, ADR 0002)."""

from dphmm.samplers.body import NOISE_BOUND, LatticeBody, LatticeSampler, add_noise
from dphmm.samplers.entropy import ReplayBits, SystemBits, default_bits

__all__ = [
    "NOISE_BOUND",
    "LatticeBody",
    "LatticeSampler",
    "ReplayBits",
    "SystemBits",
    "add_noise",
    "default_bits",
]
