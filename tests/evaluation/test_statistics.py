import itertools
import math

import numpy as np
import pytest

from nbcore.evaluation.statistics import avg_at_k, mean_interval, paired_difference, pass_at_k, wilson

# Newcombe (1998), Statistics in Medicine 17, table I, method 3: 95% intervals to four digits.
PUBLISHED = [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]


@pytest.mark.parametrize(("successes", "n", "low", "high"), PUBLISHED)
def test_wilson_gives_the_published_numbers(successes, n, low, high):
    got = wilson(successes, n)
    assert (got.low, got.high) == (pytest.approx(low, abs=5.1e-5), pytest.approx(high, abs=5.1e-5))
    assert got.mean == successes / n


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_wilson_ends_solve_the_score_equation(confidence):
    from statistics import NormalDist

    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    for n in (1, 7, 400):
        for successes in range(1, n):
            got = wilson(successes, n, confidence)
            for end in (got.low, got.high):
                assert abs(successes / n - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), rel=1e-9)


def test_wilson_covers_what_it_promises_and_stays_inside():
    n, shares = 40, [0.02, 0.1, 0.5, 0.9]
    for p in shares:
        chance = [math.comb(n, s) * p**s * (1 - p) ** (n - s) for s in range(n + 1)]
        covered = sum(c for s, c in enumerate(chance) if wilson(s, n).low <= p <= wilson(s, n).high)
        assert 0.91 < covered < 0.99, (p, covered)
    assert wilson(0, 5).low == 0.0
    assert wilson(5, 5).high == 1.0


def test_nothing_measured_is_none_and_not_zero():
    assert wilson(0, 0).mean is None
    assert mean_interval([]).mean is None
    assert mean_interval([None, None]).mean is None
    assert mean_interval([None, None]).missing == 2
    assert paired_difference([None], [1.0]).mean is None


def test_missing_values_are_dropped_and_counted():
    got = mean_interval([1.0, None, 0.0, None])
    assert (got.mean, got.n, got.missing) == (0.5, 2, 2)
    got = mean_interval([[1.0, None], [None, None], [0.0, 0.5]])
    assert (got.mean, got.n, got.missing) == (0.625, 2, 3)


def test_one_item_has_a_mean_but_no_interval():
    got = mean_interval([0.5])
    assert (got.mean, got.low, got.high) == (0.5, None, None)


def test_bootstrap_of_few_items_equals_the_enumeration_of_all_resamples():
    values = np.array([0.0, 1.0, 3.0, 7.0])
    every = np.sort([np.mean(c) for c in itertools.product(values, repeat=4)])
    got = mean_interval(values.tolist(), confidence=0.8, resamples=100_000)
    low, high = np.quantile(every, [0.1, 0.9])
    assert (got.low, got.high) == (pytest.approx(low, abs=0.26), pytest.approx(high, abs=0.26))  # one step of the lattice


def test_bootstrap_of_many_items_approaches_the_normal_interval():
    values = np.random.default_rng(1).normal(3, 2, 2000)
    half = 1.959964 * values.std() / math.sqrt(values.size)
    got = mean_interval(values.tolist())
    assert (got.low, got.high) == (pytest.approx(values.mean() - half, rel=0.01), pytest.approx(values.mean() + half, rel=0.01))


def test_mean_interval_covers_what_it_promises():
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(400):
        got = mean_interval(rng.random(60).tolist(), seed=seed, resamples=600)
        covered += got.low <= 0.5 <= got.high
    assert 0.91 < covered / 400 < 0.985


def test_items_not_samples_are_resampled():
    rng = np.random.default_rng(2)
    item = rng.random(30)
    alike = [[v] * 16 for v in item]  # sixteen copies of each answer are no new information
    one, many = mean_interval(item.tolist()), mean_interval(alike)
    assert (many.low, many.high) == (pytest.approx(one.low), pytest.approx(one.high))


def test_paired_difference_sees_a_small_lift_that_unpaired_intervals_do_not():
    rng = np.random.default_rng(3)
    before = rng.random(200)
    after = before + 0.02 + rng.normal(0, 0.02, 200)
    got = paired_difference(before.tolist(), after.tolist())
    assert 0 < got.low < got.mean < got.high
    assert mean_interval(before.tolist()).high > mean_interval(after.tolist()).low


def test_paired_difference_of_several_seeds_covers_what_it_promises():
    rng = np.random.default_rng(4)
    covered = 0
    for seed in range(300):
        lift = rng.normal(0.1, 0.3, (50, 1))
        before = rng.normal(0, 0.5, (50, 3))
        after = before + lift + rng.normal(0, 0.2, (50, 3))
        got = paired_difference(before.tolist(), after.tolist(), seed=seed, resamples=600)
        covered += got.low <= 0.1 <= got.high
    assert 0.90 < covered / 300 < 0.985


def test_pairs_with_a_missing_side_are_dropped_and_counted():
    got = paired_difference([1, None, 0, 0], [1, 1, None, 1])
    assert (got.mean, got.n, got.dropped) == (0.5, 2, 2)
    got = paired_difference({"a": 0, "b": 1}, {"b": 0, "c": 1})
    assert (got.mean, got.n, got.dropped) == (-1.0, 1, 2)


def test_items_that_cannot_be_paired_are_refused():
    with pytest.raises(ValueError, match="2 items and after has 1"):
        paired_difference([1, 0], [1])
    with pytest.raises(ValueError, match="both"):
        paired_difference([1], {"a": 1})


def test_the_same_seed_gives_the_same_interval():
    values = np.random.default_rng(5).random(50).tolist()
    assert mean_interval(values, seed=3) == mean_interval(values, seed=3)
    assert mean_interval(values, seed=3) != mean_interval(values, seed=4)


def test_many_items_are_resampled_in_chunks():
    values = np.random.default_rng(6).random(50_000).tolist()
    got = mean_interval(values, resamples=500)
    assert got.low < got.mean < got.high


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_an_error_and_not_a_number(value):
    with pytest.raises(ValueError, match="Item 1"):
        mean_interval([0.0, value])


def test_pass_at_k_equals_the_enumeration_of_all_draws():
    for n in range(1, 8):
        for c in range(n + 1):
            for k in range(1, n + 1):
                draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
                assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws), abs=1e-14)


def test_pass_at_k_holds_where_binomials_overflow_and_for_tiny_chances():
    exact = 1 - math.comb(9000, 5000) / math.comb(10_000, 5000)
    assert pass_at_k(10_000, 1000, 5000) == pytest.approx(exact, abs=1e-14)
    assert pass_at_k(10_000_000, 1, 1) == pytest.approx(1e-7, rel=1e-9)
    assert pass_at_k(100, 0, 10) == 0.0
    assert pass_at_k(10, 4, 7) == 1.0


@pytest.mark.parametrize(("n", "c", "k"), [(5, 6, 1), (5, -1, 1), (5, 2, 6), (5, 2, 0)])
def test_pass_at_k_refuses_what_has_no_answer(n, c, k):
    with pytest.raises(ValueError, match="pass_at_k needs"):
        pass_at_k(n, c, k)


def test_avg_at_k_is_the_mean_of_item_means_and_counts_missing_samples():
    got = avg_at_k([[1, 0, None], [1, 1, 1]])
    assert (got.mean, got.n, got.missing) == (0.75, 2, 1)
    with pytest.raises(ValueError, match=r"\[1, 2\]"):
        avg_at_k([[1, 0], [1]])


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_confidence_is_a_share(confidence):
    with pytest.raises(ValueError, match="0.95"):
        mean_interval([1, 0], confidence=confidence)
