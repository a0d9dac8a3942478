"""A real OpenAI-compatible server on this machine, that misbehaves when a test asks for it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LocalServer(ThreadingHTTPServer):
    """`behave(prompt, n)` says how the n-th request (from 0) with this prompt is answered: a text, or one of the forms below.

    "text" | {"content": …, "finish_reason": …} | {"status": 429, "headers": {…}, "message": …} | "!drop" | "!truncated" | "!slow"
    | "!drip" (a byte now and then) | "!endless" | "!html"
    """

    daemon_threads = True

    def __init__(self, behave: Callable[[str, int], Any]):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behave, self.lock, self.stopping = behave, threading.Lock(), threading.Event()
        self.asked: list[tuple[str, float]] = []  # (prompt, time)
        self.headers: list[dict[str, str]] = []
        self.now = self.most = 0  # requests being answered at once
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients that hang up are what these tests are about


class Handler(BaseHTTPRequestHandler):
    server: LocalServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt, server = body["messages"][-1]["content"], self.server
        with server.lock:
            n = sum(asked == prompt for asked, _ in server.asked)
            server.asked.append((prompt, time.monotonic()))
            server.headers.append(dict(self.headers))
            server.now += 1
            server.most = max(server.most, server.now)
        try:
            self.answer(server.behave(prompt, n))
        finally:
            with server.lock:
                server.now -= 1

    def answer(self, how: Any) -> None:
        if how == "!drop":
            return self.connection.close()
        if how == "!slow":
            self.server.stopping.wait(20)
            return None
        if how in ("!drip", "!endless"):
            self.send(200, {}, length=None)
            while not self.server.stopping.wait(0.02 if how == "!drip" else 0):
                self.wfile.write(b" " * (1 if how == "!drip" else 65536))
            return None
        if how == "!html":
            return self.send(200, {}, b"<html>It works!</html>")
        if isinstance(how, dict) and "status" in how:
            said = {"error": {"message": how.get("message", "no"), "type": "x"}}
            return self.send(how["status"], how.get("headers", {}), json.dumps(said).encode())
        message = how if isinstance(how, dict) else {"content": how}
        choice = {"index": 0, "message": {"role": "assistant", "content": message.get("content")}}
        choice["finish_reason"] = message.get("finish_reason", "stop")
        data = json.dumps({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()
        if how == "!truncated":
            return self.send(200, {}, data[: len(data) // 2])
        return self.send(200, {}, data)

    def send(self, status: int, headers: dict[str, str], data: bytes = b"", length: bool | None = True) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | headers).items():
            self.send_header(name, value)
        if length:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving(behave: Callable[[str, int], Any]) -> Iterator[LocalServer]:
    server = LocalServer(behave)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()
