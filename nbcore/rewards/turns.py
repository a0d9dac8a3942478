"""Rewards of an agent's episode: the outcome, and each turn's tool call and information gain. Paper section 6.

"Tool-call accuracy" and "information gain" are rewarded by turn [S], repeated action errors are penalised [P]; what each is worth is our
choice [C]. `training.advantages` turns the turns' rewards into returns-to-go with a baseline that does not depend on when a trajectory
stopped. Only the last stretch of an episode is trained on: earlier ones were seen under another context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nbcore.chat.toolcalls import ToolCall
from nbcore.rewards.rollouts import Prompt, Rollout
from nbcore.search.agent import Budget, Episode, play, policy
from nbcore.search.context import Context, everything
from nbcore.search.critic import Judged, judge
from nbcore.search.graph import Fact
from nbcore.search.tools import Observation


@dataclass(frozen=True)
class Worth:
    """What a turn earns: `gain` for each fact of the plan that it shows first, `useless` for a call that showed nothing new, `wrong` for
    one that could not be run (malformed, refused, repeated, an error), `unsound` for one about something that nobody has named."""

    gain: float = 0.1
    useless: float = -0.1
    wrong: float = -0.2
    unsound: float = -0.1

    def of(self, turn: Judged) -> float:
        """The reward of one turn; an answer earns nothing here, it is paid by the outcome."""
        if turn.answers:
            return 0.0
        if not turn.accurate:
            return self.wrong
        return (self.gain * turn.gain if turn.new else self.useless) + (0.0 if turn.sound else self.unsound)


def episodes(
    conversation: Callable[[Any], Sequence[dict[str, Any]]], tools: Sequence[dict[str, Any]], call: Callable[[Any, ToolCall], Observation],
    budget: Budget, context: Context = everything, workers: int = 1, **sampling: Any,
) -> Callable[[Any, Any, Sequence[Prompt], int], list[Rollout]]:  # fmt: skip
    """How `training.grpo` makes rollouts of an agent. call(item, tool_call) runs a call in that item's world.

    A rollout's prompt and ids are its episode's last stretch; see `rollout`.
    """

    def rolled(model: Any, tokenizer: Any, prompts: Sequence[Prompt], seed: int) -> list[Rollout]:
        asked = [conversation(p.item) for p in prompts]
        done = play(policy(model, tokenizer, top_p=1.0, **sampling), tokenizer, asked, tools, lambda i, made: call(prompts[i].item, made),
                    budget, context, seed, workers)  # fmt: skip
        return [rollout(p.item, episode) for p, episode in zip(prompts, done, strict=True)]

    return rolled


def trained(episode: Episode) -> int:
    """Which stretch is trained on: the last one in which the policy wrote."""
    return max((turn.stretch for turn in episode.turns), default=len(episode.stretches) - 1)


def rollout(item: Any, episode: Episode) -> Rollout:
    """An episode as rewards and training see it. One whose last turn was cut off has not ended, and neither has one without a turn."""
    last = episode.stretches[trained(episode)]
    ended = bool(episode.turns) and not episode.turns[-1].cut
    text = episode.turns[-1].text if episode.turns else ""
    return Rollout(item, last.prompt, last.ids, text, ended, last.mask, last.logprobs, episode)


def outcome(right: Callable[[Any, str], bool | None]) -> Callable[[Sequence[Rollout]], list[float | None]]:
    """A reward of 1 for the right answer, 0 for a wrong or absent one. right(item, answer) is None where it could not tell."""

    def reward(rollouts: Sequence[Rollout]) -> list[float | None]:
        told = [False if r.episode.answer is None else right(r.item, r.episode.answer) for r in rollouts]
        return [None if t is None else float(t) for t in told]

    return reward


def by_turn(plan: Callable[[Any], Sequence[Fact]], worth: Worth | None = None) -> Callable[[Sequence[Rollout]], list[list[float]]]:
    """The rewards of the turns of each rollout's last stretch, as `grpo.train` takes them (`turn_rewards`)."""
    price = worth or Worth()

    def rewards(rollouts: Sequence[Rollout]) -> list[list[float]]:
        given = []
        for r in rollouts:
            last = trained(r.episode)
            judged = judge(r.episode, plan(r.item))
            given.append([price.of(j) for j, turn in zip(judged, r.episode.turns, strict=True) if turn.stretch == last])
        return given

    return rewards


@dataclass(frozen=True)
class Tally:
    """Turns that called tools, over episodes; and how many of them were wrong, or brought nothing new."""

    calling: int
    wrong: int
    useless: int

    @property
    def bad_share(self) -> float | None:
        """Wrong or useless among all; None where there were none."""
        return (self.wrong + self.useless) / self.calling if self.calling else None


def tally(done: Sequence[Episode]) -> Tally:
    """Count the calling turns of episodes."""
    judged = [turn for episode in done for turn in judge(episode) if not turn.answers]
    wrong = sum(not turn.accurate for turn in judged)
    return Tally(len(judged), wrong, sum(turn.accurate and not turn.new for turn in judged))
