"""When a run of reinforcement learning is sick: limits on the rows of its record, and a sentence for each that is crossed.

Paper sections 3 to 6 give no such numbers; every limit here is ours [C]. A red flag is a state in which more steps buy nothing
or do harm: the run should end. An amber note is worth a look. Most rules ask for several measured steps in a row, because one
step of few prompts says little; at once are only those that need no statistics: a number that is not finite, a step in which
nothing was rewarded, a sampler that is not the trainer's model.
Left out on purpose: a rule on the reward itself (it may fall while harder prompts come in), and any automatic mending.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

Row = Mapping[str, float | None]
# What a row may hold, besides `part/<component>`; absent and None both mean: not measured in this step.
KEYS = (
    "step", "total", "loss", "grad_norm", "learning_rate", "reward_mean", "reward_spread", "no_signal", "refilled", "truncated",
    "length", "length_ended", "entropy", "clip_low", "clip_high", "kl_start", "replay", "repetitive", "missing", "gap_mean", "gap_max",
    "seconds", "reward_seconds",
)  # fmt: skip
START = 3  # the first measured steps whose mean is "the start"


class RedFlag(RuntimeError):
    """The run was stopped because going on would be worthless; the message says what was seen and what to change."""


@dataclass(frozen=True)
class Limits:
    """Where the flags are raised; every number is ours [C], and None switches a rule off.

    Shares are of rollouts, groups or tokens as the row's key says. `in_a_row` counts measured steps, for rules without a number
    of steps of their own.
    """

    truncated: float | None = 0.8  # trl#5697: 97-99 % cut at 256 tokens, reward 0 for hours, and nobody was told
    no_signal: float | None = 0.95  # one group in twenty is left to learn from
    no_signal_steps: int = 5  # with four prompts a step, two or three such steps are chance
    missing: float | None = 0.2  # beyond that the mean reward is a mean over what the judge likes to answer
    entropy: float | None = 0.1  # share of the start's entropy; below it, samples of a group hardly differ
    entropy_steps: int = 5
    kl_start: float | None = 1.0  # nats per token: by then every token is another's
    kl_steps: int = 2  # measurements: the k3 estimate has a heavy tail, so that one token can cross the line
    gap_mean: float | None = 0.1  # nats per token; half precision alone stays well below it
    grad_growth: float | None = 100.0  # times the median so far; a single spike is clipped and does no harm
    repetitive: float | None = 0.5
    in_a_row: int = 3
    # amber
    gap_max: float | None = 5.0  # nats on one token; that is a probability off by a factor of 150
    clipped: float | None = 0.2  # share of tokens, both sides together, over `in_a_row` steps
    reward_time: float | None = 0.8  # share of the step's seconds
    reward_time_steps: int = 10


def red(rows: Sequence[Row], limits: Limits, reasons: Mapping[str, int] | None = None) -> str | None:
    """The sentence of the first red flag that the newest row raises, None if it is sound. reasons: why rewards were missing."""
    row, at, few = rows[-1], f"Step {rows[-1]['step']:g}", limits.in_a_row
    for name, value in row.items():
        if value is not None and not math.isfinite(value):
            advice = (
                "Lower the learning rate, look for half precision that overflows, and go back to the last good checkpoint."
                if name in ("loss", "grad_norm")
                else "What could not be measured must be None: a mean with NaN in it hides how much is missing."
            )
            return f"{at}: {name} is {value}. {advice}"
    if limits.missing is not None and (row.get("missing") or 0) >= 1:
        return f"{at}: no rollout got a reward{_why(reasons)}. Mend the judge or the reward; there is nothing to learn from."
    if _over(rows, "missing", limits.missing, few):
        return (
            f"{at}: {row['missing']:.0%} of the rollouts have no reward, more than {limits.missing:.0%} for {few} steps{_why(reasons)}. "
            "Mend the judge or the reward: what is left is not a fair sample."
        )
    if _over(rows, "gap_mean", limits.gap_mean, 1):
        return (
            f"{at}: trainer and sampler disagree by {row['gap_mean']:.3g} nats per token (limit {limits.gap_mean:g}). The sampler holds "
            "stale or other weights, or another temperature: send it the weights before each step, and compare both on one prompt."
        )
    if _over(rows, "truncated", limits.truncated, few):
        return (
            f"{at}: {row['truncated']:.0%} of the answers were cut off before they ended, more than {limits.truncated:.0%} for {few} "
            "steps. Raise max_new_tokens, or start from a model that ends its answers."
        )
    if _over(rows, "repetitive", limits.repetitive, few):
        return (
            f"{at}: {row['repetitive']:.0%} of the answers repeat themselves, more than {limits.repetitive:.0%} for {few} steps. The "
            "reward pays for it or the rate is too high: read samples, let the reward disfavour repetition, lower the learning rate."
        )
    if limits.no_signal is not None and _lasting(rows, "no_signal", limits.no_signal_steps, lambda v: v >= limits.no_signal):
        mean = row.get("reward_mean")
        return (
            f"{at}: in {row['no_signal']:.0%} of the groups all rewards are equal, at least {limits.no_signal:.0%} for "
            f"{limits.no_signal_steps} steps, so nothing is learnt. {'' if mean is None else f'The mean reward is {mean:.3g}. '}Near its "
            "highest value the prompts are too easy or the run is done; near its lowest they are too hard. Filter them by pass rate, "
            "sample more per group, or let the reward tell more apart."
        )
    start = _start(rows, "entropy", limits.entropy_steps)
    if None not in (limits.entropy, start) and _lasting(rows, "entropy", limits.entropy_steps, lambda v: v < limits.entropy * start):
        return (
            f"{at}: the entropy is {row['entropy']:.3g} nats per token, below {limits.entropy:.0%} of the start's {start:.3g} for "
            f"{limits.entropy_steps} steps: the samples of a group hardly differ any more. If the reward is where it should be, fewer "
            "steps suffice; otherwise raise the upper clip bound, lower the learning rate, or mix in other prompts."
        )
    if _over(rows, "kl_start", limits.kl_start, limits.kl_steps):
        return (
            f"{at}: the policy is {row['kl_start']:.3g} nats per token away from the model it started from (limit {limits.kl_start:g}). "
            "Lower the learning rate, add a KL term, or look for what the reward pays that you did not mean: read samples."
        )
    usual = _usual(rows, few)
    if None not in (limits.grad_growth, usual) and _over(rows, "grad_norm", limits.grad_growth * usual, few):
        return (
            f"{at}: the gradient's norm is {row['grad_norm']:.3g}, more than {limits.grad_growth:g} times its median of {usual:.3g}, for "
            f"{few} steps. Lower the learning rate, and go back to a checkpoint from before it rose."
        )
    return None


def amber(rows: Sequence[Row], limits: Limits, reasons: Mapping[str, int] | None = None) -> dict[str, str]:
    """Notes on the newest row, as rule → sentence without the step; empty when nothing is worth a look."""
    row, notes = rows[-1], {}
    if row.get("missing"):
        notes["missing"] = f"{row['missing']:.1%} of the rollouts have no reward{_why(reasons)}; they are left out, not counted as 0."
    if _over(rows, "gap_max", limits.gap_max, 1):
        notes["gap_max"] = f"On one token trainer and sampler differ by {row['gap_max']:.3g} nats (limit {limits.gap_max:g})."
    clipped = [{"share": _sum(r.get("clip_low"), r.get("clip_high"))} for r in rows]
    if _over(clipped, "share", limits.clipped, limits.in_a_row):
        notes["clipped"] = (
            f"{clipped[-1]['share']:.0%} of the tokens are clipped, more than {limits.clipped:.0%} for {limits.in_a_row} steps: "
            "fewer updates on one batch, or a lower learning rate."
        )
    shares = [{"share": _ratio(r.get("reward_seconds"), r.get("seconds"))} for r in rows]
    if _over(shares, "share", limits.reward_time, limits.reward_time_steps):
        notes["reward_time"] = (
            f"Rewards take {shares[-1]['share']:.0%} of a step, more than {limits.reward_time:.0%} for {limits.reward_time_steps} steps: "
            "run them in parallel, shorten their time limits, or put the cheap ones before the costly ones."
        )
    return notes


def measured(rows: Sequence[Row], key: str) -> list[float]:
    """The values of `key`, oldest first, without the steps that did not measure it."""
    return [value for row in rows if (value := row.get(key)) is not None]


def _lasting(rows: Sequence[Row], key: str, steps: int, crossed: Callable[[float], bool]) -> bool:
    """Whether the newest row measured `key` and the last `steps` measured values have all crossed."""
    values = measured(rows, key)[-steps:]
    return rows[-1].get(key) is not None and len(values) == steps and all(map(crossed, values))


def _over(rows: Sequence[Row], key: str, limit: float | None, steps: int) -> bool:
    return limit is not None and _lasting(rows, key, steps, lambda value: value > limit)


def _start(rows: Sequence[Row], key: str, later: int) -> float | None:
    """Mean of the first START measured values, once `later` values stand behind them."""
    values = measured(rows, key)
    return fmean(values[:START]) if len(values) >= START + later else None


def _usual(rows: Sequence[Row], later: int) -> float | None:
    """Median gradient norm before the last `later` ones; steps without any signal have norm 0 and say nothing of what is usual."""
    before = [value for value in measured(rows, "grad_norm")[:-later] if value > 0]
    return median(before) if len(before) >= 5 else None


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _why(reasons: Mapping[str, int] | None) -> str:
    if not reasons:
        return ""
    ranked = sorted(reasons.items(), key=lambda pair: -pair[1])
    return f" ({'; '.join(f'{n} × {reason}' for reason, n in ranked[:3])}{'; …' if len(ranked) > 3 else ''})"
