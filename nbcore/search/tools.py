"""The `search` tool over a small set of pages: the page whose title stands in the query.

Titles are matched as whole words, the longest first; a query that names no page finds nothing and says so. That is all a
world of one-line pages needs; ranked full-text search belongs to the larger corpora of deep search.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

NOTHING = "No page fits."


class Search:
    """`Search(pages)(query)` gives one page's text. pages: title to text."""

    def __init__(self, pages: Mapping[str, str]):
        self.pages = dict(pages)
        self._words = {title: tuple(_words(title)) for title in self.pages}
        self._first: dict[str, list[str]] = {}
        for title in sorted(self.pages, key=lambda t: -len(self._words[t])):
            if self._words[title]:
                self._first.setdefault(self._words[title][0], []).append(title)

    def __call__(self, query: str) -> str:
        asked, found = _words(query), ""
        for i, word in enumerate(asked):
            for title in self._first.get(word, ()):
                length = len(self._words[title])
                if tuple(asked[i : i + length]) == self._words[title] and length > len(self._words.get(found, ())):
                    found = title
        return self.pages[found] if found else NOTHING


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
