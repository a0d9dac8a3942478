"""One job in an interpreter of its own: the sandbox of systems that cannot fork (Windows). Paper section 5; `sandbox.py` chooses it.

The interpreter runs `server.py` for this one job, and the answer has the form of the fork server's. A wall deadline holds everywhere;
limits on CPU time, memory and files hold where Python has `resource`. Nothing else does: no walls, no other user, no network taken away.
"""

from __future__ import annotations

import marshal
import os
import secrets
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from nbcore.judge.values import frames


def answer(python: str, server: Path, number: int, job: tuple, limits: dict[str, Any]) -> dict[str, Any]:
    """What happened to `job` (program, entry, calls), as the fork server would tell it. Raises OSError when it can't be started."""
    nonces = [secrets.token_hex(8).encode() for _ in range(len(job[2]) + 2)]
    with tempfile.TemporaryDirectory(prefix="judge-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        if job[1] is None:
            (place / "stdin").write_bytes(job[2][0][0].encode("utf-8", "surrogatepass"))
        (place / "cwd").mkdir()
        process = subprocess.Popen(
            [python, "-s", "-S", "-P", "-B", str(server), folder, "once"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd=folder, start_new_session=True, env=_environment(),
        )  # fmt: skip
        killed = None
        try:
            process.communicate(marshal.dumps((job, limits, nonces)), timeout=limits["wall_seconds"] + 1.0)  # a second to start
        except subprocess.TimeoutExpired:
            killed = "wall"
        _end(process)
        limit, told = int(limits["output_kib"] * 1024), {}
        for name in ("board", "said"):
            told[name] = b""
            if (place / name).exists():
                with open(place / name, "rb") as file:
                    told[name] = file.read(limit)
                killed = killed or ("output" if (place / name).stat().st_size >= limit else None)
    return {
        "job": number, "frames": frames(told["board"].split(b"\n"), nonces), "killed": killed, "cpu_seconds": None,
        "said": told["said"].decode("utf-8", "replace") if job[1] is None else None,
        "signal": -process.returncode if process.returncode < 0 else None,
    }  # fmt: skip


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}  # without it Windows starts no Python
    return kept | {"PYTHONHASHSEED": "0"}


def _end(process: subprocess.Popen) -> None:
    """End the job with what it started, as far as the system has groups of processes."""
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it is gone, and so is its group
    else:
        process.kill()
    process.wait()
    process.stdin.close()
