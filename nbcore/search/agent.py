"""The agent loop: think, call a tool, read, until the model answers without a call. Batched, tokens in and tokens out.

Paper section 6. A turn's sampled tokens are kept as they are and the tool's words are put behind them, so an episode's
`ids` are exactly what the model saw and wrote and its `mask` is 1 on what it wrote: reinforcement can use them unchanged.
A call that cannot be read gets an error as its result and is counted; the episode goes on, as with a real tool server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbcore.chat import template
from nbcore.chat.masks import encode_prompt
from nbcore.chat.toolcalls import ToolCall, parse, validate
from nbcore.models.generate import generate

UNREADABLE = "The call could not be read."


@dataclass
class Episode:
    """One question worked on. `calls` counts good calls, `malformed` bad ones; `answer` is None when it never answered."""

    prompt: list[int]
    ids: list[int]
    mask: list[int]
    texts: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    calls: int = 0
    malformed: int = 0
    answer: str | None = None
    stopped: str = ""  # "answered", "truncated" (a turn did not end), "turns" (too many), "room" (context full)


def play(
    model: Any,
    tokenizer: Any,
    conversations: Sequence[Sequence[Mapping[str, Any]]],
    tools: Sequence[Mapping[str, Any]],
    call: Callable[[int, ToolCall], str],
    max_turns: int = 6,
    max_new_tokens: int = 64,
    **sampling: Any,
) -> list[Episode]:
    """Play one episode for each conversation. `call(i, tool_call)` runs a valid call of episode i and gives the tool's text.

    sampling goes to `generate` (temperature, top_p, seed, batch_size). A turn's seed is the given seed plus 7919 × turn.
    """
    episodes = []
    for conversation in conversations:
        prompt = encode_prompt(tokenizer, conversation, tools=tools)
        episodes.append(Episode(prompt, list(prompt), [0] * len(prompt)))
    seed, room = sampling.pop("seed", 0), model.config.max_position_embeddings
    for turn in range(max_turns):
        going = [i for i, e in enumerate(episodes) if not e.stopped]
        for i in [i for i in going if len(episodes[i].ids) + max_new_tokens > room]:
            episodes[i].stopped = "room"
        going = [i for i in going if not episodes[i].stopped]
        said = generate(model, tokenizer, [episodes[i].ids for i in going], max_new_tokens, seed=seed + 7919 * turn, **sampling)
        for i, completion in zip(going, said, strict=True):
            episode = episodes[i]
            episode.ids += completion.ids
            episode.mask += [1] * len(completion.ids)
            episode.texts.append(completion.text)
            _after(tokenizer, episode, completion.ended, tools, lambda made, i=i: call(i, made))
    for episode in episodes:
        episode.stopped = episode.stopped or "turns"
    return episodes


def _after(tokenizer: Any, episode: Episode, ended: bool, tools: Sequence, call: Callable[[ToolCall], str]) -> None:
    if not ended:
        episode.stopped = "truncated"
        return
    turn = parse(episode.texts[-1])
    if not turn.calls and not turn.malformed:
        episode.answer, episode.stopped = turn.content.strip(), "answered"
        return
    results = []
    for made in turn.calls:
        reason = validate(made, tools)
        episode.calls += reason is None
        episode.malformed += reason is not None
        results.append(call(made) if reason is None else reason)
    episode.malformed += len(turn.malformed)
    results += [UNREADABLE] * len(turn.malformed)
    episode.results += results
    heard = tokenizer.encode(between(results), add_special_tokens=False)
    episode.ids += heard
    episode.mask += [0] * len(heard)


def between(results: Sequence[str]) -> str:
    """What the template puts between the end of a calling turn and the next: the tools' results and the generation prompt."""
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    said += [{"role": "tool", "content": result} for result in results]
    return template.render(said, add_generation_prompt=True).rpartition(f"a{template.END_OF_TURN}")[2]
