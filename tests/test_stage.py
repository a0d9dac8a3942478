"""What a notebook holds in its hand."""

from __future__ import annotations

import json
import math
import os
import random
from pathlib import Path

import numpy as np
import pytest

from nbcore import stage


@pytest.fixture
def headless(tmp_path: Path, monkeypatch) -> Path:
    """The folder that a runner names."""
    folder = tmp_path / "runs" / "meal-1" / "stages" / "cook"
    folder.mkdir(parents=True)
    monkeypatch.setenv("NBCORE_STAGE_DIR", str(folder))
    monkeypatch.setenv("NBCORE_UPSTREAM", "{}")
    return folder


@pytest.fixture
def interactive(tmp_path: Path, monkeypatch) -> Path:
    """A project folder in which a person starts JupyterLab."""
    for name in ("NBCORE_STAGE_DIR", "NBCORE_UPSTREAM", "NBCORE_RUNS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    return tmp_path / "runs"


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_stage_is_done_when_its_result_can_be_read_back(headless):
    run = stage.open("cook", seed=3)
    (run.artifacts / "soup.txt").write_text("leek", encoding="utf-8")
    run.check(np.bool_(True), "the soup is hot")
    run.table("menu", ["dish", "score"], [["soup", np.float32(0.5)], ["salad", math.nan]], caption="today")
    run.move("taste", before={"name": "raw", "value": 0.1}, after={"name": "cooked", "value": 0.8, "low": 0.7, "high": 0.9}, n=20)
    run.finish(metrics={"taste": np.float64(0.8), "salt": None}, artifacts={"soup": "artifacts/soup.txt"})
    result = stage.read_result(headless)
    assert result["stage"] == "cook"
    assert result["metrics"] == {"taste": 0.8, "salt": None}
    assert result["artifacts"] == {"soup": "artifacts/soup.txt"}
    assert result["checks"] == [{"ok": True, "sentence": "the soup is hot"}]
    assert result["tables"]["menu"]["rows"] == [["soup", 0.5], ["salad", None]]
    assert result["moves"][0]["after"] == {"name": "cooked", "value": 0.8, "low": 0.7, "high": 0.9}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"metrics": {"taste": "good"}}, "taste"),
        ({"metrics": {"taste": True}}, "taste"),
        ({"metrics": {"taste": math.nan}}, "Give None where it could not be measured"),
        ({"artifacts": {"soup": "artifacts/stew.txt"}}, r"There is: artifacts/soup.txt"),
        ({"artifacts": {"soup": "../../../secret"}}, "outside the stage's folder"),
    ],
)
def test_finish_refuses_what_is_not_true(headless, call, words):
    run = stage.open("cook")
    (run.artifacts / "soup.txt").touch()
    with pytest.raises(stage.StageError, match=words):
        run.finish(**call)
    assert not (headless / "result.json").exists()


def test_finish_is_called_once(headless):
    run = stage.open("cook")
    run.finish()
    with pytest.raises(stage.StageError, match="once"):
        run.finish()


def test_a_failed_check_raises_its_sentence(headless):
    with pytest.raises(stage.CheckFailed, match="the soup is hot"):
        stage.open("cook").check(20 > 60, "the soup is hot")


def test_metrics_are_rows_in_which_non_finite_numbers_are_named(headless):
    import torch

    run = stage.open("cook")
    run.log(step=1, total=2, loss=np.float32(0.5), grad=math.inf, phase="warm-up")
    run.log(step=2, total=2, loss=torch.tensor(0.25), grad=torch.tensor(float("nan")))
    first, second = rows(headless / "metrics.jsonl")
    assert (first["step"], first["total"], first["loss"], first["phase"]) == (1, 2, 0.5, "warm-up")
    assert (first["grad"], first["grad_nonfinite"]) == (None, "inf")
    assert (second["loss"], second["grad_nonfinite"]) == (0.25, "nan")
    assert json.loads((headless / "progress.json").read_text(encoding="utf-8"))["step"] == 2
    with pytest.raises(TypeError, match="run.log: loss"):
        run.log(step=3, loss=[1, 2])


