"""How many answers the rule rewards judge a second, beside a floor of the same run. One thread, no worker processes.

    OMP_NUM_THREADS=1 python benchmarks/answers.py [rounds]

The floor is one regular expression that finds the number, and int() of both sides: less than any correct verdict can do.
`numbers_equal` gets answers already found, in ten ways of writing; `equal` gets whole completions. math-verify, on the same
completions in this process, is what the fast path spares. Prints answers a second (median) and ratios. Read the ratios.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Callable

from nbcore.rewards.answer import decide, equal, numbers_equal
from nbcore.rewards.repetition import is_repetitive, words

WRITTEN = [
    ("72", "72"), ("72", "73"), ("1,234", "1234"), ("0.5", "1/2"), ("$12.50", "12.5"),
    ("-3", "-3"), ("\\frac{3}{4}", "0.75"), ("15\\%", "15%"), ("$42$", "42"), ("1024", "1024.0"),
]  # fmt: skip
SOLUTION = "She sold 48 / 2 = 24 clips in May. In April and May together she sold 48 + 24 = 72 clips.\n"
COMPLETIONS = [f"<think>\n{SOLUTION}</think>\n\n{end}" for end in ("72", "\\boxed{72}", "The answer is 72.", "That makes 72 clips.")]
NUMBER = re.compile(r"-?\d+")


def floor(pairs: list[tuple[str, str]]) -> None:
    for answer, gold in pairs:
        _ = int(NUMBER.search(answer).group()) == int(NUMBER.search(gold).group())


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    pairs, texts = WRITTEN * 2000, COMPLETIONS * 2500
    long = [words(SOLUTION * 40)] * 20
    asked = [(text, "$72$") for text in COMPLETIONS] * 5
    decide(asked[0])  # imports and builds its tables
    jobs: dict[str, tuple[int, Callable[[], object]]] = {
        "floor": (len(pairs), lambda: floor(pairs)),
        "numbers_equal": (len(pairs), lambda: [numbers_equal(a, g) for a, g in pairs]),
        "equal, whole completions": (len(texts), lambda: equal(texts, ["72"] * len(texts))),
        "math-verify, the same": (len(asked), lambda: [decide(pair) for pair in asked]),
        "is_repetitive, words": (sum(map(len, long)), lambda: [is_repetitive(text) for text in long]),
    }
    rates: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, (count, job) in jobs.items():
            started = time.process_time()
            job()
            rates[name].append(count / (time.process_time() - started))
    middle = {name: statistics.median(found) for name, found in rates.items()}
    for name, rate in middle.items():
        print(f"{name:<26} {rate:>12,.0f} a second   {rate / middle['floor']:.4f} of the floor")


if __name__ == "__main__":
    main()
