"""Reading back what a stage left: result.json and metrics.jsonl, checked before they are believed. Design section 5.

Used by `nbcore.stage` (inputs of a notebook) and by `nbcore.jobs` (did the stage succeed, may it be reused).
Left out on purpose: writing, which is `nbcore.stage` alone.
"""

from __future__ import annotations

import json
import math
import numbers
from pathlib import Path
from typing import Any

SHAPE = {"stage": str, "status": str, "started": str, "ended": str, "attempt": int}
SHAPE |= {"metrics": dict, "artifacts": dict, "checks": list, "tables": dict, "moves": list}


class StageError(RuntimeError):
    """A stage was used in a way that would make its record untrue."""


class ResultError(StageError):
    """A result.json that cannot be believed; the sentence names the file and what is wrong with it."""


def read_result(folder: str | Path) -> dict:
    """The checked content of <folder>/result.json. Raises ResultError: missing, truncated, of another shape, artifact gone."""
    path = Path(folder) / "result.json"
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultError(f"{path} is missing: the stage did not finish.") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ResultError(f"{path} cannot be read: {error}. Run the stage again.") from None
    if not isinstance(result, dict):
        raise ResultError(f"{path} holds a {type(result).__name__}, not an object. Run the stage again.")
    for key, kind in SHAPE.items():
        if not isinstance(result.get(key), kind):
            raise ResultError(f"{path}: {key!r} should be a {kind.__name__} and is {result.get(key)!r}. Run the stage again.")
    if result["status"] != "done":
        raise ResultError(f"{path}: status is {result['status']!r}, not 'done'. Run the stage again.")
    for name, value in result["metrics"].items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ResultError(f"{path}: metric {name!r} is {value!r}, not a number. Run the stage again.")
    for name, where in result["artifacts"].items():
        inside = isinstance(where, str) and not Path(where).is_absolute() and ".." not in Path(where).parts
        if not inside or not (path.parent / where).exists():
            raise ResultError(f"{path}: artifact {name!r} ({where}) is not there any more. Run the stage again.")
    return result


def read_metrics(folder: str | Path) -> list[dict]:
    """Rows of <folder>/metrics.jsonl in order; rows that a later attempt logged again and a torn last row are left out."""
    path = Path(folder) / "metrics.jsonl"
    rows: list[dict] = []
    if not path.exists():
        return rows
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue  # torn by a kill or a full disk; nothing else writes here
        while rows and "step" in row and row["attempt"] > rows[-1]["attempt"] and rows[-1].get("step", -1) >= row["step"]:
            rows.pop()  # the later attempt continued from a checkpoint before this row
        rows.append(row)
    return rows


def real(value: Any, what: str) -> float | int:
    """`value` as a Python number; takes numpy and torch scalars. Raises TypeError naming `what` for anything else."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{what} is {value!r} ({type(value).__name__}). A number is needed.")
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def plain(value: Any) -> Any:
    """`value` as JSON knows it: numpy and torch unwrapped, non-finite numbers as None, what JSON has no word for as text."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | bool | None) else str(value)
