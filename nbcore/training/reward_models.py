"""Training of both reward models, each from a policy's weights. Paper sections 3 and 4.

Point-wise: Bradley and Terry's model, P(chosen ≻ rejected) = σ(score difference), by trl's RewardTrainer [C].
Pair-wise [C]: a causal model asked in both orders,
`loss = CE(y1,y2) + CE(y2,y1) + λ · (P(y1≻y2 | y1,y2) + P(y2≻y1 | y2,y1) − 1)²`; the last term (swap-consistency) is zero exactly
when the verdict does not depend on the order.
Rows are tokenised by us, the same way as the rewards do. Metrics go into the run's record, a loss that is not finite stops the
run, and a killed run goes on from its last checkpoint.
Left out on purpose: margins and soft labels, regularisers of the score (scores are centred after training instead).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbcore.chat.checks import PreflightError, require_distinct_pad, require_finite
from nbcore.chat.masks import encode_prompt
from nbcore.data.preferences import Pair
from nbcore.models.load import Loaded
from nbcore.rewards import pairwise, pointwise
from nbcore.training.sft import ordered

Log = Callable[[dict[str, float]], None]


@dataclass(frozen=True)
class TwoRows:
    """The two token rows of one choice: the two answers (point-wise) or the two orders, chosen first and last (pair-wise)."""

    one: list[int]
    other: list[int]

    @property
    def input_ids(self) -> list[int]:
        """The longer one: what a batch is padded to."""
        return max(self.one, self.other, key=len)


def answers_of(tokenizer: Any, pairs: Sequence[Pair]) -> list[TwoRows]:
    """Point-wise rows: prompt and answer, chosen and rejected."""
    rows = []
    for pair in pairs:
        prompt = encode_prompt(tokenizer, pair.prompt)
        sides = ((pair.chosen, pair.chosen_ended), (pair.rejected, pair.rejected_ended))
        rows.append(TwoRows(*(pointwise.answered(tokenizer, prompt, text, ended) for text, ended in sides)))
    return rows


def comparison_of(pair: Pair) -> pairwise.Comparison:
    """A choice as a question to the pair-wise model, the chosen answer first."""
    first, second = pairwise.shown(pair.chosen, pair.chosen_ended), pairwise.shown(pair.rejected, pair.rejected_ended)
    return pairwise.Comparison(pairwise.question_of(pair.prompt), first, second)


def orders_of(tokenizer: Any, pairs: Sequence[Pair]) -> list[TwoRows]:
    """Pair-wise rows: the prompt in both orders, chosen first and chosen last."""
    asked = [comparison_of(pair) for pair in pairs]
    return [TwoRows(pairwise.encode(tokenizer, c), pairwise.encode(tokenizer, c.swapped())) for c in asked]


def train_pointwise(
    policy: Loaded, pairs: Sequence[Pair], folder: Path, steps: int, batch: int = 32, learning_rate: float = 5e-4, seed: int = 0,
    save_every: int = 0, log: Log = lambda row: None,
) -> tuple[pointwise.PointwiseModel, list[dict[str, float]]]:  # fmt: skip
    """A scorer after `steps` of `batch` pairs, centred on its training answers, and the logged rows. The policy stays as it is.

    Raises PreflightError for rows that do not fit the model and for scores that are all equal; NotFinite at a loss that is not.
    """
    import statistics

    from datasets import Dataset
    from trl import RewardConfig, RewardTrainer

    scorer = pointwise.from_policy(policy)
    rows = answers_of(policy.tokenizer, pairs)
    _preflight(policy, rows, pairs)
    ranked, (history, record) = ordered(rows, batch, seed), _recorder(log, {})
    trainer = RewardTrainer(
        model=scorer.model, processing_class=policy.tokenizer, callbacks=[record],
        train_dataset=Dataset.from_dict({"chosen_ids": [r.one for r in ranked], "rejected_ids": [r.other for r in ranked]}),
        args=RewardConfig(**_settings(folder, steps, batch, learning_rate, seed, save_every), max_length=None, dataset_num_proc=None),
    )  # fmt: skip
    _run(trainer, folder, seed)
    scores = [s for s in scorer.raw([ids for r in rows for ids in (r.one, r.other)]) if s is not None]
    if len(scores) < 2 or statistics.pstdev(scores) == 0:
        raise PreflightError("The reward model gives every answer the same score: it has learned nothing. Train longer or look at the pairs.")
    scorer.mean, scorer.sd = statistics.fmean(scores), statistics.pstdev(scores)
    return scorer, history


def train_pairwise(
    policy: Loaded, pairs: Sequence[Pair], folder: Path, steps: int, batch: int = 32, learning_rate: float = 5e-4,
    consistency: float = 1.0, seed: int = 0, save_every: int = 0, log: Log = lambda row: None,
) -> tuple[pairwise.PairwiseModel, list[dict[str, float]]]:  # fmt: skip
    """A judge after `steps` of `batch` pairs in both orders, and the logged rows. Trains a copy of the policy.

    consistency: λ. Raises PreflightError for rows that do not fit the model; NotFinite at a loss that is not.
    """
    import copy

    from datasets import Dataset
    from transformers import Trainer, TrainingArguments

    model, tokenizer = copy.deepcopy(policy.model), policy.tokenizer
    rows, verdicts = orders_of(tokenizer, pairs), pairwise.verdict_ids(tokenizer)
    _preflight(policy, rows, pairs)
    seen: dict[str, float] = {}

    class PairwiseTrainer(Trainer):
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None) -> Any:
            chosen_first, chosen_last = pairwise.log_odds(model, inputs, verdicts).chunk(2)
            loss, parts = pairwise_loss(chosen_first, chosen_last, consistency)
            seen.update({name: float(part) for name, part in parts.items()})
            return (loss, {}) if return_outputs else loss

    ranked, (history, record) = ordered(rows, batch, seed), _recorder(log, seen)
    trainer = PairwiseTrainer(
        model=model, processing_class=tokenizer, callbacks=[record],
        train_dataset=Dataset.from_dict({"one": [r.one for r in ranked], "other": [r.other for r in ranked]}),
        data_collator=lambda two: pairwise.left_padded([t["one"] for t in two] + [t["other"] for t in two], tokenizer.pad_token_id),
        args=TrainingArguments(**_settings(folder, steps, batch, learning_rate, seed, save_every), remove_unused_columns=False),
    )  # fmt: skip
    _run(trainer, folder, seed)
    return pairwise.PairwiseModel(Loaded(model, tokenizer, policy.source)), history


def pairwise_loss(chosen_first: Any, chosen_last: Any, consistency: float) -> tuple[Any, dict[str, Any]]:
    """The loss of both orders and its parts, from log-odds of verdict "A" (one entry a pair): chosen shown first, chosen shown last.

    `P(y2≻y1 | y2,y1)` is the chance that verdict "A" is given when the rejected answer stands first.
    """
    from torch.nn.functional import logsigmoid

    cross_entropy = -(logsigmoid(chosen_first) + logsigmoid(-chosen_last)).mean()
    swap = ((chosen_first.sigmoid() + chosen_last.sigmoid() - 1) ** 2).mean()
    right = ((chosen_first > 0).float() + (chosen_last < 0).float()).mean() / 2
    flips = ((chosen_first > 0) == (chosen_last > 0)).float().mean()
    return cross_entropy + consistency * swap, {"cross_entropy": cross_entropy, "swap": swap, "accuracy": right, "flips": flips}


def _settings(folder: Path, steps: int, batch: int, learning_rate: float, seed: int, save_every: int) -> dict[str, Any]:
    """What both trainers are told: CPU or one GPU, linear warm-up and cosine decay, rows in the order given."""
    import torch

    return dict(
        output_dir=str(folder), max_steps=steps, per_device_train_batch_size=batch, learning_rate=learning_rate, seed=seed,
        lr_scheduler_type="cosine", warmup_steps=max(1, steps // 20), weight_decay=0.0, max_grad_norm=1.0, logging_steps=1,
        logging_nan_inf_filter=False, report_to="none", disable_tqdm=True, use_cpu=not torch.cuda.is_available(), bf16=False,
        gradient_checkpointing=False, dataloader_pin_memory=False, train_sampling_strategy="sequential",
        save_strategy="steps" if save_every else "no", save_steps=max(1, save_every), save_total_limit=1,
    )  # fmt: skip


def _recorder(log: Log, seen: dict[str, float]) -> tuple[list[dict[str, float]], Any]:
    """(the rows logged so far, the callback that adds to them and stops at a loss that is not finite). seen: parts of the last loss."""
    from transformers import TrainerCallback

    history: list[dict[str, float]] = []

    class Record(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: dict | None = None, **_: Any) -> None:
            if logs and "loss" in logs:
                named = ("loss", "learning_rate", "grad_norm", "accuracy", "margin")
                history.append({"step": state.global_step, **{n: float(logs[n]) for n in named if n in logs}, **seen})
                log(history[-1])
                require_finite("loss", history[-1]["loss"])

    return history, Record()


def _run(trainer: Any, folder: Path, seed: int) -> None:
    import torch
    from transformers import PrinterCallback
    from transformers.trainer_utils import get_last_checkpoint

    folder.mkdir(parents=True, exist_ok=True)
    trainer.remove_callback(PrinterCallback)  # the record has every row; a line a step would drown the notebook
    torch.manual_seed(seed)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)))
    trainer.model.eval()


def _preflight(policy: Loaded, rows: Sequence[TwoRows], pairs: Sequence[Pair]) -> None:
    """What would waste the training: no pairs, rows that do not fit, a padding token that is the end of turn."""
    require_distinct_pad(policy.tokenizer)
    if not rows:
        raise PreflightError("There are no pairs to train on.")
    room = policy.model.config.max_position_embeddings
    if too_long := [p.key for p, r in zip(pairs, rows, strict=True) if len(r.input_ids) > room]:
        raise PreflightError(f"{len(too_long)} of {len(rows)} pairs exceed the model's {room} positions: {too_long[:3]}. Leave them out.")
