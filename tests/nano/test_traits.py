"""align: the written answer has every property, each poor behaviour loses at least one, the annotator tells them apart."""

import random

from nbcore.nano import traits


def test_the_written_answer_is_what_was_asked_for():
    for item in traits.instructions(300, 0):
        assert all(traits.properties(traits.written(item, item.format), item).values()), item
        assert traits.annotator(traits.written(item, item.format), item) == 1.0


def test_rambling_scores_lower_every_time():
    rng = random.Random(0)
    for item in traits.instructions(300, 1):
        assert traits.annotator(traits.rambling(rng, item), item) < 1.0, item


def test_an_answer_that_never_ended_scores_lower():
    item = traits.instructions(1, 2)[0]
    right = traits.written(item, item.format)
    assert traits.annotator(right, item, ended=False) < traits.annotator(right, item)


def test_nothing_and_nonsense_score_low():
    for item in traits.instructions(50, 3):
        for text in ("", "no", "- ", ",,,"):
            assert traits.annotator(text, item) < 0.3
