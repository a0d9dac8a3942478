"""The keys that a recipe may hold at each level, and how each is read; part of `recipes.py`, which says what a recipe means.

Design section 3. An unknown key is an error with the nearest known one: a misspelt key that is quietly ignored costs a night.
Left out on purpose: any default (they stand in `recipes.py`, where they are used).
"""

from __future__ import annotations

import re

from nbcore.jobs.annotations import Mismatch, coerce, given, looks_secret, parse
from nbcore.jobs.layers import At, nearest

# Keys and their types; None stands for a mapping that is read by itself.
TOP = {"name": "str", "title": "str", "threads": "int", "expects": None, "environment": None, "defaults": None, "stages": None}
EXPECTS = {"minutes": "float | None", "memory_gib": "float | None"}
STAGE = {"notebook": "str", "needs": "list[str]", "timeout_minutes": "float", "cell_timeout_minutes": "float | None",
         "max_output_kib": "int", "parameters": None, "bands": None}

_POSITIVE = ("threads", "minutes", "memory_gib", "timeout_minutes", "cell_timeout_minutes", "max_output_kib")
_OF_THE_RUNNER = ("NBCORE_STAGE_DIR", "NBCORE_UPSTREAM", "NBCORE_RUN_ID")
_NO_SECRETS = "looks like a secret; secrets come from the environment (os.environ), never from recipes or parameters"


def secret_problem(name: str) -> str | None:
    """A clause that refuses a secret-looking name, or None."""
    return f"{name} {_NO_SECRETS}" if looks_secret(name) else None


def read_mapping(at: At | None, label: str, problems: list[str]) -> dict[str, At]:
    """The entries of the mapping `at`; none when it is missing or null, a problem when it is anything else."""
    if at is None or at.is_null:
        return {}
    if not isinstance(at.value, dict):
        problems.append(f"{at.origin}: {given(label, at.bare())}: it takes a mapping such as `{label.rpartition('.')[2]}: {{key: value}}`")
        return {}
    return at.value


def read_fields(at: At | None, kinds: dict[str, str | None], label: str, problems: list[str]) -> dict[str, object]:
    """The typed values of the known keys of `at` (mappings as At); `label` ends in a dot or is empty. Unknown keys are problems."""
    fields: dict[str, object] = {}
    for key, item in read_mapping(at, label.removesuffix("."), problems).items():
        where = f"{item.origin}: {given(label + key, item.bare())}"
        if key not in kinds:
            allowed = ", ".join(sorted(kinds) + ([] if label else ["extends"]))
            problems.append(f"{where}: unknown key {key}{nearest(key, kinds)}; allowed here: {allowed}")
        elif kinds[key] is None:
            fields[key] = item
        else:
            try:
                fields[key] = coerce(parse(kinds[key]), item.bare())
            except Mismatch as error:
                problems.append(f"{where}: takes {kinds[key]}: {error}")
                continue
            if key in _POSITIVE and fields[key] is not None and fields[key] <= 0:
                problems.append(f"{where}: must be above 0")
    return fields


def read_bands(at: At | None, label: str, problems: list[str]) -> dict[str, tuple[float, float]]:
    """Metric name → (low, high), both ends inside; a null band is left out."""
    bands: dict[str, tuple[float, float]] = {}
    for metric, item in read_mapping(at, label, problems).items():
        if item.is_null:
            continue
        where = f"{item.origin}: {given(f'{label}.{metric}', item.bare())}"
        try:
            ends = coerce(parse("list[float]"), item.bare())
        except Mismatch as error:
            problems.append(f"{where}: takes two numbers [low, high]: {error}")
            continue
        if len(ends) != 2:
            problems.append(f"{where}: takes two numbers [low, high], not {len(ends)}")
        elif ends[0] > ends[1]:
            problems.append(f"{where}: the low end is above the high end; write [{ends[1]:g}, {ends[0]:g}]")
        else:
            bands[metric] = (ends[0], ends[1])
    return bands


def read_environment(at: At | None, problems: list[str]) -> dict[str, str]:
    """Environment variables of the stage processes, values as typed (`on` stays `on`); a null value is left out."""
    environment: dict[str, str] = {}
    for name, item in read_mapping(at, "environment", problems).items():
        where = f"{item.origin}: {given(f'environment.{name}', item.bare())}"
        if secret := secret_problem(name):
            problems.append(f"{where}: {secret}")
        elif name in _OF_THE_RUNNER:
            problems.append(f"{where}: the runner sets {name} itself; take it out")
        elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            problems.append(f"{where}: not a name of an environment variable (letters, digits and _)")
        elif not isinstance(item.value, str):
            problems.append(f"{where}: takes one text, not a list or a mapping")
        elif not item.is_null:
            environment[name] = str(item.value)
    return environment
