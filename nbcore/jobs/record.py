"""What a stage's folder says once the stage is over: banner and cell states in the notebook, secrets masked, false results aside.

Called by the runner, or by the guardian when the runner is gone. Design section 5; pains: papermill 2.7 saves "completed" after a kill.
Left out on purpose: status.json (`status.py`), and everything under artifacts/.
"""

from __future__ import annotations

import json
from pathlib import Path

from nbcore.files import atomic_write
from nbcore.jobs.secrets import Masks

_BANNER = "nbcore-banner"
_PAPERMILL_MARKER = "papermill-error-cell-tag"
_TEXTS = ("notebook.ipynb", "log.txt", "result.json", "metrics.jsonl", "samples.jsonl", "progress.json")


def close_stage(folder: Path, state: str, sentence: str | None, cell: int | None, masks: Masks) -> str | None:
    """Make the record in `folder` say `state`. `cell` is the code cell (from 1) at which it ended, the injected one not counted.

    Returns a sentence when a full disk or broken file stopped it, else None: the state of the stage never hangs on its cosmetics.
    """
    try:
        if state != "done" and (folder / "result.json").exists():
            (folder / "result.json").replace(folder / "result-not-counted.json")
        if state != "done" and (folder / "notebook.ipynb").exists():
            _mark(folder / "notebook.ipynb", state, sentence or "", cell or 0)
        for name in (*_TEXTS, "result-not-counted.json"):
            masks.file(folder / name)
        for caption in (folder / "figures").glob("*.json"):
            masks.file(caption)
    except (OSError, ValueError) as error:
        return f"The record in {folder} could not be completed: {error}"
    return None


def set_aside(folder: Path, attempt: int) -> None:
    """Rename what attempt number `attempt` told of itself, so that the next one starts with an empty page but keeps its artifacts."""
    for name in ("notebook.ipynb", "log.txt", "result.json", "result-not-counted.json"):
        path = folder / name
        if path.exists():
            path.replace(path.with_name(f"{path.stem}-attempt{attempt}{path.suffix}"))
    (folder / "progress.json").unlink(missing_ok=True)
    (folder / "fingerprint.json").unlink(missing_ok=True)


def _mark(path: Path, state: str, sentence: str, cell: int) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [c for c in notebook["cells"] if _BANNER not in c["metadata"].get("tags", [])]
    if cells and _PAPERMILL_MARKER in cells[0]["metadata"].get("tags", []):
        del cells[0]  # papermill's own banner; its anchor before the failing cell stays
    number = 0
    for one in cells:
        if one["cell_type"] != "code":
            continue
        number += "injected-parameters" not in one["metadata"].get("tags", [])
        said = one["metadata"].setdefault("papermill", {})
        said["status"] = "completed" if number < cell else state if number == cell else "pending"
        said["exception"] = number == cell
    anchored = any(_PAPERMILL_MARKER in c["metadata"].get("tags", []) for c in cells)
    link = " [Go to the cell.](#papermill-error-cell)" if anchored else ""
    text = f"> **This stage did not succeed: {state}.** {' '.join(sentence.split())}{link}"
    banner = {"cell_type": "markdown", "metadata": {"tags": [_BANNER]}, "source": text}
    if (notebook["nbformat"], notebook["nbformat_minor"]) >= (4, 5):
        banner["id"] = _BANNER
    notebook["cells"] = [banner, *cells]
    notebook["metadata"].setdefault("papermill", {})["exception"] = True
    atomic_write(path, json.dumps(notebook, ensure_ascii=False, indent=1) + "\n")
