"""Group-relative policy optimisation with trl's GRPOTrainer, for every reinforcement stage. Paper sections 3 to 6.

trl does the update, the clipping, the distribution over processes and vLLM. This layer adds what the recipe needs: our
rewards (None is missing: the sample leaves the statistics and the loss, and is counted), float64 advantages, per-token
credit for turns, new prompts for groups without signal, the health panel's numbers, and checkpoints from which a run goes
on bit for bit: order of prompts, optimizer, random state, buffered rollouts, and the state of rewards that have one.
Truncated samples are masked out of the loss [S]; clip 0.2/0.28, mean over the tokens that count, and no KL are [C].
Left out on purpose: images, tools inside trl (the agent loop is `search.agent`), evaluation during training.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbcore.chat.checks import PreflightError
from nbcore.models.load import Loaded
from nbcore.rewards.compose import Component, Scored
from nbcore.rewards.rollouts import Prompt, Rollout, answers
from nbcore.training.advantages import Kind
from nbcore.training.loop import common, run
from nbcore.training.replay import Replay


@dataclass(frozen=True)
class Options:
    """What one stage of reinforcement decides. Steps are optimizer steps; a step has prompts × group completions.

    clip_low, clip_high: the ratio stays within 1 - clip_low and 1 + clip_high. kl: weight of the KL to the start (0: none, no
    copy is kept). refill: rounds in which groups without signal are replaced by new prompts. turn_weight: see `per_token`.
    kl_every: steps between measurements of the KL to the start (0: never). iterations: updates on the same completions.
    """

    steps: int
    prompts: int = 8
    group: int = 8
    learning_rate: float = 1e-4
    max_new_tokens: int = 64
    temperature: float = 1.0
    advantage: Kind = "mean"
    clip_low: float = 0.2
    clip_high: float = 0.28
    kl: float = 0.0
    refill: int = 1
    turn_weight: float = 0.0
    iterations: int = 1
    kl_every: int = 10
    save_every: int = 0
    seed: int = 0


Play = Callable[[Any, Any, Sequence[Prompt], int], list[Rollout]]  # model, tokenizer, one prompt per rollout, seed

Keep = Callable[[int, list[Rollout], Scored, list[float | None]], Mapping[str, float] | None]


def single_turn(max_new_tokens: int, temperature: float) -> Play:
    """Rollouts of one answer each, by our sampler."""

    def play(model: Any, tokenizer: Any, prompts: Sequence[Prompt], seed: int) -> list[Rollout]:
        return answers(model, tokenizer, prompts, max_new_tokens, temperature, seed)

    return play


def settings(folder: Path, options: Options, **more: Any) -> Any:
    """trl's GRPOConfig for one stage. `more` is for what hardware decides: vLLM, precision, micro-batches.

    Raises PreflightError when groups do not fit into batches; every group has to lie whole on one process.
    """
    from trl import GRPOConfig

    if options.group < 2:
        raise PreflightError(f"group is {options.group}: a completion is compared with others of its prompt, so it takes 2 or more.")
    rows = options.prompts * options.group
    batch = more.pop("per_device_train_batch_size", rows)
    if batch % options.group:
        near = max(options.group, batch // options.group * options.group)
        raise PreflightError(f"per_device_train_batch_size is {batch}, which does not hold whole groups of {options.group}. Take {near}.")
    if options.iterations < 1:
        raise PreflightError(f"iterations is {options.iterations}; allowed is 1 or more.")
    config = common(folder, options.steps, batch, options.learning_rate, options.seed, options.save_every) | {
        "gradient_accumulation_steps": max(1, rows // batch), "num_generations": options.group, "num_iterations": options.iterations,
        "max_completion_length": options.max_new_tokens, "temperature": options.temperature, "top_p": 1.0,
        "lr_scheduler_type": "constant_with_warmup", "warmup_steps": min(5, options.steps // 10), "adam_beta2": 0.99,
        "adam_epsilon": 1e-5,  # gradients of tokens that no answer uses are smaller: Adam would move them by full steps of noise
        "epsilon": options.clip_low, "epsilon_high": options.clip_high, "beta": 0.0, "loss_type": "dapo", "scale_rewards": "none",
        # What was cut off leaves the loss by `Rollout.ended` (grpo_trainer): trl would go by the last token, which in an episode that
        # ended with a tool's words is no end of turn.
        "mask_truncated_completions": False, "remove_unused_columns": False, "data_seed": options.seed,
        "shuffle_dataset": False,  # `order` has shuffled
    }  # fmt: skip
    return GRPOConfig(**config | more)


def train(
    loaded: Loaded,
    prompts: Sequence[Prompt],
    rewards: Sequence[Component],
    folder: Path,
    options: Options,
    observe: Callable[[dict[str, float | None], Mapping[str, int]], None] = lambda row, reasons: None,
    keep: Keep = lambda step, rollouts, scored, advantages: None,
    play: Play | None = None,
    turn_rewards: Callable[[Sequence[Rollout]], list[list[float] | None]] | None = None,
    states: Mapping[str, Any] | None = None,
    replay: Replay | None = None,
    config: Any = None,
) -> list[dict[str, float | None]]:
    """Train `loaded.model` in place; returns one row of health numbers a step (the keys of `training.health`).

    observe gets each row and why rewards were missing (a red flag raised there ends the run); keep gets each step's rollouts
    with rewards by component and advantages, and may return numbers that join the step's row. play: how rollouts are made
    (default: single answers; with config.use_vllm trl's vLLM). states: objects with state_dict and load_state_dict that belong
    into the checkpoint (a pair-wise reward's references). replay: rows of other abilities, on which the policy pays for leaving its start.
    Goes on from the newest checkpoint in `folder`; give the model that the run began with. Raises PreflightError, RewardError, and
    NotFinite at the step whose loss is.
    """
    trainer = trainer_of(loaded, prompts, rewards, folder, options, observe, keep, play, turn_rewards, states, replay, config)
    run(trainer, loaded.model, folder, options.seed)
    return trainer.rows


def trainer_of(
    loaded: Loaded, prompts: Sequence[Prompt], rewards: Sequence[Component], folder: Path, options: Options,
    observe: Any = lambda row, reasons: None, keep: Any = lambda *given: None, play: Play | None = None, turn_rewards: Any = None,
    states: Mapping[str, Any] | None = None, replay: Replay | None = None, config: Any = None,
) -> Any:  # fmt: skip
    """The trainer that `train` runs, for those who want to take single steps. Raises PreflightError."""
    from datasets import Dataset

    from nbcore.training.grpo_trainer import Trainer

    config = config or settings(folder, options)
    if len(prompts) < options.prompts:
        raise PreflightError(f"{len(prompts)} prompts for steps of {options.prompts}. Give more prompts, or lower `prompts`.")
    room = loaded.model.config.max_position_embeddings
    if long := [i for i, p in enumerate(prompts) if len(p.ids) + options.max_new_tokens > room]:
        raise PreflightError(f"{len(long)} of {len(prompts)} prompts leave no room for {options.max_new_tokens} tokens in {room}.")
    table = Dataset.from_dict({"prompt": [str(i) for i in order(len(prompts), options)]})
    trainer = Trainer(
        model=loaded.model, reward_funcs=[_nothing], args=config, train_dataset=table, processing_class=loaded.tokenizer,
    )  # fmt: skip
    play = play or (None if config.use_vllm else single_turn(options.max_new_tokens, options.temperature))
    trainer.prepare(prompts, rewards, options, observe, keep, play, turn_rewards, states or {}, replay)
    return trainer


def order(count: int, options: Options) -> list[int]:
    """Which prompts the steps ask, in one row: each epoch a new shuffle, known beforehand.

    trl's sampler starts its shuffles anew when a run resumes in a later epoch, so prompts would repeat and others be left out.
    """
    rng, asked = random.Random(f"prompts {options.seed}"), []
    while len(asked) < options.steps * options.prompts:
        asked += rng.sample(range(count), count)
    return asked[: options.steps * options.prompts]


def _nothing(**_: Any) -> list[float]:
    raise AssertionError("rewards come from nbcore.rewards.compose")
