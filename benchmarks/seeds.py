"""Does SFT lift the nano suites, over several training seeds? `python benchmarks/seeds.py RUN RUN RUN`

Reads the records of finished nano runs that differ in their seed (nbcore run nano --set seed=0, 1, 2) and prints, for each suite,
the score of base and SFT over all seeds and the paired lift, with 95 % intervals. The questions are the same in each run; the
interval resamples questions, each with all its seeds and samples, and the spread between seeds is printed beside it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from nbcore.evaluation.statistics import mean_interval, paired_difference


def scores(run: Path) -> dict[tuple[str, str], list]:
    """(suite, model) → per question the list of sample scores, from artifacts/scores.json of 12_evaluate."""
    status = json.loads((run / "status.json").read_text(encoding="utf-8"))["stages"]["12_evaluate"]
    kept = json.loads((run / status["folder"] / "artifacts" / "scores.json").read_text(encoding="utf-8"))
    return {tuple(key.split("/")): rows for key, rows in kept.items()}


def main(runs: list[Path]) -> None:
    if len(runs) < 3:
        sys.exit("A claim needs three seeds or more: give the folders of three finished runs with different seeds.")
    found = [scores(run) for run in runs]
    print(f"{'suite':>10} {'base':>22} {'SFT':>22} {'paired lift':>24}  SFT by seed")
    for suite in dict.fromkeys(suite for suite, _ in found[0]):
        items = range(len(found[0][suite, "base"]))
        pooled = {model: [sum((run[suite, model][i] for run in found), []) for i in items] for model in ("base", "SFT")}
        base, tuned = mean_interval(pooled["base"]), mean_interval(pooled["SFT"])
        lift = paired_difference(pooled["base"], pooled["SFT"])
        seeds = " ".join(f"{mean_interval(run[suite, 'SFT']).mean:.3f}" for run in found)
        told = [f"{x.mean:.3f} [{x.low:.3f}, {x.high:.3f}]" for x in (base, tuned, lift)]
        print(f"{suite:>10} {told[0]:>22} {told[1]:>22} {told[2]:>24}  {seeds}")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
