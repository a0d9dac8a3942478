"""Counts at several sizes are given the lowest class that explains them, or none."""

import math

import pytest

from nbcore.judge.growth import CLASSES, fit

SIZES = [8, 11, 16, 23, 32, 45, 64, 91, 128]
SHAPES = {
    "O(1)": lambda n: 7,
    "O(log n)": lambda n: 3 * math.log2(n) + 5,
    "O(n)": lambda n: 2 * n + 40,
    "O(n log n)": lambda n: n * math.log2(n) + 3 * n,
    "O(n²)": lambda n: n * n / 2 + 9 * n + 20,
    "O(n² log n)": lambda n: n * n * math.log2(n) + n,
    "O(n³)": lambda n: n**3 / 6 + n * n + 5,
}


@pytest.mark.parametrize(("name", "count"), SHAPES.items())
def test_a_class_is_known_behind_its_lower_terms(name, count):
    assert fit(SIZES, [count(n) for n in SIZES]).name == name


@pytest.mark.parametrize("base", [1.3, 1.618, 2, 3])
def test_growth_by_a_factor_a_step_is_exponential(base):
    sizes = list(range(6, 26))
    assert fit(sizes, [5 * base**n + 3 for n in sizes]).name == "exponential"


@pytest.mark.parametrize(("name", "count"), SHAPES.items())
def test_a_little_noise_does_not_move_a_class_further_than_to_its_neighbour(name, count):
    counts = [count(n) * (1 + 0.02 * (-1) ** i) for i, n in enumerate(SIZES)]
    found = fit(SIZES, counts)
    assert name in found.candidates and len(found.candidates) <= 2


def test_what_lies_between_two_classes_is_undecided():
    found = fit(SIZES, [n**1.5 for n in SIZES])
    assert found.name == "undecided"
    assert abs(found.exponent - 1.5) < 0.01


def test_what_fits_no_class_has_them_all_as_candidates():
    found = fit(SIZES, [10 if i % 2 else 1000 * (i + 1) for i in range(len(SIZES))])
    assert (found.name, found.candidates) == ("undecided", CLASSES)


def test_counts_that_shrink_are_bounded():
    assert fit(SIZES, [60, 50, 44, 40, 37, 35, 34, 34, 33]).name == "O(1)"


def test_too_few_sizes_are_refused():
    with pytest.raises(ValueError, match="4 sizes at least; given 3 counts at 3 sizes"):
        fit([1, 2, 3], [1, 2, 3])
