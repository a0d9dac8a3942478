"""What `nbcore run` costs beside papermill: the same 20-cell notebook through both, interleaved; prints the ratio of the times.

    OMP_NUM_THREADS=1 taskset -c 1 python benchmarks/overhead.py [--repeats 7] [--work 0.1]

Each side is measured in a fresh process of its own, as a user starts it. Imports are excluded in the same way on both sides: the time
that the importing statements themselves take is measured inside the process and taken off (papermill's here, typer's and papermill's
worker's there, whose import runs in the stage's own process). What stays in is everything else of nbcore: planning, fingerprint, guardian,
worker start-up, heartbeat, record, final checks. The report page is extra work that papermill does not do: it is timed apart.
`--work` is the CPU time in seconds of each cell; 0 shows the bare machinery.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PAPERMILL = """
import json, sys, time
began = time.perf_counter()
sys.modules.setdefault("rfc3987_syntax", None)
import papermill
imported = time.perf_counter()
papermill.execute_notebook(sys.argv[1], sys.argv[2], parameters={"work": float(sys.argv[3])}, progress_bar=False, cwd=".")
print(json.dumps({"import": imported - began, "run": time.perf_counter() - imported}))
"""

NBCORE = """
import json, sys, time
began = time.perf_counter()
from nbcore.jobs import execute, pipeline, recipes, report
imported = time.perf_counter()
endings, pages = [], []
run_stage, render = pipeline.execute, report.render
def kept(*given):
    endings.append(run_stage(*given))
    return endings[-1]
def timed(folder):
    start = time.perf_counter()
    try:
        return render(folder)
    finally:
        pages.append(time.perf_counter() - start)
pipeline.execute, report.render = kept, timed
recipe = recipes.load(sys.argv[1], ["work=" + sys.argv[3]])
outcome = pipeline.run(recipe, sys.argv[2], force=("bench",))
whole = time.perf_counter() - imported
assert outcome.exit_code == 0, outcome
worker = endings[0].import_seconds
print(json.dumps({"import": imported - began + worker, "run": whole - worker - pages[0], "report": pages[0]}))
"""

CELL = "import time\nuntil = time.process_time() + work\nwhile time.process_time() < until:\n    pass\nprint({n})"


def kitchen(folder: Path) -> tuple[Path, Path]:
    """The notebook of 20 cells (one of them parameters) and a recipe for it."""
    sources = ["work: float = 0.1  # CPU seconds of a cell", "from nbcore import stage\nrun = stage.open('bench')"]
    sources += [CELL.format(n=n) for n in range(17)] + ["run.finish()"]
    cells = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {"tags": ["parameters"]} if n == 0 else {}, "source": source, "outputs": [],
         "execution_count": None}
        for n, source in enumerate(sources)
    ]  # fmt: skip
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    for name in ("notebooks", "recipes"):
        (folder / name).mkdir()
    notebook, recipe = folder / "notebooks" / "bench.ipynb", folder / "recipes" / "bench.yaml"
    notebook.write_text(json.dumps({"cells": cells, "metadata": spec, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    recipe.write_text("threads: 1\nstages:\n  bench: {}\n", encoding="utf-8")
    return notebook, recipe


def measure(code: str, folder: Path, *arguments: str) -> dict[str, float]:
    """Run one side in a fresh process; its times in seconds, with the CPU seconds of its whole process tree."""
    before = os.times()
    environment = os.environ | {"NBCORE_RUNS": str(folder / "interactive")}
    line = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return json.loads(done.stdout.splitlines()[-1]) | {"cpu": cpu}


def main() -> None:
    """Interleave the two sides, then print medians and the ratio."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--work", type=float, default=0.1)
    chosen = options.parse_args()
    pairs = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        notebook, recipe = kitchen(folder)
        for number in range(chosen.repeats + 1):
            theirs = measure(PAPERMILL, folder, str(notebook), str(folder / "out.ipynb"), str(chosen.work))
            ours = measure(NBCORE, folder, str(recipe), str(folder / "runs"), str(chosen.work))
            if number:  # the first pair warms the file cache
                pairs.append((theirs, ours))
                print(f"papermill {theirs['run']:.2f} s   nbcore {ours['run']:.2f} s   ratio {ours['run'] / theirs['run']:.3f}")
    for side, name in enumerate(("papermill", "nbcore")):
        medians = {key: statistics.median(pair[side][key] for pair in pairs) for key in pairs[0][side]}
        print(f"{name:10}" + "  ".join(f"{key} {value:.2f} s" for key, value in medians.items()))
    print(f"ratio, median of the pairs: {statistics.median(ours['run'] / theirs['run'] for theirs, ours in pairs):.3f}")
    # On a machine that others use too, the quickest run of each side is the one that was disturbed least.
    print(f"ratio of the quickest runs: {min(ours['run'] for _, ours in pairs) / min(theirs['run'] for theirs, _ in pairs):.3f}")
    print(f"ratio of CPU seconds, whole trees with imports, median: {statistics.median(o['cpu'] / t['cpu'] for t, o in pairs):.3f}")


if __name__ == "__main__":
    main()
