"""The held-out suites: right answers score, wrong ones do not, truncated and malformed are counted apart, nothing is invented."""

import pytest

from nbcore import models
from nbcore.evaluation import suites, summary
from nbcore.nano import arithmetic, traits


@pytest.fixture(scope="module")
def nano():
    return models.load("nano")


def said(monkeypatch, *texts, ended=True):
    """Let the sampler write given texts; everything after it is the real thing."""
    rows = iter(texts)
    monkeypatch.setattr(suites, "generate", lambda *_, **__: [models.Completion([1], text, ended, [0.0]) for text in rows])


def think(text):
    return f"<think>\nx\n</think>\n\n{text}"


def test_items_are_the_same_for_the_same_seed_and_differ_for_another():
    for suite in suites.SUITES:
        first, again, other = (suites.items(suite, 12, seed)[0] for seed in (1, 1, 2))
        assert first == again != other and len(first) == 12


def test_a_right_sum_scores_and_a_wrong_one_does_not(nano, monkeypatch):
    made, pages = suites.items("reason", 3, 0)
    said(monkeypatch, think(str(made[0].answer)), think(str(made[1].answer + 1)), think(""))
    assert [s.score for s in suites.run("reason", nano.model, nano.tokenizer, made, pages, samples=1)] == [1.0, 0.0, 0.0]


def test_programs_run_for_real(nano, monkeypatch):
    made, pages = suites.items("code", 4, 0)
    fence = "```python\n{}```"
    said(monkeypatch, think(fence.format(made[0].program(True))), think(fence.format(made[1].program(False))),
         think(fence.format("def f(n):\n    return -1\n")), think("no program"))  # fmt: skip
    assert [s.score for s in suites.run("code", nano.model, nano.tokenizer, made, pages, samples=1)] == [1.0, 1.0, 0.0, 0.0]


def test_a_judge_that_fails_gives_missing_and_not_zero(nano, monkeypatch):
    made, pages = suites.items("code", 2, 0)
    said(monkeypatch, *[think(f"```python\n{m.program(True)}```") for m in made])
    real = suites.check_many

    def failing(programs):
        verdicts = real(programs)
        return [type(verdicts[0])(0, verdicts[0].total, None, "missing", "the server is gone"), *verdicts[1:]]

    monkeypatch.setattr(suites, "check_many", failing)
    records = suites.run("code", nano.model, nano.tokenizer, made, pages, samples=1)
    assert [s.score for s in records] == [None, 1.0]
    told = summary.summarise(records)
    assert told.missing == 1 and told.average.mean == 1.0


def test_a_truncated_answer_is_wrong_and_counted_as_truncated(nano, monkeypatch):
    made, pages = suites.items("reason", 2, 0)
    said(monkeypatch, *[think(str(m.answer)) for m in made], ended=False)
    records = suites.run("reason", nano.model, nano.tokenizer, made, pages, samples=1)
    assert [s.score for s in records] == [0.0, 0.0] and all(s.truncated for s in records)
    assert summary.summarise(records).truncated == 1.0


def test_a_thought_that_never_closes_is_malformed(nano, monkeypatch):
    made, pages = suites.items("align", 2, 0)
    said(monkeypatch, "<think>\nand on", think(traits.written(made[1], made[1].format)))
    records = suites.run("align", nano.model, nano.tokenizer, made, pages, samples=1)
    assert [s.malformed for s in records] == [True, False] and records[1].score == 1.0 - traits.TASTE


def test_pass_at_k_counts_items_and_avg_at_k_samples():
    def sample(item, k, score):
        return suites.Sample("reason", item, k, score, False, False, "", "")

    records = [sample(0, 0, 1.0), sample(0, 1, 0.0), sample(1, 0, 0.0), sample(1, 1, 0.0)]
    told = summary.summarise(records)
    assert (told.average.mean, told.pass_k, told.items, told.k) == (0.25, 0.5, 2, 2)
    with pytest.raises(ValueError, match="one suite"):
        summary.summarise([*records, suites.Sample("code", 0, 0, 1.0, False, False, "", "")])


def test_an_unknown_suite_is_named():
    with pytest.raises(ValueError, match="paint.*reason"):
        suites.items("paint", 1)


def test_reason_items_come_from_the_held_out_side():
    train = {item.key for item in arithmetic.sums(2000, 0)}
    assert not train & {item.key for item in suites.items("reason", 300, 2026)[0]}
