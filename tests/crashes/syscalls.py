"""Stop a process at the n-th system call that writes, and there kill it or let that call fail (Linux, x86-64).

A seccomp filter hands the watched calls to a tracer before they happen; all other calls run at full speed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

#: Calls after which a file, or what a reader of a pipe has seen, differs.
WATCHED = {
    "write": 1,
    "pwrite64": 18,
    "writev": 20,
    "fsync": 74,
    "fdatasync": 75,
    "ftruncate": 77,
    "rename": 82,
    "unlink": 87,
    "chmod": 90,
    "unlinkat": 263,
    "renameat": 264,
    "fchmodat": 268,
    "openat": 257,
    "fallocate": 285,
    "renameat2": 316,
}
AVAILABLE = sys.platform == "linux" and platform.machine() == "x86_64"

_TRACEME, _CONT, _GETREGS, _SETREGS, _SETOPTIONS, _GETEVENTMSG = 0, 7, 12, 13, 0x4200, 0x4201
_OPTIONS = 0x02 | 0x04 | 0x08 | 0x80 | 0x100000  # fork, vfork, clone, seccomp, kill the traced if the tracer goes
_SECCOMP_EVENT = 7
_WALL = 0x40000000
_LOAD_NUMBER, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _TRACE = 0x7FFF0000, 0x7FF00000
_REGISTERS, _RAX, _ORIG_RAX = 27, 10, 15


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("yes", ctypes.c_uint8),
        ("no", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("first", ctypes.POINTER(_Instruction)))


def traced(
    work: Callable[[], NoReturn], names: list[str], at: int, number: int, error: int | None, seen: str
) -> NoReturn:
    """Fork ``work`` and watch it: its call ``at`` (from 1) brings the signal ``number``, or fails with ``error``.

    Writes the names of the calls it came to into the file ``seen``, and ends as the watched process ended.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    libc.ptrace.restype = ctypes.c_long
    pid = os.fork()
    if pid == 0:
        _must(libc.ptrace(_TRACEME, 0, None, None), "ptrace")
        os.kill(os.getpid(), signal.SIGSTOP)
        _filter(libc, names)
        work()
    os.waitpid(pid, 0)
    _must(libc.ptrace(_SETOPTIONS, pid, None, _OPTIONS), "ptrace options")
    libc.ptrace(_CONT, pid, None, None)
    status = _watch(libc, pid, names, at, seen, lambda who: _strike(libc, pid, who, number, error))
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(os.waitstatus_to_exitcode(status))


def _watch(libc: ctypes.CDLL, pid: int, names: list[str], at: int, seen: str, strike: Callable[[int], None]) -> int:
    calls: list[str] = []
    while True:
        who, status = os.waitpid(-1, _WALL)
        if not os.WIFSTOPPED(status):
            if who == pid:
                with open(seen, "w", encoding="utf-8") as file:  # noqa: PTH123
                    file.write("\n".join(calls))
                return status
            continue
        number = os.WSTOPSIG(status)
        if status >> 16 == _SECCOMP_EVENT:
            which = ctypes.c_ulong()
            libc.ptrace(_GETEVENTMSG, who, None, ctypes.byref(which))
            calls.append(names[which.value])
            if len(calls) == at:
                strike(who)
        # The stops of tracing are not signals of the process.
        passed_on = 0 if number in (signal.SIGTRAP, signal.SIGSTOP) else number
        libc.ptrace(_CONT, who, None, passed_on)


def _strike(libc: ctypes.CDLL, pid: int, who: int, number: int, error: int | None) -> None:
    if error is None:
        os.kill(pid, number)
        return
    registers = (ctypes.c_ulong * _REGISTERS)()
    libc.ptrace(_GETREGS, who, None, registers)
    registers[_ORIG_RAX], registers[_RAX] = 2**64 - 1, 2**64 - error
    libc.ptrace(_SETREGS, who, None, registers)


def _filter(libc: ctypes.CDLL, names: list[str]) -> None:
    code = [_Instruction(_LOAD_NUMBER, 0, 0, 0)]
    for index, name in enumerate(names):
        code.append(_Instruction(_IF_EQUAL, 0, 1, WATCHED[name]))
        code.append(_Instruction(_RETURN, 0, 0, _TRACE | index))
    code.append(_Instruction(_RETURN, 0, 0, _ALLOW))
    program = _Program(len(code), (_Instruction * len(code))(*code))
    _must(libc.prctl(38, 1, 0, 0, 0), "no new privileges")
    _must(libc.prctl(22, 2, ctypes.byref(program), 0, 0), "seccomp")


def _must(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        print(f"{what}: {errno.errorcode.get(number, number)}", file=sys.stderr, flush=True)
        os._exit(71)
