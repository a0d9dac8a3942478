"""Rewards of episodes: what a turn is worth, what an outcome is, and that they meet the tokens they belong to."""

import random

import pytest

from nbcore import models
from nbcore.nano.atlas import Atlas, questions
from nbcore.nano.searcher import searcher
from nbcore.nano.tokenizer import SEARCH
from nbcore.rewards.rollouts import prompt_of
from nbcore.rewards.turns import Worth, by_turn, episodes, outcome, rollout, tally
from nbcore.search.agent import Budget, play
from nbcore.search.context import last
from nbcore.search.critic import Judged
from nbcore.search.graph import Fact
from nbcore.search.tools import Search, Tool, Toolbox
from nbcore.training.advantages import per_token, turn_advantages


@pytest.fixture(scope="module")
def tokenizer():
    return models.load("nano").tokenizer


@pytest.fixture(scope="module")
def world():
    atlas = Atlas(random.Random(3), 60)
    search = Search(atlas.pages)
    return questions(atlas, 24, (2, 3), 0), Toolbox([Tool(SEARCH, lambda given: search(given["query"]))])


def plan(item):
    return [Fact(of, relation, value) for relation, of, value in item.path]


def played(tokenizer, world, mistakes, **more):
    asked, box = world
    return play(searcher(tokenizer, mistakes), tokenizer, [[{"role": "user", "content": q.text}] for q in asked], [SEARCH],
                lambda i, call: box(call), Budget(turns=12, new_tokens=96), seed=1, **more)  # fmt: skip


@pytest.mark.parametrize(("turn", "worth"), [
    (Judged(True, 1, True, True), 0.1), (Judged(True, 2, True, True), 0.2), (Judged(True, 0, True, True), 0.0),
    (Judged(True, 0, False, True), -0.1), (Judged(False, 0, False, True), -0.2), (Judged(True, 1, True, False), 0.0),
    (Judged(True, 0, False, True, answers=True), 0.0), (Judged(False, 0, False, False, answers=True), 0.0),
])  # fmt: skip
def test_what_a_turn_is_worth(turn, worth):
    assert Worth().of(turn) == pytest.approx(worth)


def test_without_mistakes_every_call_gains_and_the_outcome_is_right(tokenizer, world):
    asked, _ = world
    rolled = [rollout(q, e) for q, e in zip(asked, played(tokenizer, world, 0.0), strict=True)]
    assert outcome(lambda item, said: said == item.answer)(rolled) == [1.0] * len(asked)
    assert by_turn(plan)(rolled) == [[0.1] * q.hops + [0.0] for q in asked]
    assert tally([r.episode for r in rolled]).bad_share == 0.0


def test_mistakes_are_counted_and_cost(tokenizer, world):
    asked, _ = world
    done = played(tokenizer, world, 0.5)
    counted = tally(done)
    assert counted.wrong > 0 and counted.useless > 0 and 0.3 < counted.bad_share < 0.7
    worth = by_turn(plan)([rollout(q, e) for q, e in zip(asked, done, strict=True)])
    assert min(map(min, worth)) == -0.2 and sum(map(sum, worth)) < sum(0.1 * q.hops for q in asked)


def test_every_rollout_has_one_reward_for_each_run_of_its_own_tokens(tokenizer, world):
    asked, _ = world
    for context in ({}, {"context": last(2)}):
        for q, done in zip(asked, played(tokenizer, world, 0.5, **context), strict=True):
            made = rollout(q, done)
            (worth,) = by_turn(plan)([made])
            spread = per_token(made.mask, 0.5, turn_advantages([worth, [0.0] * len(worth)])[0], 1.0)
            assert len(spread) == len(made.ids) == len(made.logprobs)
            assert [a == 0.0 for a, bit in zip(spread, made.mask, strict=True) if not bit] == [True] * made.mask.count(0)


def test_an_episode_that_ran_out_of_turns_has_ended_and_one_that_was_cut_off_has_not(tokenizer, world):
    asked, _ = world
    talks = [[{"role": "user", "content": asked[0].text}]]
    for budget, ended in ((Budget(turns=1, new_tokens=96), True), (Budget(turns=4, new_tokens=8), False)):
        (done,) = play(searcher(tokenizer, 0.0), tokenizer, talks, [SEARCH], lambda i, call: world[1](call), budget, seed=1)
        assert rollout(asked[0], done).ended is ended
    (none,) = play(searcher(tokenizer, 0.0, room=30), tokenizer, talks, [SEARCH], lambda i, call: world[1](call), Budget(), seed=1)
    assert not rollout(asked[0], none).ended and by_turn(plan)([rollout(asked[0], none)]) == [[]]


def test_an_answer_that_cannot_be_judged_is_missing_and_none_is_wrong(tokenizer, world):
    asked, _ = world
    rolled = [rollout(q, e) for q, e in zip(asked, played(tokenizer, world, 0.0), strict=True)]
    assert outcome(lambda item, said: None)(rolled) == [None] * len(rolled)
    rolled[0].episode.answer = None
    assert outcome(lambda item, said: True)(rolled)[0] == 0.0


def test_no_call_has_no_share_of_bad_ones():
    assert tally([]).bad_share is None


def test_a_model_makes_rollouts_whose_tokens_are_its_own(world):
    loaded = models.load("nano")
    asked, box = world
    play_all = episodes(lambda item: [{"role": "user", "content": item.text}], [SEARCH], lambda item, call: box(call),
                        Budget(turns=2, new_tokens=24), temperature=1.0)  # fmt: skip
    prompts = [prompt_of(loaded.tokenizer, q) for q in asked[:4]]
    made, again = (play_all(loaded.model, loaded.tokenizer, prompts, 0) for _ in range(2))
    assert len(made) == 4 and all(r.item is q for r, q in zip(made, asked, strict=False))
    assert all(len(r.ids) == len(r.mask) == len(r.logprobs) and r.episode.turns for r in made)
    assert [r.ids for r in made] == [r.ids for r in again], "the same seed gives the same episodes"
