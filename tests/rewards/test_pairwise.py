"""The pair-wise reward: asked in both orders, against a reference or within the group; references are replaced when too easy."""

from dataclasses import dataclass

import pytest
import torch

from nbcore import models
from nbcore.rewards import pairwise
from nbcore.rewards.pairwise import Comparison, References
from nbcore.rewards.rollouts import Rollout


@dataclass(frozen=True)
class Item:
    key: str
    text: str


ITEM, OTHER = Item("a", "What of Zota: likes?"), Item("b", "What of Riba: owns?")


def answer(text: str, item: Item = ITEM, ended: bool = True) -> Rollout:
    return Rollout(item, [1], [2], f"<think>\nhm\n</think>\n\n{text}", ended, [1], [0.0])


@pytest.fixture
def judge():
    return pairwise.PairwiseModel(models.load("nano"))


def spoken(judge, comparison: Comparison) -> float:
    """P(A) by transformers' own pass over the single prompt."""
    tokenizer, model = judge.loaded.tokenizer, judge.loaded.model
    with torch.no_grad():
        logits = model(torch.tensor([pairwise.encode(tokenizer, comparison)])).logits[0, -1]
    a, b = (logits[tokenizer(word)["input_ids"][0]] for word in "AB")
    return float((a - b).sigmoid())


COMPARISONS = [
    Comparison("Which?", "tea", "snow"), Comparison("Which?", "- tea\n- figs", "tea"), Comparison("A long question?", "x", "y" * 30),
]  # fmt: skip


def test_the_chance_is_a_softmax_over_the_two_verdicts_at_the_next_token_also_in_a_batch(judge):
    asked = [*COMPARISONS, *(c.swapped() for c in COMPARISONS)]
    assert judge.probability(asked) == pytest.approx([spoken(judge, c) for c in asked], abs=1e-5)


def test_both_orders_favour_no_place(judge):
    there, back = judge.both_orders(COMPARISONS), judge.both_orders([c.swapped() for c in COMPARISONS])
    assert [p + q for p, q in zip(there, back, strict=True)] == pytest.approx([1.0] * 3, abs=1e-6)
    first = spoken(judge, COMPARISONS[0])
    assert there[0] == pytest.approx((first + 1 - spoken(judge, COMPARISONS[0].swapped())) / 2, abs=1e-5)
    assert judge.both_orders([Comparison("Which?", "tea", "tea")]) == pytest.approx([0.5], abs=1e-6)


def test_a_reader_sees_no_thought_and_sees_that_an_answer_was_cut_off():
    assert pairwise.shown("<think>\nsecret\n</think>\n\n tea \n") == "tea"
    assert pairwise.shown("<think>\nsecret\n</think>\n\ntea", ended=False) == "tea [cut off]"
    assert pairwise.shown("<think>\nnever closed", ended=False) == " [cut off]"


def test_the_conversation_is_the_users_words_or_all_turns_under_their_roles():
    user = {"role": "user", "content": "Q"}
    assert pairwise.question_of([user]) == "Q"
    assert pairwise.question_of([user, {"role": "assistant", "content": "x"}, user]) == "user: Q\nassistant: x\nuser: Q"


def test_the_reward_against_a_reference_is_the_mean_of_both_orders(judge):
    rollouts = [answer("tea"), answer("snow"), answer("a boat", OTHER)]
    references = References({"a": answer("figs"), "b": answer("a mill", OTHER)})
    wanted = judge.both_orders([
        Comparison(ITEM.text, "tea", "figs"), Comparison(ITEM.text, "snow", "figs"), Comparison(OTHER.text, "a boat", "a mill"),
    ])  # fmt: skip
    assert pairwise.against_reference(judge, references)(rollouts) == pytest.approx(wanted, abs=1e-6)


def test_a_prompt_without_a_reference_is_an_error_that_names_it(judge):
    with pytest.raises(ValueError, match="1 prompts have no reference, for instance 'b'"):
        pairwise.against_reference(judge, References({"a": answer("figs")}))([answer("tea"), answer("a boat", OTHER)])


