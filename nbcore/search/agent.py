"""The agent loop: think, call a tool, read, until the policy answers without a call. Batched, tokens in and tokens out.

One loop for synthesis, reinforcement and evaluation. Paper section 6. A turn's sampled tokens are kept as they are and the tools' words
are put behind them, so a stretch of an episode is exactly what the policy saw and wrote, and its `mask` is 1 on what it wrote:
reinforcement can use it unchanged. Where a context drops turns (`context`), a new stretch begins. A call that cannot be read, does not
fit its schema or is made too often gets an error as its result and is counted; a turn that was cut off is never run. When a budget is
spent the policy may be made to answer: its last turn is begun for it [C].
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from nbcore.chat import template
from nbcore.chat.masks import encode_prompt
from nbcore.chat.toolcalls import ToolCall, parse
from nbcore.models.generate import Completion, generate
from nbcore.search.context import Context, Turn, everything
from nbcore.search.tools import Observation, cut

UNREADABLE = "The call could not be read."
FORCED = "<think>\nNo more calls.\n</think>\n\n"  # how a forced last turn begins; the policy writes the answer behind it
MARKS = re.compile("|".join(map(re.escape, (*template.MARKS, *template.TAGS))))
SHORTEST = 200  # characters below which no observation is cut any more
OFTEN = "This call was made before, {count} times. Look for something else, or answer."


@dataclass(frozen=True)
class Policy:
    """What writes turns: `write(prompts, most new tokens, seed)` gives one Completion each; room: positions for a prompt and a turn."""

    write: Callable[[Sequence[Sequence[int]], int, int], list[Completion]]
    room: int


def policy(model: Any, tokenizer: Any, **sampling: Any) -> Policy:
    """A transformers model as a policy. sampling goes to `generate` (temperature, top_p, batch_size)."""

    def write(prompts: Sequence[Sequence[int]], new: int, seed: int) -> list[Completion]:
        return generate(model, tokenizer, prompts, new, seed=seed, **sampling)

    return Policy(write, model.config.max_position_embeddings)


@dataclass(frozen=True)
class Budget:
    """What an episode may take. None: no limit.

    turns: of the policy; new_tokens: of one turn; tokens: the policy's and the tools' together, without the prompt; seconds: wall, from
    the start of `play`; repeats: how often the same call is run; the next ones are told so, and the third of them in a row ends the search.
    forced: with which text a last turn is begun when turns, tokens, seconds, repeats or room are spent; None: there is no such turn.
    """

    turns: int = 6
    new_tokens: int = 64
    tokens: int | None = None
    seconds: float | None = None
    repeats: int | None = None
    forced: str | None = None


@dataclass
class Stretch:
    """Tokens in one context: the prompt, then what the policy wrote (mask 1, with log-probabilities) and heard (mask 0, 0.0)."""

    prompt: list[int]
    ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    def add(self, ids: Sequence[int], logprobs: Sequence[float] | None = None) -> None:
        """Append written tokens (with logprobs) or heard ones (None)."""
        self.ids += ids
        self.mask += [int(logprobs is not None)] * len(ids)
        self.logprobs += [0.0] * len(ids) if logprobs is None else logprobs

    @property
    def all(self) -> list[int]:
        return self.prompt + self.ids


@dataclass
class Episode:
    """One question worked on. `answer` is None when it never answered; `seconds` is the time its tools took.

    stopped: answered, truncated (a turn did not end), turns, tokens, time, repeats (of one call), room (context full). forced: whether
    the last turn was begun for it; then `stopped` says what was spent.
    """

    conversation: Sequence[Mapping[str, Any]]
    stretches: list[Stretch]
    turns: list[Turn] = field(default_factory=list)
    answer: str | None = None
    stopped: str = ""
    forced: bool = False
    seconds: float = 0.0
    _since: int = 0  # first turn that the context still shows
    _note: str = ""
    _made: Counter = field(default_factory=Counter)
    _again: int = 0  # turns in a row that only repeated

    @property
    def calls(self) -> int:
        """Calls that were run and fitted their schema."""
        return sum(len(t.calls) - t.repeated - sum(seen.error == "invalid" for seen in t.observations) for t in self.turns)

    @property
    def malformed(self) -> int:
        """Calls that could not be read or did not fit their schema."""
        return sum(t.malformed + sum(seen.error == "invalid" for seen in t.observations) for t in self.turns)

    @property
    def results(self) -> list[str]:
        return [seen.text for turn in self.turns for seen in turn.observations]

    @property
    def tokens(self) -> int:
        """Written and heard, over all stretches."""
        return sum(len(stretch.ids) for stretch in self.stretches)


def play(
    policy: Policy, tokenizer: Any, conversations: Sequence[Sequence[Mapping[str, Any]]], tools: Sequence[Mapping[str, Any]],
    call: Callable[[int, ToolCall], Observation], budget: Budget | None = None, context: Context = everything, seed: int = 0,
    workers: int = 1,
) -> list[Episode]:  # fmt: skip
    """Play one episode for each conversation. `call(i, tool_call)` runs a call of episode i, for instance with a Toolbox; it never raises.

    tools: the schemas, as the prompt shows them. workers: calls that run beside one another, for tools that wait. A turn's seed is the
    given seed plus 7919 × turn.
    """
    budget, began = budget or Budget(), time.perf_counter()
    episodes = [Episode(c, [Stretch(encode_prompt(tokenizer, c, tools=tools))]) for c in conversations]
    opening = tokenizer.encode(budget.forced, add_special_tokens=False) if budget.forced else []
    reserve = len(opening) + budget.new_tokens if opening else 0
    for turn in range(budget.turns):
        going = [i for i, e in enumerate(episodes) if not e.stopped]
        for i in going:
            _renew(tokenizer, episodes[i], tools, context)
            episodes[i].stopped = _spent(episodes[i], budget, policy.room - reserve, time.perf_counter() - began)
        going = [i for i in going if not episodes[i].stopped]
        if not going:
            break
        said = policy.write([episodes[i].stretches[-1].all for i in going], budget.new_tokens, seed + 7919 * turn)
        asking = [i for i, completion in zip(going, said, strict=True) if _take(episodes[i], completion)]
        _run(episodes, asking, call, budget, workers)
        for i in asking:
            _hear(tokenizer, episodes[i], budget, policy.room - reserve)
    for episode in episodes:
        episode.stopped = episode.stopped or "turns"
    last = [e for e in episodes if opening and e.stopped not in ("answered", "truncated")]
    last = [e for e in last if len(e.stretches[-1].all) + reserve <= policy.room]  # a prompt may leave no room for a single turn
    for episode in last:
        episode.stretches[-1].add(opening)
        episode.forced = True
    said = policy.write([e.stretches[-1].all for e in last], budget.new_tokens, seed + 7919 * budget.turns) if last else []
    for episode, completion in zip(last, said, strict=True):
        _take(episode, completion, answering=True)
    return episodes


def _spent(episode: Episode, budget: Budget, room: int, seconds: float) -> str:
    """Which limit lets this episode begin no further turn; "" for none."""
    if episode._again >= 3:
        return "repeats"
    if budget.tokens is not None and episode.tokens + budget.new_tokens > budget.tokens:
        return "tokens"
    if budget.seconds is not None and seconds > budget.seconds:
        return "time"
    return "room" if len(episode.stretches[-1].all) + budget.new_tokens > room else ""


def _take(episode: Episode, completion: Completion, answering: bool = False) -> bool:
    """Write one turn down; True if it called tools. answering: a forced turn, whose calls are not run."""
    stretch = episode.stretches[-1]
    start = len(stretch.ids)
    stretch.add(completion.ids, completion.logprobs)
    taken = parse(completion.text)
    turn = Turn(completion.text, taken.reasoning or "", stretch=len(episode.stretches) - 1, start=start, end=len(stretch.ids))
    episode.turns.append(turn)
    if not completion.ended:
        turn.cut, episode.stopped = True, episode.stopped or "truncated"
        return False
    turn.malformed = len(taken.malformed)
    if not taken.calls and not taken.malformed:
        episode.answer, episode.stopped = taken.content.strip(), episode.stopped or "answered"
        return False
    turn.calls = [] if answering else taken.calls
    return True


def _run(
    episodes: Sequence[Episode], asking: Sequence[int], call: Callable[[int, ToolCall], Observation], budget: Budget, workers: int
) -> None:
    """Run the newest calls of the asking episodes; an episode's own calls keep their order."""

    def of(i: int) -> None:
        episode = episodes[i]
        turn = episode.turns[-1]
        for made in turn.calls:
            same = json.dumps([made.name, made.arguments], sort_keys=True)
            count = episode._made[same]
            if budget.repeats is not None and count >= budget.repeats:
                turn.repeated += 1
                turn.observations.append(Observation(OFTEN.format(count=count), "repeated"))
            else:
                turn.observations.append(call(i, made))
                episode._made[same] += turn.observations[-1].error != "invalid"
        episode.seconds += sum(seen.seconds for seen in turn.observations)
        turn.observations += [Observation(UNREADABLE, "unreadable")] * turn.malformed
        if turn.calls:  # a turn that could not be read is no progress either
            episode._again = episode._again + 1 if turn.repeated == len(turn.calls) else 0

    if workers == 1 or len(asking) < 2:
        for i in asking:
            of(i)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(of, asking))


