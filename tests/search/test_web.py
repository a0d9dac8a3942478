"""The web tools against a real server on this machine that misbehaves, and against addresses that lead where nothing may be read."""

import gzip
import json
import logging
import shutil
import socket
import socketserver
import ssl
import struct
import subprocess
import threading
import time
import tracemalloc
from contextlib import contextmanager
from dataclasses import replace
from email.utils import formatdate
from itertools import chain, repeat

import certifi
import pytest

from nbcore.chat.toolcalls import ToolCall
from nbcore.search import web
from nbcore.search.tools import NOTHING, Toolbox
from nbcore.search.web import Limits, public, visit, web_tools

KEY = "sk-a-secret-of-nobody"
PUBLIC = "93.184.215.14"
SMALL = Limits(connect=0.3, read=0.2, total=0.6, retries=1, pause=0.01, longest_pause=0.3, size=20_000, redirects=3)
CLOSE, RESET = object(), object()  # steps of an answer: close the connection, or break it off

Toolbox([visit(SMALL)])(ToolCall("visit", {"url": ""}))  # the first call of all loads the checker of schemas, which takes its time


class Site(socketserver.ThreadingTCPServer):
    """A server that says exactly what a test wants. answers: path → function of (site, number of the request from 0) → steps.

    Steps are bytes to send, seconds to wait, CLOSE or RESET; after the last the connection is closed.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Connection)
        self.answers, self.asked, self.lock, self.stopping = {}, [], threading.Lock(), threading.Event()
        self.host, self.port = "127.0.0.1", self.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.limits = replace(SMALL, allowed_hosts=frozenset({("127.0.0.1", self.port)}))

    def handle_error(self, request, client_address):
        pass  # clients that hang up are what these tests are about


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        head = b"".join(iter(self.rfile.readline, b"\r\n"))
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
        self.rfile.read(length)
        path = head.split()[1].decode()
        with self.server.lock:
            n = sum(seen.split()[1].decode() == path for seen in self.server.asked)
            self.server.asked.append(head)
        answer = self.server.answers.get(path, lambda *_: [b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"])
        for step in answer(self.server, n):
            if step is CLOSE or (isinstance(step, float) and self.server.stopping.wait(step)):
                return
            if step is RESET:
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return self.request.close()
            if isinstance(step, bytes):
                self.wfile.write(step)


@contextmanager
def serving():
    site = Site()
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        site.stopping.set()
        site.shutdown()
        site.server_close()
        thread.join()


@pytest.fixture
def site():
    with serving() as made:
        yield made


def reply(body="", status="200 OK", kind="text/html; charset=utf-8", **headers):
    """A well-formed answer; what makes it otherwise is given as headers (None: left out)."""
    data = body if isinstance(body, bytes) else body.encode()
    said = {"content-type": kind, "content-length": len(data)} | {k.replace("_", "-"): v for k, v in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in said.items() if value is not None)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode("latin-1") + data


def to(place):
    return lambda site, n: [reply(status="302 Found", location=place.format(port=site.port))]


def says(*steps):
    return lambda site, n: steps


def forever(piece, *first):
    return lambda site, n: chain(first, repeat(piece) if isinstance(piece, bytes) else chain.from_iterable(repeat(piece)))


def read(site, path="/page", limits=None):
    """What the model sees of a page, through the box that counts; and that the box counted it, and that no fault was behind it."""
    box = Toolbox([visit(limits or site.limits)])
    started = time.monotonic()
    seen = box(ToolCall("visit", {"url": site.url + path if path.startswith("/") else path}))
    assert time.monotonic() - started < (limits or site.limits).total + 0.7
    assert seen.error != "fault", seen.text
    assert dict(box.errors) == ({} if seen.error is None else {("visit", seen.error): 1})
    assert seen.text.startswith("Error: ") == (seen.error is not None)
    return seen


BOMB = gzip.compress(b" " * 30_000_000)
WORDS = "<p>A page about otters.</p>"
MISBEHAVING = {
    "the headers never come": ("timeout", says(9.0)),
    "the headers come a byte now and then": ("timeout", forever([b"x", 0.05], b"HTTP/1.1 200 OK\r\nx: ")),
    "the body never comes": ("timeout", says(reply(content_length=10), 9.0)),
    "the body comes a byte now and then": ("timeout", forever([b"x", 0.05], reply(content_length=100_000))),
    "informational answers never end": ("timeout", forever([b"HTTP/1.1 100 Continue\r\n\r\n", 0.01])),
    "the server has a fault": ("http 500", says(reply("oh", "500 Internal Server Error"))),
    "the server stays overloaded": ("http 503", says(reply("oh", "503 Service Unavailable"))),
    "there is no such page": ("http 404", says(reply("no", "404 Not Found"))),
    "the server wants us to wait for an hour": ("http 429", says(reply("", "429 Too Many", retry_after="3600"))),
    "the server wants us to wait until next year": ("http 429", says(reply("", "429 Too Many", retry_after=formatdate(4e9, usegmt=True)))),
    "the server wants us to wait for nonsense": ("http 429", says(reply("", "429 Too Many", retry_after="Thu, 99 Foo 1e9 NaN"))),
    "the server switches protocols": ("broken answer", says(reply("", "101 Switching Protocols", upgrade="x", connection="upgrade"))),
    "the body never ends and is blank": ("too large", forever(b" " * 4096, reply(content_length=None))),
    "a small body unpacks to a huge one": ("too large", says(reply(BOMB, content_encoding="gzip"))),
    "the body is packed twice": ("not text", says(reply(gzip.compress(BOMB), content_encoding="gzip, gzip"))),
    "the body is packed in an unknown way": ("not text", says(reply(WORDS, content_encoding="br"))),
    "the body is not packed though it says so": ("broken answer", says(reply(WORDS, content_encoding="gzip"))),
    "the packed body ends early": ("broken answer", says(reply(gzip.compress(WORDS.encode() * 9)[:-20], content_encoding="gzip"))),
    "the connection closes in the body": ("broken answer", says(reply(WORDS, content_length=5000))),
    "the connection breaks in the body": ("broken answer", says(reply(WORDS, content_length=5000), 0.1, RESET)),
    "the chunks end early": ("broken answer", says(reply(b"5\r\nhel", content_length=None, transfer_encoding="chunked"))),
    "a chunk has no size": ("broken answer", says(reply(b"zz\r\nhello\r\n0\r\n\r\n", content_length=None, transfer_encoding="chunked"))),
    "the type holds bytes that are no text": ("not text", says(reply(WORDS, kind="audio/\xff\xfe; charset=\xe9"))),
    "a cookie is broken": ("empty page", says(reply("", set_cookie="a=\xff; expires=\xff; domain=\xff; =;"))),
    "the connection closes without an answer": ("broken answer", says(CLOSE)),
    "the connection closes in the headers": ("broken answer", says(b"HTTP/1.1 200 OK\r\nContent-")),
    "the status line is garbage": ("broken answer", says(b"\x00\xffgarbage\r\n\r\n")),
    "there is no status line": ("broken answer", says(WORDS.encode())),
    "a header has no name": ("broken answer", says(b"HTTP/1.1 200 OK\r\n: x\r\n\r\n")),
    "the content length is no number": ("broken answer", says(reply(WORDS, content_length="many"))),
    "the content length is negative": ("broken answer", says(reply(WORDS, content_length="-1"))),
    "there are two content lengths": ("broken answer", says(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")),
    "the headers are huge": ("broken answer", says(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000 + b"\r\n\r\n")),
    "redirects lead in a circle": ("too many redirects", to("http://127.0.0.1:{port}/page")),
    "redirects lead on and on": ("too many redirects", lambda site, n: further(site, n)),
    "a redirect leads to a private address": ("private address", to("http://10.0.0.1/")),
    "a redirect leads to another port of this machine": ("private address", to("http://127.0.0.1:1/")),
    "a redirect leads to the metadata of a cloud": ("private address", to("http://169.254.169.254/latest/meta-data/")),
    "a redirect leads to a file": ("bad address", to("file:///etc/passwd")),
    "a redirect leads to a script": ("bad address", to("javascript:alert(1)")),
    "a redirect holds a password": ("bad address", to("http://me:secret@127.0.0.1:{port}/page")),
    "a redirect leads nowhere": ("bad address", to("http://[::1")),
    "a redirect names no place": ("http 302", says(reply("", "302 Found"))),
    "a redirect's cookie cannot be sent": ("broken answer", says(reply("", "302 Found", location="/x", set_cookie="a=\xff; =;"))),
    "a redirect's place is no text": ("bad address", says(reply("", "302 Found", location="/\xff\xe9 \x7f"))),
    "the body is empty": ("empty page", says(reply(""))),
    "there is no content": ("empty page", says(reply("", "204 No Content", content_length=None))),
    "the page is made by a script": ("empty page", says(reply("<html><body><script>write('hi')</script></body></html>"))),
    "the page is a picture": ("not text", says(reply(b"\x89PNG", kind="image/png"))),
    "the page is binary though it says it is text": ("not text", says(reply(b"a\x00\x01\x02" * 99))),
}


def further(site, n):
    for step in range(9):
        site.answers[f"/{step}"] = to(f"/{step + 1}")
    return to("/0")(site, n)


@pytest.mark.parametrize("case", MISBEHAVING)
def test_whatever_a_server_does_the_model_is_told_and_it_is_counted(site, case):
    kind, site.answers["/page"] = MISBEHAVING[case]
    seen = read(site)
    assert seen.error == kind, seen.text
    assert 30 < len(seen.text) < 400


STILL_READ = {
    "an endless page of words": forever(b"<p>An otter. " * 99, reply(content_length=None)),
    "a page in another charset than it says": says(reply("<p>An otter, très vif.".encode("latin-1"))),
    "a page in a charset nobody knows": says(reply("<p>An otter.", kind="text/html; charset=klingon-8")),
    "a page in a charset that is no charset": says(reply("<p>An otter.", kind="text/html; charset=zip")),
    "a page in a charset that is slow to read": says(reply("<p>An otter.", kind="text/html; charset=punycode")),
    "a page whose charset has a strange name": says(reply("<p>An otter.", kind='text/html; charset="../\x01"')),
    "a page without a type": says(reply("<!doctype html><p>An otter.", kind=None)),
    "a page that is not well formed": says(reply("<p>An otter. <![foo[bar]]><!x></b></p></div><a href='")),
    "a page that never leaves its navigation": says(reply("<nav><p>An otter.")),
    "a page after a moment of overload": lambda site, n: [reply(WORDS) if n else reply("", "503 Service Unavailable")],
    "a page after a short wait was asked for": lambda site, n: [reply(WORDS) if n else reply("", "429 Too Many", retry_after="0")],
    "a page after one answer that did not come": lambda site, n: [reply(WORDS)] if n else [9.0],
    "a page whose type is not quite text": says(reply("<p>An otter.", kind="text/html; charset=\xff; x=\xe9")),
    "a page whose type is padded": says(reply("<p>An otter.", kind="text/html" + " " * 80_000 + "; charset" + " " * 9000 + "x")),
    "a page with an unknown status of success": says(reply("<p>An otter.", "299 Fine")),
}


@pytest.mark.parametrize("case", STILL_READ)
def test_a_page_that_can_be_read_in_spite_of_its_server_is_read(site, case):
    site.answers["/page"] = STILL_READ[case]
    seen = read(site)
    assert seen.error is None, seen.text
    assert "otter" in seen.text


def test_of_a_page_above_the_limit_the_beginning_is_given_and_said_to_be_one(site):
    site.answers["/page"] = says(reply("<p>first</p>" + "x " * 20_000 + "last"))
    seen = read(site)
    assert "only the first 20000 bytes" in seen.text and "first" in seen.text and "last" not in seen.text


def test_a_small_body_that_unpacks_to_a_huge_one_takes_little_memory(site):
    site.answers["/page"] = says(reply(BOMB, content_encoding="gzip"))
    tracemalloc.start()
    read(site)
    assert tracemalloc.get_traced_memory()[1] < 3_000_000
    tracemalloc.stop()


def test_a_server_that_asks_for_a_wait_gets_it(site):
    site.answers["/page"] = lambda site, n: [reply(WORDS) if n else reply("", "429 Too Many", retry_after="1")]
    limits = replace(site.limits, total=3.0, longest_pause=2.0)
    started = time.monotonic()
    assert read(site, limits=limits).error is None
    assert time.monotonic() - started >= 1


def test_what_will_not_pass_is_asked_for_once_and_what_may_pass_again(site):
    for status, times in (("404 Not Found", 1), ("500 Fault", 1), ("502 Bad Gateway", 3), ("504 Late", 3)):
        site.asked.clear()
        site.answers["/page"] = says(reply("", status))
        read(site, limits=replace(site.limits, retries=2))
        assert len(site.asked) == times, status


def test_a_server_that_does_not_listen_is_unreachable():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, not listening: refused
        port = held.getsockname()[1]
        limits = replace(SMALL, allowed_hosts=frozenset({("127.0.0.1", port)}))
        seen = Toolbox([visit(limits)])(ToolCall("visit", {"url": f"http://127.0.0.1:{port}/"}))
    assert seen.error == "unreachable"


PAGE = """<!DOCTYPE html><html><head><title>Otters &amp; rivers</title><style>p {color: red}</style></head>
<body><nav><a href="/">Home</a> <nav>More</nav> Menu</nav><script>if (1 < 2) { track() }</script>
<h1>The otter</h1><p>Otters eat   fish,
it's said &mdash; and <b>bold</b>ly.</p><ul><li>river</li><li>sea</li></ul>
<table><tr><th>name</th><th>weight</th></tr><tr><td>sea otter</td><td>30 kg</td></tr></table>
<p>a < b</p><!-- hidden --><noscript>Turn it on</noscript><footer>Imprint</footer>AT&T"""


def test_a_page_becomes_its_title_its_address_and_its_readable_text(site):
    site.answers["/page"] = says(reply(PAGE))
    lines = read(site).text.split("\n")
    assert lines == ["Otters & rivers", f"{site.url}/page", "", "The otter", "Otters eat fish,", "it's said — and boldly.", "- river",
                     "- sea", "| name | weight", "| sea otter | 30 kg", "a < b", "AT&T"]  # fmt: skip


def test_plain_text_and_json_are_given_as_they_are(site):
    site.answers["/t"] = says(reply("x < y <b>\n\n  z", kind="text/plain"))
    site.answers["/j"] = says(reply('{"a": [1]}', kind="application/json"))
    assert read(site, "/t").text.endswith("/t\n\nx < y <b>\nz")
    assert read(site, "/j").text.endswith('{"a": [1]}')


@pytest.mark.parametrize(("data", "kind"), [
    ("<p>Þór, très vif".encode("latin-1"), "text/html; charset=ISO-8859-1"),
    ("<p>Þór, très vif".encode("cp1252"), "text/html;charset='windows-1252'"),
    (b'<meta charset="cp1252">' + "<p>Þór, très vif".encode("cp1252"), "text/html"),
    (b'<meta http-equiv=Content-Type content="text/html; charset=cp1252">' + "Þór, très vif".encode("cp1252"), "text/html; charset=what"),
    (b'<?xml version="1.0" encoding="latin1"?>' + "<p>Þór, très vif".encode("latin-1"), "application/xhtml+xml"),
    ("<meta charset=utf-16><p>Þór, très vif".encode(), "text/html"),
    ("<meta charset=latin1><p>Þór, très vif".encode(), "text/html; charset=UTF-8"),
    ("<p>Þór, très vif".encode("utf-16"), "text/html; charset=utf-16"),
    ("<p>Þór, très vif".encode(), "text/html"),
])  # fmt: skip
def test_the_charset_is_taken_from_the_header_then_the_page_then_utf_8(site, data, kind):
    site.answers["/page"] = says(reply(data, kind=kind))
    assert read(site).text.endswith("\nÞór, très vif")


def test_a_packed_page_is_unpacked_and_a_redirected_one_shows_where_it_is(site):
    site.answers["/old"] = to("new?x=1")
    site.answers["/new?x=1"] = says(reply(gzip.compress(WORDS.encode()), content_encoding="gzip"))
    assert read(site, "/old").text == f"{site.url}/new?x=1\n\nA page about otters."


def test_a_cookie_of_a_redirect_is_kept_for_the_call_only(site):
    site.answers["/a"] = says(reply("", "302 Found", location="/b", set_cookie="seen=1"))
    site.answers["/b"] = says(reply(WORDS))
    read(site, "/a")
    read(site, "/b")
    assert [b"seen=1" in head for head in site.asked] == [False, True, False]


MALFORMED = ["<", "<!--", "</", "<![", "<a ", "<a b='", "&#", "&", "<div>", "<nav>", "<svg></nav>", "<script>", "</x", "<a/", "<title"]


@pytest.mark.parametrize("bad", MALFORMED)
def test_a_page_of_nothing_but_malformed_markup_is_done_in_time(site, bad):
    site.answers["/page"] = says(reply(bad * (1_000_000 // len(bad))))
    read(site, limits=replace(site.limits, size=2_000_000))


@pytest.mark.parametrize("address", [
    "http://127.0.0.1/", "http://localhost/", "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/",
    "http://0177.0.0.1/", "http://017700000001/", "http://0/", "http://0.0.0.0/", "http://127。0。0。1/", "http://[::1]/", "http://[::]/",
    "http://[::ffff:127.0.0.1]/", "http://[::ffff:a00:1]/", "http://[0:0:0:0:0:ffff:7f00:1]/", "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/", "http://[64:ff9b::a00:1]/", "http://[2002:7f00:1::]/", "http://[2001:0:7f00:1::]/", "http://[fe80::1]/", "http://[fe80::1%25lo]/",
    "http://[fec0::1]/", "http://[fd00:ec2::254]/", "http://[ff02::1]/", "http://[2001:db8::1]/", "http://10.1.2.3/", "http://172.16.0.1/",
    "http://192.168.1.1/", "http://169.254.169.254/", "http://100.100.100.200/", "http://192.0.0.192/", "http://168.63.129.16/",
    "http://224.0.0.1/", "http://240.0.0.1/", "http://255.255.255.255/", "http://198.18.0.1/", "https://127.0.0.1:8443/",
])  # fmt: skip
def test_an_address_that_is_not_public_is_refused_however_it_is_written(address):
    seen = Toolbox([visit(SMALL)])(ToolCall("visit", {"url": address}))
    assert seen.error in ("private address", "bad address", "no such host"), seen.text
    if address not in ("http://0177.0.0.1/", "http://[fe80::1%25lo]/", "http://localhost/"):  # these are not even read as addresses
        assert seen.error == "private address"


@pytest.mark.parametrize("address", [
    "", "otters", "example.org/page", "//example.org/", "ftp://example.org/", "file:///etc/passwd", "gopher://example.org/",
    "data:text/html,x", "http://", "http:///etc/passwd", "https:example.org", "http://me@example.org/",
    "http://me:secret@example.org/", "http://a\\@example.org/",
    "http://example.org:99999/", "http://example.org:-1/", "http://exa mple.org/", "http://exa%2emple.org/",
    "http://[::1", "http://a..b/", "http://.example.org/", "http://example.org/\r\nX: y", "http://\ud800.org/", "http://xn--\x00/",
    "x" * 99_999,
])  # fmt: skip
def test_what_is_no_address_of_the_web_is_refused(address):
    seen = Toolbox([visit(SMALL)])(ToolCall("visit", {"url": address}))
    assert seen.error == "bad address", seen.text
    assert len(seen.text) < 400 and seen.text.encode()


def test_public_addresses_are_public():
    assert all(map(public, ["93.184.215.14", "8.8.8.8", "2606:2800:21f:cb07::1", "::ffff:8.8.8.8"]))


@contextmanager
def internet(monkeypatch, site, *answers):
    """Names resolve to `answers`, one list of addresses each time; connections to the public address lead to the test's server."""
    asked, connected, real = [], [], socket.create_connection
    turns = iter(answers)

    def resolve(host, port, *_, **__):
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in next(turns)]

    def connect(address, *given, **named):
        connected.append(address)
        monkeypatch.setattr(socket, "getaddrinfo", true)
        try:
            return real((site.host, site.port), *given, **named)
        finally:
            monkeypatch.setattr(socket, "getaddrinfo", resolve)

    true = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect)
    yield asked, connected
    monkeypatch.undo()


