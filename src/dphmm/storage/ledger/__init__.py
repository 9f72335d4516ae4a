"""The ledger as one SQLite file: every release a stored fact, across crashes and processes.

``open_ledger(path)`` gives a SqliteLedger, a ``dphmm.accounting.Ledger``.
"""

from dphmm.storage.ledger.connection import COMMANDS
from dphmm.storage.ledger.sqlite import SqliteLedger, open_ledger, stored_spelling

__all__ = ["COMMANDS", "SqliteLedger", "open_ledger", "stored_spelling"]
