"""A run folder as a real run leaves it, made through nbcore.stage and the real recipe record, for the tests of the report."""

from __future__ import annotations

import json
import math
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

import matplotlib
import yaml

from nbcore import stage
from nbcore.jobs.recipes import Recipe, Stage, Value, resolved

matplotlib.use("Agg")
START = datetime(2026, 12, 2, 8, 0, tzinfo=UTC)
NEEDS = {
    "01_sft_data": (), "02_sft": ("01_sft_data",), "03_reward": ("01_sft_data",), "04_rl": ("02_sft", "03_reward"),
    "12_evaluate": ("02_sft", "04_rl"),
}  # fmt: skip
BANDS = {"02_sft": {"reason_accuracy": (0.5, 1.0), "act_accuracy": (0.5, 1.0), "loss": (0.0, 0.4)}}
SUITES = (("reason", 0.02, 0.71), ("align", 0.21, 0.18), ("code", 0.08, 0.62), ("act", 0.0, 0.55))


def recipe() -> Recipe:
    """Five stages with parameters of three origins."""
    values = {"learning_rate": Value(1e-4, "command line"), "seed": Value(0, "recipes/nano.yaml:7")}
    values["model"] = Value("nano", "notebook default")
    stages = (
        Stage(key, Path(f"notebooks/{key}.ipynb"), needs, values, 10, None, 512, BANDS.get(key, {})) for key, needs in NEEDS.items()
    )
    return Recipe("nano", "From a base model to an evaluated one, on two cores", Path("recipes/nano.yaml"), 6, 3, 2, {}, tuple(stages))


def build(runs: Path, states: dict[str, str] | None = None, rows: int = 200, sample: str = "") -> Path:
    """A run under `runs`; a stage without a state in `states` is done. Stages that are done, failed or killed have logged `rows` steps."""
    run = runs / "nano-20261202T080000-ab12"
    record, states = recipe(), {key: (states or {}).get(key, "done") for key in NEEDS}
    run.mkdir(parents=True)
    (run / "recipe.yaml").write_text(yaml.safe_dump(resolved(record), allow_unicode=True), encoding="utf-8")
    environment = {"python": "3.11.7", "versions": {"torch": "2.13.0", "trl": "1.14.0"}, "git": {"commit": "0123abc"}}
    (run / "environment.json").write_text(json.dumps(environment), encoding="utf-8")
    status = {"run": run.name, "recipe": "nano", "title": record.title, "stages": {}}
    status |= {"pid": 4_000_000, "pid_started": 1.0, "host": socket.gethostname(), "heartbeat": (START + timedelta(minutes=4)).isoformat()}
    status |= {"started": START.isoformat(), "ended": status["heartbeat"], "expects": {"minutes": 6, "memory_gib": 3}}
    for i, (key, state) in enumerate(states.items()):
        folder = run / "stages" / key
        begun = state not in ("waiting", "skipped")
        if begun:
            folder.mkdir(parents=True)
            cook(folder, key, state, rows, sample)
        times = {"seconds": 12.5 + 40 * i, "cpu_seconds": 20 + 70.0 * i, "peak_rss_mib": 420 + 300 * i} if begun else {}
        entry = {"state": state, "attempt": 1, "folder": f"stages/{key}", "cell": 3, "cells": 9, "started": START.isoformat(), **times}
        status["stages"][key] = entry
    bad = next((key for key, state in states.items() if state in ("failed", "killed", "timed-out", "interrupted")), None)
    unfinished = "running" if "running" in states.values() else "done"
    status["state"] = states[bad] if bad else unfinished
    if bad:
        status["stages"][bad]["error"] = "the kernel died at cell 3 of 9, probably for want of memory (peak 2.9 GiB). Take fewer rows"
    (run / "status.json").write_text(json.dumps(status), encoding="utf-8")
    return run


def cook(folder: Path, key: str, state: str, rows: int, sample: str) -> None:
    """What the notebook of one stage does, as far as it came."""
    with mock.patch.dict(os.environ, {"NBCORE_STAGE_DIR": str(folder), "NBCORE_UPSTREAM": "{}"}):
        run = stage.open(key)
    log = "\n".join(f"\x1b[32mline {i}\x1b[0m" for i in range(100)) + "\n10%\r55%\nMemoryError: 内存不足\n"
    (folder / "log.txt").write_text(log, encoding="utf-8")
    if key in ("02_sft", "04_rl"):
        for step in range(1, rows + 1):
            loss = float("nan") if 60 <= step < 66 else 3 * math.exp(-step / 40) + 0.2 + 0.1 * math.sin(step * 1.7)
            run.log(step=step, total=200, loss=loss, reward=1 - math.exp(-step / 50), learning_rate=3e-4 * (1 - step / (rows + 1)))
    if key == "02_sft":
        for when, completion, correct in (("before", "3 3 3 3 3 3 3", False), ("after", "<think>\n12 + 30 = 42\n</think>\n42", True)):
            run.sample(when=when, suite="reason", prompt="What is 12 + 30?", completion=completion, correct=correct)
            chinese = "北京是中国的首都。" + sample
            run.sample(when=when, suite="align", prompt="用一句话介绍北京。", completion=chinese, correct=correct, note="一句话")
        run.figure(_figure(), "mixture", caption="Supervised tokens of the four abilities")
    if state not in ("done", "reused"):
        return
    if key == "02_sft":
        run.check(True, "Every row has supervised tokens")
        run.finish(metrics={"reason_accuracy": 0.71, "act_accuracy": 0.42, "loss": 0.31, "tokens": 1_250_000, "perplexity": None})
    elif key == "12_evaluate":
        for suite, before, after in SUITES:
            ends = [{"name": n, "value": v, "low": max(0.0, v - 0.05), "high": v + 0.06} for n, v in (("base", before), ("sft", after))]
            run.move(suite, *ends, n=200)
        run.move("length", {"name": "base", "value": 181.0}, {"name": "sft", "value": 64.5}, n=200, unit="tokens")
        columns = ["suite", "model", "accuracy", "low", "high", "truncated", "malformed", "avg@4", "pass@4", "a word on it"]
        rows_ = [[s, m, 0.712345, 0.64, 0.78, 3, None, 0.7, 0.83, "held out by entity"] for s, *_ in SUITES for m in ("base", "sft")]
        run.table("suites", columns, rows_, caption="accuracy with 95 % intervals")
        run.finish(metrics={"mean_accuracy": 0.62})
    else:
        run.finish(metrics={"rows": 4000})


def _figure():
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3))
    fig.subplots().bar(["reason", "align", "code", "act"], [4, 2, 3, 5])
    return fig
