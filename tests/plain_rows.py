"""Rows (owner, step, state) of few owners, their sequences by plain loops, and whether counts are equal."""

from __future__ import annotations

import numpy as np

#: How many states there are.
N = 4


def rows_of(seed, rows=60, owners=5):
    """Rows (owner, step, state) in no order: steps repeat and have holes, some states are none."""
    source = np.random.default_rng(seed)
    drawn = zip(
        source.integers(0, owners, rows).tolist(),
        source.integers(-5, 15, rows).tolist(),
        source.integers(-1, N + 1, rows).tolist(),
        strict=True,
    )
    return list(drawn)


def in_order(rows):
    """By owner, step and state, those in no state last."""
    return sorted(rows, key=lambda row: (row[0], row[1], row[2] if 0 <= row[2] < N else N))


def add_in_parts(counter, rows, parts):
    """Give a counter rows by owner and step, in parts that end at these places."""
    table, ends = np.array(rows, dtype=np.int64).reshape(-1, 3), sorted(parts)
    is_new = np.diff(table[:, 0], prepend=-1) != 0
    for new_owner, part in zip(np.split(is_new, ends), np.split(table, ends), strict=True):
        counter.add(new_owner, part[:, 1], part[:, 2])


def sequences_of(rows, shortest):
    """(sequences, owners) by a plain loop; of the rows of one step the least state counts."""
    found, owners, steps = [], [], {}
    for owner, step, state in in_order(rows):
        steps.setdefault((owner, step), state)
    before = None
    for (owner, step), state in sorted(steps.items()):
        if not 0 <= state < N:
            continue
        if before != (owner, step - 1):
            found.append([])
            owners.append(owner)
        found[-1].append(state)
        before = (owner, step)
    long = [k for k, sequence in enumerate(found) if len(sequence) >= shortest]
    return [found[k] for k in long], [owners[k] for k in long]


def same(one, other):
    """Whether two counts are equal but for how many records there are."""
    assert one.transitions.toarray().tolist() == other.transitions.toarray().tolist()
    assert one.starts.tolist() == other.starts.tolist()
    assert (one.n_states, one.max_length, one.max_sequences, one.unit) == (
        other.n_states, other.max_length, other.max_sequences, other.unit,
    )  # fmt: skip
