"""A row in colour: every character is shown once, escaped, and only supervised tokens are shaded."""

import re

import pytest

from nbcore import models
from nbcore.chat.show import LEARNED, coloured


def test_the_text_is_whole_and_the_shaded_part_is_the_mask():
    tokenizer = models.load("nano").tokenizer
    ids = tokenizer.encode("a <b> & c\nPala.")
    mask = [i % 2 for i in range(len(ids))]
    page = coloured(tokenizer, ids, mask)
    assert page.count("<span") == len(ids) and page.count(LEARNED) == sum(mask)
    text = re.sub(r"<[^>]+>", "", page).replace("↵\n", "\n")
    assert text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == "a <b> & c\nPala."


def test_a_mask_of_another_length_is_refused():
    with pytest.raises(ValueError, match="mask"):
        coloured(None, [1, 2], [1])
