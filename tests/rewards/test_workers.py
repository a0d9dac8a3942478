"""Everything here runs in real worker processes."""

import importlib
import math
import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from nbcore.rewards import workers
from nbcore.rewards.workers import Missing, run

HELPERS = '''
import os, signal, subprocess, sys, threading, time

def burn(seconds):
    "Holds the interpreter's lock in one long call of C, where no Python signal handler runs."
    return 3 ** (10 ** 9) if seconds else 0

def die(number):
    if number < 0:
        os.kill(os.getpid(), -number)
    os._exit(number)

def parent_of_a_sleeper(path):
    with open(path, "w") as f:
        f.write(str(subprocess.Popen(["sleep", "60"]).pid))
    time.sleep(60)

def alarmed(seconds):
    "What math-verify's own time-outs do: only allowed in a main thread."
    def ring(*_):
        raise TimeoutError("rang")
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    time.sleep(5)

def noisy(text):
    print(text)
    os.write(1, text.encode())
    return text

def leave(code):
    sys.exit(code)

def unpicklable(_):
    return lambda: None

def greedy(mib):
    return len(bytearray(mib * 2**20))

class Inner:
    @staticmethod
    def method(_):
        return 1
'''


@pytest.fixture(scope="module")
def helpers(tmp_path_factory):
    """A module of functions that workers can import."""
    folder = tmp_path_factory.mktemp("importable")
    (folder / "worker_helpers.py").write_text(HELPERS, encoding="utf-8")
    sys.path.insert(0, str(folder))
    workers.close()  # workers know the path of the moment they start
    yield importlib.import_module("worker_helpers")
    sys.path.remove(str(folder))
    workers.close()


def idle():
    return [w.process.pid for w in workers._idle]


def test_values_come_back_in_the_order_of_the_arguments():
    assert run(math.sqrt, [i * i for i in range(50)], deadline=5) == [float(i) for i in range(50)]
    assert run(math.sqrt, [], deadline=5) == []


def test_an_exception_is_missing_for_its_item_and_the_worker_goes_on():
    got = run(math.sqrt, [4, -1, "x", 9], deadline=5, workers=1)
    assert got[0] == 2 and got[3] == 3
    assert got[1] == Missing("ValueError: math domain error")
    assert got[2].reason.startswith("TypeError")


def test_workers_are_kept_warm_and_do_not_share_the_parents_process():
    first = run(os.getpgid, [0, 0, 0, 0], deadline=5)
    assert run(os.getpgid, [0], deadline=5)[0] in set(first) and os.getpgid(0) not in first
    assert set(first) <= set(idle())


def test_an_item_over_its_deadline_is_killed_and_only_that_one_is_missing():
    run(time.sleep, [0, 0], deadline=5)
    before = set(idle())
    started = time.monotonic()
    assert run(time.sleep, [0, 30, 0, 0], deadline=0.3) == [None, Missing("deadline 0.3 s"), None, None]
    assert time.monotonic() - started < 10
    assert len(before - set(idle())) == 1 and not any(psutil.pid_exists(p) for p in before - set(idle()))


def test_a_call_that_holds_the_interpreters_lock_is_killed_too(helpers):
    assert run(helpers.burn, [1, 0], deadline=0.5) == [Missing("deadline 0.5 s"), 0]


def test_the_whole_process_group_dies_with_a_worker(helpers, tmp_path):
    assert run(helpers.parent_of_a_sleeper, [str(tmp_path / "pid")], deadline=1) == [Missing("deadline 1 s")]
    child = int((tmp_path / "pid").read_text())
    until = time.monotonic() + 5
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_budget_ends_the_batch(helpers):
    run(time.sleep, [0, 0], deadline=5)
    started = time.monotonic()
    got = run(time.sleep, [0, 30, 30, 30, 0], deadline=20, budget=0.5)
    assert got == [None, *[Missing("budget 0.5 s for the batch")] * 4]
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(("number", "reason"), [(-9, "(signal 9)"), (-11, "(signal 11)"), (3, "(exit code 3)"), (0, "(exit code 0)")])
def test_a_worker_that_dies_is_replaced_and_says_how_it_died(helpers, number, reason):
    got = run(helpers.die, [number, number], deadline=5, workers=1)
    assert got == [Missing(f"worker died {reason}")] * 2
    assert run(math.sqrt, [4], deadline=5, workers=1) == [2.0]


