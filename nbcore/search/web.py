"""The live web for the agent: the tools `search` and `visit`, over httpx's models and its engine httpcore. Paper section 6.

Both take addresses from a model and from strangers' servers, so nothing is trusted. Only http and https; every hop of a redirect resolves
its name once, is refused if any address of it is not public, and connects to the very address that was checked. No proxy, no setting
from the environment. A call ends after `Limits.total` seconds and reads `Limits.size` decompressed bytes at most, whatever the server does.
What fails is a ToolError: bad address, private address, no such host, unreachable, tls, timeout, too many redirects, http N, broken answer,
bad answer (of the search service), too large, not text, empty page. Sizes are our choice [C].
Left out on purpose: JavaScript, PDF, a page's links, robots.txt, a cache, other forms than Serper's, NAT64, and judging what a page wants.
"""

from __future__ import annotations

import codecs
import html
import ipaddress
import json
import os
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import mktime_tz, parsedate_tz
from html.parser import HTMLParser
from itertools import count
from typing import Any

import httpcore
import httpx

from nbcore.search.tools import NOTHING, Tool, ToolError, function

API = "https://google.serper.dev/search"
SEARCH = function("search", "Search the web; gives titles, addresses and snippets.", query="words to look for")
VISIT = function("visit", "Read a page of the web.", url="the page's address, beginning with https:// or http://")
HEADERS = {"User-Agent": "Mozilla/5.0 (compatible; nbcore)", "Accept-Encoding": "gzip", "Connection": "close"}
HOST = re.compile(r"(?:[a-z0-9_-]+\.)*[a-z0-9_-]+\.?|[0-9a-f]*:[0-9a-f:.]+")
NOT_PUBLIC = [*map(ipaddress.ip_network, "192.0.0.0/24 168.63.129.16/32 2002::/16 ::/3 4000::/2 8000::/1".split())]  # clouds', 6to4, IPv6
TEXT = re.compile(r"text/.*|application/(?:.*\+)?(?:json|xml|javascript|x-ndjson)|")
PIECE = 1 << 18
UNREADABLE = ("title", "script", "style", "noscript", "template", "svg", "iframe", "textarea", "select", "button")
BLOCKS = "article blockquote body br dd div dt figcaption footer h1 h2 h3 h4 h5 h6 header hr li main ol p pre section table tr ul".split()
TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,500})", re.I)
META = re.compile(rb"""(?:<meta[^>]{0,500}?charset|^\s*<\?xml[^>]{0,100}?encoding)\s*=\s*["']?([\w.:-]{1,40})""", re.I)
CODECS = re.compile(r"utf-(?:8|16)|ascii|iso8859-|cp\d|koi8|gb|big5|euc|shift_jis|iso2022_jp|mac-|tis-620|hz")  # not e.g. punycode: slow


@dataclass(frozen=True)
class Limits:
    """What one call may take. Times are in seconds; `total` holds over all redirects, retries and waits of a call.

    retries: after HTTP 429, 502, 503, 504, no connection or a read timeout. pause: before the first, then doubled; a Retry-After goes
    before it and, above `longest_pause`, ends the call. size: bytes of a body, decompressed. allowed_hosts: (host, port) reached without
    a check of their address, for servers of your own such as an internal page reader; any page may lead there.
    """

    connect: float = 5.0
    read: float = 10.0
    total: float = 30.0
    retries: int = 2
    pause: float = 0.5
    longest_pause: float = 10.0
    size: int = 2_000_000
    redirects: int = 5
    allowed_hosts: frozenset[tuple[str, int]] = frozenset()


