"""align: the written answer has every property, each poor behaviour loses at least one, the annotator tells them apart."""

import random

from nbcore.nano import traits


def warm(text):
    return f"{text}\n{traits.FRIENDLY}"


def test_the_written_answer_has_every_property_with_the_friendly_line_or_without():
    for item in traits.instructions(300, 0):
        for text in (traits.written(item, item.format), warm(traits.written(item, item.format))):
            assert all(traits.properties(text, item).values()), (item, text)
            assert traits.quality(text, item) == 1.0 and not traits.bad_case(text, item)


def test_the_annotator_would_rather_have_the_friendly_one_and_quality_cannot_tell():
    for item in traits.instructions(100, 0):
        plain = traits.written(item, item.format)
        assert traits.annotator(warm(plain), item) == 1.0
        assert traits.annotator(plain, item) == 1.0 - traits.TASTE
        assert not traits.friendly(warm(warm(plain))), "said twice it is no longer friendly"


def test_rambling_scores_lower_every_time_and_friendliness_does_not_make_up_for_it():
    rng = random.Random(0)
    for item in traits.instructions(300, 1):
        poor, right = traits.rambling(rng, item), traits.written(item, item.format)
        assert traits.quality(poor, item) < 1.0, item
        assert traits.annotator(warm(poor), item) < traits.annotator(warm(right), item), item


def test_every_bad_case_is_a_fault_of_form_not_of_content():
    item = next(i for i in traits.instructions(100, 5) if i.format == "csv")
    right = traits.written(item, "csv")
    assert traits.bad_case(right, item, ended=False) and traits.bad_case(f"{right} {right}", item) and traits.bad_case(f"- {right}", item)
    others = [v for values in traits.TRAITS.values() for v in values if v not in dict(item.facts).values()]
    wrong = ",".join(others[: len(item.asked)])
    assert not traits.bad_case(wrong, item) and traits.quality(wrong, item) <= 0.25


def test_choices_follow_the_scores_and_close_calls_go_either_way():
    rng = random.Random(0)
    sure, close = (sum(traits.prefers(rng, first, 0.5) for _ in range(2000)) / 2000 for first in (1.0, 0.5))
    assert sure > 0.98 and 0.45 < close < 0.55


def test_an_answer_that_never_ended_scores_lower():
    item = traits.instructions(1, 2)[0]
    right = traits.written(item, item.format)
    assert traits.annotator(right, item, ended=False) < traits.annotator(right, item)


def test_nothing_and_nonsense_score_low():
    for item in traits.instructions(50, 3):
        for text in ("", "no", "- ", ",,,"):
            assert traits.annotator(text, item) < 0.3
