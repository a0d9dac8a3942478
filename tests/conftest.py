"""What tests of several rooms share: a kitchen, patience, a look for processes left behind, and the data of others."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from kitchen import Kitchen

from nbcore.jobs.processes import members

# A shell starts what it puts into the background with SIGINT ignored, and children inherit that: a test that interrupts its runner
# would then wait for ever, or say that the stop button is broken.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def kitchen(tmp_path: Path) -> Kitchen:
    return Kitchen(tmp_path)


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Wait until something is true; fail with its name after some seconds."""

    def wait(what: Callable[[], object], name: str, seconds: float = 60.0) -> None:
        until = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < until, f"not within {seconds:g} s: {name}"
            time.sleep(0.05)

    return wait


@pytest.fixture
def nothing_left() -> Iterator[Callable[[Path], None]]:
    """Assert that no process of a run is alive; whatever a failing test leaves is ended after it."""
    runs: list[Path] = []

    def check(run: Path, seconds: float = 10.0) -> None:
        runs.append(run)
        until = time.monotonic() + seconds
        while (left := members("NBCORE_RUN_ID", run.name)) and time.monotonic() < until:
            time.sleep(0.05)
        assert not left, f"left behind: {[(p.pid, p.name()) for p in left]}"

    yield check
    for run in runs:
        for process in members("NBCORE_RUN_ID", run.name):
            try:
                process.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue


@pytest.fixture(scope="session")
def external() -> Callable[[str], list[dict]]:
    """Rows of a file (JSON lines, or one JSON list) of the folder NBCORE_EXTERNAL, which holds the data of others; skips without it."""
    root = os.environ.get("NBCORE_EXTERNAL")
    if not root:
        pytest.skip("NBCORE_EXTERNAL is not set")

    def rows(name: str) -> list[dict]:
        text = (Path(root) / name).read_text(encoding="utf-8")
        return json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.removesuffix("\n").split("\n")]

    return rows
