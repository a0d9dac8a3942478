"""Completions from an OpenAI-compatible server (vLLM, llama.cpp, Ollama, a vendor): teachers and judges. Paper sections 2 to 4.

Requests run beside one another under one total time; what fails for a moment is tried again, and what cannot be had is None with
a reason. The key is read from the environment when it is used, and stands in no object, message or exception.
Needs the extra `teachers`. Left out on purpose: streams, tools, servers' JSON modes (not every compatible server has them), a cache.
"""

from __future__ import annotations

import asyncio
import email.utils
import importlib.util
import json
import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

LARGEST = 1 << 20  # bytes of one reply; a server that goes on for ever is left
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds between two attempts, doubling, when the server does not say
JITTER = random.Random()  # its own: waiting must not move the seeded dice of a run


@dataclass(frozen=True)
class Server:
    """A model and where it is served. The key itself is never part of it: `api_key_env` names the variable, None for servers without keys.

    request_s: one attempt, body included; total_s: all requests of one call, with their attempts and waits; attempts: per request.
    """

    base_url: str
    model: str
    api_key_env: str | None = "OPENAI_API_KEY"
    concurrency: int = 8
    attempts: int = 5
    request_s: float = 60.0
    total_s: float = 600.0
    temperature: float = 0.0
    max_tokens: int = 1024


@dataclass(frozen=True)
class Reply:
    """What the model wrote to one conversation; text is None when nothing usable came, and reason says why."""

    text: str | None
    reason: str = ""
    attempts: int = 0


def ask(server: Server, conversations: Sequence[Sequence[Mapping[str, Any]]]) -> list[Reply]:
    """One reply for each conversation, in order, within `server.total_s`; also from a notebook, where an event loop runs already.

    Dropped connections, time-outs, 408, 409, 429, 5xx and broken bodies are tried again, with doubling waits or as long as the server
    asks; a request that waits keeps its place among the concurrent ones, so a busy server is asked less. Raises ValueError for a
    bad setting and a key that is not there, ModuleNotFoundError without the extra. What a server does never raises.
    """
    for name in ("concurrency", "attempts", "request_s", "total_s", "max_tokens"):
        if not getattr(server, name) > 0:
            raise ValueError(f"{name} is {getattr(server, name)!r}; it has to be greater than 0.")
    if urlsplit(server.base_url).scheme not in ("http", "https") or not urlsplit(server.base_url).hostname:
        raise ValueError("base_url has to be the address of an OpenAI-compatible server, such as http://localhost:8000/v1.")
    key = _key(server.api_key_env)
    if importlib.util.find_spec("openai") is None:
        raise ModuleNotFoundError("Servers are asked with the package openai: pip install -c constraints.txt -e '.[teachers]'")
    if not conversations:
        return []
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task]] = []

    async def main() -> list[Reply]:
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await _ask_all(server, key, conversations)

    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(lambda: asyncio.run(main()))
        try:
            return job.result()
        except KeyboardInterrupt:  # the stop button of a notebook must not wait for the server
            for loop, task in running:
                loop.call_soon_threadsafe(task.cancel)
            raise


async def _ask_all(server: Server, key: str, conversations: Sequence[Sequence[Mapping[str, Any]]]) -> list[Reply]:
    from openai import AsyncOpenAI

    until, places = time.monotonic() + server.total_s, asyncio.Semaphore(server.concurrency)
    # Attempts and waits are ours: the client's own know neither the total time nor what to tell afterwards.
    async with AsyncOpenAI(base_url=server.base_url, api_key=key, max_retries=0, timeout=server.request_s) as client:

        async def one(messages: Sequence[Mapping[str, Any]]) -> Reply:
            async with places:
                return await _patiently(client, server, messages, until)

        return list(await asyncio.gather(*map(one, conversations)))


