"""What the tests of reinforcement share: a base whose answers end."""

import pytest
import torch

from nbcore import models


@pytest.fixture(scope="module")
def base():
    """The base with a line's end as its end of turn: its answers end, at different lengths."""
    torch.set_num_threads(1)
    base = models.load("nano")
    base.tokenizer.eos_token = base.tokenizer.convert_ids_to_tokens(base.tokenizer.encode("\n")[0])
    return base
