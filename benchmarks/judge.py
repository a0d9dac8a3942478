"""What a verdict costs: the judge, a fresh sandboxed interpreter for each program, and a bare fork server, on the same programs.

    OMP_NUM_THREADS=1 taskset -c 1 python benchmarks/judge.py [--programs 200] [--repeats 5] [--jobs 10000]

The programs are the nano families' references, obvious and better, and each of them broken in one place. All three sides get the same
programs and calls, give the values that came back, and must agree. *Fresh* starts `bwrap … python -I -S` for each program, as a judge
without workers would; *fork* is a process that forks for each program and does nothing else: no limits, no walls, no nonce.
`--jobs` then judges that many in a row and looks for what they leave behind: memory, processes, files.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from nbcore.judge import sandbox
from nbcore.judge.values import plain
from nbcore.nano import programs

TEST = "\nimport json\nprint(json.dumps([{entry}(*given) for given in json.loads({calls!r})]))"


def listed(count: int) -> list[tuple[str, list]]:
    """(program, calls): references by turns, every third broken."""
    found, tasks = [], programs.tasks(count, 0, "held-out")
    for number in range(count):
        task = tasks[number % len(tasks)]
        text = task.program(fast=number % 2 == 0)
        if number % 3 == 2:
            text = text.replace("return ", "return 1 + ", 1)
        found.append((text, [json.loads(json.dumps(given)) for given, _ in task.cases(number)]))
    return found


def judge(some: list[tuple[str, list]]) -> list:
    jobs = [sandbox.Job(text, calls, programs.ENTRY) for text, calls in some]
    return [verdict.results if verdict.status == "ok" else None for verdict in sandbox.run(jobs)]


def fresh(some: list[tuple[str, list]]) -> list:
    walls = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--proc", "/proc",
             "--dev", "/dev", sandbox.PYTHON, "-I", "-S", "-c"]  # fmt: skip
    found = []
    for text, calls in some:
        line = [*walls, text + TEST.format(entry=programs.ENTRY, calls=json.dumps(calls))]
        done = subprocess.run(line, capture_output=True, text=True, timeout=20, check=False)
        found.append(json.loads(done.stdout) if done.returncode == 0 else None)
    return found


def forked(some: list[tuple[str, list]]) -> list:
    found = []
    for text, calls in some:
        read, write = os.pipe()
        if (pid := os.fork()) == 0:
            try:
                space: dict = {}
                exec(compile(text, "<program>", "exec"), space)
                os.write(write, json.dumps([plain(space[programs.ENTRY](*given)) for given in calls]).encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as said:
            answer = said.read()
        os.waitpid(pid, 0)
        found.append(json.loads(answer) if answer else None)
    return found


def endurance(some: list[tuple[str, list]], jobs: int) -> None:
    server = psutil.Process(sandbox._servers[0].process.pid)  # looked at, not used

    def state() -> tuple[float, int, int]:
        memory = sum(p.memory_info().rss for p in (psutil.Process(), server, *server.children(recursive=True))) / 2**20
        return memory, len(server.children(recursive=True)), len(list(Path(tempfile.gettempdir()).glob("judge-*/*")))

    judge(some)
    before, done = state(), 0
    while done < jobs:
        judge(some)
        done += len(some)
    after = state()
    grown = [now - then for now, then in zip(after, before, strict=True)]
    print(f"{done} jobs in a row: memory {grown[0]:+.1f} MiB, processes {grown[1]:+.0f}, files {grown[2]:+.0f}")


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--programs", type=int, default=200)
    reader.add_argument("--repeats", type=int, default=5)
    reader.add_argument("--jobs", type=int, default=10_000)
    given = reader.parse_args()
    some, sides = listed(given.programs), {"judge": judge, "fresh": fresh, "fork": forked}
    if not sandbox.bubblewrap(sandbox.SERVER):
        sys.exit("bubblewrap is missing or may not make namespaces: there is nothing to compare with.")
    few = some[:20]
    assert judge(few) == fresh(few) == forked(few), "the three sides disagree"
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(given.repeats):
        for name, side in random.Random(len(seconds["fork"])).sample(sorted(sides.items()), len(sides)):
            part = few if name == "fresh" else some
            began = time.perf_counter()
            side(part)
            seconds[name].append((time.perf_counter() - began) / len(part))
    best = {name: statistics.median(values) for name, values in seconds.items()}
    print("programs a second: " + ", ".join(f"{name} {1 / value:.0f}" for name, value in best.items()))
    gain, cost = best["fresh"] / best["judge"], best["judge"] / best["fork"]
    print(f"the judge does {gain:.1f} times as many as fresh, in {cost:.2f} of the time of fork")
    endurance(some, given.jobs)


if __name__ == "__main__":
    main()
