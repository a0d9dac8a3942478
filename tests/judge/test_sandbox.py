"""Everything here runs real programs in the real sandbox."""

import json
import marshal
import multiprocessing
import os
import signal
import socket
import threading
import time
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from nbcore.judge import sandbox
from nbcore.judge.sandbox import Job, Limits, capabilities, run

QUICK = Limits(cpu_seconds=1, wall_seconds=1.0, memory_mib=256, output_kib=64)


def needs_a_server(walls):
    if walls == "without forks":
        pytest.skip("there is no server")


@pytest.fixture(scope="module", autouse=True, params=["behind bubblewrap", "without it", "without forks"])
def walls(request):
    """Each test three times: with the walls that this machine can build, as without bubblewrap, and as on a system that can't fork."""
    sandbox.close()
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "without it":
            patch.setattr(sandbox, "bubblewrap", lambda server: ())
        elif request.param == "without forks":
            patch.setattr(sandbox, "FORKS", False)
        elif not sandbox.bubblewrap(sandbox.SERVER):
            pytest.skip("there is no bubblewrap here that may make namespaces")
        yield request.param
        sandbox.close()


def one(program, *calls, limits=QUICK):
    return run([Job(program, calls or [()], "f")], limits)[0]


def test_results_come_back_per_call():
    verdict = one("def f(x, y=1):\n    return x + y", (1,), (2, 3), limits=Limits())
    assert (verdict.status, verdict.results, verdict.errors, verdict.message) == ("ok", [2, 5], {}, "")
    assert (0 < verdict.cpu_seconds < 1) if sandbox.FORKS else verdict.cpu_seconds is None


def test_verdicts_keep_the_order_of_the_jobs():
    jobs = [Job(f"def f(): return {i}", [()], "f") for i in range(30)]
    for workers in (1, 4):
        assert [v.results for v in run(jobs, workers=workers)] == [[i] for i in range(30)]
    assert run([]) == []


def test_arguments_arrive_as_they_are_and_values_leave_as_json():
    verdict = one("def f(*a): return [type(x).__name__ for x in a]", ((1,), [1], {1}, {1: "a"}, None, True, 1.5, b"x"))
    assert verdict.results == [["tuple", "list", "set", "dict", "NoneType", "bool", "float", "bytes"]]
    verdict = one("def f(): return {1: (2, 3)}, {3, 1}, float('inf')")
    assert verdict.results == [{"\0tuple": [{"\0pairs": [[1, {"\0tuple": [2, 3]}]]}, {"\0set": [1, 3]}, float("inf")]}]
    assert one("def f(): return object()").results == [{"\0object": "object"}]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("def f(): return 1 / 0", "ZeroDivisionError"),
        ("def f(): raise SystemExit(0)", "SystemExit"),
        ("def f(): raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def f():\n    a = []\n    a.append(a)\n    return a", "RecursionError"),
        ("import no_such_module", "ModuleNotFoundError"),
        ("def g(): pass", "defines no 'f'"),
        ("f = 3", "not callable"),
        ("import os\nos._exit(0)", "ended by itself after 0 of 1"),
        ("import os, signal\ndef f(): os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("import os, signal\ndef f(): os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import os\ndef f():\n    os.closerange(0, 99)\n    return 1", "Bad file descriptor"),
        ("def f():\n    open('x', 'w').write('a' * 10**6)", "File too large"),
        ("class E(Exception):\n    def __str__(self): raise self\ndef f(): raise E()", "ended by itself"),
    ],
)
def test_a_failing_program_is_an_error_with_its_reason(program, message):
    verdict = one(program)
    if "Bad file" in message:  # it cut its own line: no result, whatever the way it is noticed
        assert (verdict.status, verdict.results) == ("error", [])
    else:
        assert verdict.status == "error"
        assert message in verdict.message


@pytest.mark.parametrize("program", ["def f(", "\0", "def f():\n\treturn 1\n        return 2", "return 1"])
def test_what_is_no_python_does_not_compile(program):
    assert one(program).status == "compile"


def test_results_without_end_are_cut_off():
    verdict = one("def f(): return 'a' * 10**6")
    assert verdict.status == "output" and "more than 64 KiB of results" in verdict.message


