"""A test of many random instances is one case: its seeds are the same on every run; others are searched on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def seeds(examples: int) -> Callable[..., Any]:
    """Run a test with so many values of its argument ``seed``; a red one names the seed."""
    rules = settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    return lambda test: rules(given(seed=st.integers(0, 2**32 - 1))(test))
