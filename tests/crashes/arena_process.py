"""The warmed process: it has imported and compiled everything, owns no ledger, runs no thread, and forks on request.

Run by `arena.Arena` with a socket as file descriptor 0. A request starts a child or waits for one to end.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).parents[1]))

from crashes import death, limits, syscalls, warm, work
from system_words import guard


def main() -> None:
    """Warm up, say so, then serve until the other side goes away."""
    with tempfile.TemporaryDirectory() as folder:
        warm.warm_up(Path(folder))
    # What is here stays here: a child's collector need not look at it, and so copies no page of it.
    gc.collect()
    gc.freeze()
    threads = len(list(Path("/proc/self/task").iterdir())) if sys.platform == "linux" else 1
    requests = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    requests.send(json.dumps({"threads": threads}).encode())
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, 1 << 16, 3)
        if not data:
            return
        request = json.loads(data)
        answer = _start(request, descriptors, requests) if request["do"] == "start" else _wait(request["pid"])
        requests.send(json.dumps(answer).encode())


def _start(request: dict[str, Any], descriptors: list[int], requests: socket.socket) -> dict[str, Any]:
    pid = os.fork()
    if pid == 0:
        requests.close()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(3, 256)
        _be(request)
    for descriptor in descriptors:
        os.close(descriptor)
    return {"pid": pid}


def _wait(pid: int) -> dict[str, Any]:
    return {"status": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}


def _be(request: dict[str, Any]) -> NoReturn:
    fate = death.Death(**{**request["death"], "calls": tuple(request["death"]["calls"])})

    def live() -> NoReturn:
        # The words of the test that asks, not of the one that came first.
        guard.adopt(request["words"])
        guard.forget_streams()
        for name, value in request["limits"].items():
            limits.LIMITS[name](value)
        death.arm(fate)
        _work(request["work"], request["args"])

    if fate.calls:
        syscalls.traced(live, list(fate.calls), fate.n, fate.signal, fate.error, fate.seen or os.devnull)
    live()


def _work(name: str, args: dict[str, Any]) -> NoReturn:
    code = 70
    try:
        # Children that a test stops or interrupts are to answer signals as a program started by a shell would.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = work.WORK[name](**args) or 0
    except SystemExit as leave:
        code = int(leave.code or 0)
    except BaseException:
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
