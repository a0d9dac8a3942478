"""Replay: the divergence from the start on rows of other abilities, its gradient back to the start, and an order that can be resumed."""

import copy
from dataclasses import replace

import pytest
import torch

from nbcore import models
from nbcore.data.mixture import mix
from nbcore.nano.chats import chats
from nbcore.nano.programs import tasks
from nbcore.rewards.compose import Component
from nbcore.rewards.rollouts import prompt_of
from nbcore.training import grpo
from nbcore.training.replay import Replay


@pytest.fixture(scope="module")
def loaded():
    return models.load("nano")


@pytest.fixture(scope="module")
def rows(loaded):
    return mix({"act": chats("act", 1)}, {"act": 1.0}, 1500, 320, loaded.tokenizer).rows


def moved(model, by):
    other = copy.deepcopy(model)
    torch.manual_seed(0)
    with torch.no_grad():
        for weights in other.parameters():
            weights += by * weights.std() * torch.randn_like(weights)
    return other


def test_the_divergence_is_zero_at_the_start_and_is_that_of_the_whole_distributions(loaded, rows):
    replay, start = Replay(rows[:3], batch=3), loaded.model
    assert float(replay.divergence(copy.deepcopy(start), start, 0, 0).detach()) == pytest.approx(0.0, abs=1e-6)
    other = moved(start, 0.1)
    by_hand, count = 0.0, 0
    for row in rows[:3]:  # one at a time: padding must change nothing
        ids = torch.tensor([row.input_ids])
        then, now = (m(input_ids=ids).logits[0, :-1].double().log_softmax(-1) for m in (start, other))
        taught = torch.tensor(row.assistant_mask[1:]).bool()
        by_hand += float((then.exp() * (then - now)).sum(-1)[taught].sum().detach())
        count += int(taught.sum())
    assert float(replay.divergence(other, start, 0, loaded.tokenizer.pad_token_id).detach()) == pytest.approx(by_hand / count, rel=1e-4)


def test_steps_along_its_gradient_lead_back(loaded, rows):
    replay, other = Replay(rows[:4], batch=4), moved(loaded.model, 0.1)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.05)
    found = []
    for _ in range(5):
        left = replay.divergence(other, loaded.model, 0, 0)
        optimizer.zero_grad()
        left.backward()
        optimizer.step()
        found.append(float(left.detach()))
    assert found[-1] < 0.8 * found[0]


def test_each_epoch_sees_every_row_once_in_an_order_that_depends_on_the_step_alone(rows):
    replay = Replay(rows[:6], batch=4, seed=3)
    seen = [row.key for step in range(3) for row in replay.picked(step)]
    assert sorted(seen[:6]) == sorted(seen[6:]) == sorted(row.key for row in rows[:6]) and seen[:6] != seen[6:]
    assert replay.picked(2) == Replay(rows[:6], batch=4, seed=3).picked(2)
    with pytest.raises(ValueError, match="needs rows"):
        Replay([]).picked(0)


def test_a_policy_that_is_paid_for_something_else_stays_nearer_to_its_start_with_a_replay(loaded, rows, tmp_path):
    prompts = [prompt_of(loaded.tokenizer, task) for task in tasks(8, 3)]
    options = grpo.Options(steps=12, prompts=2, group=4, learning_rate=1e-3, max_new_tokens=24, refill=0)
    short = [Component("short", lambda rollouts: [-float(len(set(r.ids))) for r in rollouts])]
    left = {}

    def play(*given):  # the base ends no answer, and what was cut off has no loss: here all are taken as they are
        return [replace(r, ended=True) for r in grpo.single_turn(24, 1.0)(*given)]

    for name, replay in (("without", None), ("with", Replay(rows, weight=1.0))):
        trained = models.load("nano")
        found = grpo.train(trained, prompts, short, tmp_path / name, options, play=play, replay=replay)
        left[name] = float(Replay(rows, batch=len(rows)).divergence(trained.model, loaded.model, 0, 0).detach())
        assert ("replay" in found[-1]) == (replay is not None)

    assert left["with"] < 0.3 * left["without"]
