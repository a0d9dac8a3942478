"""What the search tools and the agent loop cost.

    OMP_NUM_THREADS=1 taskset -c 1 python benchmarks/search.py [PASSAGES.json] [--queries 2000] [--episodes 64]

Index: seconds to open a finished one in a fresh process and answer a first query, and queries per second of CPU, over passages (a JSON list
of title and text; without one, passages are made up). Queries are three to ten words in a row from the passages: far harder than titles.
The same queries over a plain scan of the texts are the floor that the index is compared with.
Loop: episodes of the nano model with its search tool; the share of CPU that is not spent inside the model's sampling.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nbcore import models
from nbcore.models.generate import Completion
from nbcore.nano import deep
from nbcore.nano.tokenizer import SEARCH
from nbcore.search.agent import Budget, Policy, play, policy
from nbcore.search.index import WORDS, Index, build

OPEN = "import sys, time; from pathlib import Path; from nbcore.search.index import Index\nt = time.perf_counter()\n" \
       "Index(Path(sys.argv[1])).search('river capital'); print(time.perf_counter() - t)"  # fmt: skip


def passages(path: Path | None) -> dict[str, str]:
    if path is not None:
        return {p["title"]: p["text"] for p in json.loads(path.read_text(encoding="utf-8"))}
    rng = random.Random("passages")
    words = ["".join(rng.choice("aeioubdfgklmnprst") for _ in range(rng.randint(2, 9))) for _ in range(20_000)]
    chances = [1 / (rank + 1) for rank in range(len(words))]  # as in real text, few words stand everywhere
    return {f"Page {i}": " ".join(rng.choices(words, chances, k=70)) for i in range(6000)}


def searching(texts: dict[str, str], count: int) -> None:
    rng, bodies = random.Random("queries"), list(texts.values())
    asked = []
    while len(asked) < count:
        words = WORDS.findall(rng.choice(bodies))
        asked += [" ".join(words[3 : 3 + rng.randint(3, 10)])] if len(words) > 5 else []
    with tempfile.TemporaryDirectory() as folder:
        path, began = Path(folder) / "pages.db", time.process_time()
        build(path, texts)
        print(f"{len(texts)} passages built in {time.process_time() - began:.2f} s, {path.stat().st_size / 2**20:.1f} MiB")
        told = [subprocess.run([sys.executable, "-c", OPEN, path], capture_output=True, text=True, check=True).stdout for _ in range(5)]
        print(f"opened, with a first query: {1000 * sorted(map(float, told))[2]:.1f} ms")
        pages = Index(path)
        began = time.process_time()
        for query in asked:
            pages.search(query)
        rate = count / (time.process_time() - began)
        few, began = asked[: max(1, count // 100)], time.process_time()
        for query in few:
            wanted = set(WORDS.findall(query.casefold()))
            sorted(texts, key=lambda title: -len(wanted & set(WORDS.findall(texts[title].casefold()))))[:5]
        floor = len(few) / (time.process_time() - began)
        print(f"{rate:,.0f} queries a second and core; a scan of the texts answers {floor:.1f}, {rate / floor:,.0f} times fewer")


def looping(count: int) -> None:
    loaded, inside = models.load("nano"), [0.0]
    writes = policy(loaded.model, loaded.tokenizer, temperature=1.0)
    called = json.dumps({"name": "search", "arguments": {"query": "river of it"}})
    turn = f"<think>\nx\n</think>\n\n<tool_call>\n{called}\n</tool_call>"
    ids = loaded.tokenizer.encode(turn + "<|im_end|>")

    def write(prompts, new, seed):
        began = time.process_time()
        writes.write(prompts, len(ids), seed)  # its time is real; the base writes no calls: one is put in the place of its words
        inside[0] += time.process_time() - began
        return [Completion(ids, turn, True, [0.0] * len(ids)) for _ in prompts]

    asked = deep.tasks(count, 0)[0]

    def played(tasks, turns):
        play(Policy(write, writes.room), loaded.tokenizer, [t.conversation for t in tasks], [SEARCH], lambda i, call: tasks[i].call(call),
             Budget(turns=turns))  # fmt: skip

    played(asked[:1], 1)  # imports and first calls are not the loop's
    inside[0], began = 0.0, time.process_time()
    played(asked, 5)
    spent = time.process_time() - began
    print(f"{count} episodes of 5 turns of {len(ids)} tokens: {spent:.2f} s, outside sampling {(spent - inside[0]) / spent:.1%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passages", type=Path, nargs="?")
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--episodes", type=int, default=64)
    given = parser.parse_args()
    searching(passages(given.passages), given.queries)
    looping(given.episodes)
