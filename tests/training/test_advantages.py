"""Advantages: exact zeros where nothing can be learned, missing is not zero, and credit for turns that stopping cannot buy."""

import itertools
import math
import operator
import random

import pytest

from nbcore.training.advantages import FLOOR, group_advantages, per_token, turn_advantages


@pytest.mark.parametrize("kind", ["mean", "zscore", "leave-one-out"])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1 / 3, -7.7, 1e-12, 1e9])
def test_equal_rewards_give_exactly_zero(kind, value):
    group = group_advantages([value] * 7, kind)
    assert group.advantages == [0.0] * 7 and not group.signal


def test_the_three_kinds_by_hand():
    rewards = [1.0, 0.0, 0.0, 1.0, 1.0]
    assert group_advantages(rewards, "mean").advantages == pytest.approx([0.4, -0.6, -0.6, 0.4, 0.4])
    assert group_advantages(rewards, "zscore").advantages == pytest.approx([a / 0.5477225575 for a in (0.4, -0.6, -0.6, 0.4, 0.4)])
    others = [2 / 4, 3 / 4, 3 / 4, 2 / 4, 2 / 4]
    assert group_advantages(rewards, "leave-one-out").advantages == pytest.approx([r - o for r, o in zip(rewards, others, strict=True)])


def test_zscore_does_not_blow_rounding_up_to_a_signal_of_size_one():
    group = group_advantages([0.3, 0.1 + 0.2, 0.3, 0.3], "zscore")
    assert max(map(abs, group.advantages)) < 1e-16 / FLOOR * 10


def test_a_missing_reward_leaves_the_statistics_and_is_not_zero():
    group = group_advantages([2.0, None, 4.0])
    assert group.advantages == [-1.0, None, 1.0] and group.mean == 3.0
    assert group_advantages([None, None]).advantages == [None, None]
    alone = group_advantages([None, 5.0, None], "leave-one-out")
    assert alone.advantages == [None, 0.0, None] and not alone.signal


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_rewards_that_are_not_finite_are_refused(bad):
    with pytest.raises(ValueError, match="finite"):
        group_advantages([1.0, bad])


def test_an_unknown_kind_names_the_allowed_ones():
    with pytest.raises(ValueError, match="'median'.*mean.*zscore.*leave-one-out"):
        group_advantages([1.0, 0.0], "median")


def test_large_rewards_keep_small_differences():
    """In float32 these two are one number."""
    assert group_advantages([1e9, 1e9 + 1]).advantages == [-0.5, 0.5]


def test_turn_credit_by_hand():
    credit = turn_advantages([[1.0, 0.0, 1.0], [1.0], [0.0, 1.0]])
    # returns-to-go: 2 1 1 | 1 | 1 1; a trajectory that has stopped counts as 0 for the others
    assert credit == [pytest.approx([2 - 1, 1 - 0.5, 1 - 0]), pytest.approx([1 - 1.5]), pytest.approx([1 - 1.5, 1 - 0.5])]


def test_missing_turn_rewards_leave_the_others_baseline():
    assert turn_advantages([[1.0], None, [0.0]]) == [[1.0], None, [-1.0]]
    assert turn_advantages([[1.0, 2.0], None]) == [[0.0, 0.0], None]


def test_stopping_is_neither_paid_nor_punished():
    """A chain where each turn pays by luck alone, and stopping is a coin. The credit at a turn, averaged over all groups, must
    not depend on whether the trajectory stops there: a baseline with as many terms as own turns fails this."""
    rng, paid = random.Random(0), {True: [], False: []}
    for _ in range(20_000):
        group = []
        for _ in range(4):
            group.append([float(rng.random() < 0.5)])
            while len(group[-1]) < 4 and rng.random() < 0.5:
                group[-1].append(rng.random() - 0.5)  # mean zero: going on is worth nothing
        for rewards, credit in zip(group, turn_advantages(group), strict=True):
            paid[len(rewards) == 1].append(credit[0])
    means = {stopped: sum(v) / len(v) for stopped, v in paid.items()}
    assert abs(means[True] - means[False]) < 0.015


def _chain():
    """A toy chain of at most three turns: right pays 1 and goes on, left pays 0.3 and stops. Each way with its rewards and choices."""
    ways = [("L", [0.3]), ("RL", [1.0, 0.3]), ("RRL", [1.0, 1.0, 0.3]), ("RRR", [1.0, 1.0, 1.0])]
    right = 0.4
    chance = {way: math.prod(right if c == "R" else 1 - right for c in way) for way, _ in ways}
    score = {way: [1 - right if c == "R" else -right for c in way] for way, _ in ways}  # d log p / d logit of right, by turn
    true = sum(chance[way] * sum(score[way]) * sum(rewards) for way, rewards in ways)
    return ways, chance, score, true


def _expected(credit, size=3):
    """The exact mean of the gradient estimate over all groups of the toy chain."""
    ways, chance, score, _ = _chain()
    total = 0.0
    for group in itertools.product(ways, repeat=size):
        p = math.prod(chance[way] for way, _ in group)
        given = credit([rewards for _, rewards in group])
        total += p / size * sum(sum(map(operator.mul, own, score[way])) for own, (way, _) in zip(given, group, strict=True))
    return total


def test_the_estimate_of_the_gradient_is_unbiased():
    assert _expected(turn_advantages) == pytest.approx(_chain()[3], abs=1e-12)


def test_a_baseline_over_those_still_going_is_biased_and_so_is_normalising_by_turn():
    """Compared with the trajectories that got as far: who goes on alone is compared with himself, so going on earns nothing."""

    def to_go(rewards):
        return [sum(rewards[t:]) for t in range(len(rewards))]

    def alive(group):
        returns = [to_go(rewards) for rewards in group]
        at = [[r[t] for r in returns if t < len(r)] for t in range(3)]
        return [[g - sum(at[t]) / len(at[t]) for t, g in enumerate(own)] for own in returns]

    def normalised(group):
        centred = alive(group)
        spread = [math.sqrt(sum(c[t] ** 2 for c in centred if t < len(c)) / max(1, sum(t < len(c) for c in centred))) for t in range(3)]
        return [[c / spread[t] if spread[t] > 1e-9 else 0.0 for t, c in enumerate(own)] for own in centred]

    true = _chain()[3]
    for naive in (alive, normalised):
        assert abs(_expected(naive) - true) > 0.1 * abs(true)
    # not a matter of scale: a weight that makes up for the own share (size over size - 1) does not mend it
    assert abs(_expected(alive) * 3 / 2 - true) > 0.05 * abs(true)


def test_each_token_gets_its_turns_credit_and_tool_results_get_none():
    mask = [1, 1, 0, 0, 1, 0, 1]
    assert per_token(mask, 0.5, [1.0, -1.0, 0.0], 0.1) == pytest.approx([0.6, 0.6, 0, 0, 0.4, 0, 0.5])


def test_weight_zero_is_plain_grpo_exactly():
    for mask in itertools.product((0, 1), repeat=4):
        assert per_token(mask, 0.3, [9.0], 0.0) == [0.3 * bit for bit in mask] == per_token(mask, 0.3)


def test_turn_rewards_that_do_not_match_the_turns_are_refused():
    with pytest.raises(ValueError, match="1 turn rewards.*2 turns"):
        per_token([1, 0, 1], 0.0, [1.0], 1.0)
