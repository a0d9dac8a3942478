import pytest

from nbcore.judge.checkers import known, right, same
from nbcore.judge.values import plain


@pytest.mark.parametrize(
    ("got", "wanted", "equal"),
    [
        (1, 1, True), (1, True, False), (True, 1, False), (True, True, True), (False, 0, False), (0, False, False),
        (1, 1.0, True), (1.0, 1, True), (1, 1.0000000001, False), (2**53 + 1, float(2**53), False),
        (0.1 + 0.2, 0.3, True), (0.3001, 0.3, False), (0.0, 1e-15, True), (float("nan"), float("nan"), True),
        (float("nan"), 1.0, False), (float("inf"), float("inf"), True), (float("inf"), 1e308, False), (-0.0, 0.0, True),
        ("1", 1, False), ("a", "a", True), (None, None, True), (None, 0, False), (None, False, False), ("", [], False),
        ([1, [2]], [1, [2]], True), ([1, 2], [2, 1], False), ([1], [1, 2], False), ([True], [1], False),
        ({"a": 1}, {"a": 1}, True), ({"a": 1}, {"a": True}, False), ({"a": 1}, {"b": 1}, False), ({}, [], False),
    ],
)  # fmt: skip
def test_comparison(got, wanted, equal):
    assert same(got, wanted) is equal


def test_zero_tolerance_asks_for_equality():
    assert not same(0.1 + 0.2, 0.3, tolerance=0)
    assert same(0.3, 0.3, tolerance=0)


@pytest.mark.parametrize(
    ("checker", "got", "wanted", "equal"),
    [
        ("values", (1, [2, (3,)]), [1, (2, [3])], True), ("exact", (1, 2), [1, 2], False), ("exact", (1, 2), (1, 2), True),
        ("exact", 1, 1.0, False), ("exact", 0.1 + 0.2, 0.3, False), ("exact", {1: (2,)}, {1: (2,)}, True), ("exact", [1], [True], False),
        ("exact", "a \nb\n\n", "a\nb", True), ("exact", "a  b", "a b", False), ("exact", " a", "a", False), ("exact", {1}, {1}, True),
        ("tokens", "1  2\n3", "1 2 3\n", True), ("tokens", "12 3", "1 23", False), ("tokens", "1 2", "1 2 3", False),
        ("tokens", 1, "1", False), ("tokens", "Yes", "yes", False),
        ("floats", "0.333333", "0.333333333333", True), ("floats", "x 1.0", "x 1", True), ("floats", "0.33", "0.333333", False),
        ("floats", "1 2 3", "1 2", False), ("floats", "nan", "1", False), ("floats", "inf", "1e308", False),
        ("floats", [1.0, 2.0], [1, 2], True), ("floats", [1.0, 2.0], [1, 2, 3], False), ("floats", (1 / 3,), [0.333333333], True),
        ("floats", True, 1, False), ("floats", "abc", "abd", False), ("floats", 10**400, 10**400, True), ("floats", 10**400, 1.0, False),
        ("any-order", [3, 1, 2], [1, 2, 3], True), ("any-order", [1, 1, 2], [1, 2, 2], False), ("any-order", (2, 1), [1, 2], True),
        ("any-order", {1, 2}, [2, 1], True), ("any-order", "b\na\n", "a\nb", True), ("any-order", 1, 1, False),
        ("any-order", [[1, 2], [3]], [[3], [1, 2]], True), ("any-order", [[2, 1]], [[1, 2]], False),
    ],
)  # fmt: skip
def test_checkers(checker, got, wanted, equal):
    assert right(checker, (), plain(got), plain(wanted)) is equal


def test_the_tolerance_may_be_set():
    assert right("floats", (), 1.0, 1.01, tolerance=0.1) and not right("floats", (), 1.0, 1.01)
    assert right("values", (), 1.0, 1.01, tolerance=0.1)


def test_a_custom_checker_sees_python_values_and_the_arguments():
    def any_divisor(arguments, got, wanted):
        return isinstance(got, tuple) and arguments[0] % got[0] == 0

    assert right(any_divisor, (12,), plain((4,)), plain((2,))) and not right(any_divisor, (12,), plain((5,)), plain((2,)))
    assert not right(any_divisor, (12,), {"\0made up": 1}, plain((2,)))


@pytest.mark.parametrize("got", [None, "x", [], {"\0object": "E"}])
def test_a_custom_checker_that_stumbles_over_a_programs_value_alone_has_said_no(got):
    assert right(lambda arguments, got, wanted: got[0] + 1 == wanted[0] + 1, (), got, [1]) is False


@pytest.mark.parametrize("answer", [None, 1, "yes"])
def test_a_custom_checker_that_gives_no_verdict_has_failed(answer):
    with pytest.raises(ValueError, match="must give True or False"):
        right(lambda *_: answer, (), 1, 1)
    with pytest.raises(ValueError, match="failed with ZeroDivisionError"):
        right(lambda *_: 1 / 0, (), 1, 1)


def test_an_unknown_checker_is_named_with_those_that_there_are():
    with pytest.raises(ValueError, match="no checker 'fuzzy'; there are values, exact"):
        known("fuzzy")