def test_results_of_any_length_of_digits_arrive():
    assert one("def f(): return 7 ** 20000").results == [{"\0int": hex(7**20000)}]


def script(program, stdin="", **limits):
    return run([Job(program, [(stdin,)], None)], Limits(cpu_seconds=2, wall_seconds=10, output_kib=64, **limits))[0]


@pytest.mark.parametrize(
    ("program", "stdin", "printed"),
    [
        ("print(sum(map(int, input().split())))", "1 2 3\n", "6\n"),
        ("import sys\nfor line in sys.stdin: print(line.strip()[::-1])", "ab\ncd", "ba\ndc\n"),
        ("import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read())", "日本 \r\n", "日本 \r\n"),
        ("import sys\nsys.stdout.buffer.write(b'\\xff\\xfe')", "", "\ufffd\ufffd"),
        ("import os\nos.write(1, os.read(0, 5))", "12345678", "12345"),
        ("if __name__ == '__main__':\n    print(open(0).read())", "x", "x\n"),
        ("print('a')\nexit()", "", "a\n"),
        ("import sys\nprint('a', file=sys.stderr)\nsys.exit(0)", "", ""),
        ("print(len(str(3 ** 10000)))", "", "4772\n"),
    ],
)
def test_a_script_has_a_real_standard_input_and_output(program, stdin, printed):
    verdict = script(program, stdin)
    assert (verdict.status, verdict.results) == ("ok", [printed])


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("1 / 0", "error"), ("exit(3)", "error"), ("input()", "error"), ("print('x'", "compile"), ("x = [0] * 10**9", "memory"),
        ("while True: print('x' * 1000)", "output"), ("while True: pass", "timeout"), ("import sys\nsys.stdout = None", "error"),
        ("try:\n    while True: print('x' * 1000)\nexcept OSError: pass", "output"),
    ],
)  # fmt: skip
def test_a_script_that_fails_says_how(program, status):
    assert script(program).status == status


def test_one_call_cannot_answer_for_another():
    # It finds the secrets of all its calls and answers the second before the first: what arrives out of its place is not counted.
    program = """
import os, sys
def f(x):
    frame = sys._getframe(1)
    if x == 0:
        os.write(frame.f_locals["board"], b"\\n" + frame.f_locals["nonces"][2] + b'["value", 99]\\n')
    return x
"""
    assert one(program, (0,), (1,)).results == [0, 1]


def test_a_call_that_raises_does_not_hide_the_others():
    verdict = one("def f(x): return 1 / x", (1,), (0,), (2,))
    assert (verdict.status, verdict.results) == ("error", [1.0, None, 0.5])
    assert list(verdict.errors) == [1]


@pytest.mark.parametrize(
    "program",
    [
        "def f():\n    while True: pass",
        "import time\ndef f(): time.sleep(60)",
        "import signal\nfor s in (signal.SIGXCPU, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\ndef f():\n    while True: pass",
        "while True: pass",
        "import sys\nwhile True:\n    try: sys.stdin.read(); 1 / 0\n    except BaseException: pass",
    ],
)
def test_a_program_that_does_not_end_is_a_timeout(program):
    start = time.monotonic()
    assert one(program, limits=Limits(cpu_seconds=1, wall_seconds=0.6)).status == "timeout"
    assert time.monotonic() - start < 30


def test_cpu_time_is_limited_by_itself():
    verdict = one("def f():\n    while True: pass", limits=Limits(cpu_seconds=1, wall_seconds=30))
    assert (verdict.status, "of CPU" in verdict.message) == ("timeout", True)


def test_what_was_answered_before_the_deadline_is_kept():
    verdict = one("def f(x):\n    while x: pass\n    return 7", (0,), (0,), (1,), limits=Limits(wall_seconds=0.5))
    assert (verdict.status, verdict.results) == ("timeout", [7, 7])


@pytest.mark.parametrize("program", ["def f(): return len(bytearray(10**10))", "a = [0] * 10**9\ndef f(): pass"])
def test_memory_is_limited(program):
    assert one(program).status == "memory"


