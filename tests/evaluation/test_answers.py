"""Win rates: ties are halves, prompts are paired, and the interval speaks about prompts."""

from types import SimpleNamespace

import pytest

from nbcore.evaluation.answers import judged, win_rate
from nbcore.rewards.rollouts import Rollout


def test_by_hand():
    rate = win_rate([[1.0, 0.0], [2.0, 2.0]], [[0.0, 0.0], [2.0, 3.0]])
    assert rate.mean == pytest.approx(((1 + 1 + 0.5 + 0.5) / 4 + (0.5 + 0 + 0.5 + 0) / 4) / 2) and rate.n == 2


def test_a_policy_ties_with_itself_and_the_two_sides_add_up_to_one():
    ours, theirs = [[0.3, 0.5], [0.2, 0.9], [0.1, 0.1]], [[0.4, 0.4], [0.9, 0.2], [0.0, 0.2]]
    assert win_rate(ours, ours).mean == 0.5
    assert win_rate(ours, theirs).mean + win_rate(theirs, ours).mean == pytest.approx(1.0)


def test_more_samples_of_a_prompt_do_not_make_the_interval_narrower():
    few, many = [[1.0], [0.0], [1.0], [0.0]], [[1.0] * 9, [0.0] * 9, [1.0] * 9, [0.0] * 9]
    half = [[0.5]] * 4
    assert win_rate(few, half) == win_rate(many, half)


def test_unlike_numbers_of_prompts_are_refused():
    with pytest.raises(ValueError, match="2 and 1"):
        win_rate([[1.0], [1.0]], [[1.0]])


def test_the_answer_is_judged_without_its_thought_and_with_its_end():
    rollout = Rollout(SimpleNamespace(word="tea"), [1], [2], "<think>\nrain\n</think>\n\ntea", False, [1], [0.0])
    seen = []
    assert judged([[rollout]], lambda answer, item, ended: seen.append((answer.strip(), item.word, ended)) or 0.5) == [[0.5]]
    assert seen == [("tea", "tea", False)]
