"""The signal-to-noise probe: finds a signal where there is one, none where there is none, and leaves the model alone."""

import copy
import random

import pytest
import torch

from nbcore import models
from nbcore.nano.names import draw
from nbcore.rewards.compose import Component
from nbcore.rewards.rollouts import Rollout
from nbcore.training import grpo
from nbcore.training.advantages import group_advantages
from nbcore.training.probe import gradient, probe

OPTIONS = grpo.Options(steps=1, prompts=4, group=8, max_new_tokens=3)


def asked(base, count=60):
    """Whom likes what: the base spreads its chances over six things."""
    return [grpo.Prompt(n, base.tokenizer.encode(f"{name} likes")) for n, name in enumerate(draw(random.Random(0), count, "train"))]


def play(model, tokenizer, prompts, seed):
    rollouts = grpo.single_turn(3, 1.0)(model, tokenizer, prompts, seed)
    return [Rollout(r.item, r.prompt_ids, r.ids, r.text, True, r.mask, r.logprobs) for r in rollouts]  # short on purpose: none is cut


def measured(base, function, rates=(3e-4,)):
    return probe(base, asked(base), [Component("it", function)], play, OPTIONS, rates, batches=4, fresh=24, samples=4)


def test_a_choice_that_the_model_mixes_has_a_signal_that_steps_follow(base):
    found = measured(base, lambda rs: [float("tea" in r.text) for r in rs], (1e-4, 3e-4))
    assert found.completions == 32 and found.batches == 4 and 0.02 < found.reward < 0.6
    assert found.cosine > 0.1 and found.noise_scale < 500
    assert found.works and all(t.forwards.mean > t.backwards.mean for t in found.tried)


def test_a_reward_of_pure_chance_has_none(base):
    chance = [float(random.Random(n).random() < 0.5) for n in range(1000)]
    found = measured(base, lambda rs: chance[: len(rs)])
    assert found.cosine < 0.1 and not found.works
    assert found.noise_scale is None or found.noise_scale > 500


def test_the_model_is_left_as_it_was(base):
    before = copy.deepcopy(base.model.state_dict())
    measured(base, lambda rs: [float(r.ids[0] % 2) for r in rs])
    assert all(torch.equal(before[name], weight) for name, weight in base.model.state_dict().items())
    assert all(p.grad is None for p in base.model.parameters())


def test_the_gradient_is_the_trainers(base, tmp_path):
    """Its norm is what the trainer reports for the same rollouts."""
    prompts = asked(base, 2)
    rollouts = play(base.model, base.tokenizer, [p for p in prompts for _ in range(8)], 1)
    rewards = [float(i % 3) for i in range(16)]
    flat = [a for i in (0, 8) for a in group_advantages(rewards[i : i + 8]).advantages]
    worth = {id(r): reward for r, reward in zip(rollouts, rewards, strict=True)}
    wanted = float(gradient(base.model, rollouts, flat).norm())
    loaded = models.Loaded(copy.deepcopy(base.model), base.tokenizer, "copy")
    options = grpo.Options(steps=1, prompts=2, group=8, max_new_tokens=3, refill=0, kl_every=0)
    order = grpo.order(2, options)
    ranked = [r for i in order for r in rollouts[8 * i : 8 * i + 8]]
    row = grpo.train(loaded, prompts, [Component("given", lambda rs: [worth[id(r)] for r in rs])], tmp_path, options,
                     play=lambda *_: ranked, config=grpo.settings(tmp_path, options, mask_truncated_completions=False))[0]
    assert row["grad_norm"] == pytest.approx(wanted, rel=1e-3)


def test_too_few_prompts_are_refused_with_the_number_needed(base):
    with pytest.raises(ValueError, match="40 prompts.*given: 4 batches, 3 prompts"):
        probe(base, asked(base, 3), [Component("it", lambda rs: [0.0] * len(rs))], play, OPTIONS, (1e-4,), batches=4, fresh=24)
