"""What a run would do, stage by stage, and why: run, reuse a finished stage of this or another run, or skip. Design section 5.

A stage counts as finished when its folder holds fingerprint.json (the runner's last word on it) and a valid result.json. Same digest:
reused. `--from S` takes what S needs from the newest finished stages even when they are stale, and says so.
Left out on purpose: deleting old runs.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from nbcore.jobs.fingerprints import explain, fingerprint
from nbcore.jobs.recipes import Recipe, Stage
from nbcore.results import ResultError, read_result

ROOT = Path(__file__).resolve().parents[2]


class PipelineError(RuntimeError):
    """A run that cannot begin; the sentence says what to do. `exit_code`: 2 for a wrong call, 1 for what the machine lacks."""

    def __init__(self, sentence: str, exit_code: int = 2):
        super().__init__(sentence)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Planned:
    """One stage of a plan. action: "run", "reuse" or "skip"; from_run, folder: run and stage folder that a reused stage comes from."""

    stage: Stage
    action: str
    reason: str
    from_run: Path | None = None
    folder: Path | None = None
    fingerprint: dict | None = None


def plan(
    recipe: Recipe, runs: Path, start: str | None = None, until: str | None = None, force: Collection[str] = (), prefer: Path | None = None
) -> list[Planned]:
    """Decide for every stage. `prefer`: a run whose own finished stages come first (the one being resumed).

    Raises PipelineError for a stage name the recipe lacks, and when --from leaves out a stage of which nothing finished exists.
    """
    keys = [stage.key for stage in recipe.stages]
    for option, name in [("--from", start), ("--until", until), *(("--force", name) for name in force)]:
        if name is not None and name not in keys:
            near = difflib.get_close_matches(name, keys, n=1)
            guess = f" Did you mean {near[0]}?" if near else ""
            raise PipelineError(f"{option} {name}: recipe {recipe.name} has no such stage.{guess} It has: {', '.join(keys)}.")
    first, last = keys.index(start) if start else 0, keys.index(until) if until else len(keys) - 1
    if first > last:
        raise PipelineError(f"--from {start} comes after --until {until} in recipe {recipe.name}; nothing is left to run.")
    needed = {need for stage in recipe.stages[first : last + 1] for need in stage.needs}
    made: dict[str, Planned] = {}
    for number, stage in enumerate(recipe.stages):
        if number > last:
            made[stage.key] = Planned(stage, "skip", f"after --until {until}")
        elif number < first and stage.key not in needed:
            made[stage.key] = Planned(stage, "skip", f"before --from {start}")
        elif number < first:
            made[stage.key] = _earlier(stage, runs, made, start, prefer)
        else:
            made[stage.key] = _decide(stage, runs, made, force, prefer)
    return list(made.values())


def digest_of(planned: Planned) -> str:
    """The digest of a stage's planned or reused result."""
    return (planned.fingerprint or {}).get("digest", "")


def finished(folder: Path) -> dict | None:
    """The fingerprint of a finished stage, or None: unfinished, damaged, or an artifact is gone."""
    try:
        read_result(folder)
        made = json.loads((folder / "fingerprint.json").read_text(encoding="utf-8"))
    except (ResultError, OSError, ValueError):
        return None
    return made if isinstance(made, dict) and "digest" in made else None


def _decide(stage: Stage, runs: Path, made: dict[str, Planned], force: Collection[str], prefer: Path | None) -> Planned:
    new = fingerprint(stage, {need: digest_of(made[need]) for need in stage.needs}, ROOT)
    if stage.key in force:
        return Planned(stage, "run", "forced", fingerprint=new)
    forced = [need for need in stage.needs if "forced" in made[need].reason]
    if forced:
        return Planned(stage, "run", f"needs {forced[0]}, which is forced", fingerprint=new)
    candidates = _candidates(stage.key, runs, prefer)
    for folder, old in candidates:
        if old["digest"] == new["digest"]:
            return Planned(stage, "reuse", f"same fingerprint, from {folder.parents[1].name}", folder.parents[1], folder, old)
    if candidates:
        folder, old = candidates[0]
        return Planned(stage, "run", explain(old, new) or "stale", fingerprint=new)
    return Planned(stage, "run", _broken(stage.key, runs) or "not finished in any run yet", fingerprint=new)


def _earlier(stage: Stage, runs: Path, made: dict[str, Planned], start: str | None, prefer: Path | None) -> Planned:
    candidates = _candidates(stage.key, runs, prefer)
    if not candidates:
        why = _broken(stage.key, runs)
        raise PipelineError(
            f"--from {start} needs a finished {stage.key}, and {runs} holds none{f' ({why})' if why else ''}. "
            f"Run it first: leave out --from, or use --until {stage.key}."
        )
    # Its own needs may be skipped here, so what they would be now is unknown; its stored digests stand for them.
    for folder, old in candidates:
        if set(old["upstream"]) == set(stage.needs):
            current = {need: digest_of(made[need]) or old["upstream"][need] for need in stage.needs}
            if fingerprint(stage, current, ROOT)["digest"] == old["digest"]:
                return Planned(stage, "reuse", f"before --from {start}, from {folder.parents[1].name}", folder.parents[1], folder, old)
    folder, old = candidates[0]
    upstream = {need: old["upstream"].get(need, "") for need in stage.needs}
    stale = explain(old, fingerprint(stage, upstream, ROOT)) or "its inputs changed"
    reason = f"before --from {start}, from {folder.parents[1].name} although stale: {stale}"
    return Planned(stage, "reuse", reason, folder.parents[1], folder, old)


def _candidates(key: str, runs: Path, prefer: Path | None) -> list[tuple[Path, dict]]:
    """Finished stages of that key with their fingerprints, those of `prefer` first, then the newest."""
    found = []
    for path in Path(runs).glob(f"*/stages/{key}/fingerprint.json"):
        made = finished(path.parent)
        if made is not None:
            ended = read_result(path.parent)["ended"]
            found.append((prefer is not None and path.parents[2].name == prefer.name, ended, path.parent.absolute(), made))
    return [(folder, made) for _, _, folder, made in sorted(found, key=lambda f: f[:2], reverse=True)]


def _broken(key: str, runs: Path) -> str | None:
    """Why the newest stage that once finished does not count any more, if there is one."""
    for path in sorted(Path(runs).glob(f"*/stages/{key}/fingerprint.json"), key=lambda p: p.parents[2].name, reverse=True):
        try:
            read_result(path.parent)
        except ResultError as error:
            return f"finished once, but {error}".removesuffix(" Run the stage again.")
    return None
