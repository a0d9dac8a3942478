"""Every notebook, headless, in the smoke profile: the same files that people step through, executed by the product's own command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KEYS = [path.stem for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    line = [sys.executable, "-m", "nbcore.cli", "run", "smoke", "--runs", str(runs), "--json"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return runs, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("recipe", sorted((ROOT / "recipes").rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_that_ships_can_be_planned(recipe, tmp_path):
    line = [sys.executable, "-m", "nbcore.cli", "plan", str(recipe), "--runs", str(tmp_path)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "12_evaluate" in done.stdout, done.stderr


@pytest.mark.slow
def test_every_notebook_ran_and_none_was_left_out(smoke):
    runs, outcome = smoke
    run = Path(outcome["folder"])
    states = {key: stage["state"] for key, stage in json.loads((run / "status.json").read_text())["stages"].items()}
    assert states == dict.fromkeys(KEYS, "done")
    assert (run / "report.html").stat().st_size > 20_000


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_its_record_has_metrics_and_checks_and_its_figures_are_drawn(smoke, key):
    stage = Path(smoke[1]["folder"]) / "stages" / key
    result = json.loads((stage / "result.json").read_text(encoding="utf-8"))
    assert result["metrics"] and result["checks"] and all(check["ok"] for check in result["checks"])
    assert list((stage / "figures").glob("*.png"))


@pytest.mark.slow
def test_a_second_run_uses_everything_again(smoke):
    runs, _ = smoke
    line = [sys.executable, "-m", "nbcore.cli", "run", "smoke", "--runs", str(runs), "--json"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    run = Path(json.loads(done.stdout.splitlines()[-1])["folder"])
    states = {stage["state"] for stage in json.loads((run / "status.json").read_text())["stages"].values()}
    assert states == {"reused"}


@pytest.mark.slow
def test_a_notebook_runs_in_a_plain_kernel_as_well_and_leaves_the_same_record(tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("NBCORE_RUNS", str(tmp_path))
    for name in ("NBCORE_STAGE_DIR", "NBCORE_UPSTREAM", "NBCORE_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    notebook = nbformat.read(ROOT / "notebooks" / "00_tour.ipynb", as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(ROOT / "notebooks")}}).execute()
    result = json.loads(next(tmp_path.glob("interactive-*/stages/00_tour/result.json")).read_text(encoding="utf-8"))
    assert result["status"] == "done" and result["metrics"]["weakest_probe"] > 0.75


def test_a_notebook_opened_before_its_upstream_says_which_to_run_first(tmp_path, monkeypatch):
    from nbcore import stage

    monkeypatch.setenv("NBCORE_RUNS", str(tmp_path))
    monkeypatch.delenv("NBCORE_STAGE_DIR", raising=False)
    with pytest.raises(stage.StageError, match="01_sft_data"):
        stage.open("02_sft", needs=("01_sft_data",))
