"""Where a worker's words go: the log of its stage, and the pipe to its guardian. Both masked, neither lost in a kill.

Left out on purpose: levels and rotation; a stage has one log, and its size is capped where it is printed (`capped.py`).
"""

from __future__ import annotations

import errno
import json
import os
import re
from typing import Any

from nbcore.jobs.secrets import Masks

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class Log:
    """log.txt as a text file that masks secrets; writes go straight to the descriptor, so a kill loses nothing."""

    encoding = "utf-8"

    def __init__(self, masks: Masks):
        self.masks = masks

    def write(self, text: str) -> int:
        """Append `text`, bare of colour codes. A full disk is reported once by the cell that meets it, not by the log."""
        try:
            os.write(1, _ANSI.sub("", self.masks.text(text)).encode("utf-8", "replace"))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


class Reporter:
    """What the worker says to the guardian: JSON lines through a pipe that no disk can fill."""

    def __init__(self, descriptor: int, masks: Masks):
        self.descriptor, self.masks = descriptor, masks

    def say(self, **message: Any) -> None:
        """Send one message."""
        os.write(self.descriptor, (json.dumps(self.masks.data(message)) + "\n").encode("utf-8"))
