"""What the result of a stage depends on, as hashes: same fingerprint, same result, so a finished stage can be reused.

Design section 5: notebook code, parameters, the fingerprints of what it needs, the nbcore source it can reach, and the versions of the
libraries that matter. `explain` says in one line why a stage is stale.
Left out on purpose: prose and outputs of the notebook, timeouts and bands (they change no result), hardware and thread count (recorded
in environment.json), and files outside the project that a parameter merely names.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from decimal import Decimal
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from nbcore.jobs.parameters import read_cells
from nbcore.jobs.reach import reachable
from nbcore.jobs.recipes import Stage

_LIBRARIES = ("torch", "transformers", "trl", "peft", "accelerate", "tokenizers", "datasets")
_AT_MOST = 3  # causes in the one line


def fingerprint(stage: Stage, upstream: dict[str, str], root: Path) -> dict:
    """The components of a stage's fingerprint and their `digest` (hex SHA-256), as JSON data. `upstream`: needed stage → its digest.

    `root` is the folder that holds `nbcore/`. Raises ParameterError when the notebook can't be read, FileNotFoundError without nbcore,
    ValueError when `upstream` doesn't name what the stage needs.
    """
    if set(upstream) != set(stage.needs):
        raise ValueError(f"stage {stage.key} needs {sorted(stage.needs)}, but upstream digests were given for {sorted(upstream)}")
    code = [cell for cell in read_cells(stage.notebook) if cell.kind == "code"]
    components = {
        "notebook": _sha(json.dumps([[cell.source, sorted(cell.tags)] for cell in code]).encode("utf-8")),
        "parameters": {name: _plain(value.value) for name, value in stage.parameters.items()},
        "upstream": dict(upstream),
        "source": {path: _sha(content) for path, content in reachable([cell.source for cell in code], root).items()},
        "versions": dict(versions()),
    }
    return {**components, "digest": _sha(json.dumps(components, sort_keys=True, allow_nan=False).encode("utf-8"))}


@lru_cache(maxsize=1)
def versions() -> dict[str, str | None]:
    """Python's minor version and those of the libraries that shape a result, None for one that isn't installed; imports nothing."""
    found: dict[str, str | None] = {"python": ".".join(platform.python_version_tuple()[:2])}
    for library in _LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            found[library] = None
    return found


def explain(old: dict, new: dict) -> str | None:
    """Why a result with fingerprint `old` doesn't serve `new`, in one line: `parameter rows 200 → 400`. None when it does."""
    if old.get("digest") == new["digest"]:
        return None
    causes = [*_changed_values(old, new, "parameters", "parameter ")]
    if old.get("notebook") != new["notebook"]:
        causes.append("notebook changed")
    causes += _changed_hashes(old, new, "upstream", "upstream ")
    causes += _changed_hashes(old, new, "source", "")
    causes += _changed_values(old, new, "versions", "")
    if not causes:
        return "its fingerprint was made in another way"
    more = f"; and {len(causes) - _AT_MOST} more" if len(causes) > _AT_MOST else ""
    return "; ".join(causes[:_AT_MOST]) + more


def _changed_values(old: dict, new: dict, component: str, label: str) -> list[str]:
    before, after = old.get(component) or {}, new[component]
    causes = [f"{label}{name} {_shown(before[name])} → {_shown(after[name])}"
              for name in after if name in before and not _same(before[name], after[name])]
    causes += [f"{label}{name} is new ({_shown(after[name])})" for name in after if name not in before]
    return causes + [f"{label}{name} is gone" for name in before if name not in after]


def _changed_hashes(old: dict, new: dict, component: str, label: str) -> list[str]:
    before, after = old.get(component) or {}, new[component]
    causes = [f"{label}{name} changed" for name in after if name in before and before[name] != after[name]]
    causes += [f"{label}{name} added" for name in after if name not in before]
    return causes + [f"{label}{name} removed" for name in before if name not in after]


def _same(one: object, other: object) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _plain(value: object) -> object:
    """JSON data; nan and infinities, which JSON has no way to say, become texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _shown(value: object) -> str:
    if isinstance(value, float):
        # People write learning rates as 3e-4; Python's repr says 0.0003.
        return f"{Decimal(repr(value)).normalize():e}" if value and abs(value) < 1e-2 else repr(value)
    if isinstance(value, dict) and set(value) == {"float"}:
        return str(value["float"])
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= 40 else text[:37] + "..."


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