def _hear(tokenizer: Any, episode: Episode, budget: Budget, room: int) -> None:
    """Put the observations behind the turn, the long ones cut so that the next turn has its room and its tokens."""
    stretch, seen = episode.stretches[-1], episode.turns[-1].observations
    left = room - len(stretch.all) - budget.new_tokens
    left = left if budget.tokens is None else min(left, budget.tokens - episode.tokens - budget.new_tokens)
    heard = tokenizer.encode(between([one.text for one in seen]), add_special_tokens=False)
    while len(heard) > left and max(len(one.text) for one in seen) > SHORTEST:
        longest = max(range(len(seen)), key=lambda n: len(seen[n].text))
        text = seen[longest].text
        keep = max(SHORTEST // 2, min(len(text) * 3 // 4, int(len(text) * max(left, 0) / len(heard)) - 60))
        seen[longest] = replace(seen[longest], text=cut(text, keep))
        heard = tokenizer.encode(between([one.text for one in seen]), add_special_tokens=False)
    stretch.add(heard)


def _renew(tokenizer: Any, episode: Episode, tools: Sequence[Mapping[str, Any]], context: Context) -> None:
    """Begin a new stretch where the context asks for one, just before the next turn."""
    stretch, shown = episode.stretches[-1], episode.turns[episode._since :]
    kept = context(_asked(episode.conversation), shown, episode._note) if shown else None
    if kept is None:
        return
    newest = shown[len(shown) - kept.turns :]
    if len(newest) < kept.turns or newest and newest[0].stretch != len(episode.stretches) - 1:
        raise ValueError(f"A context asked to keep {kept.turns} turns; it may keep those that were written since it last replaced any.")
    tail = stretch.ids[newest[0].start :] if newest else []
    prompt = encode_prompt(tokenizer, _with_note(episode.conversation, kept.note), tools=tools)
    episode.stretches.append(Stretch(prompt + tail))
    episode._since, episode._note = len(episode.turns) - kept.turns, kept.note


def _asked(conversation: Sequence[Mapping[str, Any]]) -> str:
    return next((m["content"] for m in reversed(conversation) if m["role"] == "user"), "")


def _with_note(conversation: Sequence[Mapping[str, Any]], note: str) -> list[Mapping[str, Any]]:
    """The conversation with a note behind the last user's words."""
    said = list(conversation)
    at = max((i for i, m in enumerate(said) if m["role"] == "user"), default=None)
    if note and at is not None:
        said[at] = {**said[at], "content": f"{said[at]['content']}\n\n{note}"}
    return said


def between(results: Sequence[str]) -> str:
    """What the template puts between the end of a calling turn and the next: the tools' results and the generation prompt."""
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    said += [{"role": "tool", "content": harmless(result)} for result in results]
    return template.render(said, add_generation_prompt=True).rpartition(f"a{template.END_OF_TURN}")[2]


def harmless(text: str) -> str:
    """A tool's text in which no mark of the template stands as such: a page must not be able to end its turn and begin another."""
    return MARKS.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)
