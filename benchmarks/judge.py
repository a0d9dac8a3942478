"""What a verdict costs: the judge, a fresh sandboxed interpreter for each program, and a bare fork server, on the same programs.

    OMP_NUM_THREADS=1 taskset -c 1 python benchmarks/judge.py [--programs 200] [--repeats 5] [--jobs 10000]

The list is fixed: references of thirteen nano families, obvious and better by turns, every third broken, with the calls of their tests.
The three families whose calls take long stay out, as their programs' own time would hide what the judge adds. All sides get the
same programs and calls, give the values that came back, and must agree. *Fresh* starts `bwrap … python -I -S`, as a judge without
workers would. *Fork* is this process, which forks for each program and does nothing else: no limits, no walls, no nonce. *Server* does
the same in a small process of its own, to which programs and values travel through pipes: what is left then is what safety costs.
Two comparisons: a program with all its calls in one process, and a process for each single call, which is how a test is run alone.
`--jobs` then judges that many in a row and looks for what they leave behind: memory, processes, files.
"""

from __future__ import annotations

import argparse
import functools
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

PRELOAD = "bisect collections copy datetime decimal fractions functools heapq itertools math operator random re string typing"
TEST = "\nimport json\nprint(json.dumps([{entry}(*given) for given in json.loads({calls!r})]))"


def listed(count: int) -> list[tuple[str, list]]:
    """(program, calls): references by turns, every third broken."""
    found, tasks = [], programs.tasks(count, 0, "held-out", hard=False)
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


SERVER = f"""
import importlib, json, os, sys
for name in {PRELOAD!r}.split():
    importlib.import_module(name)
compile("", "", "exec")
for line in sys.stdin:
    text, calls = json.loads(line)
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            space = {{}}
            exec(compile(text, "<program>", "exec"), space)
            os.write(write, json.dumps([space[{programs.ENTRY!r}](*given) for given in calls]).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as said:
        answer = said.read()
    os.waitpid(pid, 0)
    print(answer.decode() or "null", flush=True)
"""


@functools.cache
def bare() -> subprocess.Popen:
    return subprocess.Popen([sandbox.PYTHON, "-I", "-S", "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def served(some: list[tuple[str, list]]) -> list:
    found, server = [], bare()
    for one in some:
        server.stdin.write(json.dumps(one) + "\n")
        server.stdin.flush()
        found.append(json.loads(server.stdout.readline()))
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


def compare(what: str, some: list[tuple[str, list]], repeats: int) -> None:
    """Time the four sides on the list, in an order drawn anew each time, and print the ratios of their medians."""
    few, sides = some[:20], {"judge": judge, "fresh": fresh, "fork": forked, "server": served}
    assert judge(few) == fresh(few) == forked(few) == served(few), "the sides disagree"
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, side in random.Random(len(seconds["fork"])).sample(sorted(sides.items()), len(sides)):
            part = few if name == "fresh" else some
            began = time.perf_counter()
            side(part)
            seconds[name].append((time.perf_counter() - began) / len(part))
    best = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"{what}, a second: " + ", ".join(f"{name} {1 / value:.0f}" for name, value in best.items()))
    gain, cost, safety = best["fresh"] / best["judge"], best["judge"] / best["fork"], best["judge"] / best["server"]
    print(f"  the judge does {gain:.1f} times as many as fresh, in {cost:.2f} of the time of fork, {safety:.2f} of that of server")


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--programs", type=int, default=200)
    reader.add_argument("--repeats", type=int, default=5)
    reader.add_argument("--jobs", type=int, default=10_000)
    given = reader.parse_args()
    some = listed(given.programs)
    if not sandbox.bubblewrap(sandbox.SERVER):
        sys.exit("bubblewrap is missing or may not make namespaces: there is nothing to compare with.")
    compare("a program with all its calls", some, given.repeats)
    compare("one call", [(text, [calls[number % len(calls)]]) for number, (text, calls) in enumerate(some)], given.repeats)
    endurance(some, given.jobs)


if __name__ == "__main__":
    main()
