"""The data of others, where it is present."""

import json
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def external():
    """Rows of a JSON-lines file of the folder NBCORE_EXTERNAL; skips when there is none."""
    root = os.environ.get("NBCORE_EXTERNAL")
    if not root:
        pytest.skip("NBCORE_EXTERNAL is not set")

    def rows(name):
        with (Path(root) / name).open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return rows
