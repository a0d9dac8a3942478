"""What the sandbox takes away: from the server once, and from every job in its fork. Read by the fork server, as `values.py` is.

Stands alone (standard library only). Everything is chosen by trying it: what a system lacks is reported, not assumed.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import os
import signal
import struct
import sys

try:
    import resource
except ImportError:  # Windows has none
    resource = None

CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC = 0x10000000, 0x20000000, 0x40000000, 0x08000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
CAPABILITY_VERSION_3 = 0x20080522
NOBODY = 65534
LINUX = sys.platform.startswith("linux")
LIBC = ctypes.CDLL(None, use_errno=True) if LINUX else None
STATE = {"uid": None, "pid": None}  # the user that jobs become (None: stay), and the server's own process id


def confine(limits):
    """Take away what a job must not have. Runs in the fork, before the program."""
    if hasattr(os, "setsid") and os.getpid() != os.getsid(0):  # a job of its own interpreter leads its session already
        os.setsid()
    if STATE["uid"] is not None:
        become(STATE["uid"])
    if LINUX and STATE["uid"] is None:  # else the change of user has taken them already
        LIBC.capset(struct.pack("Ii", CAPABILITY_VERSION_3, 0), bytes(24))  # root without its rights: it may debug nobody
    if LINUX and STATE["pid"] != 1:  # the end of a namespace's first process is everybody's there
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # after the change of user, which clears it
        if os.getppid() != STATE["pid"]:
            os._exit(71)
    cpu = max(1, math.ceil(limits["cpu_seconds"]))
    memory, output = int(limits["memory_mib"] * 1024 * 1024), int(limits["output_kib"] * 1024)
    limited("CPU", cpu, cpu + 1)
    for kind, limit in (("AS", memory), ("FSIZE", output), ("CORE", 0), ("NPROC", 0)):
        limited(kind, limit, limit)


def limited(kind, soft, hard):
    """Whether the system took this limit: macOS refuses some, Windows has none, and a job with fewer limits is better than no job."""
    try:
        resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (soft, hard))
    except (AttributeError, ValueError, OSError):
        return False
    return True


def become(uid):
    """Be another user, for good."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def isolate():
    """Leave the machine's network and process table where that is permitted; returns what was achieved."""
    if not LINUX:
        return {"network_blocked": False, "pid_namespace": False}
    uid, gid = os.getuid(), os.getgid()
    for user in (0, CLONE_NEWUSER):
        if LIBC.unshare(user | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC) == 0:
            if user:
                for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
                    with open(f"/proc/self/{name}", "w", encoding="ascii") as f:
                        f.write(text)
            return {"network_blocked": True, "pid_namespace": True}
    return {"network_blocked": LIBC.unshare(CLONE_NEWNET) == 0, "pid_namespace": False}


def holds(check):
    """Whether `check`, run in a fork of its own, ends without an error."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            check()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


def nobody_can_import():
    become(NOBODY)
    importlib.import_module("colorsys")  # any module that is not loaded yet


def forks_are_refused():
    confine({"cpu_seconds": 1, "memory_mib": 8192, "output_kib": 64})
    try:
        pid = os.fork()
    except OSError:
        return
    if pid == 0:
        os._exit(0)
    raise RuntimeError("the limit does not bite")


def memory_is_limited():
    """Raises where a job could take more memory than it may."""
    try:
        confine({"cpu_seconds": 1, "memory_mib": 256, "output_kib": 64})
        bytearray(512 << 20)
    except MemoryError:
        return
    raise RuntimeError("the limit does not bite")
