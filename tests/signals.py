"""SIGINT and SIGTERM end the processes that tests start, also where the tests run in the background.

A shell starts a job in the background with SIGINT ignored, and a process hands that on to all that it starts.
"""

from __future__ import annotations

import signal


def heed() -> None:
    """Answer SIGINT and SIGTERM in this process as Python does, and so in every process that it starts from now on."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
