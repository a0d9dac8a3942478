"""What a cell may print: the first and the last part of a flood, and how much was cut between them. Runs inside the kernel.

The cap sits at the source, so that a cell printing 200 MB fills neither the kernel's queue, nor papermill's notebook, nor the log.
What C code or child processes write to file descriptors 1 and 2 comes the same way; bytes that are no UTF-8 become U+FFFD.
Left out on purpose: a cap on what a cell displays in all (images, tables); the worker counts that where the notebook is kept.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import sys
import termios
import threading
import time
from collections import deque
from typing import Any

DISPLAY_MIB = 8  # of one displayed object
_PIPE = 2**20  # bytes, what Linux allows everybody
_TAIL = 4  # a quarter of the cap is kept for the last part


class Cap:
    """Lets the first characters of a cell's stream pass and keeps the last ones back until the cell ends."""

    def __init__(self, kib: int):
        self.kib = kib
        self.head, self.tail = kib * 1024 * (_TAIL - 1) // _TAIL, kib * 1024 // _TAIL
        self._lock = threading.Lock()
        self.start()

    def start(self) -> None:
        """Begin a cell: nothing passed, nothing kept."""
        self._passed, self._seen, self._kept, self._kept_size = 0, 0, deque(), 0

    def take(self, text: str) -> str:
        """What of `text` may pass now; the rest is kept back, and of that only the end."""
        with self._lock:
            room = self.head - self._passed
            now, later = text[:room] if room > 0 else "", text[max(room, 0) :]
            self._passed += len(now)
            if later:
                if not self._seen:
                    now += f"\n[nbcore: more than {self.head // 1024} KiB; what follows comes when the cell ends, at most {self.kib} KiB]\n"
                self._seen += len(later)
                self._kept.append(later[-self.tail :])
                self._kept_size += len(self._kept[-1])
                while self._kept_size - len(self._kept[0]) >= self.tail:
                    self._kept_size -= len(self._kept.popleft())
            return now

    def end(self) -> str:
        """What was kept back, after a line that says how much was cut; empty for a cell within the cap."""
        with self._lock:
            last = "".join(self._kept)[-self.tail :]
            cut = self._seen - len(last)
            self.start()
        return f"\n[nbcore: {cut:,} characters cut here]\n{last}" if cut > 0 else last


def stream_class(kib: int) -> type:
    """The kernel's stdout and stderr with a `Cap` of `kib` KiB each; ipykernel is imported here, in the kernel only."""
    from ipykernel.iostream import OutStream

    class CappedStream(OutStream):
        def __init__(self, *args: Any, **kwargs: Any):
            self.cap = Cap(kib)  # before the thread that watches the file descriptor starts
            super().__init__(*args, **kwargs | {"watchfd": "force"})  # also where ipykernel would not: a stage run from a test

        def write(self, string: str) -> int | None:
            if not isinstance(string, str):
                return super().write(string)  # raises the TypeError that print and friends expect
            now = self.cap.take(string)
            if now:
                super().write(now)
            return len(string)

        def end_cell(self) -> None:
            # What a child process wrote last may still be in the pipe; it belongs to this cell.
            until = time.monotonic() + 0.5
            while fcntl.ioctl(self._fid, termios.FIONREAD, b"\0" * 4) != b"\0" * 4 and time.monotonic() < until:
                time.sleep(0.002)
            rest = self.cap.end()
            if rest:
                super().write(rest)

        def _watch_pipe_fd(self) -> None:
            # As in ipykernel, less the raw copy to the original descriptor, which would put the whole flood into the log.
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            try:
                if sys.platform == "linux":
                    fcntl.fcntl(self._fid, fcntl.F_SETPIPE_SZ, _PIPE)  # fewer turns between writer and reader in a flood
                while (data := os.read(self._fid, _PIPE)) and self._should_watch:
                    self.write(decoder.decode(data))
            except (OSError, ValueError):
                self._exc = sys.exc_info()

    return CappedStream


def cap_messages(session: Any) -> None:
    """Make `session.send` shorten oversized displays, results and tracebacks before they leave the kernel."""
    send, limit = session.send, DISPLAY_MIB * 2**20

    def shortened(value: Any) -> Any:
        if isinstance(value, str) and len(value) > limit:
            return f"{value[: limit // 64]}\n[nbcore: {len(value) - limit // 32:,} characters cut here]\n{value[-limit // 64 :]}"
        if isinstance(value, dict):
            whole = {key: len(item) for key, item in value.items() if _cannot_be_cut(key, item) and len(item) > limit}
            kept = {key: shortened(item) for key, item in value.items() if key not in whole}
            notes = [f"[nbcore: {key} of {size / 2**20:.0f} MiB left out, the limit is {DISPLAY_MIB} MiB]" for key, size in whole.items()]
            return kept | {"text/plain": "\n".join(notes)} if whole else kept
        return [shortened(item) for item in value] if isinstance(value, list) else value

    def send_shortened(stream: Any, msg_or_type: Any, content: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(msg_or_type, dict):
            msg_or_type = {**msg_or_type, "content": shortened(msg_or_type.get("content"))}
        return send(stream, msg_or_type, shortened(content), *args, **kwargs)

    session.send = send_shortened


def _cannot_be_cut(mime: Any, content: Any) -> bool:
    # Half a picture is no picture; half a page of text still says something.
    return isinstance(content, str | bytes) and isinstance(mime, str) and "/" in mime and not mime.startswith("text/")
