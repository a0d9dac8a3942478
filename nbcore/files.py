"""Atomic writes, shared by both wings. Design section 5: a reader sees the old file or the new one, never half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def atomic_write(path: str | Path, content: str | bytes) -> Path:
    """Write `content` (text as UTF-8) to `path` in one step: aside, fsync, rename, fsync of the folder.

    Raises OSError (for instance on a full disk); the previous file then stays as it was and nothing is left beside it.
    """
    path = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    handle, aside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        os.chmod(aside, 0o644)
        os.replace(aside, path)
    except BaseException:
        if os.path.exists(aside):
            os.unlink(aside)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return path
