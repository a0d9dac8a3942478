"""GRPO: the trainer's loss is the formula, what must not teach does not, and a resumed run equals an undisturbed one."""

import copy
from dataclasses import replace

import pytest
import torch

from nbcore.chat.checks import PreflightError
from nbcore.rewards.compose import Component, RewardError
from nbcore.rewards.rollouts import Rollout
from nbcore.training import grpo
from nbcore.training.advantages import group_advantages

QUICK = grpo.Options(steps=1, prompts=2, group=4, learning_rate=1e-3, max_new_tokens=12, refill=0, kl_every=0)


@pytest.fixture
def loaded(base):
    return replace(base, model=copy.deepcopy(base.model))


def prompts(loaded, count=6):
    words = ["river", "baker", "snow", "chess", "boat", "rain", "horse", "jazz", "figs", "kite"]
    return [grpo.Prompt(w, loaded.tokenizer.encode(f"\n{w} of {w}:")) for w in words[:count]]


def written(prompt, ids, ended=True, mask=None, logprobs=None):
    return Rollout(prompt.item, prompt.ids, ids, "", ended, mask or [1] * len(ids), logprobs or [0.0] * len(ids))


def fixed(rollouts):
    """A player that always gives these rollouts, in the order of the prompts that the trainer asks."""
    def play(model, tokenizer, asked, seed):
        left = {p.item: [r for r in rollouts if r.item == p.item] for p in asked}
        return [left[p.item].pop(0) for p in asked]
    return play


def some(loaded, lengths=(5, 3, 7, 4), masked=False):
    """Four rollouts for each of two prompts: fixed ids that end with the end of turn."""
    end, made = loaded.tokenizer.eos_token_id, []
    for n, prompt in enumerate(prompts(loaded, 2)):
        for k, length in enumerate(lengths):
            ids = [300 + 17 * n + 5 * k + i for i in range(length - 1)] + [end]
            made.append(written(prompt, ids, mask=[1, 0] + [1] * (length - 2) if masked else None))
    return made