def test_a_later_attempt_replaces_the_rows_it_logs_again(headless, monkeypatch):
    run = stage.open("cook")
    (run.checkpoints / "state").touch()
    for step in (1, 2, 3):
        run.log(step=step, loss=step)
    with (headless / "metrics.jsonl").open("a", encoding="utf-8") as torn:
        torn.write('{"step": 4, "lo')
    monkeypatch.setenv("NBCORE_ATTEMPT", "2")
    again = stage.open("cook")
    assert again.resuming
    assert again.attempt == 2
    again.log(step=3, loss=30)
    again.log(step=4, loss=40)
    assert [(row["step"], row["loss"]) for row in stage.read_metrics(headless)] == [(1, 1), (2, 2), (3, 30), (4, 40)]


def test_an_attempt_without_a_checkpoint_starts_with_empty_pages(headless, monkeypatch):
    run = stage.open("cook")
    run.log(step=1, loss=1)
    run.sample(when="before", prompt="?")
    monkeypatch.setenv("NBCORE_ATTEMPT", "2")
    again = stage.open("cook")
    assert not again.resuming
    assert stage.read_metrics(headless) == []
    assert not (headless / "samples.jsonl").exists()
    assert len(rows(headless / "metrics-attempt1.jsonl")) == 1


def test_a_figure_is_kept_with_its_caption_and_given_back(headless):
    import matplotlib.figure

    fig = matplotlib.figure.Figure()
    fig.subplots().plot([1, 2])
    run = stage.open("cook")
    assert run.figure(fig, "loss", caption="how it fell") is fig
    assert (run.figures / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((run.figures / "loss.json").read_text(encoding="utf-8"))["caption"] == "how it fell"
    with pytest.raises(TypeError, match="matplotlib"):
        run.figure("loss.png", "loss")
    with pytest.raises(stage.StageError, match="short word"):
        run.figure(fig, "../loss")


def test_the_seed_reaches_python_numpy_and_torch(headless):
    import torch

    drawn = []
    for _ in range(2):
        stage.open("cook", seed=7)
        drawn.append((random.random(), np.random.rand(), torch.rand(1).item()))
    assert drawn[0] == drawn[1]


def test_headless_inputs_are_those_of_the_recipe(headless, tmp_path, monkeypatch):
    shop = tmp_path / "shop"
    shop.mkdir()
    monkeypatch.setenv("NBCORE_STAGE_DIR", str(shop))
    run = stage.open("shop")
    (run.artifacts / "leek").touch()
    run.finish(metrics={"price": 2}, artifacts={"vegetable": "artifacts/leek"})
    monkeypatch.setenv("NBCORE_STAGE_DIR", str(headless))
    monkeypatch.setenv("NBCORE_UPSTREAM", json.dumps({"shop": str(shop)}))
    cook = stage.open("cook", needs=("shop",))
    assert cook.input("shop").path("vegetable") == shop / "artifacts" / "leek"
    assert cook.input("shop").metrics == {"price": 2}
    with pytest.raises(stage.StageError, match="Did you mean 'vegetable'.*There is: vegetable"):
        cook.input("shop").path("vegetables")
    with pytest.raises(stage.StageError, match="among its needs"):
        cook.input("market")
    with pytest.raises(stage.StageError, match="gives stage cook no market"):
        stage.open("cook", needs=("market",))
    (shop / "artifacts" / "leek").unlink()
    with pytest.raises(stage.ResultError, match="vegetable.*not there any more"):
        stage.open("cook", needs=("shop",))


def test_interactively_the_newest_finished_inputs_are_found(interactive, capsys):
    with pytest.raises(stage.StageError, match="Run notebooks/shop.ipynb first"):
        stage.open("cook", needs=("shop",))
    for price in (1, 2):
        stage.open("shop").finish(metrics={"price": price})
    unfinished = stage.open("shop")
    cook = stage.open("cook", needs=("shop",))
    assert cook.folder.parents[2] == interactive
    assert cook.folder.parents[1].name.startswith("interactive-")
    assert cook.input("shop").metrics == {"price": 2}
    assert cook.input("shop").folder != unfinished.folder
    assert f"cook reads shop from {os.path.relpath(cook.input('shop').folder, interactive.parent)}" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["", "{", "[]", '{"stage": "cook", "status": "done"}'])
def test_a_damaged_result_is_an_error_that_names_the_file(headless, content):
    (headless / "result.json").write_text(content, encoding="utf-8")
    with pytest.raises(stage.ResultError, match="result.json"):
        stage.read_result(headless)


def test_needs_is_a_tuple(headless):
    with pytest.raises(stage.StageError, match=r'needs=\("shop",\)'):
        stage.open("cook", needs="shop")
