"""Reading what a judge wrote: every form that judges use, and nothing that could be meant otherwise."""

import time

import pytest

from nbcore.rewards.verdicts import parse_score, parse_verdict

SCORES = [
    ('{"score": 8}', 8),
    ('Let me see.\n```json\n{"score": 8.5, "why": "it {almost} holds"}\n```\nThat is all.', 8.5),
    ('Sure! {"reason": "clear", "rating": 7,} Hope it helps', 7),
    ("{'score': 0, 'why': \"it's empty\", 'seen': true}", 0),
    ('{"result": {"Overall Score": "7/10"}}', 7),
    ('{"why": "line one\nline two", "score": "seven"}', 7),
    ("seven", 7),
    ("Ten.", 10),
    ("8", 8),
    ("7/10", 7),
    ("8 out of 10", 8),
    ("Seven out of ten, I would say", 7),
    ("I give it 7 / 10, though 3 errors remain.", 7),
    ("Score: 8.5", 8.5),
    ("Score: 8, because it is right.", 8),
    ("The rating is seven.", 7),
    ("**Score:** 8/10", 8),
    ("**8**", 8),
    ("I think this is right.\n\n8", 8),
    ("[[8]]", 8),
    ("Rating: [[9.5]]", 9.5),
    ("Score (0-10): 8", 8),
    ("Score: 6 at first sight.\nFinal score: 8", 8),
    ("Score: 8. So, to repeat it, score: 8.", 8),
    ("<think>\nScore: 3? Perhaps 4.\n</think>\n\nScore: 9", 9),
    ("a score of 10 would need sources. Score: 6", 6),
    ("Score: 10.", 10),
    ("0", 0),
]


@pytest.mark.parametrize(("text", "score"), SCORES)
def test_a_clear_score_is_read(text, score):
    assert parse_score(text) == (score, "")


NO_SCORES = [
    (None, "wrote nothing"),
    ("", "wrote nothing"),
    (" \n", "wrote nothing"),
    ("excellent", "no score could be read in 'excellent'"),
    ("Score: excellent", "no score could be read"),
    ('{"score": "excellent"}', "'excellent', which is no score"),
    ('{"score": null}', "None where a plain value belongs"),
    ('{"score": true}', "True where"),
    ('{"score": [8, 9]}', "where a plain value"),
    ('{"score": NaN}', "nan is no number"),
    ('{"score": Infinity}', "inf is no number"),
    ('{"score": "nan"}', "nan is no number"),
    ('{"score": 11}', "11 is outside 0 to 10"),
    ("Score: -1", "-1 is outside 0 to 10"),
    ("85", "85 is outside 0 to 10"),
    ("85%", "on a scale to 100, where 10 is the highest"),
    ("4/5", "on a scale to 5"),
    ("Score: 6. No: score: 8.", "several different scores: 6.0, 8.0"),
    ('{"score": 6} or {"score": 8}', "several different scores"),
    ("[[7]] [[8]]", "several different scores"),
    ('{"accuracy": {"score": 7}, "style": {"score": 5}}', "several different scores"),
    ("8 9", "no score"),
    ("7-8", "no score"),
    ("Score: 7 or 8", "no score"),
    ("Score: seven to eight", "no score"),
    ("Score: 8,5", "no score"),
    ("Score: 8/10/2024", "no score"),
    ("It has 3 errors.", "no score"),
    ("No one could do better.", "no score"),
    ("As GPT-4 I like it.", "no score"),
    ('{"score": 8, "reason": "the ans', "a JSON object that cannot be read"),
    ('{"score": 1', "a JSON object that cannot be read"),
    ("<think>\nScore: 3", "cut off while thinking"),
    (8, "wrote nothing"),
]


@pytest.mark.parametrize(("text", "reason"), NO_SCORES)
def test_what_is_not_a_clear_score_is_missing_with_a_reason_and_never_zero(text, reason):
    score, told = parse_score(text)
    assert score is None and reason in told


def test_the_scale_is_the_callers():
    assert parse_score("4/5", 1, 5) == (4, "")
    assert parse_score("85%", 0, 100) == (85, "")
    assert parse_score("Score: -1", -1, 1) == (-1, "")
    assert parse_score("0", 1, 5)[0] is None


VERDICTS = [
    ('{"verdict": "A"}', "A"),
    ("```json\n{'winner': 'answer b', }\n```", "B"),
    ('{"verdict": "tie"}', "tie"),
    ("[[A]]", "A"),
    ("My final verdict is tie: [[A=B]]", "tie"),
    ("[[B>>A]]", "B"),
    ("[[A>B]]", "A"),
    ("[[C]]", "tie"),
    ("Verdict: A", "A"),
    ("Winner: Answer B, by far", "B"),
    ("**Verdict:** tie", "tie"),
    ("Verdict: A is better", "A"),
    ("A has errors, B has none.\n**B**", "B"),
    ("B", "B"),
    ("Answer A.", "A"),
    ("<think>Verdict: A</think>Verdict: B", "B"),
    ("Winner: A. Then again...\nFinal verdict: B", "B"),
]


@pytest.mark.parametrize(("text", "verdict"), VERDICTS)
def test_a_clear_verdict_is_read(text, verdict):
    assert parse_verdict(text) == (verdict, "")


@pytest.mark.parametrize(
    "text",
    [None, "", "I prefer the first one", "A is good, and so is B", "[[A]] or [[B]]", "Verdict: a very close call", "Verdict: A close call",
     "Winner: A. Winner: B.", '{"verdict": "both are fine"}', '{"verdict": 1}', '{"verdict": "A', "<think>Verdict: A", "a", "[[D]]"],
)  # fmt: skip
def test_what_is_not_a_clear_verdict_is_missing_with_a_reason(text):
    verdict, reason = parse_verdict(text)
    assert verdict is None and reason


HURTFUL = {
    "braces": "{" * 200_000, "nested": '{"a":' * 50_000, "sets": "{x}" * 60_000, "begun": '{"score": ' * 20_000, "digits": "9" * 200_000,
    "parentheses": "(" * 100_000, "names": "Score: " * 30_000, "stars": "**" * 100_000, "brackets": "[[" * 100_000,
    "large": '{"score": ' + "9" * 4_000 + "}", "spaces": "score" + " " * 200_000, "lines": "\n \t" * 60_000, "finals": "final " * 30_000,
}  # fmt: skip


@pytest.mark.parametrize("text", HURTFUL.values(), ids=HURTFUL.keys())
def test_text_made_to_hurt_is_missing_and_soon(text):
    began = time.process_time()
    assert parse_score(text)[0] is None and parse_verdict(text)[0] is None
    assert time.process_time() - began < 30
