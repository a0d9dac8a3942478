"""A status file can outlive its writer: what is read is true all the same."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from nbcore.jobs import status as status_module
from nbcore.jobs.recipes import Recipe, Stage
from nbcore.jobs.secrets import Masks
from nbcore.jobs.status import Status, StatusError, find_run, new_status, newest_run, read_status


@pytest.fixture
def recipe(tmp_path) -> Recipe:
    stages = [Stage(key, tmp_path / f"{key}.ipynb", (), {}, 60.0, None, 512, {}) for key in ("first", "second")]
    return Recipe("meal", "A meal.", tmp_path / "meal.yaml", 6.0, 3.0, 2, {}, tuple(stages))


@pytest.fixture
def run(tmp_path, recipe) -> Path:
    """A run of this process, its first stage running."""
    folder = tmp_path / "runs" / "meal-20260101T000000-abcd"
    folder.mkdir(parents=True)
    Status(folder, new_status(folder.name, recipe), Masks({})).stage("first", state="running", started=status_module.now())
    return folder


def change(run: Path, **values: object) -> None:
    path = run / "status.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8")


def test_a_run_whose_runner_lives_is_running(run):
    status = read_status(run)
    assert status["state"] == "running"
    assert status["expects"] == {"minutes": 6.0, "memory_gib": 3.0}
    assert status["stages"]["first"]["heartbeat"] == status["heartbeat"]
    assert status["stages"]["second"]["state"] == "waiting"


def test_a_run_whose_runner_is_gone_was_killed(run):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    change(run, pid=gone.pid)
    status = read_status(run)
    assert (status["state"], status["exit_code"]) == ("killed", 3)
    assert f"--resume {run.name}" in status["error"]
    assert status["stages"]["first"]["state"] == "killed"
    assert status["stages"]["second"] | {"state": "skipped", "reason": "the run was killed before"} == status["stages"]["second"]


def test_another_process_with_the_runners_number_is_not_the_runner(run):
    change(run, pid=os.getppid(), pid_started=psutil.Process(os.getppid()).create_time() - 1000)
    assert read_status(run)["state"] == "killed"


def test_a_runner_on_another_host_is_judged_by_its_heartbeat(run):
    change(run, host="elsewhere", pid=1)
    assert read_status(run)["state"] == "running"
    change(run, heartbeat=(datetime.now(UTC) - timedelta(minutes=5)).isoformat())
    assert read_status(run)["state"] == "killed"


def test_an_ended_run_is_taken_at_its_word(run):
    change(run, state="failed", pid=1, pid_started=0)
    assert read_status(run)["state"] == "failed"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"state": "running"}'])
def test_a_damaged_status_is_an_error_that_names_the_file(run, content):
    (run / "status.json").write_text(content, encoding="utf-8")
    with pytest.raises(StatusError, match="status.json"):
        read_status(run)


def test_the_last_word_is_written_even_on_a_full_disk(run, recipe, monkeypatch):
    status = Status(run, new_status(run.name, recipe), Masks({}))
    real = status_module.atomic_write

    def full_while_reserved(path, text):
        if (run / ".reserve").exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, text)

    monkeypatch.setattr(status_module, "atomic_write", full_while_reserved)
    status.close("failed", 1)
    assert read_status(run)["exit_code"] == 1
    monkeypatch.setattr(status_module, "atomic_write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    status.close("failed", 1)
    assert "No space left" in status.data["record_error"]


def test_secrets_are_not_in_the_status(run, recipe):
    Status(run, new_status(run.name, recipe), Masks({"A_TOKEN": "hunter22"})).stage("first", error="it said hunter22")
    assert "hunter22" not in (run / "status.json").read_text(encoding="utf-8")


def test_a_run_is_found_by_name_part_of_it_or_path(run, recipe):
    runs = run.parent
    other = runs / "meal-20260102T000000-beef"
    other.mkdir()
    Status(other, new_status(other.name, recipe, started="2099-01-01T00:00:00.000+00:00"), Masks({}))
    assert newest_run(runs) == other
    for name in (run.name, "abcd", "meal-20260101", str(run)):
        assert find_run(name, runs) == run
    with pytest.raises(StatusError, match="several runs"):
        find_run("meal", runs)
    with pytest.raises(StatusError, match=f"Did you mean {other.name}"):
        find_run("meal-20260102T000000-bee_", runs)


def test_without_runs_the_first_command_is_named(tmp_path):
    with pytest.raises(StatusError, match="nbcore run nano"):
        newest_run(tmp_path)
