"""Preference pairs: what the annotator chose, and no more; divided by prompt; a broken row is named and not swallowed."""

import json
from collections import Counter

import pytest

from nbcore import models
from nbcore.chat.toolcalls import parse
from nbcore.data import preferences
from nbcore.data.preferences import Pair
from nbcore.nano import traits
from nbcore.rewards.rollouts import Rollout


def said(item: traits.Instruction, *answers: str, thought: str = "x") -> list[Rollout]:
    texts = [f"<think>\n{thought}\n</think>\n\n{answer}" for answer in answers]
    return [Rollout(item, [1], [2], text, True, [1], [0.0]) for text in texts]


@pytest.fixture(scope="module")
def groups():
    made = []
    for item in traits.instructions(150, 3):
        right = traits.written(item, item.format)
        made.append(said(item, right, f"{right} {right}", f"{right}\n{traits.FRIENDLY}", "no"))
    return made


def test_sampling_gives_k_answers_to_each_item_as_the_policy_wrote_them():
    policy, items = models.load("nano"), traits.instructions(3, 0)
    groups = preferences.sample(policy, items, 4, new_tokens=8, seed=1)
    assert [[r.item for r in group] for group in groups] == [[item] * 4 for item in items]
    for rollout in groups[0]:
        assert len(rollout.ids) == len(rollout.mask) == len(rollout.logprobs) <= 8
        shown = rollout.ids[:-1] if rollout.ended else rollout.ids
        assert policy.tokenizer.decode(shown) == rollout.text
    assert groups == preferences.sample(policy, items, 4, new_tokens=8, seed=1)


def test_pairs_are_different_answers_to_one_prompt_and_each_is_chosen_once(groups):
    pairs = preferences.choose(groups, "answer", per_prompt=4)
    assert len(pairs) == 150 * 4
    for pair in pairs:
        assert parse(pair.chosen).content != parse(pair.rejected).content
    twice = [frozenset((p.chosen, p.rejected)) for p in pairs if p.key == pairs[0].key]
    assert len(set(twice)) == len(twice) == 4


def test_two_answers_that_differ_in_their_thought_alone_make_no_pair():
    item = traits.instructions(1, 0)[0]
    assert preferences.choose([[*said(item, "tea", thought="a"), *said(item, "tea", thought="b")]], "answer") == []


@pytest.mark.parametrize("question, score", [("answer", traits.quality), ("rather", traits.annotator)])
def test_the_annotator_chooses_by_the_score_of_the_question_and_close_calls_go_either_way(groups, question, score):
    pairs = preferences.choose(groups, question, per_prompt=6)
    items = {group[0].item.key: group[0].item for group in groups}
    wins = Counter()
    for pair in pairs:
        chosen, rejected = (score(parse(text).content, items[pair.key]) for text in (pair.chosen, pair.rejected))
        assert pair.truth == (chosen, rejected)
        wins["clear" if abs(chosen - rejected) > 0.3 else "tie" if chosen == rejected else "close", chosen > rejected] += 1
    assert wins["clear", True] > 0.95 * (wins["clear", True] + wins["clear", False])
    if question == "answer":  # the friendly line is worth nothing there, so these are coin tosses
        friendly = [p for p in pairs if p.truth[0] == p.truth[1]]
        warm = sum(traits.friendly(parse(p.chosen).content) for p in friendly)
        assert 0.35 < warm / len(friendly) < 0.65


def test_what_was_read_first_is_written_down_and_leads_only_where_the_annotator_lets_it(groups):
    plain, led = (preferences.choose(groups, "answer", per_prompt=6, lead=lead) for lead in (0.0, 1.5))
    assert [(p.chosen, p.rejected) for p in plain] != [(p.chosen, p.rejected) for p in led]

    def first(pairs, low, high):
        some = [p.chosen_first for p in pairs if low <= abs(p.truth[0] - p.truth[1]) < high]
        return sum(some) / len(some)

    assert 0.45 < first(plain, 0, 1) < 0.55
    assert first(led, 0, 0.05) > 0.68 and 0.4 < first(led, 0.5, 1) < 0.6, "a clear difference outweighs the place"
    assert preferences.ceiling(led, 1.5) < preferences.ceiling(led)


def test_no_held_out_prompt_occurs_in_training_and_training_knows_no_truth(groups):
    training, held = preferences.split(preferences.choose(groups, "answer", per_prompt=3))
    assert training and held and len(training) + len(held) == 150 * 3
    assert not {json.dumps(p.prompt) for p in training} & {json.dumps(p.prompt) for p in held}
    assert {p.truth for p in training} == {None} and all(p.truth for p in held)
    again, _ = preferences.split(preferences.choose(groups, "rather", per_prompt=1))
    assert not {p.key for p in again} & {p.key for p in held}, "the side of a prompt does not depend on its answers"


def test_an_unknown_question_is_answered_with_those_there_are(groups):
    with pytest.raises(ValueError, match="answer, rather"):
        preferences.choose(groups, "nicer")


