"""The subclass of trl's GRPOTrainer behind `training.grpo`: rollouts in, health numbers out, whole checkpoints.

Imports trl, which takes seconds: `grpo` imports this module when a trainer is made and not before.
"""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from trl import GRPOTrainer

from nbcore.chat.checks import require_finite
from nbcore.rewards.compose import Scored, score
from nbcore.rewards.repetition import is_repetitive
from nbcore.rewards.rollouts import Rollout
from nbcore.training.advantages import Group, group_advantages, per_token, turn_advantages


class Trainer(GRPOTrainer):
    def prepare(self, prompts, rewards, options, observe, keep, play, turn_rewards, states, replay) -> None:
        self.prompts, self.components, self.options, self.states, self.replay = prompts, rewards, options, states, replay
        self.play, self.observe, self.keep, self.turn_rewards = play, observe, keep, turn_rewards
        self.rows: list[dict] = []
        self.generated = self.spare = 0
        self.reasons: Counter[str] = Counter()
        self.began = time.perf_counter()
        self.row: dict[str, float | None] = {}
        self.start = copy.deepcopy(self.model).eval().requires_grad_(False) if options.kl or options.kl_every or replay else None
        if options.kl:
            self.beta, self.ref_model = options.kl, self.start
        order = torch.Generator().manual_seed(options.seed + 1)
        self.spares = torch.randperm(len(prompts), generator=order).tolist()

    # --- rollouts, rewards, advantages

    def _roll(self, asked: list[int]) -> tuple[list[Rollout], Scored, list[Group], float]:
        chosen = [self.prompts[i] for i in asked]
        self.generated += 1
        seed = self.options.seed * 1_000_003 + self.generated * 1009 + self.accelerator.process_index
        if self.play is None:
            ids, logprobs = self._generate_single_turn([p.ids for p in chosen], None, {})
            texts = self._tokenizer.batch_decode(ids, skip_special_tokens=False)
            end = self._tokenizer.eos_token
            rollouts = [
                Rollout(p.item, list(p.ids), list(i), text.removesuffix(end), text.endswith(end), [1] * len(i), list(chances))
                for p, i, text, chances in zip(chosen, ids, texts, logprobs, strict=True)
            ]
        else:
            model = self.accelerator.unwrap_model(self.model_wrapped)
            model.eval()
            rollouts = self.play(model, self._tokenizer, chosen, seed)
            model.train()
        started = time.perf_counter()
        scored = score(rollouts, self.components)
        size = self.options.group
        groups = [group_advantages(scored.total[i : i + size], self.options.advantage) for i in range(0, len(rollouts), size)]
        return rollouts, scored, groups, time.perf_counter() - started

    def _generate(self, prompts: list) -> tuple:
        asked, size = [int(p) for p in prompts], self.options.group
        rollouts, scored, groups, spent = self._roll(asked)
        refilled, first = 0, groups
        for _ in range(self.options.refill):
            flat = [g for g, group in enumerate(groups) if not group.signal]
            if not flat:
                break
            fresh = [self.spares[(self.spare + n) % len(self.spares)] for n in range(len(flat))]
            self.spare += len(flat)
            more, scores, judged, again = self._roll([i for i in fresh for _ in range(size)])
            spent += again
            for n, g in enumerate(flat):
                if judged[n].signal:
                    refilled += 1
                    groups = [*groups[:g], judged[n], *groups[g + 1 :]]
                    rollouts[g * size : (g + 1) * size] = more[n * size : (n + 1) * size]
                    scored = _replaced(scored, g * size, scores, n * size, size)
        self.batch = (rollouts, scored, groups)
        self.reasons = sum(scored.missing.values(), Counter())
        self._numbers(first, refilled, spent)
        masks = [r.mask for r in rollouts]
        return (
            [r.prompt_ids for r in rollouts], [r.ids for r in rollouts], masks, [r.text for r in rollouts], [r.logprobs for r in rollouts],
            {}, None, [],
        )  # fmt: skip

    def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list) -> Any:
        totals = [float("nan") if t is None else t for t in self.batch[1].total]
        return self.accelerator.gather(torch.tensor(totals, device=self.accelerator.device)[:, None])

    def _generate_and_score_completions(self, inputs: list) -> dict:
        output = super()._generate_and_score_completions(inputs)
        rollouts, scored, groups = self.batch
        flat = [a for group in groups for a in group.advantages]
        turns = self._credit(rollouts)
        width = output["completion_ids"].size(1)
        rows = [
            per_token(r.mask, a or 0.0, turn, self.options.turn_weight if turn is not None else 0.0)
            for r, a, turn in zip(rollouts, flat, turns, strict=True)
        ]
        output["advantages"] = torch.tensor([row + [0.0] * (width - len(row)) for row in rows], device=output["completion_ids"].device)
        stays = [[int(a is not None and r.ended)] for a, r in zip(flat, rollouts, strict=True)]
        present = torch.tensor(stays, device=output["completion_ids"].device)
        output["tool_mask"] = output["tool_mask"] * present  # out of the loss, still in the context
        counted = (output["completion_mask"] * output["tool_mask"]).sum()
        output["num_items_in_batch"] = self.accelerator.gather(counted).sum()
        self.row |= self.keep(self.state.global_step + 1, rollouts, scored, flat) or {}
        return output

    def _credit(self, rollouts: list[Rollout]) -> list[list[float] | None]:
        if self.turn_rewards is None:
            return [None] * len(rollouts)
        given, size = self.turn_rewards(rollouts), self.options.group
        return [credit for i in range(0, len(given), size) for credit in turn_advantages(given[i : i + size])]

    # --- the numbers of the health panel

    def _numbers(self, first: list[Group], refilled: int, spent: float) -> None:
        rollouts, scored, groups = self.batch
        totals, n = [t for t in scored.total if t is not None], len(rollouts)
        lengths, ended = [sum(r.mask) for r in rollouts], [sum(r.mask) for r in rollouts if r.ended]
        spreads = [g.deviation for g in groups if g.deviation is not None]
        self.row |= {
            "reward_mean": _mean(totals), "reward_spread": _mean(spreads), "no_signal": _mean([float(not g.signal) for g in first]),
            "refilled": float(refilled), "truncated": 1 - len(ended) / n, "length": _mean(lengths), "length_ended": _mean(ended),
            "repetitive": _mean([float(is_repetitive(r.ids)) for r in rollouts]), "missing": 1 - len(totals) / n, "reward_seconds": spent,
            **{f"part/{name}": _mean([v for v in values if v is not None]) for name, values in scored.parts.items()},
        }

    def _get_per_token_logps_and_entropies(self, model, *args, **kwargs) -> tuple:
        found = super()._get_per_token_logps_and_entropies(model, *args, **kwargs)
        if torch.is_grad_enabled():
            self.logps = found[0].detach()
        return found

    def _compute_loss(self, model, inputs) -> Any:
        loss = super()._compute_loss(model, inputs)
        mask = inputs["completion_mask"] * inputs["tool_mask"]
        count = mask.sum().clamp(min=1)
        gap = (self.logps - inputs["sampling_per_token_logps"]).abs() * mask
        fresh = self.options.iterations == 1 or self._step % self.options.iterations == 0
        if fresh:  # later updates on the same completions differ from the sampler on purpose
            self.row |= {"gap_mean": float(gap.sum() / count), "gap_max": float(gap.max())}
        self.row["loss"] = (self.row.get("loss") or 0.0) + float(loss.detach())  # micro-batches of a step add up
        every = self.options.kl_every
        if every and self.state.global_step % every == 0:
            start = inputs.get("ref_per_token_logps")  # there when the KL is in the loss
            ratio = (self._at_start(inputs) if start is None else start) - self.logps  # k3 of Schulman's note: unbiased and never negative
            self.row["kl_start"] = float(((ratio.exp() - ratio - 1) * mask).sum() / count)
        if self.replay is None:
            return loss
        micro = self.args.gradient_accumulation_steps
        left = self.replay.divergence(model, self.start, self._step, self._tokenizer.pad_token_id)
        self.row["replay"] = (self.row.get("replay") or 0.0) + float(left.detach()) / micro
        return loss + self.replay.weight * left / micro

    @torch.no_grad()
    def _at_start(self, inputs) -> Any:
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
        seen = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
        return self._get_per_token_logps_and_entropies(self.start, ids, seen, inputs["completion_ids"].size(1))[0]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" in logs:
            metrics = {key: values[-1] for key, values in self._metrics["train"].items() if values}
            step = self.state.global_step
            row = {"step": step, "total": self.args.max_steps, "loss": None, "kl_start": None} | self.row
            row |= {"grad_norm": float(logs["grad_norm"]), "learning_rate": float(logs["learning_rate"])}
            row |= {"entropy": metrics.get("entropy"), "seconds": time.perf_counter() - self.began}
            row |= {"clip_low": metrics.get("clip_ratio/low_mean"), "clip_high": metrics.get("clip_ratio/high_mean")}
            self.row, self.began = {}, time.perf_counter()
            self.rows.append(row)
            self.observe(row, self.reasons)
            require_finite("loss", row["loss"])
        super().log(logs, start_time)

    # --- checkpoints

    def _save_checkpoint(self, model, trial) -> None:
        super()._save_checkpoint(model, trial)
        held = {
            "buffered": self._buffered_inputs, "at": self._step, "generated": self.generated, "spare": self.spare, "rows": self.rows,
            "states": {name: state.state_dict() for name, state in self.states.items()},
        }
        torch.save(held, self._held(Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"))

    def _load_optimizer_and_scheduler(self, checkpoint) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        held = torch.load(self._held(Path(checkpoint)), weights_only=False)  # our own file; it holds plain rows too
        self._buffered_inputs, self._step = held["buffered"], held["at"]
        self.generated, self.spare, self.rows = held["generated"], held["spare"], held["rows"]
        for name, state in self.states.items():
            state.load_state_dict(held["states"][name])

    def _held(self, folder: Path) -> Path:
        return folder / f"rollouts-{self.accelerator.process_index}.pt"


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _replaced(scored: Scored, at: int, other: Scored, start: int, size: int) -> Scored:
    """`scored` with `size` rollouts from `at` taken from `other` (from `start`); what was missing stays counted."""
    total = [*scored.total[:at], *other.total[start : start + size], *scored.total[at + size :]]
    parts = {n: [*v[:at], *other.parts[n][start : start + size], *v[at + size :]] for n, v in scored.parts.items()}
    return Scored(total, parts, scored.missing)
