"""Full-text search over a corpus of passages, embedded: one SQLite file (FTS5, BM25), the tools `search` and `visit` over it.

A process opens a finished index in a millisecond and shares its pages with others through the file cache; nothing is loaded, no server
runs. Words that stand in more than a tenth of the passages are left out of a query as long as it has others: they cost most of the time
and hardly change the order [C]. A title counts five times as much as text [C]. Paper section 6 (the paper searches the web; see `web`).
Left out on purpose: embeddings, which take a model in the tool's process; languages without spaces, whose words FTS5 does not find.
"""

from __future__ import annotations

import difflib
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nbcore.search.tools import NOTHING, Tool, ToolError, function

SEARCH = function("search", "Find the pages that fit a query best; gives titles and snippets.", query="words to look for")
VISIT = function("visit", "Read a page.", title="the page's title, as search gives it")
COMMON = 0.1  # share of the passages above which a word is common
WORDS = re.compile(r"\w+")
MOST_WORDS = 64  # of a query; what stands behind is not read


@dataclass(frozen=True)
class Hit:
    """One page found: its title, a piece of its text around the words found, and BM25 (larger is better)."""

    title: str
    snippet: str
    score: float


def build(path: Path, passages: Mapping[str, str]) -> None:
    """Write an index over title → text. Raises FileExistsError where there is one, RuntimeError where SQLite has no FTS5."""
    if path.exists():
        raise FileExistsError(f"{path} is there already. Remove it to build anew, or open it with Index({str(path)!r}).")
    aside = path.with_name(path.name + ".part")
    aside.unlink(missing_ok=True)
    store = sqlite3.connect(aside)
    try:
        store.execute("CREATE VIRTUAL TABLE page USING fts5(title, text, tokenize = 'unicode61 remove_diacritics 2')")
    except sqlite3.OperationalError as error:
        store.close()
        aside.unlink(missing_ok=True)
        raise RuntimeError(f"This Python's SQLite ({sqlite3.sqlite_version}) has no full-text search: {error}.") from error
    store.executemany("INSERT INTO page (title, text) VALUES (?, ?)", sorted(passages.items()))
    store.execute("INSERT INTO page (page) VALUES ('optimize')")
    store.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, page, row)")
    store.execute("CREATE TABLE common AS SELECT term FROM temp.vocabulary WHERE doc > ?", (max(20, COMMON * len(passages)),))
    store.execute("CREATE TABLE title AS SELECT title, rowid AS page FROM page")
    store.execute("CREATE INDEX by_title ON title (title)")
    store.commit()
    store.close()
    aside.replace(path)


class Index:
    """An index made by `build`, opened for reading. Raises FileNotFoundError."""

    def __init__(self, path: Path):
        if not path.is_file():
            raise FileNotFoundError(f"There is no index at {path}. Make one with nbcore.search.index.build.")
        self._store = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        self._common = {term for (term,) in self._store.execute("SELECT term FROM common")}

    def search(self, query: str, count: int = 5) -> list[Hit]:
        """The `count` pages that fit best, the best first; empty where no page holds a word of the query."""
        words = list(dict.fromkeys(WORDS.findall(query.lower())))[:MOST_WORDS]
        asked = [w for w in words if w not in self._common] or words
        if not asked:
            return []
        match = " OR ".join(f'"{w}"' for w in asked)
        rows = self._store.execute(
            "SELECT title, snippet(page, 1, '', '', ' … ', 24), -rank FROM page"
            " WHERE page MATCH ? AND rank MATCH 'bm25(5.0, 1.0)' ORDER BY rank LIMIT ?",  # the snippets of the best alone are made
            (match, count),
        )
        return [Hit(*row) for row in rows]

    def visit(self, title: str) -> str:
        """A page's text. Raises ToolError naming the nearest titles where there is none."""
        row = self._store.execute(
            "SELECT page.text FROM title JOIN page ON page.rowid = title.page WHERE title.title = ?", (title.strip(),)
        ).fetchone()
        if row is None:
            alike = self._store.execute("SELECT title FROM title WHERE title >= ? AND title < ? LIMIT 2000", _beginning(title))
            known = [*(name for (name,) in alike), *(hit.title for hit in self.search(title, 20))]
            near = difflib.get_close_matches(title, dict.fromkeys(known), n=3, cutoff=0.5)
            raise ToolError("no such page", f"there is no page {title!r}." + (f" Near: {'; '.join(near)}." if near else ""))
        return row[0]

    def tools(self, count: int = 5) -> list[Tool]:
        """The tools `search` and `visit`, as an agent gets them."""

        def found(query: str) -> str:
            hits = self.search(query, count)
            return "\n".join(f"{i}. {hit.title}: {hit.snippet}" for i, hit in enumerate(hits, 1)) or NOTHING

        return [Tool(SEARCH, lambda given: found(given["query"])), Tool(VISIT, lambda given: self.visit(given["title"]))]

    def close(self) -> None:
        self._store.close()


def _beginning(title: str) -> tuple[str, str]:
    """The range of titles that begin like this one: with its first two characters."""
    start = title.strip()[:2]
    return start, start[:-1] + chr(ord(start[-1]) + 1) if start else ""