def test_printing_cannot_be_mistaken_for_answering():
    program = """
import os, sys
def f():
    for fd in range(0, 3):
        os.write(fd, b'\\n["value", 42]\\n["end", null]\\n')
    for fd in range(3, 64):
        try: os.write(fd, b'\\n' + b'0' * 32 + b'["value", 42]\\n\\n["end", null]\\n')
        except OSError: pass
    print('["value", 42]')
    return 1
"""
    assert one(program).results == [1]


def test_more_answers_than_calls_are_not_believed():
    # The worst a program can do with the nonce of its channel in hand: it may say any value, but only one per call.
    program = """
import sys
def f():
    tell = sys._getframe(1).f_locals["tell"]
    for _ in range(5): tell("value", 42)
    return 1
"""
    verdict = one(program)
    assert verdict.results == [42]


def test_a_program_finds_nothing_of_ours():
    os.environ["NBCORE_TEST_SECRET"] = "x"
    program = "import os, sys\ndef f(): return [dict(os.environ), os.listdir('.'), sys.stdin.read(), 'nbcore' in sys.modules, sys.argv[1:]]"
    environment, files, stdin, ours, _ = one(program).results[0]
    assert (environment, files, stdin, ours) == ({}, [], "", False)


def test_behind_the_walls_nothing_of_this_machine_is_seen_or_changed(walls, tmp_path):
    if walls != "behind bubblewrap":
        assert not capabilities()["files_hidden"]
        return
    assert capabilities()["files_hidden"] and capabilities()["network_blocked"] and capabilities()["pid_namespace"]
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    program = """
import os
def f(path):
    wrote = []
    for folder in ('/', '/usr', '/python', '/dev', '/dev/shm', '/tmp', '/var/tmp', '/judge'):
        try: open(folder + '/left', 'w').write('x'); wrote.append(folder)
        except OSError: pass
    return [os.path.exists(path), os.path.exists('/home') or os.path.exists('/root'), sorted(wrote), os.path.exists('/etc/passwd')]
"""
    exists, homes, wrote, users = one(program, (str(tmp_path / "secret"),)).results[0]
    assert (exists, homes, users) == (False, False, False)
    assert set(wrote) <= {"/judge"}  # the sandbox's own folder; another job must not find it there
    assert "left" not in one("import os\ndef f(): return os.listdir('/judge')").results[0]


def test_jobs_do_not_see_each_other():
    first = Job("open('left', 'w').write('x')\nimport math\nmath.pi = 3\ndef f(): return 1", [()], "f")
    second = Job("import os, math\ndef f(): return [os.listdir('.'), math.pi]", [()], "f")
    assert run([first, second])[1].results == [[[], pytest.approx(3.14159, abs=1e-5)]]


def test_runs_are_repeatable():
    program = "import random\ndef f(): return [random.random(), list({'a', 'b', 'c', 'd'}), hash('x')]"
    first = one(program)
    sandbox.close()
    assert one(program).results == first.results


def test_the_network_is_blocked_where_capabilities_say_so():
    if not capabilities()["network_blocked"]:
        pytest.skip("this machine does not permit it")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        verdict = one(f"import socket\ndef f(): socket.create_connection(('127.0.0.1', {port}), 1)")
    assert verdict.status == "error"
    assert "unreachable" in verdict.message or "refused" in verdict.message


def test_a_program_cannot_kill_the_judge_where_capabilities_say_so():
    if not (capabilities()["pid_namespace"] or capabilities()["separate_user"]):
        pytest.skip("this machine does not permit it")
    server = sandbox._servers[0].process.pid
    one("import os, signal\ndef f():\n    for p in (1, os.getppid(), -1):\n        os.kill(p, signal.SIGKILL)")
    assert one("def f(): return 1").results == [1]
    assert sandbox._servers[0].process.pid == server


def test_no_process_outlives_its_job(walls):
    needs_a_server(walls)
    program = """
import os, time
def f():
    if os.fork() == 0:
        os.setsid()
        time.sleep(61.25)
    return 1
"""
    one("def f(): return 1")
    server = psutil.Process(sandbox._servers[0].process.pid)
    ours = len(server.children(recursive=True))
    verdict = one(program)
    assert verdict.results == [1] or "Resource temporarily unavailable" in verdict.message
    if capabilities()["pid_namespace"] or capabilities()["no_new_processes"]:
        one("def f(): return 1")
        deadline = time.monotonic() + 2
        while len(server.children(recursive=True)) > ours and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(server.children(recursive=True)) <= ours