def test_a_name_is_resolved_once_and_the_address_that_was_checked_is_connected_to(monkeypatch, site):
    site.answers["/page"] = says(reply(WORDS))
    with internet(monkeypatch, site, [PUBLIC], ["127.0.0.1"]) as (asked, connected):
        seen = read(site, "http://rebind.test/page")
    assert seen.error is None
    assert (asked, connected) == (["rebind.test"], [(PUBLIC, 80)])
    assert b"Host: rebind.test\r\n" in site.asked[0]


def test_a_name_that_turns_private_is_refused_at_the_next_hop_and_the_next_try(monkeypatch, site):
    for first in (reply("", "302 Found", location="http://rebind.test/b"), reply("", "503 Service Unavailable")):
        site.answers["/page"] = says(first)
        with internet(monkeypatch, site, [PUBLIC], ["127.0.0.1"]) as (_, connected):
            assert read(site, "http://rebind.test/page").error == "private address"
        assert connected == [(PUBLIC, 80)]


def test_a_name_with_one_private_address_among_public_ones_is_refused(monkeypatch, site):
    with internet(monkeypatch, site, [PUBLIC, "10.0.0.1"]) as (_, connected):
        assert read(site, "http://both.test/page").error == "private address"
    assert connected == []


def test_a_name_that_does_not_exist_or_does_not_resolve_in_time_is_told(monkeypatch, site):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(socket.gaierror(socket.EAI_NONAME, "no")))
    assert read(site, "http://nowhere.test/").error == "no such host"
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: site.stopping.wait(5) and [])
    assert read(site, "http://slow.test/").error == "timeout"