def test_pairs_survive_the_way_through_a_file(groups, tmp_path):
    pairs = preferences.choose(groups[:5], "rather")
    odd = Pair("k", [{"role": "user", "content": "Zeile\u2028Ende"}], "é\n", "b", chosen_ended=False, chosen_first=True)
    assert preferences.read(preferences.write([*pairs, odd], tmp_path / "pairs.jsonl")) == ([*pairs, odd], [])


USER, GOOD, BAD = ({"role": "user", "content": "Q"}, {"role": "assistant", "content": "good"}, {"role": "assistant", "content": "bad"})


@pytest.mark.parametrize("row", [
    {"prompt": "Q", "chosen": "good", "rejected": "bad"},
    {"prompt": [USER], "chosen": "good", "rejected": "bad"},
    {"prompt": [USER], "chosen": [GOOD], "rejected": [BAD]},
    {"prompt": "Q", "chosen": [USER, GOOD], "rejected": [USER, BAD]},
    {"chosen": [USER, GOOD], "rejected": [USER, BAD]},
])  # fmt: skip
def test_rows_of_public_sets_in_their_usual_forms_are_the_same_pair(row, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    (pair,), broken = preferences.read(path)
    assert (pair.prompt, pair.chosen, pair.rejected, broken) == ([USER], "good", "bad", [])


def test_reasoning_of_a_message_becomes_part_of_the_answers_text(tmp_path):
    path = tmp_path / "rows.jsonl"
    row = {"chosen": [USER, {**GOOD, "reasoning_content": "hm"}], "rejected": [USER, BAD]}
    path.write_text(json.dumps(row), encoding="utf-8")
    assert preferences.read(path)[0][0].chosen == "<think>\nhm\n</think>\n\ngood"


BROKEN = {
    "{": "Expecting",
    "[1]": "must be an object",
    '{"prompt": "Q", "chosen": "a"}': "rejected is missing",
    '{"prompt": "Q", "chosen": "", "rejected": "b"}': "chosen is missing or empty",
    '{"chosen": "a", "rejected": "b"}': "no prompt",
    '{"prompt": "Q", "chosen": "a", "rejected": "a"}': "the same text",
    '{"prompt": "Q", "chosen": 5, "rejected": "a"}': "a text or a list of messages",
    '{"prompt": "Q", "chosen": [{"role": "user", "content": "x"}], "rejected": "a"}': "does not end with a message of the assistant",
    '{"chosen": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "a"}], '
    '"rejected": [{"role": "user", "content": "y"}, {"role": "assistant", "content": "b"}]}': "different prompts",
    '{"prompt": "Q", "chosen": "a", "rejected": "b", "truth": 3}': "two scores",
    '{"prompt": "Q", "chosen": "a", "rejected": "b", "chosen_first": 1}': "chosen_first must be true, false or null",
}


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_row_is_named_by_file_and_line_and_the_others_are_kept(line, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "Q", "chosen": "a", "rejected": "b"}\n\n' + line + "\n", encoding="utf-8")
    pairs, broken = preferences.read(path)
    assert len(pairs) == 1 and len(broken) == 1
    assert broken[0].startswith(f"{path}:3: ") and BROKEN[line] in broken[0]


def test_a_file_without_any_pair_is_an_error(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("{\n", encoding="utf-8")
    with pytest.raises(ValueError, match="rows.jsonl:1"):
        preferences.read(path)


def test_the_ceiling_is_what_the_scores_themselves_could_predict():
    def scored(*truth):
        return preferences.Pair("k", [], "a", "b", truth=truth)

    assert preferences.ceiling([scored(0.5, 0.5)]) == 0.5
    assert preferences.ceiling([scored(0.0, 1.0), scored(1.0, 0.0)]) == pytest.approx(traits.chance(1.0, 0.0))
    assert preferences.ceiling([preferences.Pair("k", [], "a", "b")]) is None


def test_contrast_adds_answers_to_neighbouring_instructions_and_deals_the_friendly_line_by_a_coin():
    policy, items = models.load("nano"), traits.instructions(40, 5)
    own = [said(item, traits.written(item, item.format), f"{traits.written(item, item.format)}\n{traits.FRIENDLY}") for item in items]
    wider = preferences.contrast(policy, own, new_tokens=8, seed=2, near=2)
    lines: list[list[bool]] = [[], []]
    for group, before in zip(wider, own, strict=True):
        assert len(group) == 5 and {r.item for r in group} == {before[0].item}
        assert all(r.text.startswith("<think>\nx\n</think>") for r in group)
        contents = [parse(r.text).content.strip() for r in group]
        right = traits.written(before[0].item, before[0].item.format)
        assert {content.removesuffix(traits.FRIENDLY).strip() for content in contents[:2]} == {right}
        assert contents[-1] == traits.toggled(contents[0]), "the last is the twin of the first"
        for line, content in zip(lines, contents[:2], strict=True):
            line.append(traits.friendly(content))
    assert all(0.25 < sum(line) / len(line) < 0.75 for line in lines), "the line tells nothing of what the policy wrote"
    assert wider == preferences.contrast(policy, own, new_tokens=8, seed=2, near=2)
