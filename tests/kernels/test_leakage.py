"""Kernels of leakage are their own readable twins."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dphmm._kernels.leakage import excess_of, improve
from leakage_programs import by_linear_program, rows_of


def test_kernels_are_their_own_readable_twins():
    q, d = rows_of(3, 6)[:2]
    columns = np.arange(6)
    assert excess_of(columns, q, d, 0.2) == pytest.approx(excess_of.py_func(columns, q, d, 0.2), abs=1e-15)
    s, e = -math.expm1(-1.0), math.exp(-1.0)
    assert improve(columns, q, d, s, e, 0.0) == pytest.approx(improve.py_func(columns, q, d, s, e, 0.0), abs=1e-15)
    assert math.log1p(improve(columns, q, d, s, e, 0.0)[0]) == pytest.approx(by_linear_program(q, d, 1.0), abs=1e-8)