def rewards_of(values):
    return [Component("fixed", lambda rollouts: [values[r.item][r.ids[0] // 5 % 4] for r in rollouts])]


VALUES = {"river": [1.0, 0.0, 0.5, 0.25], "baker": [0.0, 0.0, 3.0, 1.0]}


def token_logprobs(model, rollout):
    ids = torch.tensor([[*rollout.prompt_ids, *rollout.ids]])
    logits = model(ids).logits[0, len(rollout.prompt_ids) - 1 : -1]
    return logits.log_softmax(-1).gather(-1, torch.tensor(rollout.ids)[:, None])[:, 0]


def by_hand(model, rollouts, advantages):
    """The objective in plain tensors: -Σ A · ratio over the tokens that count, divided by their number; gradient included."""
    tokens = sum(sum(r.mask) for r, a in zip(rollouts, advantages, strict=True) if a is not None and r.ended)
    loss = torch.zeros(())
    for r, a in zip(rollouts, advantages, strict=True):
        if a is not None and r.ended:
            logprobs = token_logprobs(model, r)
            ratio = (logprobs - logprobs.detach()).exp()
            loss = loss - (a * ratio * torch.tensor(r.mask)).sum() / tokens
    loss.backward()
    norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()  # to 1e-3: the trainer's padding shifts positions
    model.zero_grad()
    return float(loss.detach()), float(norm)


def one_step(loaded, rollouts, values, tmp_path, **options):
    return grpo.train(loaded, prompts(loaded, 2), rewards_of(values), tmp_path, replace(QUICK, **options), play=fixed(rollouts))[0]


@pytest.mark.parametrize("kind", ["mean", "zscore", "leave-one-out"])
def test_the_trainers_loss_and_gradient_are_the_formula(loaded, tmp_path, kind):
    rollouts, values = some(loaded), {k: [v if v is not None else None for v in vs] for k, vs in VALUES.items()}
    scored = [values[r.item][r.ids[0] // 5 % 4] for r in rollouts]
    flat = [a for i in (0, 4) for a in group_advantages(scored[i : i + 4], kind).advantages]
    loss, norm = by_hand(loaded.model, rollouts, flat)
    row = one_step(loaded, rollouts, values, tmp_path, advantage=kind)
    assert row["loss"] == pytest.approx(loss, abs=1e-6) and abs(loss) > 1e-3
    assert row["grad_norm"] == pytest.approx(norm, rel=1e-3)


def test_missing_and_truncated_rollouts_leave_the_loss_and_its_denominator(loaded, tmp_path):
    rollouts = some(loaded)
    rollouts[2] = written(prompts(loaded, 1)[0], [*rollouts[2].ids[:-1], 333], ended=False)
    values = {"river": [1.0, None, 0.5, 0.25], "baker": [0.0, 0.0, 3.0, 1.0]}
    scored = [values[r.item][r.ids[0] // 5 % 4] for r in rollouts]
    flat = [a for i in (0, 4) for a in group_advantages(scored[i : i + 4]).advantages]
    assert flat[1] is None
    loss, norm = by_hand(loaded.model, rollouts, flat)
    row = one_step(loaded, rollouts, values, tmp_path)
    assert row["loss"] == pytest.approx(loss, abs=1e-6) and row["grad_norm"] == pytest.approx(norm, rel=1e-3)
    assert row["missing"] == 1 / 8 and row["truncated"] == 1 / 8


def test_whether_a_rollout_ended_is_its_own_word_and_not_its_last_tokens(loaded, tmp_path):
    """An episode that ran out of turns ends with what a tool said; a forced turn may end well and still be left out."""
    rollouts = some(loaded)
    one = rollouts[2]
    rollouts[2] = replace(one, ids=[*one.ids, 333, 334], mask=[*one.mask, 0, 0], logprobs=[*one.logprobs, 0.0, 0.0])
    rollouts[5] = replace(rollouts[5], ended=False)
    scored = [VALUES[r.item][r.ids[0] // 5 % 4] for r in rollouts]
    flat = [a for i in (0, 4) for a in group_advantages(scored[i : i + 4]).advantages]
    loss, norm = by_hand(loaded.model, rollouts, flat)
    row = one_step(loaded, rollouts, VALUES, tmp_path)
    assert row["loss"] == pytest.approx(loss, abs=1e-6) and row["grad_norm"] == pytest.approx(norm, rel=1e-3)
    assert row["truncated"] == 1 / 8


def test_tokens_that_a_tool_wrote_get_no_gradient(loaded, tmp_path):
    rollouts = some(loaded, masked=True)
    scored = [VALUES[r.item][r.ids[0] // 5 % 4] for r in rollouts]
    flat = [a for i in (0, 4) for a in group_advantages(scored[i : i + 4]).advantages]
    loss, norm = by_hand(loaded.model, rollouts, flat)
    row = one_step(loaded, rollouts, VALUES, tmp_path)
    assert row["loss"] == pytest.approx(loss, abs=1e-6) and row["grad_norm"] == pytest.approx(norm, rel=1e-3)
    assert row["length"] == sum(sum(r.mask) for r in rollouts) / 8, "length counts what the policy wrote"


def test_equal_rewards_change_nothing_at_all(loaded, tmp_path):
    before = copy.deepcopy(loaded.model.state_dict())
    row = one_step(loaded, some(loaded), {"river": [0.7] * 4, "baker": [0.1] * 4}, tmp_path)
    assert row["loss"] == 0.0 and row["grad_norm"] == 0.0 and row["no_signal"] == 1.0
    assert all(torch.equal(before[name], weight) for name, weight in loaded.model.state_dict().items())


def test_turn_rewards_move_single_turns_and_weight_zero_is_plain_grpo(loaded, base, tmp_path):
    rollouts = some(loaded, masked=True)
    turns = {id(r): [1.0 if n == 0 else 0.0, 0.5] for n, r in enumerate(rollouts)}

    def run(model, weight, given):
        options = replace(QUICK, turn_weight=weight)
        return grpo.train(replace(loaded, model=model), prompts(loaded, 2), rewards_of(VALUES), tmp_path / f"{weight}{given}", options,
                          play=fixed(rollouts), turn_rewards=(lambda rs: [turns[id(r)] for r in rs]) if given else None)[0]

    plain, zero, half = (run(copy.deepcopy(base.model), w, g) for w, g in ((0.0, False), (0.0, True), (0.5, True)))
    assert zero["loss"] == plain["loss"] and zero["grad_norm"] == plain["grad_norm"]
    assert half["grad_norm"] != plain["grad_norm"]


def test_the_clip_is_asymmetric_and_bites_on_later_updates(loaded, tmp_path):
    options = replace(QUICK, steps=4, iterations=4, learning_rate=3e-3, clip_low=0.05, clip_high=0.3)
    rows = grpo.train(loaded, prompts(loaded, 2), rewards_of(VALUES), tmp_path, options, play=fixed(some(loaded)))
    assert rows[0]["clip_low"] == rows[0]["clip_high"] == 0.0, "on-policy, nothing is clipped"
    assert rows[-1]["clip_low"] > 0 and rows[-1]["clip_low"] > rows[-1]["clip_high"]


def lucky(rollouts):
    """A reward with signal that costs nothing: does the first token have an even id?"""
    return [float(r.ids[0] % 2) for r in rollouts]


def test_groups_without_signal_are_replaced_by_new_prompts(loaded, tmp_path):
    asked = []

    def dull(rollouts):  # no signal for rivers, ever
        return [0.0 if r.item == "river" else float(i % 2) for i, r in enumerate(rollouts)]

    options = replace(QUICK, steps=6, refill=2, max_new_tokens=3, learning_rate=1e-5)
    rows = grpo.train(loaded, prompts(loaded), [Component("dull", dull)], tmp_path, options,
                      keep=lambda step, rollouts, scored, advantages: asked.append({r.item for r in rollouts}))
    assert sum(row["refilled"] for row in rows) >= 1
    assert all(len(items) == 2 for items in asked) and sum("river" in items for items in asked) <= 1


def test_without_refilling_nothing_is_replaced(loaded, tmp_path):
    rows = grpo.train(loaded, prompts(loaded), [Component("flat", lambda rs: [1.0] * len(rs))], tmp_path, QUICK)
    assert rows[0]["refilled"] == 0 and rows[0]["no_signal"] == 1.0


def test_the_sampler_and_the_trainer_agree_on_every_token(loaded, tmp_path):
    rows = grpo.train(loaded, prompts(loaded), [Component("lucky", lucky)], tmp_path, replace(QUICK, steps=3))
    assert all(row["gap_max"] < 1e-3 for row in rows)


def test_stale_sampler_weights_show_in_the_gap(loaded, base, tmp_path):
    stale = grpo.single_turn(12, 1.0)
    rows = grpo.train(loaded, prompts(loaded), [Component("lucky", lucky)], tmp_path, replace(QUICK, steps=8, learning_rate=3e-3),
                      play=lambda model, tokenizer, asked, seed: stale(base.model, tokenizer, asked, seed))
    assert rows[-1]["gap_mean"] > 0.05


def test_a_penalty_on_the_distance_to_the_start_keeps_the_model_nearer(base, tmp_path):
    far = {}
    for kl in (0.0, 2.0):
        loaded = replace(base, model=copy.deepcopy(base.model))
        options = replace(QUICK, steps=10, kl=kl, kl_every=1, learning_rate=1e-4)
        rows = grpo.train(loaded, prompts(base, 2), rewards_of(VALUES), tmp_path / str(kl), options, play=fixed(some(base)))
        assert rows[0]["kl_start"] == 0.0
        far[kl] = rows[-1]["kl_start"]
    assert 0 < far[2.0] < far[0.0] / 2


@pytest.mark.parametrize("iterations", [1, 2])
def test_a_resumed_run_equals_an_undisturbed_one_bit_for_bit(base, tmp_path, iterations):
    options = replace(QUICK, steps=6, save_every=3, refill=1, iterations=iterations, kl_every=2)

    class Count:
        """A reward with a state of its own: it pays by the number of times it was asked."""
        def __init__(self):
            self.asked = 0
        def __call__(self, rollouts):
            self.asked += 1
            return [float((r.ids[0] + self.asked) % 3) for r in rollouts]
        def state_dict(self):
            return {"asked": self.asked}
        def load_state_dict(self, state):
            self.asked = state["asked"]

    def run(folder, observe=lambda row, reasons: None):
        loaded, count = replace(base, model=copy.deepcopy(base.model)), Count()
        rows = grpo.train(loaded, prompts(base), [Component("count", count)], folder, options, observe, states={"count": count})
        return loaded.model.state_dict(), rows

    class Killed(Exception):
        pass

    def kill(row, reasons):
        if row["step"] == 5:
            raise Killed

    whole, rows = run(tmp_path / "whole")
    with pytest.raises(Killed):
        run(tmp_path / "halted", kill)
    resumed, again = run(tmp_path / "halted")
    assert all(torch.equal(whole[name], weight) for name, weight in resumed.items())
    timed = {"seconds", "reward_seconds"}
    assert [{k: v for k, v in r.items() if k not in timed} for r in rows] == [{k: v for k, v in r.items() if k not in timed} for r in again]


def test_a_reward_of_the_wrong_length_stops_the_run_by_name(loaded, tmp_path):
    with pytest.raises(RewardError, match="short"):
        grpo.train(loaded, prompts(loaded), [Component("short", lambda rs: [1.0])], tmp_path, QUICK)


def test_a_flag_raised_by_the_observer_ends_the_run_at_that_step(loaded, tmp_path):
    seen = []

    def red(row, reasons):
        seen.append(row["step"])
        if row["step"] == 2:
            raise RuntimeError("red flag")

    with pytest.raises(RuntimeError, match="red flag"):
        grpo.train(loaded, prompts(loaded), [Component("lucky", lucky)], tmp_path, replace(QUICK, steps=5), observe=red)
    assert seen == [1, 2]


def test_breakdown_and_advantages_reach_the_record(loaded, tmp_path):
    kept = []
    parts = [Component("lucky", lucky), Component("half", lambda rs: [0.5] * len(rs), 2.0)]
    rows = grpo.train(loaded, prompts(loaded), parts, tmp_path, QUICK, keep=lambda *given: kept.append(given) or {"truth": 0.25})
    step, rollouts, scored, advantages = kept[0]
    assert step == 1 and len(rollouts) == len(advantages) == 8
    assert scored.total == [lucky([r])[0] + 1.0 for r in rollouts] and scored.parts["half"] == [0.5] * 8
    assert rows[0]["truth"] == 0.25, "what the keeper returns joins the step's row"


def test_every_epoch_asks_every_prompt_once_in_another_order():
    asked = grpo.order(10, replace(QUICK, steps=15, prompts=2))
    epochs = [asked[i : i + 10] for i in (0, 10, 20)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs) and len({tuple(epoch) for epoch in epochs}) == 3


@pytest.mark.parametrize("wrong, words", [
    ({"group": 1}, "2 or more"), ({"prompts": 99}, "prompts for steps of 99"), ({"max_new_tokens": 5000}, "no room for 5000"),
])
def test_settings_that_cannot_work_are_refused_before_the_first_step(loaded, tmp_path, wrong, words):
    with pytest.raises(PreflightError, match=words):
        grpo.train(loaded, prompts(loaded), [Component("lucky", lucky)], tmp_path, replace(QUICK, **wrong))


def test_a_micro_batch_holds_whole_groups(tmp_path):
    with pytest.raises(PreflightError, match="per_device_train_batch_size is 6.*Take 4"):
        grpo.settings(tmp_path, QUICK, per_device_train_batch_size=6)


def test_micro_batches_give_the_loss_and_gradient_of_the_whole(base, tmp_path):
    rollouts, found = some(base), []
    for batch in (8, 4):
        loaded = replace(base, model=copy.deepcopy(base.model))
        config = grpo.settings(tmp_path / str(batch), QUICK, per_device_train_batch_size=batch)
        rows = grpo.train(loaded, prompts(base, 2), rewards_of(VALUES), tmp_path / str(batch), QUICK, play=fixed(rollouts), config=config)
        found.append(rows[0])
    assert found[1]["loss"] == pytest.approx(found[0]["loss"], abs=1e-6)
    assert found[1]["grad_norm"] == pytest.approx(found[0]["grad_norm"], rel=1e-3)
