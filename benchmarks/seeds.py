"""What does each stage lift, over several training seeds? `python benchmarks/seeds.py RUN RUN RUN`

Reads the records of finished nano runs that differ in their seed (nbcore run nano --set seed=0, 1, 2) and prints, for each suite,
every stage's score over all seeds and the paired difference to the stage before, with 95 % intervals; then the win rates on align,
by the hidden annotator; then the code stages' own comparisons. The questions are the same in each run; the interval resamples
questions, each with all its seeds and samples, and the spread between seeds is printed beside it.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

from nbcore.evaluation.answers import win_rate
from nbcore.evaluation.statistics import mean_interval, paired_difference

OWN = {"08_code_rl_correctness": [("before", "after")], "09_code_rl_efficiency": [("start", "gated"), ("gated", "ungated")]}


def scores(run: Path, stage: str = "12_evaluate") -> dict[tuple[str, str], list]:
    """(suite, model) → per question the list of sample scores, from a stage's artifacts/scores.json."""
    status = json.loads((run / "status.json").read_text(encoding="utf-8"))["stages"][stage]
    kept = json.loads((run / status["folder"] / "artifacts" / "scores.json").read_text(encoding="utf-8"))
    return {tuple(key.split("/")): rows for key, rows in kept.items()}


def main(runs: list[Path]) -> None:
    if len(runs) < 3:
        sys.exit("A claim needs three seeds or more: give the folders of three finished runs with different seeds.")
    found = [scores(run) for run in runs]
    suites, names = (list(dict.fromkeys(key[n] for key in found[0])) for n in (0, 1))
    pooled = {key: [sum((run[key][i] for run in found), []) for i in range(len(rows))] for key, rows in found[0].items()}
    print(f"{'suite':>10} {'model':>12} {'score':>22} {'to the one before':>26}  by seed")
    for suite in suites:
        for before, name in itertools.pairwise([None, *names]):
            told = [mean_interval(pooled[suite, name])]
            told += [paired_difference(pooled[suite, before], pooled[suite, name])] if before else []
            said = [f"{x.mean:+.3f} [{x.low:+.3f}, {x.high:+.3f}]" for x in told] + ([""] if not before else [])
            seeds = " ".join(f"{mean_interval(run[suite, name]).mean:.3f}" for run in found)
            print(f"{suite:>10} {name:>12} {said[0]:>22} {said[1]:>26}  {seeds}")
    for before, name in itertools.pairwise(names[1:]):
        rate = win_rate(pooled["align", name], pooled["align", before])
        seeds = " ".join(f"{win_rate(run['align', name], run['align', before]).mean:.3f}" for run in found)
        print(f"{name} against {before}: wins {rate.mean:.3f} [{rate.low:.3f}, {rate.high:.3f}], ties half  by seed {seeds}")


    for stage, pairs in OWN.items():
        found = [scores(run, stage) for run in runs]
        for what in dict.fromkeys(key[0] for key in found[0]):
            for before, after in pairs:
                count = len(found[0][what, before])
                sides = [[sum((run[what, name][i] for run in found), []) for i in range(count)] for name in (before, after)]
                d, (one, other) = paired_difference(*sides), [mean_interval(side).mean for side in sides]
                seeds = " ".join(f"{paired_difference(run[what, before], run[what, after]).mean:+.3f}" for run in found)
                print(f"{stage}, {what}: {before} {one:.3f} → {after} {other:.3f}")
                print(f"{'':>10} {d.mean:+.3f} [{d.low:+.3f}, {d.high:+.3f}]  by seed {seeds}")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
