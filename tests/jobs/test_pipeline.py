"""Order, reuse, --from, --until, --force, --resume: what a run does and what it says about it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from nbcore.jobs import pipeline, recipes
from nbcore.jobs.pipeline import PipelineError, plan
from nbcore.jobs.status import read_status
from nbcore.results import read_result

SHOP = (
    "leeks: int = 2  # how many",
    "from nbcore import stage\nrun = stage.open('shop')",
    "(run.artifacts / 'bag').write_text('leek ' * leeks)",
    "run.finish(metrics={'leeks': leeks}, artifacts={'bag': 'artifacts/bag'})",
)
COOK = (
    "salt: float = 0.5  # grams",
    "from nbcore import stage\nrun = stage.open('cook', needs=('shop',))",
    "run.log(step=1, total=1, salt=salt)\nrun.finish(metrics={'soup': len(run.input('shop').path('bag').read_text().split())})",
)


@pytest.fixture(scope="module")
def cooked(tmp_path_factory) -> Path:
    """The folder of a kitchen with one finished run."""
    from kitchen import Kitchen

    kitchen = Kitchen(tmp_path_factory.mktemp("cooked"))
    kitchen.notebook("shop", *SHOP)
    kitchen.notebook("cook", *COOK)
    kitchen.recipe("shop: {}\ncook: {needs: [shop]}\n", head="title: Leek soup\nthreads: 1\nexpects: {minutes: 1}")
    outcome = pipeline.run(recipes.load(kitchen.folder / "recipes" / "meal.yaml"), kitchen.runs)
    assert (outcome.state, outcome.exit_code) == ("done", 0)
    return kitchen.folder


@pytest.fixture
def meal(cooked, tmp_path, kitchen):
    """A copy of that kitchen: (runs, load(*settings) → Recipe)."""
    for part in ("notebooks", "recipes", "runs"):
        shutil.copytree(cooked / part, tmp_path / part, dirs_exist_ok=True)
    return tmp_path / "runs", lambda *sets: recipes.load(tmp_path / "recipes" / "meal.yaml", sets)


def actions(planned: list) -> dict[str, tuple[str, str]]:
    return {item.stage.key: (item.action, item.reason) for item in planned}


def test_the_folder_of_a_run_is_complete(cooked):
    (run,) = (cooked / "runs").iterdir()
    assert {p.name for p in run.iterdir()} >= {"recipe.yaml", "status.json", "environment.json", "stages"}
    assert {p.name for p in (run / "stages" / "cook").iterdir()} == {
        "notebook.ipynb", "log.txt", "result.json", "fingerprint.json", "metrics.jsonl", "progress.json",
    }  # fmt: skip
    assert read_result(run / "stages" / "cook")["metrics"] == {"soup": 2}
    assert recipes.from_resolved(run / "recipe.yaml").stages[0].parameters["leeks"].value == 2
    environment = json.loads((run / "environment.json").read_text(encoding="utf-8"))
    assert environment["versions"]["papermill"]
    assert environment["hardware"]["memory_gib"] > 0
    status = read_status(run)
    assert (status["state"], status["exit_code"], status["title"]) == ("done", 0, "Leek soup")
    cook = status["stages"]["cook"]
    assert (cook["state"], cook["attempt"], cook["cell"], cook["cells"], cook["last"]["salt"]) == ("done", 1, 3, 3, 0.5)
    assert min(cook["seconds"], cook["cpu_seconds"], cook["peak_rss_mib"]) > 0


def test_a_second_run_reuses_everything_and_says_from_where(meal):
    runs, load = meal
    (first,) = runs.iterdir()
    seen = []
    outcome = pipeline.run(load(), runs, watch=lambda status: seen.append(status["state"]))
    assert outcome.exit_code == 0
    for key, stage in read_status(outcome.run)["stages"].items():
        assert (stage["state"], stage["reused_from"]) == ("reused", first.name)
        assert Path(stage["folder"]) == first / "stages" / key
    assert seen[-1] == "done"


def test_a_stale_stage_is_explained_in_one_line(meal, kitchen):
    runs, load = meal
    assert actions(plan(load("cook.salt=0.7"), runs)) == {
        "shop": ("reuse", f"same fingerprint, from {next(runs.iterdir()).name}"),
        "cook": ("run", "parameter salt 0.5 → 0.7"),
    }
    assert actions(plan(load("shop.leeks=3"), runs))["cook"] == ("run", "upstream shop changed")
    kitchen.notebook("cook", *COOK, "'one more cell'")
    assert actions(plan(load(), runs))["cook"] == ("run", "notebook changed")


def test_force_runs_a_stage_and_what_needs_it(meal):
    runs, load = meal
    assert actions(plan(load(), runs, force=("shop",))) == {"shop": ("run", "forced"), "cook": ("run", "needs shop, which is forced")}


def test_until_leaves_out_what_comes_after(meal):
    runs, load = meal
    assert actions(plan(load(), runs, until="shop"))["cook"] == ("skip", "after --until shop")


def test_from_takes_the_newest_finished_stage_even_a_stale_one_and_says_so(meal):
    runs, load = meal
    action, reason = actions(plan(load("shop.leeks=9"), runs, start="cook"))["shop"]
    assert action == "reuse"
    assert "although stale: parameter leeks 2 → 9" in reason
    outcome = pipeline.run(load("shop.leeks=9", "cook.salt=0.9"), runs, start="cook")
    assert read_result(outcome.run / "stages" / "cook")["metrics"] == {"soup": 2}
    made = json.loads((outcome.run / "stages" / "cook" / "fingerprint.json").read_text(encoding="utf-8"))
    (first,) = [p for p in runs.iterdir() if p != outcome.run]
    used = json.loads((first / "stages" / "shop" / "fingerprint.json").read_text(encoding="utf-8"))
    assert made["upstream"] == {"shop": used["digest"]}, "the record tells which shop the soup really came from"


def test_from_without_a_finished_upstream_names_what_to_run(meal):
    runs, load = meal
    shutil.rmtree(runs)
    with pytest.raises(PipelineError, match="--until shop"):
        plan(load(), runs, start="cook")


@pytest.mark.parametrize("option", ["start", "until", "force"])
def test_an_unknown_stage_gets_the_nearest_name(meal, option):
    runs, load = meal
    with pytest.raises(PipelineError, match="Did you mean cook"):
        plan(load(), runs, **{option: ("cok",) if option == "force" else "cok"})


def test_a_result_whose_artifact_is_gone_is_not_reused(meal):
    runs, load = meal
    (first,) = runs.iterdir()
    (first / "stages" / "shop" / "artifacts" / "bag").unlink()
    action, reason = actions(plan(load(), runs))["shop"]
    assert action == "run"
    assert "'bag' (artifacts/bag) is not there any more" in reason


def test_a_stage_without_the_runners_last_word_is_not_reused(meal):
    runs, load = meal
    (first,) = runs.iterdir()
    (first / "stages" / "shop" / "fingerprint.json").unlink()
    assert actions(plan(load(), runs))["shop"] == ("run", "not finished in any run yet")


def test_a_failed_stage_skips_the_rest_and_resume_starts_over_when_its_notebook_was_mended(meal, kitchen):
    runs, load = meal
    kitchen.notebook("shop", *SHOP[:2], "(run.checkpoints / 'half').touch()\n1 / 0", SHOP[3])
    outcome = pipeline.run(load(), runs)
    assert (outcome.state, outcome.exit_code) == ("failed", 1)
    stages = read_status(outcome.run)["stages"]
    assert "ZeroDivisionError" in stages["shop"]["error"]
    assert (stages["cook"]["state"], stages["cook"]["reason"]) == ("skipped", "shop failed")
    kitchen.notebook("shop", *SHOP, "'mended'")
    again = pipeline.run(recipes.from_resolved(outcome.run / "recipe.yaml"), runs, resume=outcome.run)
    assert (again.run, again.exit_code) == (outcome.run, 0)
    shop = read_status(again.run)["stages"]["shop"]
    assert (shop["attempt"], shop["reason"], shop["error"]) == (2, "starts over: notebook changed", None)
    assert not (again.run / "stages" / "shop" / "artifacts" / "checkpoints").exists(), "a checkpoint of other code is not continued"


def test_a_report_that_cannot_be_made_changes_nothing_but_is_said(meal, monkeypatch):
    from nbcore.jobs import report

    def broken(run):
        raise ValueError("no ink")

    runs, load = meal
    monkeypatch.setattr(report, "render", broken)
    outcome = pipeline.run(load(), runs)
    assert outcome.exit_code == 0
    assert "ValueError: no ink" in read_status(outcome.run)["report_error"]


def test_importing_the_jobs_wing_imports_nothing_heavy(kitchen):
    import subprocess
    import sys

    heavy = "{'torch', 'transformers', 'trl', 'pandas', 'datasets', 'papermill', 'nbformat', 'nbclient', 'matplotlib', 'numpy'}"
    line = f"import sys, nbcore.stage, nbcore.jobs.pipeline, nbcore.jobs.status; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", line], capture_output=True, check=True, text=True).stdout.strip() == "[]"
