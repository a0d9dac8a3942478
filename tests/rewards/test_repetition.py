import random

import pytest

from nbcore.rewards.repetition import Cycle, is_repetitive, longest_cycle, repeated_share, unrepeated, words
from nbcore.rewards.rollouts import Rollout

ORDINARY = (
    "Natalia sold 48 clips in April, and then she sold half as many clips in May. How many clips did she sell altogether? "
    "In May she sold 48 / 2 = 24 clips. In April and May she sold 48 + 24 = 72 clips. The answer is 72."
)


def naive(tokens, least=5):
    """All maximal runs by definition: (length, period) of the longest, in quadratic time."""
    best = (0, 0)
    for period in range(1, len(tokens) // 2 + 1):
        i = period
        while i < len(tokens):
            end = i
            while end < len(tokens) and tokens[end] == tokens[end - period]:
                end += 1
            if end - i >= period and (covered := end - i + period) > best[0] and covered >= period + least - 1:
                best = (covered, period)
            i = end + 1
    return best


@pytest.mark.parametrize(
    ("tokens", "cycle"),
    [
        ("x the the the the the the".split(), Cycle(1, 6, 1)),
        (["a", *"bcd" * 5, "e"], Cycle(1, 15, 3)),
        ([9, 8, *range(50), *range(50), *range(20)], Cycle(2, 120, 50)),
        (list("abcdefgh"), Cycle()),
        ([], Cycle()),
    ],
)
def test_the_longest_cycle_says_where_it_starts_how_long_it_is_and_its_period(tokens, cycle):
    assert longest_cycle(tokens) == cycle


def test_loops_planted_in_random_text_are_found_as_the_definition_finds_them():
    rng = random.Random(0)
    for _ in range(300):
        period, rounds = rng.randint(1, 20), rng.uniform(2.5, 8)
        body = rng.choices(range(40), k=period)
        loop = [body[i % period] for i in range(max(8, int(period * rounds)))]
        text = rng.choices(range(40), k=rng.randint(0, 30)) + loop + rng.choices(range(40), k=rng.randint(0, 30))
        found = longest_cycle(text)
        assert (found.length, found.period) == naive(text)


def test_a_run_is_what_it_says_it_is_on_texts_of_few_letters():
    rng = random.Random(1)
    for _ in range(300):
        text = rng.choices("ab", k=80)
        found = longest_cycle(text)
        run = text[found.start : found.start + found.length]
        assert run[found.period :] == run[: found.length - found.period] and found.length >= 2 * found.period
        assert found.length <= naive(text)[0]


def test_the_share_of_repeated_n_grams_is_counted_by_hand():
    assert repeated_share("a b c d a b c d".split()) == pytest.approx(1 / 5)  # of five 4-grams, "a b c d" stood before
    assert repeated_share(["the"] * 10) == pytest.approx(6 / 7)
    assert repeated_share([1, 2, 3, 4]) == 0.0
    assert repeated_share("a b a b a b".split(), n=2) == pytest.approx(3 / 5)


@pytest.mark.parametrize(
    "text",
    [
        "I think " + "the " * 40,
        "So we wait. " + "Let me check that again. It is 12. " * 5,
        "1 / 3 = 0." + " 3" * 60,
        "<answer> " * 30,
    ],
)
def test_endless_text_is_repetitive_on_words_and_on_tokens(text):
    assert is_repetitive(words(text)) and is_repetitive(list(text))


@pytest.mark.parametrize(
    "text",
    [
        ORDINARY,
        "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20",
        "ha ha ha ha",
        "| a | b |\n| - | - |\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |",
        "def f(n):\n    s = 0\n    for i in range(n):\n        s += i\n    return s",
        "",
    ],
)
def test_ordinary_text_is_not(text):
    assert not is_repetitive(words(text))


class Counted:
    """A token that counts how often tokens are compared."""

    comparisons = 0

    def __eq__(self, other):
        Counted.comparisons += 1
        return self is other

    __hash__ = object.__hash__


@pytest.mark.parametrize("kind", ["one token", "two tokens at random", "four rounds", "runs of many periods", "Fibonacci word"])
def test_the_work_grows_with_the_length_and_not_with_its_square(kind):
    alphabet, rng = [Counted() for _ in range(5000)], random.Random(2)

    def text(n):
        a, b = [0], [0, 1]
        while kind == "Fibonacci word" and len(b) < n:
            a, b = b, b + a
        return {
            "one token": lambda: [0] * n,
            "two tokens at random": lambda: rng.choices([0, 1], k=n),
            "four rounds": lambda: [*range(n // 4)] * 4,
            "runs of many periods": lambda: [t for k in range(5, int(n**0.5)) for t in [*range(k)] * 2],
            "Fibonacci word": lambda: b[:n],
        }[kind]()

    work = []
    for n in (2_000, 16_000):
        tokens = [alphabet[t] for t in text(n)]
        Counted.comparisons = 0
        longest_cycle(tokens)
        work.append(Counted.comparisons / n)
    assert work[1] < 12 and work[1] < 2 * work[0] + 1, work


def test_the_reward_counts_what_the_policy_wrote_and_not_what_a_tool_said():
    def rollout(ids, mask):
        return Rollout(None, [], ids, "", True, mask, [0.0] * len(ids))

    own, tool = list(range(20)), [7] * 200
    alone, with_tool, loop, empty = unrepeated([
        rollout(own, [1] * 20), rollout(own + tool, [1] * 20 + [0] * 200), rollout(own + tool, [1] * 220), rollout([], [])
    ])  # fmt: skip
    assert alone == with_tool == empty == 1.0
    assert loop < 0.1


@pytest.mark.external
def test_loops_that_a_real_model_wrote_are_found_and_human_solutions_are_clean(external):
    from nbcore import models

    tokenizer = models.load("nano").tokenizer
    written = [r["prediction"] for r in external("math_grading/gsm8k_model_solutions.jsonl")]
    endless = [t for t in written if "\nA:" not in t]  # six never come to an answer; four of them are loops, read by eye
    looping = [t for t in written if is_repetitive(tokenizer(t)["input_ids"])]
    assert (len(endless), len(set(endless) & set(looping))) == (6, 4)
    assert len(looping) == 5  # and one that writes 10/3 with 28 threes before it goes on
    human = [r["answer"] for r in external("instruction_and_preference/gsm8k_train.jsonl")]
    assert not [t for t in human if is_repetitive(tokenizer(t)["input_ids"]) or is_repetitive(words(t))]
