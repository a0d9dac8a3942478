"""The difficulty filter keeps what the model sometimes solves, counts a judge's failures apart, and says when too little is left."""

import pytest

from nbcore.chat.checks import PreflightError
from nbcore.rewards.rollouts import Rollout
from nbcore.training.difficulty import keep_between
from nbcore.training.grpo import Prompt

PROMPTS = [Prompt(n, [1]) for n in range(9)]


def play(model, tokenizer, asked, seed):
    return [Rollout(p.item, p.ids, [2], "", True, [1], [0.0]) for p in asked]


def solved_by_number(rollouts):
    """Prompt n is solved n times of 8."""
    return [i % 8 < r.item for i, r in enumerate(rollouts)]


def test_prompts_with_one_to_five_successes_of_eight_stay():
    found = keep_between(None, None, PROMPTS, solved_by_number, play, least=1)
    assert [p.item for p in found.prompts] == [1, 2, 3, 4, 5]
    assert found.successes == list(range(9)) and found.counts == {n: 1 for n in range(9)}


def test_a_judge_that_failed_drops_the_prompt_and_is_no_failure_of_the_model():
    def failing(rollouts):
        return [None if r.item == 3 else v for r, v in zip(rollouts, solved_by_number(rollouts), strict=True)]

    found = keep_between(None, None, PROMPTS, failing, play, least=1)
    assert [p.item for p in found.prompts] == [1, 2, 4, 5] and found.counts[None] == 1 and found.successes[3] is None


def test_too_few_prompts_stop_the_stage_with_the_counts():
    with pytest.raises(PreflightError, match=r"5 of 9 prompts.*needs 8.*\{0: 1"):
        keep_between(None, None, PROMPTS, solved_by_number, play)


@pytest.mark.parametrize("low, high", [(3, 2), (-1, 5), (1, 9)])
def test_bounds_that_cannot_be_are_refused(low, high):
    with pytest.raises(ValueError, match="low <= high"):
        keep_between(None, None, PROMPTS, solved_by_number, play, low, high)


def test_a_short_list_of_verdicts_is_refused():
    with pytest.raises(ValueError, match="1 verdicts for 72"):
        keep_between(None, None, PROMPTS, lambda rs: [True], play)