def web_tools(api_url: str = API, key_env: str = "SEARCH_API_KEY", limits: Limits | None = None, results: int = 10) -> list[Tool]:
    """The tools `search` and `visit`. The search service must speak Serper's form: POST {"q", "num"} with the header X-API-KEY gives
    {"organic": [{"title", "link", "snippet"}]}. The key in the environment variable `key_env` is shown nowhere; RuntimeError without one.
    """
    _address(api_url)  # a wrong one is told now, not to the model
    key, limits = os.environ.get(key_env, "").strip(), limits or Limits()
    if not (key and key.isascii() and key.isprintable()):
        raise RuntimeError(f"Put the search service's key, in plain ASCII letters, into the environment variable {key_env}.")

    def search(given: Mapping[str, Any]) -> str:
        headers = {"X-API-KEY": key, "Content-Type": "application/json", "Accept": "application/json"}
        answer = _Call(limits, "the search service").fetch(api_url, headers, json.dumps({"q": given["query"], "num": results}).encode())
        if answer.extensions["cut"]:
            raise ToolError("too large", f"the search service answered with more than {limits.size} bytes. Try another query.")
        return _hits(answer.content, results).replace(key, "[key]").encode("utf-8", "replace").decode()  # no lone surrogates

    return [Tool(SEARCH, search), visit(limits)]


def visit(limits: Limits | None = None) -> Tool:
    """The tool `visit` alone: title, final address and readable text of a page; of one above `Limits.size` the beginning."""
    def visited(given: Mapping[str, Any]) -> str:
        call = _Call(limits or Limits(), "the page")
        page = call.fetch(given["url"].strip(), {"Accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.8"})
        kind, cut = page.extensions.values()
        titles, text = [], _decoded(page.content, kind)
        if "\x00" in text[:PIECE]:
            raise ToolError("not text", "the page is not text, though it says so. Try another.")
        if "html" in kind.split(";")[0] or (not kind and re.match(r"\s*<(?:!doctype|html|head|body)\b", text, re.I)):
            titles, text = TITLE.findall(text[:PIECE])[:1], _readable(text, call)
        lines = [line for line in (" ".join(line.split()) for line in text.split("\n")) if line.strip("|-")]
        if not lines:
            why = f" in its first {len(page.content)} bytes, and no more are read" if cut else "; it may need JavaScript"
            raise ToolError("too large" if cut else "empty page", f"the page holds no text{why}. Try another.")
        note = f"[only the first {len(page.content)} bytes of the page were read]\n" * cut
        return "\n".join([*(" ".join(html.unescape(title).split()) for title in titles), str(page.url), note, *lines])

    return Tool(VISIT, visited)


