"""Training of both reward models, each from a policy's weights. Paper sections 3 and 4.

Point-wise [C]: Bradley and Terry's model, P(chosen ≻ rejected) = σ(score difference).
Pair-wise [C]: a causal model asked in both orders,
`loss = CE(y1,y2) + CE(y2,y1) + λ · (P(y1≻y2 | y1,y2) + P(y2≻y1 | y2,y1) − 1)²`; the last term (swap-consistency) is zero exactly
when the verdict does not depend on the order. To compare with, a judge may also read each choice in one order, as it was made.
All choices between answers to one prompt are one element of a batch, as in InstructGPT (2203.02155, section 3.5), and what the
rows share is read once (models.prefixes). trl's RewardTrainer, with which a test compares the loss, reads each answer with its
prompt again: at nano size that costs two and a half times the tokens. Rows are tokenised by us, the same way as the rewards do.
Metrics go into the run's record, a loss that is not finite stops the run, a killed run goes on from its last checkpoint.
Left out on purpose: margins and soft labels, regularisers of the score (scores are centred after training instead).
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbcore.chat.checks import PreflightError, require_distinct_pad
from nbcore.chat.masks import encode_prompt
from nbcore.data.preferences import Pair
from nbcore.models import prefixes
from nbcore.models.expand import expanded
from nbcore.models.load import Loaded
from nbcore.rewards import pairwise, pointwise
from nbcore.training.loop import Log, common, cosine, recorder, run


@dataclass(frozen=True)
class Group:
    """All choices of one prompt: token rows, and for each choice the numbers of its two rows.

    Point-wise: rows are answers, a choice is (chosen, rejected). Pair-wise: rows are orders, a choice is (chosen first, chosen last),
    with -1 for an order that is not read.
    """

    rows: list[list[int]]
    choices: list[tuple[int, int]]


def answers_of(tokenizer: Any, pairs: Sequence[Pair]) -> list[Group]:
    """Point-wise groups: each different answer of a prompt is one row."""
    groups = []
    for some in _by_prompt(pairs):
        prompt, rows = encode_prompt(tokenizer, some[0].prompt), dict[tuple[str, bool], int]()
        sides = [((p.chosen, p.chosen_ended), (p.rejected, p.rejected_ended)) for p in some]
        choices = [tuple(rows.setdefault(answer, len(rows)) for answer in two) for two in sides]
        groups.append(Group([pointwise.answered(tokenizer, prompt, text, ended) for text, ended in rows], choices))
    return groups


def orders_of(tokenizer: Any, pairs: Sequence[Pair], both: bool = True, seed: int = 0) -> list[Group]:
    """Pair-wise groups: each choice is two rows, the chosen answer first and last.

    Without `both` it is one of them: the order in which the choice was made, or one that is drawn where nobody wrote it down.
    """
    rng, groups = random.Random(f"orders {seed}"), []
    for some in _by_prompt(pairs):
        group = Group([], [])
        for pair in some:
            asked, drawn = comparison_of(pair), rng.randrange(2)
            read = (0, 1) if both else (drawn if pair.chosen_first is None else int(not pair.chosen_first),)
            group.choices.append(tuple(len(group.rows) + read.index(order) if order in read else -1 for order in (0, 1)))
            group.rows.extend(pairwise.encode(tokenizer, asked.swapped() if order else asked) for order in read)
        groups.append(group)
    return groups


def comparison_of(pair: Pair) -> pairwise.Comparison:
    """A choice as a question to the pair-wise model, the chosen answer first."""
    first, second = pairwise.shown(pair.chosen, pair.chosen_ended), pairwise.shown(pair.rejected, pair.rejected_ended)
    return pairwise.Comparison(pairwise.question_of(pair.prompt), first, second)


def train_pointwise(
    policy: Loaded, pairs: Sequence[Pair], folder: Path, steps: int, batch: int = 4, learning_rate: float = 1e-3, seed: int = 0,
    save_every: int = 0, log: Log = lambda row: None,
) -> tuple[pointwise.PointwiseModel, list[dict[str, float]]]:  # fmt: skip
    """A scorer after `steps` of `batch` prompts with all their choices, centred on its training answers, and the logged rows.

    The policy stays as it is. Raises PreflightError for rows that do not fit the model and for scores that are all equal, NotFinite
    at a loss that is not finite.
    """
    scorer, groups = pointwise.from_policy(policy), answers_of(policy.tokenizer, pairs)

    def measured(hidden: Any, chosen: list[int], rejected: list[int]) -> tuple[Any, dict[str, Any]]:
        scores = scorer.model.score(hidden)[:, 0].float()
        return pointwise_loss(scores[chosen], scores[rejected])

    history = _train(scorer.model, policy, groups, measured, folder, steps, batch, learning_rate, seed, save_every, log)
    scores = [s for s in scorer.raw([row for group in groups for row in group.rows]) if s is not None]
    if len(scores) < 2 or statistics.pstdev(scores) == 0:
        raise PreflightError("The reward model gives every answer the same score: nothing was learned. Train longer, or look at the pairs.")
    scorer.mean, scorer.sd = statistics.fmean(scores), statistics.pstdev(scores)
    return scorer, history


def train_pairwise(
    policy: Loaded, pairs: Sequence[Pair], folder: Path, steps: int, batch: int = 4, learning_rate: float = 1e-3,
    consistency: float | None = 1.0, seed: int = 0, save_every: int = 0, log: Log = lambda row: None, blocks: int = 0,
) -> tuple[pairwise.PairwiseModel, list[dict[str, float]]]:  # fmt: skip
    """A judge after `steps` of `batch` prompts with all their choices in both orders, and the logged rows. The policy stays as it is.

    consistency: λ; None reads each choice in one order only, so that no term can compare the two. blocks: layers put on top of the
    policy's (models.expand). Raises PreflightError for rows that do not fit the model, NotFinite at a loss that is not finite.
    """
    judge = pairwise.PairwiseModel(Loaded(expanded(policy.model, blocks), policy.tokenizer, policy.source))
    verdicts = pairwise.verdict_ids(policy.tokenizer)

    def measured(hidden: Any, first: list[int], last: list[int]) -> tuple[Any, dict[str, Any]]:
        odds = pairwise.log_odds(judge.loaded.model, hidden, verdicts)
        return pairwise_loss(*(odds[[row for row in rows if row >= 0]] for rows in (first, last)), consistency)

    groups = orders_of(policy.tokenizer, pairs, consistency is not None, seed)
    return judge, _train(judge.loaded.model, policy, groups, measured, folder, steps, batch, learning_rate, seed, save_every, log)


def pointwise_loss(chosen: Any, rejected: Any) -> tuple[Any, dict[str, Any]]:
    """Bradley–Terry: mean of −log σ(chosen − rejected) over choices, and its parts."""
    from torch.nn.functional import logsigmoid

    margin = chosen - rejected
    return -logsigmoid(margin).mean(), {"accuracy": (margin > 0).float().mean(), "margin": margin.mean()}


def pairwise_loss(chosen_first: Any, chosen_last: Any, consistency: float | None) -> tuple[Any, dict[str, Any]]:
    """The loss of both orders and its parts, from log-odds of the verdict "A" (one entry a choice).

    When the chosen answer is shown last, the first one is the rejected: P(y2≻y1 | y2,y1) is the chance of "A" there.
    consistency None: the two hold different choices, each read in one order; the loss is their cross-entropy.
    """
    import torch
    from torch.nn.functional import logsigmoid

    if consistency is None:
        margin = torch.cat([chosen_first, -chosen_last])
        cross_entropy = -logsigmoid(margin).mean()
        return cross_entropy, {"cross_entropy": cross_entropy, "accuracy": (margin > 0).float().mean()}
    cross_entropy = -(logsigmoid(chosen_first) + logsigmoid(-chosen_last)).mean()
    swap = ((chosen_first.sigmoid() + chosen_last.sigmoid() - 1) ** 2).mean()
    right = ((chosen_first > 0).float() + (chosen_last < 0).float()).mean() / 2
    flips = ((chosen_first > 0) == (chosen_last > 0)).float().mean()
    return cross_entropy + consistency * swap, {"cross_entropy": cross_entropy, "swap": swap, "accuracy": right, "flips": flips}


def _train(
    model: Any, policy: Loaded, groups: Sequence[Group], measured: Callable[..., tuple[Any, dict[str, Any]]], folder: Path,
    steps: int, batch: int, learning_rate: float, seed: int, save_every: int, log: Log,
) -> list[dict[str, float]]:  # fmt: skip
    """Train `model` in place; `measured` gives loss and parts from the rows' last hidden states and the rows of each choice."""
    from transformers import Trainer, TrainingArguments

    pad = _preflight(policy, groups)
    parts: dict[str, float] = {}
    history, record = recorder(log, parts)

    class RewardModelTrainer(Trainer):
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None) -> Any:
            some, starts = inputs["groups"], [0]
            for group in some:
                starts.append(starts[-1] + len(group.rows))
            hidden = prefixes.ends(model.base_model, [prefixes.tree(group.rows) for group in some], pad)
            choices = [
                tuple(row + start if row >= 0 else row for row in choice)
                for group, start in zip(some, starts, strict=False) for choice in group.choices
            ]  # fmt: skip
            loss, found = measured(hidden, [i for i, _ in choices], [j for _, j in choices])
            parts.update({name: float(value.detach()) for name, value in found.items()})
            return (loss, {}) if return_outputs else loss

    settings = TrainingArguments(
        **common(folder, steps, batch, learning_rate, seed, save_every), **cosine(steps), remove_unused_columns=False
    )
    trainer = RewardModelTrainer(
        model=model, args=settings, train_dataset=list(groups), data_collator=lambda some: {"groups": some},
        processing_class=policy.tokenizer, callbacks=[record],
    )  # fmt: skip
    run(trainer, model, folder, seed)
    return history


def _preflight(policy: Loaded, groups: Sequence[Group]) -> int:
    """The padding token, after what would waste the training was looked for: no pairs, rows that do not fit, a padding that ends turns."""
    require_distinct_pad(policy.tokenizer)
    if not groups:
        raise PreflightError("There are no pairs to train on.")
    room = policy.model.config.max_position_embeddings
    longest = [max(map(len, group.rows)) for group in groups]
    if too_long := sum(length > room for length in longest):
        raise PreflightError(
            f"{too_long} of {len(groups)} prompts have rows of up to {max(longest)} tokens, and the model has {room} positions: "
            "leave out their pairs."
        )
    return policy.tokenizer.pad_token_id


def _by_prompt(pairs: Sequence[Pair]) -> list[list[Pair]]:
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(json.dumps(pair.prompt, sort_keys=True), []).append(pair)
    return list(found.values())