def test_a_proxy_of_the_environment_is_not_used(monkeypatch, site):
    site.answers["/page"] = says(reply(WORDS))
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert read(site).error is None


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_certificate_must_be_valid_for_the_name_although_the_address_is_pinned(monkeypatch, site, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=good.test", "-addext", "subjectAltName=DNS:good.test", "-keyout", tmp_path / "key", "-out", tmp_path / "cert"],
                   check=True, capture_output=True)  # fmt: skip
    context, names = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), []
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    context.sni_callback = lambda _, name, __: names.append(name)
    site.socket = context.wrap_socket(site.socket, server_side=True, do_handshake_on_connect=False)
    site.answers["/page"] = says(reply(WORDS))
    errors = []
    for trusted, name in ((False, "good.test"), (True, "good.test"), (True, "bad.test")):
        if trusted:
            monkeypatch.setattr(certifi, "where", lambda: str(tmp_path / "cert"))
        with monkeypatch.context() as patched, internet(patched, site, [PUBLIC], [PUBLIC]):
            errors.append(read(site, f"https://{name}/page", limits=replace(SMALL, total=3, read=2, connect=2)).error)
    assert errors == ["tls", None, "tls"]
    assert names == ["good.test", "good.test", "bad.test"]


# The search service


def asked(site, monkeypatch, query="otters", **options):
    monkeypatch.setenv("SEARCH_API_KEY", KEY)
    box = Toolbox(web_tools(site.url + "/search", limits=site.limits, **options))
    seen = box(ToolCall("search", {"query": query}))
    assert seen.error != "fault", seen.text
    assert dict(box.errors) == ({} if seen.error is None else {("search", seen.error): 1})
    assert KEY not in seen.text
    return seen