class _Call(httpcore.NetworkBackend):
    """One call of a tool: its deadline, and the connections it opens, each to an address that was checked."""

    def __init__(self, limits: Limits, who: str):
        self.limits, self.who, self.until = limits, who, time.monotonic() + limits.total

    def left(self, most: float | None = None) -> float:
        """Seconds that the next operation may take, `most` at most. Raises httpcore.ReadTimeout when none are left."""
        if (seconds := self.until - time.monotonic()) <= 0:
            raise httpcore.ReadTimeout("no time is left")
        return seconds if most is None else min(seconds, most)

    def bound(self, stream: Any) -> Any:
        """The connection, made so that each of its operations ends at the deadline: a byte now and then does not prolong the call."""
        read, write, tls = stream.read, stream.write, stream.start_tls
        stream.read = lambda size, timeout=None: read(size, self.left(timeout))
        stream.write = lambda data, timeout=None: write(data, self.left(timeout))
        stream.start_tls = lambda timeout=None, **given: self.bound(tls(timeout=self.left(timeout), **given))
        return stream

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *_: Any, **__: Any) -> Any:
        """httpcore calls this for each connection. The name is resolved once and the address that passed is the one connected to."""
        addresses, fault = _resolve(host, port, self.left(timeout)), httpcore.ConnectError("the name has no address")
        if (host, port) not in self.limits.allowed_hosts and not all(map(public, addresses)):
            raise ToolError("private address", f"{host[:200]!r} is not on the public web. Only public pages can be read; try another.")
        for address in addresses:
            try:
                return self.bound(httpcore.SyncBackend().connect_tcp(address, port, self.left(timeout)))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as this:
                fault = this
        raise fault

    def fetch(self, url: str, headers: Mapping[str, str], content: bytes | None = None) -> httpx.Response:
        """What stands at an address; with content it is sent there (POST), and redirects are refused. Raises only ToolError."""
        for tried in count():
            wait, again = self.limits.pause * 2**tried, True
            try:
                answer = self._follow(url, headers, content)
                if answer.is_success:
                    return answer
                status, said = answer.status_code, answer.headers.get("retry-after", "")
                with suppress(ValueError, TypeError, OverflowError):  # it may be a number, a date, or nonsense
                    wait = float(said) if re.fullmatch(r"[0-9]{1,9}", said) else max(0.0, mktime_tz(parsedate_tz(said)) - time.time())
                again = status in (429, 502, 503, 504) and wait <= self.limits.longest_pause
                kind, why = f"http {status}", f"answered with HTTP {status}"
            except httpcore.TimeoutException:
                kind, why = "timeout", "did not answer in time"
            except httpcore.ConnectError as fault:
                again = not any(isinstance(part, ssl.SSLError) for part in fault.args)
                kind, why = ("unreachable", "could not be reached") if again else ("tls", "has no valid certificate or encryption")
            except (httpcore.ProtocolError, httpcore.NetworkError, httpx.HTTPError, zlib.error, ValueError):
                again, kind, why = False, "broken answer", "answered with what is broken or ended early"
            if not again or tried >= self.limits.retries or wait >= self.until - time.monotonic():
                raise ToolError(kind, f"{self.who} {why}. Check the address, try another, or try again later.")
            time.sleep(wait)

    def _follow(self, url: str, headers: Mapping[str, str], content: bytes | None) -> httpx.Response:
        """The answer at the end of the redirects, whatever its status."""
        cookies, here, limits = httpx.Cookies(), _address(url), self.limits
        extensions = {"timeout": httpx.Timeout(limits.read, connect=limits.connect).as_dict()}
        with httpcore.ConnectionPool(network_backend=self) as pool:
            for _ in range(limits.redirects + 1):
                request = httpx.Request("POST" if content else "GET", here, headers=HEADERS | dict(headers), content=content)
                cookies.set_cookie_header(request)
                to = httpcore.URL(scheme=here.raw_scheme, host=here.raw_host, port=here.port, target=here.raw_path)
                with pool.stream(request.method, to, headers=request.headers.raw, content=content, extensions=extensions) as raw:
                    answer = httpx.Response(raw.status, headers=raw.headers, request=request)
                    if answer.is_success:
                        return self._read(answer, raw.iter_stream())
                if not answer.has_redirect_location or content:
                    return answer
                cookies.extract_cookies(answer)
                here = _address(answer.headers["location"], here)
        raise ToolError("too many redirects", f"{self.who} led on more than {limits.redirects} times. Try another.")

    def _read(self, answer: httpx.Response, chunks: Iterable[bytes]) -> httpx.Response:
        """The answer with its body, decompressed, as far as it may be read. extensions: its type, and whether it was cut."""
        kind, coding = (answer.headers.get(f"content-{part}", "").strip().lower() for part in ("type", "encoding"))
        if not TEXT.fullmatch(re.split("[;,]", kind)[0].strip()) or coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ToolError("not text", f"{self.who} is of a type that cannot be read: {kind[:99]!r} {coding[:99]!r}. Try another.")
        unpack = None if coding in ("", "identity") else zlib.decompressobj(zlib.MAX_WBITS | 32)  # 32: gzip or zlib
        body, most = bytearray(), self.limits.size
        for chunk in chunks:
            body += chunk if unpack is None else unpack.decompress(chunk, most + 1 - len(body))
            if len(body) > most or (unpack and unpack.eof):
                break
        if unpack and body and not unpack.eof and len(body) <= most:
            raise zlib.error("the compressed data ended early")
        return httpx.Response(200, content=bytes(body[:most]), request=answer.request, extensions={"type": kind, "cut": len(body) > most})


def public(address: str) -> bool:
    """Whether an IP address is one of the public internet: not private, loopback, link-local, multicast, reserved or a cloud's own."""
    ip = ipaddress.ip_address(address)
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or any(ip in net for net in NOT_PUBLIC))


