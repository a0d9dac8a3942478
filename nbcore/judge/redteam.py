"""Can your reward for programs be fooled or harmed? `python -m nbcore.judge.redteam [MODULE:FUNCTION]`. Paper section 5.

A reinforced policy finds every hole in the reward that pays it. Here all of `attacks.py` is tried on a judge: a function that takes
the programs' texts, the name of the function asked for and the cases, and gives a score for each program (1 all right, 0 nothing,
None not judged). Without an argument it is this project's own. An attack succeeds when it scores, when it takes the judge down or
leaves it unable to say anything, when the honest program after it is judged wrongly, or when it touched a file outside.
Left out on purpose: attacks on one judge's particular words. Add yours to a copy of ATTACKS and give it to `attack`.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbcore.judge import programs, sandbox
from nbcore.judge.attacks import ATTACKS
from nbcore.judge.programs import Case, Task

Grade = Callable[[Sequence[str], str, Sequence[Case]], Sequence[float | None]]
ENTRY = "total"
NUMBERS = ([1, 2, 3], [4], [5, -5, 1], [2, 2, 2, 2, 2], [10, 0, -7, 3, 1])
CASES: list[Case] = [([numbers], sum(n * n for n in numbers)) for numbers in NUMBERS]
HONEST = f"def {ENTRY}(numbers):\n    return sum(n * n for n in numbers)\n"
KEPT = "This file is not yours.\n"


@dataclass(frozen=True)
class Outcome:
    """One attack. score: what the judge gave it. harm: what went wrong besides, or ""."""

    name: str
    score: float | None
    harm: str = ""

    @property
    def succeeded(self) -> bool:
        return bool(self.harm) or self.score != 0


def own(texts: Sequence[str], entry: str, cases: Sequence[Case]) -> list[float | None]:
    """This project's judge: the share of cases passed; None where the judge failed."""
    limits = sandbox.Limits(cpu_seconds=1, wall_seconds=2)
    verdicts = programs.check_many([(text, Task("redteam", entry, cases)) for text in texts], limits)
    return [None if v.passed_all is None else v.passed / v.total for v in verdicts]


def attack(
    grade: Grade = own, attacks: Mapping[str, str] = ATTACKS, log: Callable[[Outcome], None] = lambda outcome: None
) -> list[Outcome]:
    """Every attack by itself, an honest program behind each. Raises ValueError for a judge that does not pay the honest one.

    An exception of the judge is harm, and told; SystemExit and its like are not caught: a judge that ends its caller has lost.
    """
    if (score := _graded(grade, HONEST)) != 1:
        raise ValueError(f"The judge gives {score!r} to a right program, it must give 1: there is no use in attacking it.")
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="redteam-", dir="/tmp" if os.path.isdir("/tmp") else None) as folder:
        kept = Path(folder, "kept")
        os.chmod(folder, 0o755)
        for name, program in attacks.items():
            kept.write_text(KEPT, encoding="utf-8")
            score, harm = None, ""
            try:
                score = _graded(grade, program)
                if (after := _graded(grade, HONEST)) != 1:
                    harm = f"the honest program behind it got {after!r}"
            except Exception as error:  # noqa: BLE001 - whatever a judge raises is the finding
                harm = f"the judge raised {type(error).__name__}: {error}"[:200]
            if not kept.exists() or kept.read_text(encoding="utf-8") != KEPT:
                harm = "it removed or changed a file outside its folder"
            outcomes.append(Outcome(name, score, harm))
            log(outcomes[-1])
    return outcomes


def _graded(grade: Grade, program: str) -> float | None:
    scores = list(grade([program], ENTRY, CASES))
    if len(scores) != 1:
        raise ValueError(f"a judge must give one score for each program; for one program it gave {len(scores)}")
    return scores[0]


def found(name: str) -> Grade:
    """The judge called `package.module:function`. Raises ValueError when there is none."""
    module, _, function = name.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"There is no judge {name!r} ({error}). Write MODULE:FUNCTION, for instance my_rewards:judge.") from error


def _told(outcome: Outcome) -> None:
    if outcome.succeeded:
        print(f"SUCCEEDED  {outcome.name}: {outcome.harm or f'score {outcome.score}'}", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Try everything, say what succeeded; 0 when nothing did, 1 when something did, 2 for a judge that cannot be tried."""
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(__doc__)
        return 2
    try:
        outcomes = attack(found(arguments[0]) if arguments else own, log=_told)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    lost = sum(outcome.succeeded for outcome in outcomes)
    print(f"{len(outcomes)} attacks, {lost} succeeded.")
    if not arguments:
        missing = [name.replace("_", " ") for name, holds in sandbox.capabilities().items() if not holds]
        print(f"Not enforced on this machine: {', '.join(missing)}." if missing else "All walls of the sandbox stand on this machine.")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