def test_a_server_that_dies_is_started_again_and_no_job_is_lost(walls):
    needs_a_server(walls)
    run([Job("def f(): return 1", [()], "f")])
    victim = sandbox._servers[0].process.pid
    threading.Timer(0.3, os.kill, (victim, signal.SIGKILL)).start()
    verdicts = run([Job("import time\ndef f():\n    time.sleep(0.05)\n    return 1", [()], "f")] * 20)
    assert [v.results for v in verdicts] == [[1]] * 20
    assert sandbox._servers[0].process.pid != victim


def test_a_judge_that_cannot_run_says_missing_and_nothing_else(walls, monkeypatch, tmp_path):
    sandbox.close()
    broken = tmp_path / "server.py"
    broken.write_text("raise SystemExit(1)", encoding="utf-8")
    monkeypatch.setattr(sandbox, "SERVER", broken)
    verdicts = run([Job("def f(): return 1", [()], "f")] * 2)
    assert [(v.status, v.results) for v in verdicts] == [("missing", [])] * 2
    needs_a_server(walls)
    with pytest.raises(RuntimeError, match="does not start"):
        capabilities()


def test_without_forks_every_capability_is_denied_and_doctor_can_say_so(walls):
    if walls == "without forks":
        assert capabilities() and not any(capabilities().values())
    else:
        assert capabilities()["memory_limited"] and set(capabilities()) == set(sandbox.NOTHING)


def test_a_system_that_refuses_limits_still_runs_jobs(monkeypatch, tmp_path):
    import subprocess
    import sys

    script = (  # importing resource fails, as on Windows
        "import runpy, sys\nsys.modules['resource'] = None\nsys.argv.append('once')\n"
        "runpy.run_path(sys.argv[1] + '/server.py', run_name='__main__')\n"
    )
    for path in (sandbox.SERVER, *sandbox.BESIDE):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "cwd").mkdir()
    request = marshal.dumps((("def f(x):\n    return x + 1", "f", [(1,)]), asdict(QUICK), [b"a" * 16, b"b" * 16, b"c" * 16]))
    subprocess.run([sys.executable, "-S", "-c", script, str(tmp_path)], input=request, timeout=60, check=False)
    assert b'["value", 2]' in (tmp_path / "board").read_bytes()


def test_threads_and_forked_copies_of_the_caller_may_use_it():
    answers = []
    threads = [threading.Thread(target=lambda i=i: answers.append(one(f"def f(): return {i}").results[0])) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == list(range(8))
    one("def f(): return 0")
    queue = multiprocessing.get_context("fork").Queue()
    copy = multiprocessing.get_context("fork").Process(target=lambda: queue.put(one("def f(): return 5").results))
    copy.start()
    assert queue.get(timeout=20) == [5]
    copy.join()
    assert one("def f(): return 6").results == [6]


def test_the_server_ends_with_its_parent(tmp_path):
    import subprocess
    import sys

    script = (
        "import os, json, psutil\nfrom nbcore.judge import sandbox\nsandbox.capabilities()\ns = sandbox._servers[0]\n"
        "pids = [s.process.pid] + [c.pid for c in psutil.Process(s.process.pid).children(recursive=True)]\n"
        "print(json.dumps(pids), flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    pids = json.loads(done.stdout)
    deadline = time.monotonic() + 5
    while any(psutil.pid_exists(p) for p in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(psutil.pid_exists(p) for p in pids)


def test_arguments_that_cannot_be_sent_are_the_callers_fault():
    with pytest.raises(ValueError, match="Job 0 has an argument"):
        one("def f(x): return x", (object(),))


def test_a_stages_fingerprint_follows_the_files_that_run_beside():
    from nbcore.jobs.reach import reachable

    found = reachable(["from nbcore.judge import programs"], Path(sandbox.__file__).parents[2])
    assert {f"nbcore/judge/{name}.py" for name in ("server", "values", "isolation", "assertions", "checkers")} <= set(found)
