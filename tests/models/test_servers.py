"""Asking an OpenAI-compatible server, a real one on this machine: what fails is missing with its reason, within bounded time."""

import asyncio
import email.utils
import os
import random
import re
import signal
import threading
import time
from dataclasses import replace

import pytest
from local_server import serving

from nbcore.models import servers
from nbcore.models.servers import Reply, Server, ask

KEY = "sk-test-4711abcdefghijk"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(servers, "FIRST_WAIT", 0.02)


def at(server, **changed):
    return replace(Server(server.url, "m", request_s=0.6, total_s=10.0, attempts=3), **changed)


def said(*prompts):
    return [[{"role": "user", "content": p}] for p in prompts]


def test_replies_come_in_the_order_of_the_questions_and_no_more_than_asked_at_once():
    def behave(prompt, n):
        time.sleep(0.05 if int(prompt) % 2 else 0.0)
        return f"reply {prompt}"

    with serving(behave) as server:
        replies = ask(at(server, concurrency=3), said(*map(str, range(20))))
        assert [r.text for r in replies] == [f"reply {i}" for i in range(20)]
        assert 2 <= server.most <= 3
        assert ask(at(server), []) == []


PASSING = ["!drop", "!truncated", "!html", "!slow", {"status": 500}, {"status": 503}, {"status": 429}, {"status": 408}]


@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_what_fails_once_is_tried_again(fault):
    with serving(lambda prompt, n: fault if n == 0 else "good") as server:
        assert ask(at(server), said("q")) == [Reply("good", "", 2)]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("!drop", r"no connection to 127.0.0.1:\d+ \(\w+\) \(3 attempts\)"),
        ("!truncated", r"no chat completion \(3 attempts\)"),
        ("!slow", r"no answer within 0.6 s \(3 attempts\)"),
        ("!drip", r"no answer within 0.6 s \(3 attempts\)"),
        ({"status": 500, "message": "out of memory"}, r"HTTP 500: out of memory \(3 attempts\)"),
        ({"status": 429}, r"HTTP 429: no \(3 attempts\)"),
    ],
    ids=str,
)
def test_what_fails_each_time_is_missing_with_its_reason_and_the_others_are_not_touched(fault, reason):
    with serving(lambda prompt, n: fault if prompt == "bad" else "good") as server:
        good, bad, other = ask(at(server), said("good", "bad", "other"))
    assert (good.text, other.text) == ("good", "good")
    assert bad.text is None and bad.attempts == 3
    assert re.search(f"{reason}$", bad.reason), bad.reason


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"status": 400, "message": "unknown model"}, "HTTP 400: unknown model"),
        ({"status": 401}, "HTTP 401: no"),
        ({"status": 404}, "HTTP 404: no"),
        ("!endless", "longer than 1,048,576 bytes"),
        ({"content": None}, "the model wrote nothing"),
        ({"content": "  \n"}, "the model wrote nothing"),
        ({"content": "Score: 1", "finish_reason": "length"}, "cut off at max_tokens=1024"),
    ],
    ids=str,
)
def test_what_another_attempt_cannot_mend_is_asked_once(fault, reason):
    with serving(lambda prompt, n: fault) as server:
        [reply] = ask(at(server, request_s=5.0), said("q"))
        assert reply.text is None and reason in reply.reason and reply.attempts == 1 == len(server.asked)


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_server_that_says_how_long_to_wait_is_obeyed(form):
    def behave(prompt, n):
        later = "0.5" if form == "seconds" else email.utils.formatdate(time.time() + 2, usegmt=True)
        return {"status": 429, "headers": {"Retry-After": later}} if n == 0 else "good"

    with serving(behave) as server:
        assert ask(at(server), said("q"))[0].text == "good"
        first, second = (moment for _, moment in server.asked)
        assert second - first >= (0.5 if form == "seconds" else 0.9)  # a date has whole seconds


def test_a_wait_that_does_not_fit_into_the_total_time_is_not_begun():
    with serving(lambda prompt, n: {"status": 429, "headers": {"Retry-After": "3600"}}) as server:
        began = time.monotonic()
        [reply] = ask(at(server), said("q"))
    assert time.monotonic() - began < 60 and reply.attempts == 1
    assert reply.reason == "HTTP 429: no; another attempt would come after the 10 s for all requests"


def test_the_total_time_holds_for_all_requests_together_however_many_wait():
    with serving(lambda prompt, n: "good" if prompt == "0" else "!slow") as server:
        began = time.monotonic()
        replies = ask(at(server, total_s=1.0, request_s=0.7, concurrency=2), said(*map(str, range(40))))
    assert time.monotonic() - began < 10
    assert replies[0].text == "good" and all(r.text is None for r in replies[1:])
    assert {r.reason for r in replies[10:]} == {"the 1 s for all requests were over"} and replies[39].attempts == 0


def test_a_server_that_is_not_there_is_missing_too():
    with serving(lambda prompt, n: "good") as server:
        gone = at(server)
    [reply] = ask(gone, said("q"))
    assert reply.text is None and reply.reason.startswith("no connection to 127.0.0.1")


def test_the_key_comes_from_the_environment_and_goes_nowhere_else(monkeypatch):
    def behave(prompt, n):
        return {"status": 401, "message": "x" * 105 + f" bad key {KEY}"} if prompt == "bad" else "good"

    with serving(behave) as server:
        judge = at(server)
        bad, good = ask(judge, said("bad", "good"))
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
        assert KEY[:5] not in repr((bad, good, judge)) and "***" in bad.reason
        assert ask(at(server, api_key_env=None), said("good"))[0].text == "good"
        assert KEY not in server.headers[-1]["Authorization"]
        for value in ("", "  ", f"{KEY}\nX-Other: 1", f"{KEY}é"):
            monkeypatch.setenv("OPENAI_API_KEY", value)
            with pytest.raises(ValueError, match="OPENAI_API_KEY") as raised:
                ask(judge, said("q"))
            assert KEY not in str(raised.getrepr())
        monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")  # as `cat file` gives it
        assert ask(judge, said("good"))[0].text == "good"


def test_a_password_in_the_address_is_not_told():
    [reply] = ask(Server("http://me:hunter2@127.0.0.1:9/v1", "m", attempts=1), said("q"))
    assert reply.reason.startswith("no connection to 127.0.0.1:9") and "hunter2" not in reply.reason
    with pytest.raises(ValueError, match="address") as raised:
        ask(Server("me:hunter2@127.0.0.1", "m"), said("q"))
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("setting", ["concurrency", "attempts", "request_s", "total_s", "max_tokens"])
def test_settings_without_sense_are_refused(setting):
    with pytest.raises(ValueError, match=f"{setting} is 0"):
        ask(Server("http://127.0.0.1:9/v1", "m", **{setting: 0}), said("q"))


def test_it_can_be_asked_where_an_event_loop_runs_and_leaves_seeded_dice_alone():
    with serving(lambda prompt, n: {"status": 500} if n == 0 else "good") as server:

        async def notebook():
            return ask(at(server), said("q"))

        random.seed(3)
        assert asyncio.run(notebook())[0].text == "good"
        drawn = random.random()
    random.seed(3)
    assert drawn == random.random()


def test_the_stop_button_does_not_wait_for_the_server():
    with serving(lambda prompt, n: "!slow") as server:
        threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            ask(at(server, request_s=15.0, total_s=15.0), said("q"))
        assert time.monotonic() - began < 12
