"""The command line as a person meets it: real processes, real notebooks of a few lines."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbcore.jobs.status import all_runs, newest_run, read_status

NBCORE = [sys.executable, "-m", "nbcore.cli"]
TEA = (
    "cups: int = 3  # how many\nleaf: str = 'green'",
    "import time\nfrom nbcore import stage\nrun = stage.open('tea')",
    "for cup in range(cups):\n    run.log(step=cup + 1, total=cups, loss=1 / (cup + 1))\n    time.sleep(0.6)",
    "run.move('warmth', {'name': 'cold', 'value': 0.1}, {'name': 'hot', 'value': 0.9}, n=cups)",
    "run.finish(metrics={'cups': cups})",
)
TOAST = (
    "burn: bool = False  # fail",
    "from nbcore import stage\nrun = stage.open('toast', needs=('tea',))",
    "if burn:\n    raise ValueError('the toast is black')",
    "run.finish(metrics={'slices': 2})",
)
STAGES = "tea: {bands: {cups: [2, 4]}}\ntoast: {needs: [tea], parameters: {burn: %s}}"


def nbcore(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k != "NBCORE_RUNS"} | {"OMP_NUM_THREADS": "1"} | environment
    return subprocess.run([*NBCORE, *arguments], cwd=folder, env=env, capture_output=True, text=True, encoding="utf-8", timeout=120)


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory):
    """Two notebooks, a recipe whose second stage fails and one whose stages all succeed, run once."""
    from kitchen import Kitchen

    kitchen = Kitchen(tmp_path_factory.mktemp("breakfast"))
    kitchen.notebook("tea", *TEA)
    kitchen.notebook("toast", *TOAST)
    kitchen.recipe(STAGES % "false", name="breakfast")
    kitchen.recipe(STAGES % "true", name="burnt")
    kitchen.first = nbcore(kitchen.folder, "run", "breakfast")
    return kitchen


def test_a_run_that_is_done_exits_0_says_one_line_a_change_and_where_the_report_is(kitchen):
    assert kitchen.first.returncode == 0, kitchen.first.stderr
    lines = kitchen.first.stdout.splitlines()
    assert [re.sub(r"^\S+ ", "", line).split(":")[0] for line in lines[:4]] == [
        "1/2 tea running", "1/2 tea done", "2/2 toast running", "2/2 toast done",
    ]  # fmt: skip
    assert lines[4].startswith("Done: 2 stages finished in ")
    report = kitchen.folder / lines[5].removeprefix("Report: ")
    assert report.name == "report.html" and "warmth" in report.read_text(encoding="utf-8")
    assert len(lines) == 6, "a log stays short"


def test_the_second_time_everything_is_reused(kitchen):
    again = nbcore(kitchen.folder, "run", "breakfast")
    assert again.returncode == 0
    assert "2 of them reused from earlier runs" in again.stdout and "tea reused: same fingerprint" in again.stdout


def test_a_failed_stage_exits_1_with_a_sentence_and_the_way_on(kitchen):
    burnt = nbcore(kitchen.folder, "run", "burnt")
    run = newest_run(kitchen.runs)
    assert burnt.returncode == 1 and "Traceback" not in burnt.stdout + burnt.stderr
    assert "Failed in toast: " in burnt.stdout and "the toast is black" in burnt.stdout
    assert f"Continue with: nbcore run --resume {run.name}" in burnt.stdout
    assert (run / "report.html").is_file()

    again = nbcore(kitchen.folder, "run", "--resume", run.name)
    assert again.returncode == 1 and len([r for r in all_runs(kitchen.runs) if r.name.startswith("burnt")]) == 1


def test_a_stage_past_its_time_exits_3(kitchen):
    kitchen.notebook("nap", "hours: int = 1", "import time\ntime.sleep(3600 * hours)")
    kitchen.recipe("nap: {timeout_minutes: 0.05}", name="nap")
    slow = nbcore(kitchen.folder, "run", "nap")
    assert slow.returncode == 3 and slow.stdout.count("Timed out in nap: ") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "breakfst"], "breakfast"),
        (["run"], "Name a recipe"),
        (["run", "breakfast", "--set", "tea.cup=4"], "cups"),
        (["run", "breakfast", "--set", "tea.cups=many"], "whole number"),
        (["run", "breakfast", "--from", "toats"], "Did you mean toast?"),
        (["run", "breakfast", "--resume", "nothing"], "There is no run nothing"),
        (["run", "--resume", "breakfast", "--set", "tea.cups=4"], "breakfast"),
        (["plan", "breakfast", "--until", "cake"], "It has: tea, toast"),
        (["status", "supper"], "There is no run supper"),
        (["report", "supper"], "There is no run supper"),
        (["params", "soup.ipynb"], "soup.ipynb"),
        (["run", "breakfast", "--frm", "tea"], "--frm"),
        (["boil"], "boil"),
    ],
)
def test_a_wrong_call_exits_2_with_a_sentence(kitchen, arguments, said):
    before = len(all_runs(kitchen.runs))
    done = nbcore(kitchen.folder, *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr and not done.stdout
    assert len(all_runs(kitchen.runs)) == before, "nothing was begun"


def test_resume_refuses_settings_and_another_recipe(kitchen):
    run = all_runs(kitchen.runs)[0].name
    settings = nbcore(kitchen.folder, "run", "--resume", run, "--set", "tea.cups=4")
    assert settings.returncode == 2 and "a run goes on as it began" in settings.stderr
    other = nbcore(kitchen.folder, "run", "burnt", "--resume", run)
    assert other.returncode == 2 and "is of recipe breakfast, not burnt" in other.stderr


def test_json_is_one_object_a_line_and_ends_with_the_outcome(kitchen):
    done = nbcore(kitchen.folder, "run", "breakfast", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["event"] for row in rows] == ["stage", "stage", "outcome"]
    assert rows[-1]["state"] == "done" and rows[-1]["exit_code"] == 0 and Path(rows[-1]["report"]).is_file()
    refused = nbcore(kitchen.folder, "run", "breakfst", "--json")
    assert refused.returncode == 2
    assert json.loads(refused.stdout.splitlines()[-1]) | {"time": ""} == {
        "event": "outcome", "time": "", "state": "refused", "exit_code": 2, "problems": [refused.stderr.strip()],
    }  # fmt: skip


def test_plan_says_what_runs_why_and_where_values_come_from(kitchen):
    done = nbcore(kitchen.folder, "plan", "breakfast", "--set", "tea.cups=4")
    assert done.returncode == 0
    assert "run    tea: parameter cups 3 → 4" in done.stdout
    assert re.search(r"cups = 4 +\(command line\)", done.stdout) and re.search(r"leaf = 'green' +\(notebook default\)", done.stdout)
    assert "run    toast: upstream tea changed" in done.stdout
    rows = [json.loads(line) for line in nbcore(kitchen.folder, "plan", "breakfast", "--json").stdout.splitlines()]
    assert [row.get("action") for row in rows] == ["reuse", "reuse", None] and rows[0]["from_run"].startswith("breakfast-")


def test_params_lists_name_type_default_and_meaning(kitchen):
    expected = "cups: int = 3        # how many\nleaf: str = 'green'\n"
    assert nbcore(kitchen.folder, "params", "tea").stdout == expected
    assert nbcore(kitchen.folder, "params", "notebooks/tea.ipynb").stdout == expected


def test_status_tells_the_newest_run_or_the_one_named(kitchen):
    first = all_runs(kitchen.runs)[0]
    done = nbcore(kitchen.folder, "status", first.name)
    assert done.returncode == 0 and "✓ done" in done.stdout and "Done: 2 stages finished" in done.stdout
    row = json.loads(nbcore(kitchen.folder, "status", first.name, "--json").stdout)
    assert row["event"] == "outcome" and row["run"] == first.name and row["stages"]["tea"]["state"] == "done"
    elsewhere = nbcore(kitchen.folder, "status", NBCORE_RUNS=str(kitchen.folder / "empty"))
    assert elsewhere.returncode == 2 and "There are no runs in" in elsewhere.stderr


def test_watching_ends_with_the_run_and_its_exit_code(kitchen):
    run = next(r for r in all_runs(kitchen.runs) if read_status(r)["state"] == "timed-out")
    done = nbcore(kitchen.folder, "status", run.name, "--watch")
    assert done.returncode == 3 and "Timed out in nap" in done.stdout


def test_report_draws_the_picture_of_a_readme(kitchen):
    done = nbcore(kitchen.folder, "report", all_runs(kitchen.runs)[0].name, "--picture", "moved.svg")
    assert done.returncode == 0, done.stderr
    drawn = (kitchen.folder / "moved.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg") and "warmth" in drawn and "toast" in drawn


def test_a_reader_that_goes_away_does_not_stop_the_run(kitchen):
    command = [*NBCORE, "run", "breakfast", "--force", "tea"]
    process = subprocess.Popen(command, cwd=kitchen.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert read_status(newest_run(kitchen.runs))["state"] == "done"


def test_on_a_terminal_the_whole_pipeline_is_drawn(kitchen):
    ours, theirs = pty.openpty()
    command = [*NBCORE, "run", "breakfast", "--force", "tea"]
    terminal = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(command, cwd=kitchen.folder, stdout=theirs, stderr=theirs, env=terminal)
    os.close(theirs)
    seen, until = b"", time.monotonic() + 120
    while time.monotonic() < until and select.select([ours], [], [], 120)[0]:
        try:
            seen += os.read(ours, 65536)
        except OSError:
            break  # the other end is closed
    os.close(ours)
    assert process.wait(30) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode("utf-8"))
    assert "▶ running" in text and re.search(r"cell \d/5 · step \d/3 · loss [\d.]+ ", text), "progress within the stage"
    assert "stage 1 of 2" in text and "○ waiting" in text, "the whole pipeline, not only what runs"
    assert "Done: 2 stages finished" in text and "Report: " in text


@pytest.mark.parametrize("arguments", [["--help"], ["status"]])
def test_the_quick_commands_are_quick_and_import_nothing_heavy(kitchen, arguments):
    took = []
    for _ in range(5):
        # CPU seconds: what the clock on the wall says depends on who else works on this machine.
        before = os.times()
        assert nbcore(kitchen.folder, *arguments).returncode == 0
        after = os.times()
        took.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(took) < 0.5
    heavy = {"torch", "transformers", "trl", "pandas", "datasets", "papermill", "nbformat", "numpy", "matplotlib", "nbclient"}
    code = f"import sys, runpy\nsys.argv = ['nbcore', *{arguments!r}]\ntry:\n    runpy.run_module('nbcore.cli', run_name='__main__')\n"
    code += "except SystemExit:\n    print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    said = subprocess.run([sys.executable, "-c", code], cwd=kitchen.folder, capture_output=True, text=True, timeout=60)
    assert not heavy & set(said.stderr.split())