async def _patiently(client: Any, server: Server, messages: Sequence[Mapping[str, Any]], until: float) -> Reply:
    reason = ""
    for attempt in range(server.attempts):
        left = until - time.monotonic()
        if left <= 0:
            return Reply(None, f"the {server.total_s:g} s for all requests were over", attempt)
        try:
            async with asyncio.timeout(min(server.request_s, left)):
                return Reply(await _attempt(client, server, messages), "", attempt + 1)
        except TimeoutError:
            if left < server.request_s:
                return Reply(None, f"no answer before the {server.total_s:g} s for all requests were over", attempt + 1)
            reason, wait = f"no answer within {server.request_s:g} s", None
        except Exception as error:
            reason, again, wait = _explain(error, server)
            if not again:
                return Reply(None, reason, attempt + 1)
        if attempt + 1 < server.attempts:
            wait = wait if wait is not None else min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * JITTER.uniform(0.5, 1.5)
            if wait >= until - time.monotonic():
                return Reply(None, f"{reason}; another attempt would come after the {server.total_s:g} s for all requests", attempt + 1)
            await asyncio.sleep(wait)
    return Reply(None, f"{reason} ({server.attempts} attempts)", server.attempts)


class _Unusable(Exception):
    """A reply that came, and why it is of no use; again: whether another attempt could bring a better one."""

    def __init__(self, reason: str, again: bool):
        super().__init__(reason)
        self.again = again


async def _attempt(client: Any, server: Server, messages: Sequence[Mapping[str, Any]]) -> str:
    asked = client.chat.completions.with_streaming_response.create(
        model=server.model, messages=list(messages), temperature=server.temperature,
        max_tokens=server.max_tokens, extra_headers={"Accept-Encoding": "identity"},
    )  # fmt: skip
    # The raw body, so that its size can be bounded: the client would read an endless one into memory.
    async with asked as response:
        body = bytearray()
        async for chunk in response.iter_bytes():
            body += chunk
            if len(body) > LARGEST:
                raise _Unusable(f"the reply was longer than {LARGEST:,} bytes", again=False)
    try:
        choice = json.loads(body)["choices"][0]
        text, finish = choice["message"].get("content"), choice.get("finish_reason")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise _Unusable("the reply was no chat completion", again=True) from None
    if finish == "length":
        raise _Unusable(f"the model was cut off at max_tokens={server.max_tokens}", again=False)
    if not isinstance(text, str) or not text.strip():
        raise _Unusable(f"the model wrote nothing (finish_reason {finish!r})", again=False)
    return text


def _explain(error: Exception, server: Server) -> tuple[str, bool, float | None]:
    """(reason, whether to try again, seconds that the server asked to wait); raises what no server can cause."""
    import httpx
    import openai

    if isinstance(error, _Unusable):
        return str(error), error.again, None
    if isinstance(error, openai.APITimeoutError | httpx.TimeoutException):
        return f"no answer within {server.request_s:g} s", True, None
    if isinstance(error, openai.APIStatusError):
        code, told = error.status_code, _said(error.body, server)
        again = code in (408, 409, 429) or code >= 500
        return f"HTTP {code}{told and f': {told}'}", again, _asked_wait(error.response.headers.get("retry-after"))
    if isinstance(error, openai.APIConnectionError | httpx.HTTPError | httpx.StreamError):
        where = urlsplit(server.base_url)  # host and port only: an address can hold a password
        cause = error.__cause__ or error
        return f"no connection to {where.hostname}{f':{where.port}' if where.port else ''} ({type(cause).__name__})", True, None
    raise error


def _said(body: Any, server: Server) -> str:
    """What an error's body says, in at most 120 characters on one line, without the key: servers like to quote one they refuse."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    told = inner.get("message", inner) if isinstance(inner, dict) else inner
    told = " ".join(str(told or "").split())
    return (told.replace(_key(server.api_key_env), "***") if server.api_key_env else told)[:120]


def _asked_wait(header: str | None) -> float | None:
    """Seconds in a Retry-After header: a number, or a date; None when there is none that can be read."""
    if header is None:
        return None
    if re.fullmatch(r"\s*\d{1,9}(\.\d+)?\s*", header):
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _key(name: str | None) -> str:
    if name is None:
        return "none"  # the client insists on one
    key = os.environ.get(name, "").strip()
    if not key:
        raise ValueError(
            f"The server's key is taken from the environment variable {name}, which is not set. Set it, or api_key_env=None for a server "
            "that wants no key."
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError(f"The environment variable {name} holds no key: only ASCII characters without spaces can be sent in a header.")
    return key
