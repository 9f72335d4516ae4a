"""The promise in exact numbers, on thousands of random instances: `python -m exactness`, with tests/ on the path.

Every instance is played through `dphmm.ReleaseSession`; every plan that it releases under is then judged by arithmetic
of this folder's own. Nothing of `dphmm.sensitivity` or `dphmm.policy` computes anything here: edges come from double
loops over the definitions, norms from integer facets in fractions and, once more, from a linear program over the
required differences that is solved in rationals and carries its own proof.
"""
