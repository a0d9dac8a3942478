"""Agreement of a learned reward with choices: what each number is on data for which it is known."""

import numpy as np
import pytest

from nbcore.evaluation import agreement


def test_accuracy_counts_a_draw_as_half_and_leaves_out_what_was_not_judged():
    assert agreement.right([2.0, -0.1, 0.0, None]) == [1.0, 0.0, 0.5, None]


def test_a_verdict_flips_when_the_same_place_wins_in_both_orders():
    first, last = [0.9, 0.9, 0.2, None, 0.6], [0.2, 0.8, 0.1, 0.5, None]
    assert agreement.flipped(first, last) == [0.0, 1.0, 1.0, None, None]
    assert agreement.position_bias([0.9, 0.7, None], [0.1, 0.7, 0.2]) == [pytest.approx(0.0), pytest.approx(0.2), None]


def test_calibration_is_zero_for_honest_chances_and_the_gap_for_boastful_ones():
    rng = np.random.default_rng(0)
    true = rng.uniform(0.5, 1, 40_000)
    first_wins = rng.uniform(size=true.size) < true
    honest = np.where(first_wins, true, 1 - true)  # the chance stated for the answer that was chosen
    assert agreement.calibration(honest).ece < 0.01
    boastful = agreement.calibration(np.where(rng.uniform(size=10_000) < 0.7, 0.95, 0.05))
    assert boastful.ece == pytest.approx(0.25, abs=0.02)
    top = boastful.bins[-1]
    assert (top.stated, top.observed) == (pytest.approx(0.95), pytest.approx(0.7, abs=0.02))


def test_calibration_counts_certainty_and_skips_the_missing():
    made = agreement.calibration([1.0, None, 0.0])
    assert sum(b.count for b in made.bins) == 4 and made.ece == pytest.approx(0.5)
    with pytest.raises(ValueError, match="missing"):
        agreement.calibration([None])


def test_spearman_sees_order_alone_and_shares_ranks_of_equal_values():
    assert agreement.ranks([10, 5, 10, 7]).tolist() == [2.5, 0.0, 2.5, 1.0]
    assert agreement.spearman([1, 2, 3, 4], [1, 10, 100, 1000]) == pytest.approx(1.0)
    assert agreement.spearman([1, 2, 2, 3], [4, 3, 2, 1]) == pytest.approx(-0.9486833)
    assert agreement.spearman([1, 1, 1], [1, 2, 3]) is None and agreement.spearman([1, 2], [1, 2]) is None
    with pytest.raises(ValueError, match="3 and 2"):
        agreement.correlation([1, 2, 3], [1, 2])


def test_a_model_that_only_counts_words_is_right_where_the_longer_was_chosen_and_wrong_elsewhere():
    rng = np.random.default_rng(1)
    chosen, rejected = rng.integers(1, 50, 400), rng.integers(51, 99, 400)
    longer = rng.uniform(size=400) < 0.5
    chosen, rejected = np.where(longer, rejected, chosen), np.where(longer, chosen, rejected)
    keys = [str(i // 4) for i in range(400)]
    bias = agreement.length_bias(keys, (chosen - rejected) / 10, chosen, rejected)
    assert bias.correlation == pytest.approx(1.0)
    assert (bias.longer.mean, bias.shorter.mean) == (1.0, 0.0)
    fair = agreement.length_bias(keys, [1.0] * 400, chosen, rejected)
    assert abs(fair.correlation) < 0.15 and (fair.longer.mean, fair.shorter.mean) == (1.0, 1.0)


def test_values_are_grouped_by_prompt_in_order():
    assert agreement.by_prompt(["a", "b", "a"], [True, None, 0.5]) == {"a": [1.0, 0.5], "b": [None]}
