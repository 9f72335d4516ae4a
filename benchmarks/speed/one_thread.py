"""Import this before NumPy: everything is measured on one thread, ours and what it is compared with."""

import os

POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
for pool in POOLS:
    os.environ[pool] = "1"
