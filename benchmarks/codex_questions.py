"""Are the questions made from a graph sound? Makes them from labelled Wikidata triples and draws a sheet for a person to read.

    OMP_NUM_THREADS=1 python benchmarks/codex_questions.py FILE [--count 500] [--sheet 50] [--seed 0] [--out sheet.md]

FILE holds head, relation and tail between tabs. Every question has two to four hops and a described start. It is kept when every
validator passes it; a start is used five times at most, an answer fifty times, and a way from one start once. The one search that must
not be enough is a strong one: it shows the pages of everything that the question names, and a page is all that the file tells of an
entity. Printed are how many questions each validator looked at and turned away, the hops, the answers and the branching. The sheet is
drawn by the seed, before anybody has read a question, and is a Markdown table with an empty column for the verdict.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from nbcore.search import wikidata
from nbcore.search.graph import Graph, of_triples
from nbcore.search.questions import Question, branching, screen
from nbcore.search.tools import Search

VALIDATORS = ("more than one answer", "the answer stands in the question", "a step of the way is not needed",
              "a part of the description is not needed", "one search is enough")  # fmt: skip
MOST_STARTS, MOST_ANSWERS = 5, 50


def named_pages(graph: Graph) -> Callable[[str], str]:
    """A search that shows the page of every entity whose name stands in the query."""
    pages = {e: "\n".join(f"{f.head} | {f.relation} | {f.tail}" for f in graph.about(e)) for e in graph.entities}
    search = Search(pages)

    def shown(query: str) -> str:
        found = []
        while (title := search.title(query)) is not None:
            found.append(pages[title])
            query = re.sub(r"\W+".join(map(re.escape, re.findall(r"\w+", title))), " ; ", query, flags=re.IGNORECASE)
        return "\n".join(found)

    return shown


def made(graph: Graph, count: int, seed: int) -> tuple[list[Question], Counter]:
    """`count` questions that pass, and how many each validator turned away."""
    visits, starts, answers, seen, turned = Counter(), Counter(), Counter(), set(), Counter()
    kept: list[Question] = []
    shown = named_pages(graph)
    for question in wikidata.questions(graph, random.Random(seed), visits=visits):
        start = question.walk.entities[0]
        if not seen.isdisjoint((question.walk, question.text)) or starts[start] >= MOST_STARTS or answers[question.answer] >= MOST_ANSWERS:
            continue
        seen.add(question.text)
        passed, count_one = screen(graph, [question], one_search=shown)
        turned.update(count_one.by)
        if passed:
            kept.append(question)
            seen.add(question.walk)
            visits.update(question.walk.entities)
            starts[start] += 1
            answers[question.answer] += 1
        if len(kept) == count:
            return kept, turned
    raise SystemExit(f"Only {len(kept)} questions of {count} could be made from this file within the limits.")


def told(question: Question) -> str:
    """The plan in one line: `Kanye West → record label → Def Jam Recordings`."""
    way = zip(question.walk.way, question.walk.entities[1:], strict=True)
    return question.walk.entities[0] + "".join(f" → *{step.relation}* → {there}" for step, there in way)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("file", type=Path)
    reader.add_argument("--count", type=int, default=500)
    reader.add_argument("--sheet", type=int, default=50)
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--out", type=Path, default=Path("sheet.md"))
    given = reader.parse_args()
    graph = of_triples(given.file)
    kept, turned = made(graph, given.count, given.seed)
    left = tried = len(kept) + sum(turned.values())
    print(f"{tried} questions tried, {len(kept)} kept\n\n| validator | looked at | turned away |\n|---|---|---|")
    for name in VALIDATORS:
        print(f"| {name} | {left} | {turned[name]} |")
        left -= turned[name]
    hops = Counter(question.hops for question in kept)
    print("\n| hops | questions | ways out, mean |\n|---|---|---|")
    for number in sorted(hops):
        print(f"| {number} | {hops[number]} | {sum(branching(graph, q) for q in kept if q.hops == number) / hops[number]:.1f} |")
    kinds = Counter(wikidata.kind(graph, question.walk.entities[0]) for question in kept)
    answers = Counter(question.answer for question in kept)
    print(f"\nstarts: {', '.join(f'{n} × {kind}' for kind, n in kinds.most_common())}, {len({q.walk.entities[0] for q in kept})} different")
    print(f"answers: {len(answers)} different, the most frequent {', '.join(f'{a} {n}' for a, n in answers.most_common(5))}")
    print(f"conditions: {dict(sorted(Counter(len(q.conditions) for q in kept).items()))}")
    sheet = random.Random(f"sheet {given.seed}").sample(kept, given.sheet)
    rows = [f"| {i} | {q.text} | {q.answer} | {told(q)} | | |" for i, q in enumerate(sheet, 1)]
    top = ["| | question | answer | way | verdict | why |", "|---|---|---|---|---|---|"]
    given.out.write_text("\n".join([*top, *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
