"""A kitchen of tiny notebooks and recipes in a temporary folder, cooked by the real command line in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from nbcore.jobs.status import newest_run, read_status

COMMAND = [sys.executable, "-m", "nbcore.cli"]


class Kitchen:
    """`notebooks/`, `recipes/` and `runs/` under one folder; `runs` may lie elsewhere."""

    def __init__(self, folder: Path, runs: Path | None = None):
        self.folder, self.runs = folder, runs or folder / "runs"
        (folder / "notebooks").mkdir(exist_ok=True)
        (folder / "recipes").mkdir(exist_ok=True)

    def notebook(self, name: str, *cells: str, parameter_cells: tuple[int, ...] = (0,)) -> Path:
        """Write notebooks/<name>.ipynb from the sources of its code cells; those numbered in `parameter_cells` are tagged."""
        made = [
            {"cell_type": "code", "id": f"cell-{number}", "source": source, "outputs": [], "execution_count": None,
             "metadata": {"tags": ["parameters"]} if number in parameter_cells else {}}
            for number, source in enumerate(cells)
        ]  # fmt: skip
        spec = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        path = self.folder / "notebooks" / f"{name}.ipynb"
        path.write_text(json.dumps({"cells": made, "metadata": spec, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
        return path

    def recipe(self, stages: str, name: str = "meal", head: str = "threads: 1") -> Path:
        """Write recipes/<name>.yaml; `stages` is the YAML below `stages:`."""
        path = self.folder / "recipes" / f"{name}.yaml"
        lines = "".join(f"  {line}\n" for line in stages.strip().splitlines())
        path.write_text(f"{head}\nstages:\n{lines}", encoding="utf-8")
        return path

    def start(self, *arguments: str, recipe: str = "meal", **environment: str) -> subprocess.Popen:
        """`nbcore run recipes/<recipe>.yaml …` as the leader of a process group of its own."""
        line = [*COMMAND, "run", f"recipes/{recipe}.yaml", "--runs", str(self.runs), *arguments]
        return subprocess.Popen(
            line, cwd=self.folder, env=os.environ | {"OMP_NUM_THREADS": "1"} | environment, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip

    def run(self, *arguments: str, recipe: str = "meal", **environment: str) -> tuple[int, str]:
        """(exit code, what was printed) of `nbcore run`."""
        process = self.start(*arguments, recipe=recipe, **environment)
        try:
            printed, _ = process.communicate(timeout=120)
        finally:
            process.kill()
        return process.returncode, printed

    @property
    def newest(self) -> Path:
        """The run folder that began last."""
        return newest_run(self.runs)

    def status(self, run: Path | None = None) -> dict:
        """The status of a run, by default the newest, as `nbcore status` reads it."""
        return read_status(run or self.newest)

    def stage(self, key: str, run: Path | None = None) -> dict:
        """The status of one stage."""
        return self.status(run)["stages"][key]
