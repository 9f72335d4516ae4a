"""Compiled loops over plain arrays. Nothing here knows a class of dphmm or checks an argument.

Every kernel is also plain Python: run with NUMBA_DISABLE_JIT=1 it is its own readable twin.
"""
