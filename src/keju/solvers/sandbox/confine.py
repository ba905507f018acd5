"""The first program inside a sandbox: it drops rights and then becomes another program.

Keju passes the text of this file to ``python -I -S -c``, because a container does not have Keju's
files. It only needs Python's standard library, and no file of the work folder can change it.

1. It joins a new session keyring. The old one may hold keys of the user who started Keju.

2. It filters system calls. It blocks keyrings, sockets outside of network namespaces (vsock reaches
the host of a virtual machine), io_uring (which bypasses a filter), new user namespaces, and calls
for administrators. It also blocks memory that no process seems to hold: memory files, shared memory
and message queues of System V.

If the system has no such filters, or the processor has no table here, the program starts without a
filter, and the trial of the sandbox reports it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

NEW_PRIVILEGES, SECCOMP, WITH_FILTER, JOIN_KEYRING = 38, 22, 2, 1
"""Numbers of prctl, and of keyctl."""
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Instructions of a filter."""
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NUMBER, PROCESSOR, FIRST, SECOND = 0, 4, 16, 24
"""Offsets of the call's number, the processor and the first two arguments in a filter's data."""
X32 = 0x40000000
"""Numbers from here on are calls of 32-bit programs on x86_64."""
USER_NAMESPACE = 0x10000000
TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX type into a terminal."""
FAMILIES = (1, 2, 10, 16)
"""Socket families that programs need: Unix, IPv4, IPv6, netlink."""
NEW = {
    **{"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428},
    **{"move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433},
    **{"clone3": 435, "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447},
}
"""Calls that have the same number on every processor."""
X86_64 = {
    **{"socket": 41, "socketpair": 53, "clone": 56, "unshare": 272, "ioctl": 16, "keyctl": 250},
    **{"add_key": 248, "request_key": 249, "bpf": 321, "perf_event_open": 298, "setns": 308},
    **{"userfaultfd": 323, "open_by_handle_at": 304, "syslog": 103, "kexec_load": 246},
    **{"kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176},
    **{"mount": 165, "umount2": 166, "pivot_root": 155, "swapon": 167, "swapoff": 168},
    **{"reboot": 169, "acct": 163, "quotactl": 179, "settimeofday": 164, "clock_settime": 227},
    **{"kcmp": 312, "fanotify_init": 300, "vhangup": 153, "iopl": 172, "ioperm": 173},
    **{"memfd_create": 319, "shmget": 29, "msgget": 68, "io_setup": 206},
}
GENERIC = {
    **{"socket": 198, "socketpair": 199, "clone": 220, "unshare": 97, "ioctl": 29, "keyctl": 219},
    **{"add_key": 217, "request_key": 218, "bpf": 280, "perf_event_open": 241, "setns": 268},
    **{"userfaultfd": 282, "open_by_handle_at": 265, "syslog": 116, "kexec_load": 104},
    **{"kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106},
    **{"mount": 40, "umount2": 39, "pivot_root": 41, "swapon": 224, "swapoff": 225},
    **{"reboot": 142, "acct": 89, "quotactl": 60, "settimeofday": 170, "clock_settime": 112},
    **{"kcmp": 272, "fanotify_init": 262, "vhangup": 58},
    **{"memfd_create": 279, "shmget": 194, "msgget": 186, "io_setup": 0},
}
PROCESSORS = {
    "x86_64": (0xC000003E, X86_64),
    "aarch64": (0xC00000B7, GENERIC),
    "riscv64": (0xC00000F3, GENERIC),
    "loongarch64": (0xC0000102, GENERIC),
}
LOOKED_INTO = ("socket", "socketpair", "clone", "unshare", "ioctl")
"""Calls that are refused only with some arguments."""
ABSENT = ("clone3", "memfd_create", "shmget", "msgget", "io_setup")
"""Calls that fail as if the system lacked them, so that programs use others. The C library uses
clone if clone3 is missing. A filter cannot see the arguments of clone3."""


def instruction(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    """Return one instruction; `then` and `otherwise` are the numbers of instructions to skip."""
    return struct.pack("HBBI", code, then, otherwise, value)


def refuse(number: int) -> bytes:
    """Return the instruction that makes a call fail with an error."""
    return instruction(RETURN, REFUSE | number)


def filter_of(processor: int, calls: dict[str, int]) -> bytes:
    """Return the filter for a processor, given the numbers of its system calls."""
    allow = instruction(RETURN, ALLOW)
    program = [
        *(instruction(LOAD, PROCESSOR), instruction(EQUAL, processor, 1, 0), refuse(errno.ENOSYS)),
        *(instruction(LOAD, NUMBER), instruction(AT_LEAST, X32, 0, 1), refuse(errno.ENOSYS)),
    ]
    for name, number in calls.items():
        if name not in LOOKED_INTO:
            error = errno.ENOSYS if name in ABSENT else errno.EPERM
            program += [instruction(EQUAL, number, 0, 1), refuse(error)]
    family = [instruction(LOAD, FIRST)]
    for number in FAMILIES:
        family += [instruction(EQUAL, number, 0, 1), allow]
    family += [refuse(errno.EAFNOSUPPORT)]
    namespace = [
        *(instruction(LOAD, FIRST), instruction(ANY_BIT, USER_NAMESPACE, 0, 1)),
        *(refuse(errno.EPERM), allow),
    ]
    terminal = [instruction(LOAD, SECOND)]
    for number in TERMINAL_INPUT:
        terminal += [instruction(EQUAL, number, 0, 1), refuse(errno.EPERM)]
    terminal += [allow]
    parts = (("socket", family), ("socketpair", family), ("clone", namespace))
    for name, part in (*parts, ("unshare", namespace), ("ioctl", terminal)):
        program += [instruction(EQUAL, calls[name], 0, len(part)), *part]
    return b"".join([*program, allow])


class FilterProgram(ctypes.Structure):
    """The filter in the format of prctl."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def drop_rights() -> None:
    """Join a new keyring, and filter the system calls of this process and its children."""
    processor, calls = PROCESSORS.get(os.uname().machine, (0, {}))
    if not calls or sys.maxsize < 2**32:  # a 32-bit Python makes other calls
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(ctypes.c_long(calls["keyctl"]), ctypes.c_long(JOIN_KEYRING), None)
    code = filter_of(processor, {**calls, **NEW})
    libc.prctl(NEW_PRIVILEGES, 1, 0, 0, 0)
    program = FilterProgram(len(code) // 8, code)
    if libc.prctl(SECCOMP, WITH_FILTER, ctypes.byref(program), 0, 0):
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS):  # the system has no such filters
            sys.exit(f"system calls cannot be filtered: {os.strerror(number)}")


if __name__ == "__main__":
    drop_rights()
    try:
        os.execvp(sys.argv[1], sys.argv[1:])
    except OSError as problem:
        sys.exit(f"{sys.argv[1]}: {problem.strerror}")
