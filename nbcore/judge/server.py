"""The fork server of the sandbox: a small process that forks once per job. Paper section 5; `sandbox.py` is its other end.

It runs by itself (`python -s -S -P server.py`, empty environment), imports nothing but the standard library, and is never
imported for its loop: `sandbox.py` shares only `plain` and the frame format with it.
Requests come in on stdin as marshal (from the trusted side), answers go out on stdout as JSON (programs had a hand in them).
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import marshal
import math
import os
import resource
import secrets
import select
import shutil
import signal
import struct
import sys
import time
import types

CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC = 0x10000000, 0x20000000, 0x40000000, 0x08000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
CAPABILITY_VERSION_3 = 0x20080522
NOBODY = 65534
LINUX = sys.platform.startswith("linux")
LIBC = ctypes.CDLL(None, use_errno=True)
# Loaded before the forks: what short programs import. Anything else of the standard library is imported in the fork.
PRELOAD = "bisect cmath collections copy datetime decimal fractions functools heapq itertools math operator random re string typing"
STATE = {"uid": None, "pid": None}  # the user that jobs become (None: stay), and the server's own process id


def plain(value):
    """A value as JSON can hold it without loss of kind: sets and dicts with other keys than strings become tagged dicts.

    Tuples become lists. Raises TypeError for anything else (functions, bytes, objects) and RecursionError for cycles.
    """
    if value is None or isinstance(value, bool | str):
        return value if value is None or isinstance(value, bool) else str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return {"\0set": sorted((plain(v) for v in value), key=repr)}
    if isinstance(value, dict):
        if all(type(k) is str and not k.startswith("\0") for k in value):
            return {k: plain(v) for k, v in value.items()}
        return {"\0pairs": sorted(([plain(k), plain(v)] for k, v in value.items()), key=repr)}
    raise TypeError(f"{type(value).__name__} is no JSON value")


def frame(data):
    """Bytes as one length-prefixed frame."""
    return struct.pack("!I", len(data)) + data


class Child:
    """One running job: its process, its result pipe and its deadline."""

    def __init__(self, number, job, limits, root):
        self.number, self.limits, self.buffer, self.killed = number, limits, b"", None
        self.cap = int(limits["output_kib"] * 1024) + 4096
        self.nonce = secrets.token_hex(16).encode()
        self.cwd = os.path.join(root, str(number))
        os.mkdir(self.cwd)
        os.chmod(self.cwd, 0o777)  # the job may run as another user
        self.fd, write = os.pipe()
        self.deadline = time.monotonic() + limits["wall_seconds"]
        self.pid = os.fork()
        if self.pid == 0:
            try:
                run_job(job, limits, self.cwd, write, self.nonce)
            finally:
                os._exit(70)
        os.close(write)

    def read(self):
        """Take what the job has sent; True when no more will come."""
        data = os.read(self.fd, 1 << 16)
        self.buffer += data
        if len(self.buffer) > self.cap:
            self.kill("output")
        return not data or self.killed == "output" or self.nonce + b'["end"' in self.buffer[-len(data) - 64 :]

    def kill(self, why):
        self.killed = self.killed or why
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # already gone, or not yet a group of its own

    def finish(self):
        """End and reap the process and say what happened; frames are passed on as the text they are."""
        killed = self.killed
        self.kill("ended")  # what the program left running in its group, or the program itself if it closed the pipe
        _, status, usage = os.wait4(self.pid, 0)
        os.close(self.fd)
        shutil.rmtree(self.cwd, ignore_errors=True)
        lines = self.buffer[: self.cap].split(b"\n")
        answer = {
            "job": self.number,
            "frames": [line[len(self.nonce) :].decode("ascii", "replace") for line in lines if line.startswith(self.nonce)],
            "killed": killed,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
        }
        return frame(json.dumps(answer).encode())


def confine(limits):
    """Take away what a job must not have. Runs in the fork, before the program."""
    os.setsid()
    if STATE["uid"] is not None:
        become(STATE["uid"])
    if LINUX:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # after the change of user, which clears it
        LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        LIBC.capset(struct.pack("Ii", CAPABILITY_VERSION_3, 0), bytes(24))  # root without its rights: it may debug nobody
        if os.getppid() != STATE["pid"]:
            os._exit(71)
    cpu = max(1, math.ceil(limits["cpu_seconds"]))
    memory, output = int(limits["memory_mib"] * 1024 * 1024), int(limits["output_kib"] * 1024)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    for kind, limit in (("AS", memory), ("FSIZE", output), ("CORE", 0), ("NPROC", 0)):
        resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (limit, limit))


def run_job(job, limits, cwd, write, nonce):
    """Run one program in the fork and send a frame per call. What happens after its first line is not to be trusted."""
    program, entry, calls = job
    dumps, output = json.dumps, os.write

    def tell(kind, value):
        line = b"\n" + nonce + dumps([kind, value]).encode("ascii") + b"\n"
        while line:
            line = line[output(write, line) :]

    null = os.open(os.devnull, os.O_RDWR)  # sys.stdin and its like, made by the server and never used there, now lead here
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, write)
    os.closerange(write + 1, 256)
    os.chdir(cwd)
    os.environ.clear()
    confine(limits)
    sys.modules["random"].seed(0)
    module = types.ModuleType("program")
    sys.modules["program"] = module
    tell("begin", None)
    try:
        exec(compile(program, "<program>", "exec"), module.__dict__)
        function = module.__dict__.get(entry)
    except MemoryError:
        return tell("memory", "while the program was loaded")
    except BaseException as error:
        return tell("failed", f"{type(error).__name__}: {error}"[:300])
    if function is None:
        return tell("failed", f"the program defines no {entry!r}")
    for arguments in calls:
        try:
            answer = ("value", plain(function(*arguments)))
            dumps(answer)
        except MemoryError:
            return tell("memory", "during a call")
        except BaseException as error:
            answer = ("raised", f"{type(error).__name__}: {error}"[:300])
        tell(*answer)
    tell("end", None)


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


def sweep(root):
    """Between jobs: end every process that a program may have left in our process namespace, reap it, and remove what lies in `root`."""
    try:
        os.kill(-1, signal.SIGKILL)
        while os.waitpid(-1, 0):
            pass
    except (ProcessLookupError, ChildProcessError):
        pass  # the usual case: nobody is left
    for left in os.listdir(root):
        path = os.path.join(root, left)
        shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


def serve(root, capabilities):
    """Answer requests until stdin closes."""
    STATE["pid"] = os.getpid()
    if os.getuid() == 0 and holds(nobody_can_import):
        STATE["uid"] = NOBODY
    another = STATE["uid"] is not None or capabilities["files_hidden"]  # behind walls a user has nothing that could be touched
    capabilities = {"separate_user": another, **capabilities, "no_new_processes": holds(forks_are_refused)}
    for name in PRELOAD.split():
        importlib.import_module(name)
    os.set_blocking(1, False)
    children, incoming, outgoing = {}, bytearray(), frame(json.dumps(capabilities).encode())
    gc.collect()
    gc.freeze()  # keeps the pages of the preloaded modules shared
    while True:
        now = time.monotonic()
        wait = max(0.0, min((c.deadline - now for c in children.values()), default=3600.0))
        ready, writable, _ = select.select([0, *children], [1] if outgoing else [], [], wait)
        if 0 in ready:
            data = os.read(0, 1 << 16)
            if not data:
                break
            incoming += data
            while len(incoming) >= 4 and len(incoming) >= (end := 4 + struct.unpack("!I", incoming[:4])[0]):
                number, job, limits = marshal.loads(bytes(incoming[4:end]))
                del incoming[:end]
                try:
                    child = Child(number, job, limits, root)
                    children[child.fd] = child
                except OSError as error:  # no process, no pipe, no folder: the judge's failure, not the program's
                    outgoing += frame(json.dumps({"job": number, "judge_failure": str(error)}).encode())
        for fd in [fd for fd in ready if fd in children]:
            if children[fd].read():
                outgoing += children.pop(fd).finish()
        for child in [c for c in children.values() if c.deadline <= time.monotonic()]:
            if child.killed:  # a process outside its group still holds the pipe
                outgoing += children.pop(child.fd).finish()
            else:
                child.kill("wall")
                child.deadline += 1.0  # for the end of its pipe to arrive, with what it had answered in time
        if outgoing and not children and capabilities["pid_namespace"]:
            sweep(root)
        if writable:
            outgoing = outgoing[os.write(1, outgoing) :]
    for child in children.values():
        child.kill("closed")


def main(root, parent):
    """Start: die with the parent, isolate, and serve (inside a process namespace as its first process).

    parent: its process id; 0 when bubblewrap stands between, which has isolated this process and ends it with its parent.
    """
    if LINUX:
        LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # no job of the same user may attach to the server as a debugger
    if not parent:
        return serve(root, {"network_blocked": True, "pid_namespace": True, "files_hidden": True})
    if LINUX:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            return
    capabilities = isolate() | {"files_hidden": False}
    if capabilities["pid_namespace"]:
        pid = os.fork()
        if pid:
            os.close(0)
            os.close(1)
            os.waitpid(pid, 0)
            return
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    serve(root, capabilities)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