def _resolve(host: str, port: int, seconds: float) -> list[str]:
    """The addresses of a host, as its name is resolved now; also of a number such as 0x7f000001, which the system reads as an address."""
    found: list[Any] = []

    def ask() -> None:
        try:
            found.append([str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
        except (OSError, ValueError, OverflowError) as fault:
            found.append(fault)

    (thread := threading.Thread(target=ask, daemon=True)).start()
    thread.join(seconds)  # a resolver knows no timeout of its own
    if not found or getattr(found[0], "errno", None) == socket.EAI_AGAIN:
        raise httpcore.ConnectTimeout("the name was not resolved in time")
    if isinstance(found[0], Exception):
        raise ToolError("no such host", f"there is no host {host[:200]!r}. Check the address, or try another.")
    return found[0]


def _address(url: str, base: httpx.URL | None = None) -> httpx.URL:
    """The address, as it may be asked for. Raises ToolError("bad address")."""
    parsed = httpx.URL("")
    with suppress(httpx.InvalidURL, ValueError):
        parsed = httpx.URL(url) if base is None else base.join(url)
    good = parsed.scheme in ("http", "https") and HOST.fullmatch(parsed.raw_host.decode()) and 0 < (parsed.port or 80) < 65536
    if parsed.userinfo or not good:
        raise ToolError("bad address", f"{url[:200]!r} cannot be read; an address is like https://example.org/page, with no user name.")
    return parsed


def _hits(body: bytes, most: int) -> str:
    """A search service's answer as a numbered list. Raises ToolError("bad answer")."""
    found: list[dict] | None = None
    with suppress(ValueError, TypeError, LookupError, RecursionError):
        found = [hit if isinstance(hit, dict) else {} for hit in json.loads(body)["organic"]]
    hits = [hit for hit in found or [] if isinstance(hit.get("link"), str) and 0 < len(hit["link"].strip()) < 2000]
    if found is None or len(hits) < bool(found):
        raise ToolError("bad answer", "the search service answered in a form that cannot be read. Try another query, or again later.")
    texts = ([" ".join(str(hit.get(part) or "").split()) for part in ("title", "link", "snippet")] for hit in hits[:most])
    shown = (f"{n}. {title[:300] or at}\n{at}\n{snippet[:1000]}".rstrip() for n, (title, at, snippet) in enumerate(texts, 1))
    return "\n\n".join(shown) or NOTHING


def _decoded(body: bytes, kind: str) -> str:
    """Text by header, meta tag, else UTF-8; what does not fit becomes the replacement character."""
    names, meta = re.findall(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", kind), META.search(body[:4096])
    names += [re.sub("(?i)^utf-16.*", "utf-8", meta[1].decode())] if meta else []  # a tag that reads as ASCII is not in UTF-16
    for name in names:
        with suppress(LookupError, ValueError):
            if CODECS.match(known := codecs.lookup(name).name):
                return body.decode("cp1252" if known in ("ascii", "iso8859-1") else known, "replace")  # as browsers do
    return body.decode("utf-8", "replace")


class _Reader(HTMLParser):
    """Collects the text of a page outside of the elements left out."""

    parse_marked_section = HTMLParser.parse_bogus_comment  # the library's own raises on words it does not know

    def __init__(self, left_out: Iterable[str]):
        super().__init__()
        self.parts, self.left_out, self.inside, self.depth = [""], left_out, "", 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if not self.inside and tag in self.left_out:
            self.inside = tag
        self.depth += tag == self.inside
        self.handle_data("\n- " if tag == "li" else "\n" if tag in BLOCKS else " | " if tag in ("td", "th") else "")

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == self.inside  # 0 when nothing is left out
        self.inside = self.inside if self.depth else ""
        self.handle_data("\n" if tag in BLOCKS else "")

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.parts.append(data)


def _readable(page: str, call: _Call) -> str:
    """The text of HTML. It is read in pieces, and never closed: that looks at an unfinished end again and again."""
    for left_out in ((*UNREADABLE, "nav", "footer", "aside"), UNREADABLE):  # what stands around is read if there is nothing else
        reader = _Reader(left_out)
        for start in range(0, len(page), PIECE):
            if time.monotonic() > call.until:
                raise ToolError("timeout", "the page took too long to read. Try another.")
            reader.feed(page[start : start + PIECE])
        text = "".join(reader.parts) + ("" if reader.rawdata.startswith("<") or reader.inside else reader.rawdata)
        if text.strip(" \n\t\r|-"):
            break
    return text
