"""Is this machine ready? What is here, what that means for the recipes, and what to do. Design sections 6 and 7.

Three verdicts: "ok", "note" (something optional is missing, or differs from what was tested) and "broken" (the nano recipe
can't run). Nothing is changed and nothing heavy is imported. Left out on purpose: installing anything.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psutil

_NEEDED_GIB, _NEEDED_DISK_GIB = 3.0, 1.0  # of the nano recipe
_CJK = re.compile(r"noto ?(sans|serif) ?(mono ?)?cjk|wenquanyi|wqy|simhei|simsun|yahei|pingfang|source ?han|hiragino|unifont", re.I)
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Finding:
    """One thing looked at: verdict "ok", "note" or "broken", what was found, and what to do ("" when nothing)."""

    name: str
    verdict: str
    found: str
    advice: str = ""


def examine(runs: Path, constraints: Path = ROOT / "constraints.txt") -> list[Finding]:
    """All findings, in the order in which one would mend things. `runs`: where runs would be written."""
    looks: list[Callable[[], list[Finding]]] = [
        _python, lambda: _packages(constraints), _kernel, _cores, _memory, lambda: _disk(runs), _gpu, _sandbox, _fonts, _git,
    ]  # fmt: skip
    return [finding for look in looks for finding in look()]


def _python() -> list[Finding]:
    found = f"{sys.version.split()[0]} at {sys.executable}"
    # An older one can't be asked: pip refuses to install nbcore there, and this file doesn't compile.
    tested = sys.version_info[:2] == (3, 11)
    return [Finding("python", "ok" if tested else "note", found, "" if tested else "The pinned versions were tested on Python 3.11.")]


def _packages(constraints: Path) -> list[Finding]:
    try:
        needed = [_name(r) for r in metadata.requires("nbcore") or [] if "extra ==" not in r]
    except metadata.PackageNotFoundError:
        return [Finding("packages", "broken", "nbcore is not installed", "Run: pip install -c constraints.txt -e .")]
    try:
        lines = constraints.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    pins = {_name(line): line.partition("==")[2].strip() for line in lines if "==" in line and not line.startswith("#")}
    versions = {name: _version(name) for name in {*needed, *pins}}
    missing = sorted(name for name in needed if versions[name] is None)
    differing = sorted(name for name, pin in pins.items() if versions[name] and versions[name].partition("+")[0] != pin)
    findings = []
    if missing:
        findings.append(Finding("packages", "broken", f"missing: {', '.join(missing)}", "Run: pip install -c constraints.txt -e ."))
    if differing:
        found = ", ".join(f"{name} {versions[name]} (tested: {pins[name]})" for name in differing)
        findings.append(Finding("packages", "note", found, "For the versions tested together: pip install -c constraints.txt -e ."))
    if not lines:
        advice = "Versions can't be compared; clone the project to have it."
        findings.append(Finding("packages", "note", f"no {constraints.name} beside nbcore", advice))
    optional = sorted(name for name in pins if name not in needed and versions[name] is None)
    if not findings:
        findings.append(Finding("packages", "ok", f"all {len(needed)} needed ones, in the tested versions"))
    if optional:
        findings.append(Finding("extras", "note", f"not installed: {', '.join(optional)}", "Optional; the nano recipe needs none of them."))
    return findings


def _kernel() -> list[Finding]:
    # Looked at in a process of its own: the kernel that runs notebooks is another process of this same Python, too.
    code = "import ipykernel, papermill, sys; sys.stdout.write(ipykernel.__version__ + ' ' + papermill.__version__)"
    said = _ask([sys.executable, "-c", code], 60)
    if said is None:
        return [Finding("notebooks", "broken", "papermill or ipykernel can't be imported", "Run: pip install -c constraints.txt -e .")]
    ipykernel, _, papermill = said.partition(" ")
    return [Finding("notebooks", "ok", f"papermill {papermill}, ipykernel {ipykernel}")]


def _cores() -> list[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cpu_quota()
    usable = min(cores, quota) if quota else cores
    found = f"{usable:g} usable" + (f" of {os.cpu_count()}" if usable != os.cpu_count() else "")
    if usable < 2:
        return [Finding("cores", "note", found, "The recipes' times are meant for two cores: expect about twice as long.")]
    return [Finding("cores", "ok", found)]


def _memory() -> list[Finding]:
    total, free = psutil.virtual_memory().total / 2**30, psutil.virtual_memory().available / 2**30
    limit = _number_in("/sys/fs/cgroup/memory.max")
    total = min(total, limit / 2**30) if limit else total
    free = min(free, total)
    found = f"{total:.1f} GiB, {free:.1f} GiB free"
    if total < _NEEDED_GIB:
        return [Finding("memory", "broken", found, f"The nano recipe needs {_NEEDED_GIB:g} GiB.")]
    if free < _NEEDED_GIB:
        return [Finding("memory", "note", found, f"The nano recipe takes up to {_NEEDED_GIB:g} GiB: end other programs first.")]
    return [Finding("memory", "ok", found)]


def _disk(runs: Path) -> list[Finding]:
    findings = []
    place = next(p for p in (runs.absolute(), *runs.absolute().parents) if p.exists())
    for name, folder in (("disk", place), ("temporary files", Path(tempfile.gettempdir()))):
        try:
            with tempfile.TemporaryFile(dir=folder):
                free = shutil.disk_usage(folder).free / 2**30
        except OSError as error:
            advice = "Choose another folder: --runs or $NBCORE_RUNS, $TMPDIR."
            findings.append(Finding(name, "broken", f"{folder} can't be written: {error.strerror}", advice))
            continue
        found = f"{free:.1f} GiB free in {folder}"
        if name == "disk" and free < _NEEDED_DISK_GIB:
            findings.append(Finding(name, "broken", found, f"A run needs about {_NEEDED_DISK_GIB:g} GiB: free some, or use --runs."))
        else:
            findings.append(Finding(name, "ok", found))
    return findings


def _gpu() -> list[Finding]:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    said = _ask(query, 20) if shutil.which("nvidia-smi") else None
    if said:
        return [Finding("gpu", "ok", "; ".join(said.splitlines()))]
    found = "nvidia-smi is here but answers nothing" if shutil.which("nvidia-smi") else "none"
    return [Finding("gpu", "note", found, "Not needed by the smoke and nano recipes; the larger ones want an NVIDIA GPU.")]


def _sandbox() -> list[Finding]:
    # Asked in a process of its own: what programs of a model may do is the sandbox's to say, and no room of this wing imports it.
    said = _ask([sys.executable, "-c", "import json; from nbcore.judge import sandbox; print(json.dumps(sandbox.capabilities()))"], 30)
    holds = json.loads(said) if said else {}
    if not holds:
        findings = [Finding("sandbox", "note", "does not start", "The code stages can't judge programs here.")]
    else:
        lacking = [name.replace("_", " ") for name, held in holds.items() if not held]
        found = ", ".join(name.replace("_", " ") for name, held in holds.items() if held) or "time and memory limits only"
        advice = f"Not enforced here: {', '.join(lacking)}. Judge only models you trust not to be malicious." if lacking else ""
        findings = [Finding("sandbox", "note" if lacking else "ok", found, advice)]
    if holds.get("files_hidden"):
        return [*findings, Finding("sandbox tools", "ok", "bwrap, which hides your files from programs")]
    if not shutil.which("bwrap"):
        advice = "Install bubblewrap (apt install bubblewrap): programs of a model then see nothing of your files."
        return [*findings, Finding("sandbox tools", "note", "missing: bwrap", advice)]
    advice = "Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1); a container must be started with that right."
    return [*findings, Finding("sandbox tools", "note", "bwrap is here but may not make namespaces", advice)]


def _fonts() -> list[Finding]:
    said = _ask(["fc-list", ":", "family"], 20) if shutil.which("fc-list") else None
    if said is None:
        roots = ("/usr/share/fonts", "/usr/local/share/fonts", "/System/Library/Fonts", "/Library/Fonts", "C:/Windows/Fonts")
        places = [*map(Path, roots), Path.home() / ".fonts"]
        said = "\n".join(p.stem.replace("-", " ") for place in places if place.is_dir() for p in place.rglob("*.*tf"))
    families = {line.strip() for line in said.splitlines() if line.strip()}
    if any(_CJK.search(family) for family in families):
        return [Finding("fonts", "ok", f"{len(families)} families, Chinese among them")]
    advice = "Chinese text in figures shows as boxes. Install one (apt install fonts-noto-cjk)."
    return [Finding("fonts", "note", f"{len(families)} families, none for Chinese", advice)]


def _git() -> list[Finding]:
    said = _ask(["git", "--version"], 20) if shutil.which("git") else None
    if said is None:
        return [Finding("git", "note", "not found", "Runs then don't record the commit of the code. Install git.")]
    return [Finding("git", "ok", said.strip())]


def _ask(command: list[str], seconds: float) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cpu_quota() -> float | None:
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return None if quota == "max" else max(1.0, int(quota) / int(period))
    except (OSError, ValueError):
        return None


def _number_in(path: str) -> int | None:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None  # no such limit, or "max"
