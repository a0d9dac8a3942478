"""What an agent still sees: turns kept or dropped, and the state that stands for what is gone."""

import json

import pytest

from nbcore.chat.toolcalls import ToolCall
from nbcore.search.context import State, Turn, asked_of, compressed, everything, last, noted, read
from nbcore.search.tools import NOTHING, Observation


def turn(query, heard, error=None, thought=""):
    return Turn("", thought, [ToolCall("search", {"query": query})], [Observation(heard, error)])


def test_everything_drops_nothing():
    assert everything("q", [turn("a", "b")] * 500, "") is None


def test_the_last_k_turns_stay_and_leaving_happens_in_blocks():
    keep = last(3)
    assert [keep("q", [turn("a", "b")] * n, "") is not None for n in range(1, 8)] == [False] * 5 + [True, True]
    assert keep("q", [turn("a", "b")] * 6, "old").turns == 3 and keep("q", [turn("a", "b")] * 6, "old").note == "old"
    with pytest.raises(ValueError, match="at least one"):
        last(0)


def test_a_state_by_rule_tells_evidence_from_failures_and_keeps_the_plan():
    failed = turn("x", "Error: gone", "http 500", "Next: river of Dodo.")
    turns = [turn("river of Pala", "Pala. river: Dodo."), turn("Dodo", NOTHING), failed]
    state = noted("q", turns, "")
    assert state.evidence == ["search(river of Pala): Pala. river: Dodo."]
    assert [line.split(":")[0] for line in state.failures] == ["search(Dodo)", "search(x)"]
    assert state.plan == ["Next: river of Dodo."]


def test_evidence_is_carried_from_state_to_state_and_the_oldest_leaves():
    note = noted("q", [turn("a", "one")], "").text
    again = noted("q", [turn("b", "two"), turn("b", "two")], note)
    assert again.evidence == ["search(a): one", "search(b): two"]
    for i in range(40):
        again = noted("q", [turn(f"c{i}", "more")], again.text)
    assert len(again.evidence) == 12 and again.evidence[-1] == "search(c39): more"


def test_a_repeated_call_raises_a_doubt():
    again = turn("a", "This call was made before", "repeated")
    again.repeated = 1
    assert noted("q", [again], "").doubts


def test_compressing_waits_for_its_turns_and_keeps_the_newest():
    context = compressed(noted, every=4, keep=1)
    assert context("q", [turn("a", "b")] * 3, "") is None
    kept = context("q", [turn("a", "b")] * 4, "")
    assert kept.turns == 1 and kept.note.startswith("What is known so far.\nEvidence:\n- search(a): b")
    with pytest.raises(ValueError, match="0 to 2"):
        compressed(noted, every=4, keep=3)


GOOD = {"evidence": ["a"], "doubts": [], "failures": ["b"], "plan": []}


@pytest.mark.parametrize("text", [json.dumps(GOOD), f"Here it is:\n```json\n{json.dumps(GOOD)}\n```"])
def test_a_models_state_is_read(text):
    assert read(text) == State(["a"], [], ["b"], [])


@pytest.mark.parametrize(
    "text", ["", "no", "{", json.dumps({**GOOD, "plan": "x"}), json.dumps({**GOOD, "plan": [1]}), '{"evidence": []}', "[]"]
)
def test_a_state_that_cannot_be_read_is_missing_and_the_turns_stay(text):
    assert read(text) is None
    assert compressed(asked_of(lambda prompt: text), every=2)("q", [turn("a", "b")] * 5, "") is None


def test_the_model_that_compresses_sees_question_turns_and_the_last_state():
    seen = []
    asked_of(lambda prompt: seen.append(prompt) or "")("Which river?", [turn("a", "heard this")], "the note")
    assert all(part in seen[0] for part in ("Which river?", "heard this", "the note"))


def test_a_program_among_the_calls_does_not_break_the_lists_of_a_state():
    code = Turn("", "", [ToolCall("python", {"code": "for i in x:\n    if i:\n- print(i)"})], [Observation("7")])
    state = noted("q", [turn("b", "two")], noted("q", [turn("a", "one"), code], "").text)
    assert [line.split(":")[0] for line in state.evidence][::2] == ["search(a)", "search(b)"] and len(state.evidence) == 3
