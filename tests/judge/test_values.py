import json

import pytest

from nbcore.judge.values import lifted, plain


class Number(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -1, 1.5, "日本", [1, [2]], (1, (2,)), {1, 2}, {(1, 2), (3,)}, {"a": {"b": (1,)}}, {1: "a", "1": "b"}, {(1,): 2}, {},
        set(), (), b"a\xff", 1 + 2j, {"\0set": [1]}, [{"\0int": "0x1"}], float("inf"),
    ],
)  # fmt: skip
def test_a_value_comes_back_as_it_was(value):
    back = lifted(json.loads(json.dumps(plain(value))))
    assert back == value and type(back) is type(value)


def test_numbers_of_any_length_come_back():
    for value in (10**5000, -(10**5000), [2**4096, 2**4096 - 1]):
        assert lifted(json.loads(json.dumps(plain(value)))) == value


def test_subclasses_become_what_they_extend():
    assert type(plain(Number(3))) is int and plain([Number(3)]) == [3] and plain(frozenset([1])) == {"\0set": [1]}


def test_what_has_no_plain_form_is_refused():
    for value in (object(), [lambda: 1], {1: object()}, iter(())):
        with pytest.raises(TypeError, match="no value that a judge can compare"):
            plain(value)


@pytest.mark.parametrize("tag", [{"\0made up": 1}, {"\0set": [[1]]}, {"\0int": "x"}, {"\0pairs": 3}, {"\0complex": ["a", 1]}])
def test_a_tag_that_a_program_made_up_is_refused(tag):
    with pytest.raises((ValueError, TypeError)):
        lifted(tag)