def test_the_net_win_rate_is_the_mean_over_rivals_of_the_same_prompt_and_sums_to_zero(judge):
    rollouts = [answer("tea"), answer("a boat", OTHER), answer("snow"), answer("figs, tea"), answer("a mill", OTHER)]
    rollouts.append(answer("x", Item("c", "?")))
    rates = pairwise.net_win_rate(judge)(rollouts)
    tea_snow, tea_both = judge.both_orders([Comparison(ITEM.text, "tea", "snow"), Comparison(ITEM.text, "tea", "figs, tea")])
    assert rates[0] == pytest.approx((2 * tea_snow - 1 + 2 * tea_both - 1) / 2, abs=1e-6)
    assert rates[0] + rates[2] + rates[3] == pytest.approx(0, abs=1e-6) and rates[1] + rates[4] == pytest.approx(0, abs=1e-6)
    assert rates[5] is None, "an answer that is alone was compared with nothing"


def test_what_does_not_fit_or_is_not_finite_is_missing_with_its_reason(judge):
    room = judge.loaded.model.config.max_position_embeddings
    rollouts = [answer("tea"), answer("x y " * room)]
    rewards = pairwise.against_reference(judge, References({"a": answer("figs")}))(rollouts)
    assert rewards[0] is not None and rewards[1] is None
    assert list(judge.missing) == [f"the question and both answers take more than {room} tokens"]
    with torch.no_grad():
        judge.loaded.model.model.norm.weight[:] = float("nan")
    assert judge.probability(COMPARISONS) == [None] * 3 and judge.missing["the verdict is not finite"] == 3
    assert pairwise.net_win_rate(judge)([answer("tea"), answer("snow")]) == [None, None]


def test_a_tokenizer_that_splits_the_verdicts_is_refused(judge):
    class Splits:
        def __call__(self, word, add_special_tokens):
            return {"input_ids": [1, 2]}

    with pytest.raises(ValueError, match="one token each"):
        pairwise.verdict_ids(Splits())


def judged(*rewards: float) -> list[tuple[Rollout, float]]:
    return [(answer(f"answer {reward}"), reward) for reward in rewards]


def test_a_reference_stays_until_it_was_beaten_in_more_than_four_fifths_of_enough_comparisons():
    old = answer("old")
    references = References({"a": old}, least=10)
    references.record("a", judged(*[0.9] * 9))
    assert references.answers["a"] is old, "nine comparisons are too few"
    references.record("a", judged(0.4, 0.4, 0.4))
    assert references.answers["a"] is old and references.replaced == 0, "nine of twelve are not more than four fifths"
    references.record("a", judged(0.6, 0.9, 0.7, 0.8, 0.95, 0.55))  # 15 of 18
    assert references.replaced == 1
    assert references.answers["a"].text.endswith("answer 0.8"), "the middle one of those that beat it, not the best"
    assert references.met["a"] == [], "the new reference is counted from nothing"


def test_the_reward_replaces_a_beaten_reference_after_the_step_that_it_judged(judge):
    chance = judge.both_orders([Comparison(ITEM.text, "tea", "snow")])[0]
    better, worse = ("tea", "snow") if chance > 0.5 else ("snow", "tea")
    references = References({"a": answer(worse), "b": answer("kept", OTHER)}, least=4)
    reward = pairwise.against_reference(judge, references)
    assert reward([answer(better)] * 4) == pytest.approx([max(chance, 1 - chance)] * 4, abs=1e-6), "judged by the old one"
    assert references.replaced == 1 and pairwise.shown(references.answers["a"].text) == better
    assert pairwise.shown(references.answers["b"].text) == "kept"
    assert reward([answer(better)]) == pytest.approx([0.5], abs=1e-6), "and from now on by the new one, which is itself"


def test_a_checkpoint_of_the_references_goes_on_where_they_were():
    first = References({"a": answer("figs")}, least=2)
    first.record("a", judged(0.9))
    again = References({"a": answer("other")}, least=2)
    again.load_state_dict(first.state_dict())
    assert again.answers == first.answers and again.met == first.met and again.replaced == 0
    for references in (first, again):
        references.record("a", judged(0.9))
    assert again.replaced == first.replaced == 1 and again.answers == first.answers
