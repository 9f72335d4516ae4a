"""A signal ends what tests start, whatever the shell that started the tests did."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

#: Ignores a signal as a shell does for a job in the background, then starts a process that sends it to itself.
STARTED = """
import signal, subprocess, sys
number = int(sys.argv[1])
signal.signal(number, signal.SIG_IGN)
if sys.argv[2] == "heed":
    import signals
    signals.heed()
child = f"import signal, time; signal.raise_signal({number}); time.sleep(0.01)"
print(subprocess.run([sys.executable, "-c", child], stderr=subprocess.DEVNULL).returncode)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("heeds", [True, False])
def test_a_process_that_is_started_ends_by_a_signal(number, heeds):
    command = [sys.executable, "-c", STARTED, str(int(number)), "heed" if heeds else "no"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    assert int(done.stdout) == (-number if heeds else 0), done.stderr
