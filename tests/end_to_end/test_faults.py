"""What goes wrong, done for real: after each fault the exit code is right, the status true, no process is left, what was finished is
kept, and `--resume` ends as a run does that nobody disturbed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from nbcore.jobs.processes import members
from nbcore.results import read_metrics, read_result

pytestmark = pytest.mark.slow

DATA = (
    "rows: int = 5  # how many",
    "from nbcore import stage\nrun = stage.open('data')",
    "(run.artifacts / 'rows.txt').write_text(' '.join(map(str, range(rows))))",
    "run.finish(metrics={'rows': rows}, artifacts={'rows': 'artifacts/rows.txt'})",
)
# Squares, with a checkpoint after each step; waits at step 3 while the file `hold` exists, with a grandchild in a session of its own.
COUNT = (
    "steps: int = 6  # squares to count\nhold: str = ''  # a file to wait for",
    "import json, subprocess, time\nfrom pathlib import Path\nfrom nbcore import stage\nfrom nbcore.files import atomic_write",
    "run = stage.open('count', needs=('data',))\nsaved = run.checkpoints / 'state.json'",
    "squares = json.loads(saved.read_text()) if run.resuming else []\n"
    "child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
    "for step in range(len(squares), steps):\n"
    "    while step == 3 and Path(hold).is_file():\n"
    "        time.sleep(0.02)\n"
    "    squares.append(step * step)\n"
    "    atomic_write(saved, json.dumps(squares))\n"
    "    run.log(step=step + 1, total=steps, square=squares[-1])\n"
    "child.kill()",
    "run.check(len(squares) == steps, 'every square was counted')\n(run.artifacts / 'sum.json').write_text(json.dumps(sum(squares)))",
    "run.finish(metrics={'sum': sum(squares)}, artifacts={'sum': 'artifacts/sum.json'})",
)
STAGES = "data: {}\ncount: {needs: [data], parameters: {hold: '%s'}}\n"


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory) -> Path:
    """A finished run of data and count; its first stage is what the runs of the tests find finished."""
    from kitchen import Kitchen

    kitchen = Kitchen(tmp_path_factory.mktemp("undisturbed"))
    kitchen.notebook("data", *DATA)
    kitchen.notebook("count", *COUNT)
    kitchen.recipe(STAGES % "")
    code, printed = kitchen.run()
    assert code == 0, printed
    return kitchen.newest


@pytest.fixture
def counting(kitchen, undisturbed) -> object:
    """A kitchen where data is finished and count waits half-way while the file kitchen.hold exists."""
    kitchen.notebook("data", *DATA)
    kitchen.notebook("count", *COUNT)
    kitchen.hold = kitchen.folder / "hold"
    kitchen.hold.touch()
    kitchen.recipe(STAGES % kitchen.hold)
    finished = kitchen.runs / undisturbed.name
    shutil.copytree(undisturbed, finished)
    shutil.rmtree(finished / "stages" / "count")
    return kitchen


def kernel(run: Path) -> psutil.Process:
    return next(p for p in members("NBCORE_RUN_ID", run.name) if "nbcore.jobs.kernel" in p.cmdline())


def part(run: Path, module: str) -> psutil.Process:
    return next(p for p in members("NBCORE_RUN_ID", run.name) if f"nbcore.jobs.{module}" in p.cmdline())


VICTIMS = {
    "kernel": lambda runner, run: kernel(run).kill(),
    "worker": lambda runner, run: part(run, "worker").kill(),
    "guardian": lambda runner, run: part(run, "guardian").kill(),
    "runner": lambda runner, run: runner.kill(),
    "runner's group": lambda runner, run: os.killpg(runner.pid, signal.SIGKILL),
    "runner and guardian": lambda runner, run: (part(run, "guardian").kill(), runner.kill()),
    "all": lambda runner, run: [p.kill() for p in [psutil.Process(runner.pid), *members("NBCORE_RUN_ID", run.name)]],
    "runner by SIGINT": lambda runner, run: runner.send_signal(signal.SIGINT),
    "runner by SIGTERM": lambda runner, run: runner.send_signal(signal.SIGTERM),
}
EXPECTED = {  # exit code of the runner, state of the stage, words of its error
    "kernel": (1, "failed", "kernel died at code cell 4 of 6: it was killed by SIGKILL. Most likely it ran out of memory"),
    "worker": (3, "killed", "killed by SIGKILL at code cell 4 of 6"),
    "guardian": (3, "killed", "guardian of the stage was killed by SIGKILL at code cell 4 of 6"),
    "runner": (-9, "killed", "runner was killed"),
    "runner's group": (-9, "killed", "runner was killed"),
    "runner and guardian": (-9, "killed", "runner was killed"),
    "all": (-9, "killed", "runner was killed"),
    "runner by SIGINT": (3, "interrupted", "Interrupted at code cell 4 of 6. nbcore got SIGINT"),
    "runner by SIGTERM": (3, "interrupted", "Interrupted at code cell 4 of 6. nbcore got SIGTERM"),
}


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_kill_in_the_middle_is_told_truly_and_resumed(counting, undisturbed, eventually, nothing_left, victim):
    runner = counting.start()
    eventually(lambda: len(list(counting.runs.glob("*/stages/count/artifacts/checkpoints/state.json"))) == 1, "a first checkpoint")
    run = counting.newest
    eventually(lambda: len(read_metrics(run / "stages" / "count")) == 3, "three steps")
    VICTIMS[victim](runner, run)
    runner.communicate(timeout=30)
    nothing_left(run)

    code, state, words = EXPECTED[victim]
    assert runner.returncode == code
    status = counting.status(run)
    assert status["stages"]["data"]["state"] == "reused"
    assert status["stages"]["count"]["state"] == state
    assert words in status["stages"]["count"]["error"]
    assert status["state"] == state
    assert "code cell 4 of 6" in (run / "stages" / "count" / "log.txt").read_text(encoding="utf-8")
    assert not (run / "stages" / "count" / "fingerprint.json").exists()

    counting.hold.unlink()
    code, printed = counting.run("--resume", run.name)
    assert code == 0, printed
    nothing_left(run)
    same_as_undisturbed(run, undisturbed)
    assert counting.stage("count", run)["attempt"] == 2


def same_as_undisturbed(run: Path, undisturbed: Path) -> None:
    ours, theirs = run / "stages" / "count", undisturbed / "stages" / "count"
    assert read_result(ours)["metrics"] == read_result(theirs)["metrics"]
    assert (ours / "artifacts" / "sum.json").read_bytes() == (theirs / "artifacts" / "sum.json").read_bytes()
    squares = [[(row["step"], row["square"]) for row in read_metrics(folder)] for folder in (ours, theirs)]
    assert squares[0] == squares[1]


def test_the_saved_notebook_of_a_killed_stage_says_so_itself(counting, eventually):
    runner = counting.start()
    eventually(lambda: list(counting.runs.glob("*/stages/count/metrics.jsonl")), "a first step")
    run = counting.newest
    eventually(lambda: len(read_metrics(run / "stages" / "count")) == 3, "three steps")
    kernel(run).kill()
    runner.communicate(timeout=30)
    notebook = json.loads((run / "stages" / "count" / "notebook.ipynb").read_text(encoding="utf-8"))
    assert "This stage did not succeed: failed" in notebook["cells"][0]["source"]
    said = [c["metadata"]["papermill"]["status"] for c in notebook["cells"] if c["cell_type"] == "code"]
    assert said == ["completed"] * 4 + ["failed"] + ["pending"] * 2  # one more than the six: papermill's injected cell


def mount(folder: Path, size: str) -> bool:
    folder.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    return subprocess.run(line, capture_output=True, check=False).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path):
    """Two MiB that can be filled."""
    disk = tmp_path / "disk"
    if shutil.which("mount") is None or not mount(disk, "2m"):
        pytest.skip("no right to mount a small file system here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_fills_up_ends_the_stage_with_a_sentence(kitchen, small_disk, nothing_left):
    kitchen.runs = small_disk / "runs"
    kitchen.notebook("data", *DATA)
    fill = "(run.artifacts / 'big.bin').write_bytes(bytes(size))"
    kitchen.notebook("fill", "size: int = 4_000_000  # bytes", "from nbcore import stage\nrun = stage.open('fill')", fill, "run.finish()")
    kitchen.recipe("data: {}\nfill: {}\n")
    code, printed = kitchen.run()
    run = kitchen.newest
    nothing_left(run)
    assert code == 1
    assert "Traceback" not in printed
    assert kitchen.stage("data")["state"] == "done"
    assert kitchen.stage("fill")["state"] == "failed"
    assert "disk is full" in kitchen.stage("fill")["error"]
    assert kitchen.status()["exit_code"] == 1
    read_result(run / "stages" / "data")

    for big in small_disk.rglob("big.bin"):
        big.unlink()
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    code, printed = kitchen.run("--resume", run.name)
    assert code == 0, printed
    assert kitchen.stage("data", run)["attempt"] == 1


def test_a_disk_full_from_the_start_is_one_sentence(kitchen, small_disk):
    kitchen.runs = small_disk / "runs"
    kitchen.runs.mkdir()
    with pytest.raises(OSError, match="No space"):
        (small_disk / "ballast").write_bytes(bytes(4_000_000))
    kitchen.notebook("data", *DATA)
    kitchen.recipe("data: {}\n")
    code, printed = kitchen.run()
    assert code == 1
    assert "No space left on device" in printed
    assert "Traceback" not in printed


def test_two_runs_at_once_do_not_disturb_one_another(counting, undisturbed, nothing_left):
    counting.hold.unlink()
    both = [counting.start("--force", "count"), counting.start("--force", "count")]
    for runner in both:
        printed, _ = runner.communicate(timeout=120)
        assert runner.returncode == 0, printed
    made = [path for path in counting.runs.iterdir() if path.name != undisturbed.name]
    assert len(made) == 2
    for run in made:
        nothing_left(run)
        same_as_undisturbed(run, undisturbed)


def test_a_run_that_still_runs_is_not_resumed_by_another(counting, eventually):
    runner = counting.start()
    eventually(lambda: list(counting.runs.glob("*/stages/count/metrics.jsonl")), "a first step")
    code, printed = counting.run("--resume", counting.newest.name)
    assert code == 2
    assert f"still running (process {runner.pid})" in " ".join(printed.split())
    counting.hold.unlink()
    runner.communicate(timeout=60)
    assert runner.returncode == 0


WRONG = {
    "no tagged cell": (("x: int = 1  # x", "x"), (), "data: {notebook: wrong}", "parameters"),
    "two tagged cells": (("x: int = 1  # x", "y: int = 2  # y"), (0, 1), "data: {notebook: wrong}", "parameters"),
    "a computed parameter": (("x: int = 1 + len('ab')  # x", "x"), (0,), "data: {notebook: wrong}", "x"),
    "a wrong type": (("x: int = 1  # x", "x"), (0,), "data: {notebook: wrong, parameters: {x: many}}", "many"),
    "an unknown key": (("x: int = 1  # x", "x"), (0,), "data: {notebook: wrong, parmeters: {x: 2}}", "parameters"),
    "an unknown parameter": (("rate: float = 1.0  # x", "x"), (0,), "data: {notebook: wrong, parameters: {rat: 2}}", "rate"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_broken_contract_is_an_error_before_anything_runs(kitchen, wrong):
    cells, tagged, stages, words = WRONG[wrong]
    kitchen.notebook("wrong", *cells, parameter_cells=tagged)
    kitchen.recipe(stages)
    code, printed = kitchen.run()
    assert code == 2
    assert words in printed
    assert "Traceback" not in printed
    assert not list(kitchen.folder.glob("runs/*"))


ENDINGS = {
    "sys.exit(0)": ("import sys\nsys.exit(0)", "failed", 1, "SystemExit(0) in code cell 3 of 4; run.finish was never called"),
    "no finish": ("print('that was all')", "failed", 1, "without run.finish"),
    "os._exit(0)": ("import os\nos._exit(0)", "failed", 1, "kernel died at code cell 3 of 4: it ended by itself with exit status 0"),
    "a failed check": ("run.check(1 > 2, 'one is more than two')", "failed", 1, "Check failed in code cell 3 of 4: one is more than two"),
    "an exception after finish": ("run.finish()\n1 / 0", "failed", 1, "Code cell 3 of 4 raised ZeroDivisionError: division by zero"),
    "a cell too long": ("import time\ntime.sleep(60)", "timed-out", 3, "Code cell 3 of 4 ran longer than its limit, cell_timeout_minutes"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_early_end_is_no_success(kitchen, nothing_left, ending):
    source, state, expected, words = ENDINGS[ending]
    kitchen.notebook("odd", "x: int = 1  # x", "from nbcore import stage\nrun = stage.open('odd')", source, "'the last cell'")
    kitchen.notebook("data", *DATA)
    kitchen.recipe("odd: {cell_timeout_minutes: 0.02}\ndata: {}\n")
    code, _ = kitchen.run()
    nothing_left(kitchen.newest)
    assert code == expected
    assert kitchen.stage("odd")["state"] == state
    assert words in kitchen.stage("odd")["error"]
    assert kitchen.stage("data") | {"state": "skipped", "reason": f"odd {state.replace('-', ' ')}"} == kitchen.stage("data")
    assert not (kitchen.newest / "stages" / "odd" / "result.json").exists()


def test_a_stage_over_its_wall_limit_is_ended_with_all_it_started(counting, nothing_left):
    counting.recipe(STAGES.replace("needs", "timeout_minutes: 0.1, needs") % counting.hold)
    code, _ = counting.run()
    nothing_left(counting.newest)
    assert code == 3
    assert counting.stage("count")["state"] == counting.status()["state"] == "timed-out"
    assert "timeout_minutes: 0.1" in counting.stage("count")["error"]


def test_a_missing_upstream_names_what_to_run(kitchen):
    kitchen.notebook("data", *DATA)
    kitchen.notebook("count", *COUNT)
    kitchen.recipe(STAGES % "")
    code, printed = kitchen.run("--from", "count")
    assert code == 2
    assert "--until data" in " ".join(printed.split())
    assert not list(kitchen.folder.glob("runs/*"))


@pytest.mark.parametrize("damage", ["", '{"stage": "data", "sta', '{"stage": "data"}', "[1]"])
def test_a_corrupted_result_is_not_believed(counting, undisturbed, damage):
    (counting.runs / undisturbed.name / "stages" / "data" / "result.json").write_text(damage, encoding="utf-8")
    counting.hold.unlink()
    code, printed = counting.run("--from", "count")
    assert code == 2
    assert "result.json" in printed
    if damage:
        return  # what follows is the same for each damage
    code, printed = counting.run()
    assert code == 0, printed
    assert counting.stage("data")["state"] == "done"
    assert "result.json" in counting.stage("data")["reason"]
    same_as_undisturbed(counting.newest, undisturbed)


FLOOD = (
    "megabytes: int = 200  # printed three times, in three ways",
    "from nbcore import stage\nrun = stage.open('flood')",
    "print('the first line')\nfor _ in range(megabytes * 1000):\n    print('x' * 999)\nprint('the last line')",
    "import os\nos.write(1, b'caf\\xe9 \\xff\\n')\nfor _ in range(megabytes):\n    os.write(1, b'y' * 1_000_000)",
    "import subprocess\nsubprocess.run(['sh', '-c', f'head -c {megabytes}000000 /dev/zero | tr \"\\\\0\" z; echo done'], check=True);",
    "'w' * megabytes * 1_000_000",
    "run.finish()",
)


def test_a_flood_of_output_fills_neither_notebook_nor_log_nor_memory(kitchen, nothing_left):
    kitchen.notebook("flood", *FLOOD)
    kitchen.recipe("flood: {max_output_kib: 64}")
    code, printed = kitchen.run()
    assert code == 0, printed
    nothing_left(kitchen.newest)
    folder = kitchen.newest / "stages" / "flood"
    text = (folder / "notebook.ipynb").read_text(encoding="utf-8")
    log = (folder / "log.txt").read_text(encoding="utf-8")
    assert len(text) < 1_000_000
    assert len(log) < 1_000_000
    for kept in (text, log):
        assert "the first line" in kept
        assert "the last line" in kept
        assert "caf\ufffd \ufffd" in kept
        assert "characters cut here" in kept
    # 'w' * 200 MB is the kernel's own memory, shown twice as text at most; the worker never holds it.
    assert kitchen.stage("flood")["peak_rss_mib"] < 1500
    assert kitchen.stage("flood")["cpu_seconds"] < 30


def test_secrets_enter_neither_notebook_nor_log_nor_record(kitchen):
    secret = 'tops3cret"quoted'
    source = (
        "import json, os, sys\ntoken = os.environ['MEAL_TOKEN']\nprint('stdout', token)\nprint(token[:5], end='', flush=True)\n"
        "print(token[5:], file=sys.stdout)\nos.write(2, token.encode())\nrun.log(step=1, note=token)\nrun.sample(prompt=token)\n"
        "run.table('t', ['a'], [[token]])\nprint({'repr': token})\ntoken"
    )
    kitchen.notebook("tell", "x: int = 1  # x", "from nbcore import stage\nrun = stage.open('tell')", source, "run.finish()",
                     "raise ValueError(token)")  # fmt: skip
    kitchen.recipe("tell: {}")
    code, printed = kitchen.run(MEAL_TOKEN=secret)
    assert code == 1
    told = [p for p in kitchen.runs.rglob("*") if p.is_file() and (b"s3cret" in p.read_bytes() or b'tops3cret"quoted' in p.read_bytes())]
    assert not told
    assert "s3cret" not in printed
    assert "***" in (kitchen.newest / "stages" / "tell" / "notebook.ipynb").read_text(encoding="utf-8")


TRAIN = (
    "steps: int = 40  # optimizer steps\nhold: str = ''  # a file to wait for\nseed: int = 1  # of weights and batches",
    "import time\nfrom pathlib import Path\nimport torch\nfrom nbcore import stage\nrun = stage.open('train', seed=seed)",
    "torch.set_num_threads(1)\nmodel = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1))\n"
    "adam = torch.optim.AdamW(model.parameters(), lr=1e-2)\nsaved = run.checkpoints / 'state.pt'",
    "begin = 0\nif run.resuming:\n    state = torch.load(saved)\n    model.load_state_dict(state['model'])\n"
    "    adam.load_state_dict(state['adam'])\n    torch.set_rng_state(state['rng'])\n    begin = state['step']",
    "for step in range(begin, steps):\n"
    "    while step == 25 and Path(hold).is_file():\n        time.sleep(0.02)\n"
    "    x = torch.randn(16, 8)\n    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()\n"
    "    adam.zero_grad(); loss.backward(); adam.step()\n    run.log(step=step + 1, total=steps, loss=loss)\n"
    "    if (step + 1) % 10 == 0:\n"
    "        state = {'model': model.state_dict(), 'adam': adam.state_dict(), 'rng': torch.get_rng_state(), 'step': step + 1}\n"
    "        torch.save(state, saved.with_suffix('.new')); saved.with_suffix('.new').replace(saved)",
    "torch.save(model.state_dict(), run.artifacts / 'model.pt')\n"
    "run.finish(metrics={'loss': loss}, artifacts={'model': 'artifacts/model.pt'})",
)


def test_a_killed_training_resumes_to_bit_equal_weights(kitchen, eventually, nothing_left):
    import torch

    hold = kitchen.folder / "hold"
    kitchen.notebook("train", *TRAIN)
    kitchen.recipe(f"train: {{parameters: {{hold: '{hold}'}}}}")
    code, printed = kitchen.run()
    assert code == 0, printed
    whole = kitchen.newest

    hold.touch()
    runner = kitchen.start("--force", "train")
    eventually(lambda: len(list(kitchen.runs.glob("*/stages/train/metrics.jsonl"))) == 2, "a second training")
    run = next(p for p in kitchen.runs.iterdir() if p != whole)
    eventually(lambda: len(read_metrics(run / "stages" / "train")) == 25, "25 steps")
    [p.kill() for p in [psutil.Process(runner.pid), *members("NBCORE_RUN_ID", run.name)]]
    runner.communicate(timeout=30)
    nothing_left(run)
    hold.unlink()
    # From the resumed run alone, or the finished first one would be reused.
    shutil.move(whole, kitchen.folder / "whole")
    code, printed = kitchen.run("--resume", run.name)
    assert code == 0, printed
    ours, theirs = (torch.load(f / "stages" / "train" / "artifacts" / "model.pt") for f in (run, kitchen.folder / "whole"))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    losses = [[(r["step"], r["loss"]) for r in read_metrics(f / "stages" / "train")] for f in (run, kitchen.folder / "whole")]
    assert losses[0] == losses[1]
    assert kitchen.stage("train", run)["attempt"] == 2