def test_what_is_no_value_is_missing_with_a_reason(helpers):
    assert run(helpers.leave, [0], deadline=5) == [Missing("SystemExit: 0")]
    assert "pickle" in run(helpers.unpicklable, [0], deadline=5)[0].reason
    assert run(helpers.greedy, [16, 100_000], deadline=10) == [16 * 2**20, Missing("MemoryError: ")]


def test_printing_is_not_answering(helpers):
    assert run(helpers.noisy, ["hello" * 1000] * 20, deadline=5) == ["hello" * 1000] * 20


def test_an_alarm_works_in_the_worker_and_from_a_thread_of_ours(helpers):
    got = []
    thread = threading.Thread(target=lambda: got.extend(run(helpers.alarmed, [0.1], deadline=5)))
    thread.start()
    thread.join(30)
    assert got == [Missing("TimeoutError: rang")]
    # the thread that started the worker is gone; the worker is not
    warm = idle()
    assert run(os.getpgid, [0], deadline=5)[0] in warm


def test_several_threads_have_workers_of_their_own():
    got = {}
    threads = [threading.Thread(target=lambda n=n: got.update({n: run(math.sqrt, [n * n] * 20, deadline=5)})) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert got == {n: [float(n)] * 20 for n in range(4)}


def test_a_worker_killed_while_idle_costs_nothing():
    run(math.sqrt, [1, 1], deadline=5)
    for pid in idle():
        os.kill(pid, signal.SIGKILL)
    assert run(math.sqrt, [4, 9], deadline=5) == [2.0, 3.0]


@pytest.mark.parametrize("function", [lambda x: x, "math.sqrt", "".join], ids=["lambda", "text", "method"])
def test_what_a_worker_cannot_import_or_be_sent_is_refused_before_anything_runs(function):
    with pytest.raises(ValueError, match="top level of a module"):
        run(function, [1], deadline=1)


def test_bad_arguments_and_limits_are_refused(helpers):
    with pytest.raises(ValueError, match="Argument 1 cannot be sent"):
        run(math.sqrt, [1, lambda: None], deadline=1)
    with pytest.raises(ValueError, match="top level"):
        run(helpers.Inner.method, [1], deadline=1)
    with pytest.raises(ValueError, match="deadline, budget and workers"):
        run(math.sqrt, [1], deadline=0)
    with pytest.raises(RuntimeError, match="cannot import no_such_module.*No module named"):
        run(math.sqrt, [1], deadline=1, imports=["no_such_module"])


SCRIPT = """
import os, sys, time
from nbcore.rewards import workers
sys.path.insert(0, sys.argv[1])
import worker_helpers
workers.run(worker_helpers.burn, [0], deadline=5, workers=2)
print(*[w.process.pid for w in workers._idle], flush=True)
what, argument = (worker_helpers.burn, 1) if sys.argv[2] == "burn" else (time.sleep, 600)
import threading
threading.Timer(0.3, os.kill, (os.getpid(), 9)).start()
workers.run(what, [argument], deadline=0.6 if sys.argv[2] == "burn" else 600)
"""


@pytest.mark.parametrize("busy", ["sleep", pytest.param("burn", marks=pytest.mark.slow)])
def test_a_worker_dies_with_its_parent_whatever_it_is_doing(helpers, busy, eventually):
    folder = os.path.dirname(helpers.__file__)
    parent = subprocess.run([sys.executable, "-c", SCRIPT, folder, busy], capture_output=True, text=True, timeout=60)
    pids = [int(p) for p in parent.stdout.split()]
    assert parent.returncode == -9 and pids, parent.stderr
    eventually(lambda: not any(psutil.pid_exists(p) for p in pids), "the workers are gone", seconds=20)
