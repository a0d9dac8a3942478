"""One notebook as one job: what its processes are given, what is measured, what the saved notebook says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbcore.jobs.execute import Ending, Progress, execute, stage_environment
from nbcore.jobs.recipes import Stage, Value
from nbcore.jobs.record import close_stage
from nbcore.jobs.secrets import Masks


@pytest.fixture
def job(kitchen, tmp_path):
    """Run a notebook of these cells as stage `cook`: (how it ended, its folder, every progress seen)."""

    def run(*cells: str, parameters: dict | None = None, stop_at: int | None = None, **settings: object) -> tuple[Ending, Path, list]:
        notebook = kitchen.notebook("cook", *cells)
        values = {name: Value(value, "command line") for name, value in (parameters or {}).items()}
        fields = {"timeout_minutes": 2.0, "cell_timeout_minutes": None, "max_output_kib": 64, "bands": {}} | settings
        stage = Stage("cook", notebook, (), values, **fields)
        folder, seen = tmp_path / "runs" / "r" / "stages" / "cook", []
        folder.mkdir(parents=True)
        environment = stage_environment(stage, folder, "r", {}, 1, 3, {"SPICE": "cumin"})

        def tick(progress: Progress) -> bool:
            seen.append((progress.cell, dict(progress.last)))
            return stop_at is not None and progress.cell == stop_at

        return execute(stage, folder, environment, tick), folder, seen

    return run


OPEN = "import json, os, time\nfrom nbcore import stage\nrun = stage.open('cook')"


def test_a_stage_gets_its_parameters_environment_and_threads_and_is_measured(job):
    told = (
        "told = {name: os.environ.get(name) for name in ('SPICE', 'OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'NBCORE_ATTEMPT')}\n"
        "told |= {'rate': rate, 'words': words, 'where': os.getcwd()}\nballast = bytearray(150 * 2**20)\n"
        "end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nrun.log(step=1, total=2, loss=0.5)"
    )
    keep = "(run.artifacts / 'told.json').write_text(json.dumps(told))\nrun.finish(artifacts={'told': 'artifacts/told.json'})"
    given = {"rate": 3e-4, "words": ["a", "b"]}
    ending, folder, seen = job("rate: float = 1.0  # r\nwords: list[str] = []  # w", OPEN, told, "time.sleep(1)", keep, parameters=given)
    assert (ending.state, ending.error) == ("done", None)
    read = json.loads((folder / "artifacts" / "told.json").read_text(encoding="utf-8"))
    where = read.pop("where")
    assert read == {"SPICE": "cumin", "OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "3", "NBCORE_ATTEMPT": "1", **given}
    assert Path(where).name == "notebooks"
    assert ending.progress.peak_rss_mib > 200
    assert ending.progress.cpu_seconds > 0.5
    assert (ending.progress.cell, ending.progress.cells) == (5, 5)
    assert any(last.get("loss") == 0.5 for _, last in seen)
    assert "code cell 5 of 5" in (folder / "log.txt").read_text(encoding="utf-8")


def test_a_progress_bar_leaves_one_line(job):
    bar = "for i in range(50):\n    print(f'\\r{i} of 50', end='', flush=True)\n    time.sleep(0.01)\nprint()\nprint('over')"
    ending, folder, _ = job("x: int = 1  # x", OPEN, bar, "run.finish()")
    assert ending.state == "done"
    cells = json.loads((folder / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert ["".join(output["text"]) for output in outputs] == ["49 of 50\nover\n"]


def test_a_stage_stopped_from_outside_keeps_what_it_showed(job):
    ending, folder, _ = job("x: int = 1  # x", OPEN, "print('so far', flush=True)\ntime.sleep(100)", "run.finish()", stop_at=3)
    assert ending.state == "interrupted"
    assert ending.error == "Interrupted at code cell 3 of 4."
    notebook = json.loads((folder / "notebook.ipynb").read_text(encoding="utf-8"))
    assert "interrupted" in notebook["cells"][0]["source"]
    assert not (folder / "result.json").exists()


def test_a_kernel_of_another_name_elsewhere_is_not_used(job, monkeypatch, tmp_path):
    spec = tmp_path / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text('{"argv": ["false"], "display_name": "broken", "language": "python"}', encoding="utf-8")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    assert job("x: int = 1  # x", OPEN, "run.finish()")[0].state == "done"


def saved(folder: Path, *statuses: str) -> Path:
    def cell(status: str) -> dict:
        return {"cell_type": "code", "metadata": {"papermill": {"status": status, "exception": None}}, "source": "", "outputs": []}

    cells = [cell(status) for status in statuses]
    cells[1]["metadata"]["tags"] = ["injected-parameters"]
    path = folder / "notebook.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    return path


def test_states_that_papermill_leaves_behind_are_corrected(tmp_path):
    path = saved(tmp_path, *["completed"] * 5)
    (tmp_path / "result.json").write_text("{}", encoding="utf-8")
    assert close_stage(tmp_path, "killed", "The kernel died.", 3, Masks({})) is None
    notebook = json.loads(path.read_text(encoding="utf-8"))
    said = [c["metadata"]["papermill"]["status"] for c in notebook["cells"] if c["cell_type"] == "code"]
    assert said == ["completed", "completed", "completed", "killed", "pending"]
    assert "The kernel died." in notebook["cells"][0]["source"]
    assert not (tmp_path / "result.json").exists()
    assert close_stage(tmp_path, "killed", "The kernel died.", 3, Masks({})) is None
    assert json.loads(path.read_text(encoding="utf-8")) == notebook


def test_a_torn_notebook_is_said_and_changes_nothing_else(tmp_path):
    (tmp_path / "notebook.ipynb").write_text('{"cells": [', encoding="utf-8")
    assert "could not be completed" in close_stage(tmp_path, "killed", "It died.", 1, Masks({}))