def found(*hits):
    return says(reply(json.dumps({"organic": hits}), kind="application/json"))


HIT = {"title": "Otters", "link": "https://otters.example/", "snippet": "All  about\notters."}


def test_a_search_gives_numbered_titles_addresses_and_snippets(site, monkeypatch):
    site.answers["/search"] = found(HIT, {"link": "https://b.example/", "title": None, "snippet": None}, HIT)
    text = asked(site, monkeypatch, results=2).text
    assert text == "1. Otters\nhttps://otters.example/\nAll about otters.\n\n2. https://b.example/\nhttps://b.example/"
    assert site.asked[0].startswith(b"POST /search ") and f"X-API-KEY: {KEY}".encode() in site.asked[0]


def test_a_search_that_finds_nothing_says_so(site, monkeypatch):
    site.answers["/search"] = found()
    assert asked(site, monkeypatch).text == NOTHING


NO_ANSWERS = {
    "no JSON": ("bad answer", says(reply("<html>Blocked</html>"))),
    "JSON that ends early": ("bad answer", says(reply('{"organic": [{"title"', kind="application/json"))),
    "JSON of another shape": ("bad answer", says(reply("[1, 2]", kind="application/json"))),
    "JSON that is null": ("bad answer", says(reply("null", kind="application/json"))),
    "JSON without results": ("bad answer", says(reply('{"message": "no credits"}', kind="application/json"))),
    "results that are null": ("bad answer", says(reply('{"organic": null}', kind="application/json"))),
    "results that are a text": ("bad answer", says(reply('{"organic": "otters"}', kind="application/json"))),
    "results of nulls": ("bad answer", found(None, None)),
    "results without addresses": ("bad answer", found({"title": "x", "link": None}, {"title": "y"}, {"link": 7}, [], "x")),
    "JSON that is too deep": ("bad answer", says(reply('{"organic": ' + "[" * 9000, kind="application/json"))),
    "a number that is too long": ("bad answer", says(reply('{"organic": ' + "9" * 9000 + "}", kind="application/json"))),
    "bytes that are no text": ("bad answer", says(reply(b'{"organic": "\xff\xfe', kind="application/json"))),
    "nothing": ("bad answer", says(reply("", kind="application/json"))),
    "more than the limit": ("too large", says(reply(" " * 30_000, kind="application/json"))),
    "a key refused": ("http 401", says(reply(f"bad key {KEY}", "401 Unauthorized"))),
    "a redirect": ("http 307", to("http://127.0.0.1:{port}/elsewhere")),
    "a fault": ("http 500", says(reply("", "500 Fault"))),
    "silence": ("timeout", says(9.0)),
}


