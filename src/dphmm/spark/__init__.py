"""Releases, counting, private learning and queries on Apache Spark.

release             the rows of a frame into a release table: executors draw, the driver commits once
released            the committed rows of a table as a frame
statements          the privacy statements of a table
check               settings of a session that would show what must stay private
count_transitions   exact, private counts of a frame's transitions
fit_private         a Markov chain from a frame, stored in a ledger before it is returned
fit_hidden          the same of a hidden Markov model, also where its states are known
histogram           the number of records in each state, stored in a ledger before it is returned
degrees             the number of people with 0, 1, 2, ... edges, stored in a ledger before it is returned

It needs pyspark 4.1 or newer (``pip install 'dphmm[spark]'``), which is loaded where one of these is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphmm._lazy import lazy

if TYPE_CHECKING:
    from dphmm.spark.batch import release as release
    from dphmm.spark.batch import released as released
    from dphmm.spark.batch import statements as statements
    from dphmm.spark.counting import count_transitions as count_transitions
    from dphmm.spark.hidden import fit_hidden as fit_hidden
    from dphmm.spark.queries import degrees as degrees
    from dphmm.spark.queries import fit_private as fit_private
    from dphmm.spark.queries import histogram as histogram
    from dphmm.spark.settings import check as check

__getattr__, __dir__, __all__ = lazy(__name__)
