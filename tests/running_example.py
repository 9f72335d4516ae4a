"""The running example of the DPHMM paper (THEORY 10), with states numbered from 0: s1 is 0."""

from __future__ import annotations

import numpy as np

ANSWERS = np.array([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
#: Fig. 3b: s2s3, s4s5, s4s6, s5s6; s1 is alone.
EDGES_3B = [(1, 2), (3, 4), (3, 5), (4, 5)]
#: Our transition matrix, all entries 1/2.
MOVES = {0: (1, 3), 1: (2, 4), 2: (0, 1), 3: (1, 4), 4: (3, 5), 5: (4, 5)}
TRANSITION = np.zeros((6, 6))
for _row, _columns in MOVES.items():
    TRANSITION[_row, list(_columns)] = 0.5
