"""The point-wise reward: one text, one score, whatever stands beside it in a batch; what cannot be scored is missing."""

from dataclasses import replace

import pytest
import torch

from nbcore import models
from nbcore.chat.masks import encode, encode_prompt
from nbcore.nano import traits
from nbcore.nano.chats import chats
from nbcore.rewards import pointwise
from nbcore.rewards.rollouts import Rollout


@pytest.fixture(scope="module")
def policy():
    return models.load("nano")


@pytest.fixture(scope="module")
def scorer(policy):
    torch.manual_seed(0)
    made = pointwise.from_policy(policy)
    torch.nn.init.normal_(made.model.score.weight, std=0.07)  # raw scores of deviation about one, as after training
    return replace(made, mean=0.5, sd=0.8)


@pytest.fixture(scope="module")
def rollouts(policy):
    made = []
    for item, chat in zip(traits.instructions(12, 0), chats("align", 0), strict=False):
        prompt = encode_prompt(policy.tokenizer, [{"role": "user", "content": item.text}])
        for text in (chat.messages[1]["content"], "<think>\nx\n</think>\n\n- tea", "no"):
            ids = policy.tokenizer(text)["input_ids"]
            made.append(Rollout(item, prompt, ids, text, True, [1] * len(ids), [0.0] * len(ids)))
    return made


def test_a_score_alone_is_the_score_in_a_batch_and_that_of_transformers_own_classifier(scorer, rollouts):
    together = scorer(rollouts)
    rows = [pointwise.answered(scorer.tokenizer, r.prompt_ids, r.text) for r in rollouts]
    width, pad = max(map(len, rows)), scorer.tokenizer.pad_token_id
    with torch.no_grad():
        ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
        padded = scorer.model(input_ids=ids, attention_mask=(ids != pad).long()).logits[:, 0].tolist()
    assert len({len(row) for row in rows}) > 5, "the test wants rows of many lengths"
    for rollout, score, raw in zip(rollouts, together, padded, strict=True):
        assert score == pytest.approx(scorer([rollout])[0], abs=1e-5)
        assert score == pytest.approx((raw - 0.5) / 0.8, abs=1e-5)


def test_the_score_is_read_at_the_end_of_turn_and_a_cut_off_answer_is_another_row(scorer, rollouts):
    whole = rollouts[0]
    assert scorer([whole]) != scorer([replace(whole, ended=False)])
    row = pointwise.answered(scorer.tokenizer, whole.prompt_ids, whole.text)
    assert row[-1] == scorer.tokenizer.eos_token_id
    assert row[:-1] == pointwise.answered(scorer.tokenizer, whole.prompt_ids, whole.text, ended=False)


def test_what_is_scored_are_the_tokens_of_the_training_row_and_of_the_sampled_answer(policy):
    from nbcore.models.generate import generate

    for chat in [next(stream) for stream in [chats("align", 1)] for _ in range(20)]:
        prompt, said = chat.messages
        text = f"<think>\n{said['reasoning_content']}\n</think>\n\n{said['content']}"
        whole = encode(policy.tokenizer, [prompt, {"role": "assistant", "content": text}])
        row = pointwise.answered(policy.tokenizer, encode_prompt(policy.tokenizer, [prompt]), text)
        assert row == whole.input_ids[: whole.spans[0].end]
    prompts = [encode_prompt(policy.tokenizer, [{"role": "user", "content": item.text}]) for item in traits.instructions(6, 2)]
    for prompt, c in zip(prompts, generate(policy.model, policy.tokenizer, prompts, 12, temperature=0), strict=True):
        assert pointwise.answered(policy.tokenizer, prompt, c.text, c.ended) == prompt + c.ids


def test_one_text_has_one_score_however_it_was_spelled(scorer, rollouts):
    one = rollouts[0]
    letters = [i for letter in one.text for i in scorer.tokenizer(letter)["input_ids"]]
    assert letters != one.ids and scorer.tokenizer.decode(letters) == one.text
    assert scorer([replace(one, ids=letters)]) == scorer([one])


def test_a_new_scorer_gives_every_answer_nothing_and_leaves_the_policy_alone(policy, rollouts):
    fresh = pointwise.from_policy(policy)
    assert fresh(rollouts) == [0.0] * len(rollouts)
    shared = {p.data_ptr() for p in policy.model.parameters()} & {p.data_ptr() for p in fresh.model.parameters()}
    assert not shared, "the scorer's weights are its own"


def test_what_cannot_be_scored_is_missing_and_says_why(policy, rollouts):
    scorer = pointwise.from_policy(policy)
    room = scorer.model.config.max_position_embeddings
    long = replace(rollouts[0], prompt_ids=[1] * room)
    scores = scorer([rollouts[0], long])
    assert scores[0] is not None and scores[1] is None
    assert dict(scorer.missing) == {f"a row must have 1 to {room} tokens": 1}
    with torch.no_grad():
        scorer.model.score.weight[:] = float("nan")
    assert scorer(rollouts[:2]) == [None, None] and scorer.missing["the score is not finite"] == 2


def test_a_saved_scorer_comes_back_with_its_centre_and_scale(scorer, rollouts, tmp_path):
    back = pointwise.load(pointwise.save(scorer, tmp_path / "rm"))
    assert (back.mean, back.sd) == (0.5, 0.8)
    assert back(rollouts) == pytest.approx(scorer(rollouts), abs=1e-6)


def test_a_folder_that_holds_no_scorer_is_refused_with_what_is_wrong(policy, tmp_path):
    with pytest.raises(FileNotFoundError, match="config.json"):
        pointwise.load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no point-wise reward model"):
        pointwise.load(models.save(policy, tmp_path / "policy"))