@pytest.mark.parametrize("case", NO_ANSWERS)
def test_whatever_the_search_service_answers_the_model_is_told(site, monkeypatch, case):
    kind, site.answers["/search"] = NO_ANSWERS[case]
    seen = asked(site, monkeypatch)
    assert seen.error == (kind if case != "a redirect" else "http 302"), seen.text
    assert not any(b"elsewhere" in head for head in site.asked)


def test_results_that_are_partly_unusable_are_given_without_those(site, monkeypatch):
    site.answers["/search"] = found(None, {"title": "x", "link": None}, {}, HIT, {**HIT, "title": {"a": 1}, "snippet": 5})
    assert asked(site, monkeypatch).text.count("otters.example") == 2


def test_a_text_that_no_file_could_hold_is_mended(site, monkeypatch):
    site.answers["/search"] = found({**HIT, "title": "x\ud800y"})
    assert asked(site, monkeypatch, query="\udfff").text.encode()


def test_the_key_is_in_no_observation_no_log_and_no_repr(site, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    site.answers["/search"] = found({**HIT, "snippet": f"your key is {KEY}"})
    assert "[key]" in asked(site, monkeypatch).text
    site.answers["/search"] = says(CLOSE)
    asked(site, monkeypatch)
    assert KEY not in caplog.text
    assert KEY not in repr(web_tools(site.url))


def test_a_missing_key_is_told_to_the_person_who_builds_the_tools(monkeypatch):
    for value in (None, "", " "):
        monkeypatch.delenv("MY_KEY", raising=False) if value is None else monkeypatch.setenv("MY_KEY", value)
        with pytest.raises(RuntimeError, match="MY_KEY"):
            web_tools(key_env="MY_KEY")
    monkeypatch.setenv("MY_KEY", "a\nkéy")
    with pytest.raises(RuntimeError, match="MY_KEY") as told:
        web_tools(key_env="MY_KEY")
    assert "kéy" not in str(told.value)


def test_the_tools_have_the_names_of_those_offline():
    assert [web.SEARCH["function"]["name"], web.VISIT["function"]["name"]] == ["search", "visit"]
