"""A recipe file becomes a validated Recipe: layers merged, every value typed, each with its origin, all problems told at once.

Design sections 3 and 4.2. Notebook default → recipe `defaults` → `--set name=` → the stage's `parameters` → `--set stage.name=`:
the later wins. A null under `stages`, `bands` or `environment` takes away what `extends` brings.
Left out on purpose: expressions and environment variables inside recipes (a record must say what ran), secrets of any kind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from nbcore.jobs.fields import EXPECTS, STAGE, TOP, read_bands, read_environment, read_fields, read_mapping
from nbcore.jobs.layers import At, nearest, read_layers, stack
from nbcore.jobs.parameters import Parameter
from nbcore.jobs.settings import Setting, Value, from_command_line, read_declared, require_used, resolve

__all__ = ["Recipe", "RecipeError", "Stage", "Value", "find", "from_resolved", "load", "resolved"]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_NAME_RULE = "letters, digits, _ and - only, because folders are named after it"


class RecipeError(ValueError):
    """Everything that is wrong with a recipe; `problems` holds one sentence each, with file and line."""

    def __init__(self, problems: Sequence[str]):
        self.problems = list(dict.fromkeys(problems))
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True)
class Stage:
    """One notebook of a recipe with all its declared parameters, resolved and typed; times in minutes, output cap in KiB per cell."""

    key: str
    notebook: Path
    needs: tuple[str, ...]
    parameters: dict[str, Value]
    timeout_minutes: float
    cell_timeout_minutes: float | None
    max_output_kib: int
    bands: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Recipe:
    """A validated recipe; `stages` stand in file order, which is an order in which they can run. `threads` is per stage process."""

    name: str
    title: str
    path: Path
    expects_minutes: float | None
    expects_memory_gib: float | None
    threads: int
    environment: dict[str, str]
    stages: tuple[Stage, ...]


def find(recipe: str | Path) -> Path:
    """The file of a recipe given by path, or by name in `recipes/` here or of the project. Raises RecipeError naming those there are."""
    path = Path(recipe)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return path.resolve()
    folders = [Path.cwd() / "recipes", Path(__file__).resolve().parents[2] / "recipes"]
    known = {file.stem: file for folder in reversed(folders) for file in sorted(folder.glob("*.yaml"))}
    name = str(recipe).removesuffix(".yaml")
    if name in known:
        return known[name].resolve()
    there = f"recipes there are: {', '.join(sorted(known))}" if known else f"there are none in {folders[0]} or {folders[1]}"
    raise RecipeError([f"no recipe {recipe}: takes the name of a recipe or a path to a .yaml file{nearest(path.stem, known)}; {there}"])


def load(recipe: str | Path, sets: Sequence[str] = ()) -> Recipe:
    """The recipe of that name or path with the command line's `stage.key=value` and `key=value` settings on top.

    Raises RecipeError with all problems of the files, the notebooks' parameter cells and the settings at once.
    """
    problems: list[str] = []
    path = find(recipe)
    layers = read_layers(path, problems)
    if layers is None:
        raise RecipeError(problems)
    for base in layers[:-1]:
        base.value.pop("name", None)  # A recipe that extends another is another recipe.
    tree, homes = stack(layers, problems)
    top = read_fields(tree, TOP, "", problems)
    expects = read_fields(top.get("expects"), EXPECTS, "expects.", problems)
    written = read_mapping(top.get("stages"), "stages", problems)
    if not written and not problems:
        problems.append(f"{tree.origin}: the recipe has no stages; name at least one notebook under `stages:`")
    defaults = read_mapping(top.get("defaults"), "defaults", problems)
    settings = [Setting(None, name, at.bare(), at.origin) for name, at in defaults.items()]
    settings += from_command_line(sets, written, problems)
    if not _NAME.fullmatch(name := top.get("name", path.stem)):
        problems.append(f"{tree.value['name'].origin if 'name' in tree.value else tree.origin}: name = {name}: {_NAME_RULE}")
    made = Recipe(
        name=name,
        title=top.get("title", ""),
        path=path,
        expects_minutes=expects.get("minutes"),
        expects_memory_gib=expects.get("memory_gib"),
        threads=top.get("threads", 2),
        environment=read_environment(top.get("environment"), problems),
        stages=tuple(_read_stages(written, homes, settings, problems)),
    )
    if problems:
        raise RecipeError(problems)
    return made


def resolved(recipe: Recipe) -> dict:
    """The recipe as plain data for a run's record, each parameter with its origin; `from_resolved` reads it back."""
    return {
        "name": recipe.name,
        "title": recipe.title,
        "path": str(recipe.path),
        "expects": {"minutes": recipe.expects_minutes, "memory_gib": recipe.expects_memory_gib},
        "threads": recipe.threads,
        "environment": dict(recipe.environment),
        # A list, because whoever writes it may sort keys and the order of the stages means something.
        "stages": [
            {
                "key": stage.key,
                "notebook": str(stage.notebook),
                "needs": list(stage.needs),
                "parameters": {name: {"value": value.value, "origin": value.origin} for name, value in stage.parameters.items()},
                "timeout_minutes": stage.timeout_minutes,
                "cell_timeout_minutes": stage.cell_timeout_minutes,
                "max_output_kib": stage.max_output_kib,
                "bands": {metric: list(ends) for metric, ends in stage.bands.items()},
            }
            for stage in recipe.stages
        ],
    }


def from_resolved(path: Path) -> Recipe:
    """The Recipe of a run's recorded `recipe.yaml` (as YAML or JSON), its values checked against the notebooks as they are now.

    A parameter that a notebook has gained since takes its default. Raises RecipeError when the record is damaged, a notebook is
    gone or no longer takes a recorded value.
    """
    problems: list[str] = []
    try:
        record = yaml.safe_load(path.read_bytes().decode("utf-8"))
        stages = [_recorded_stage(stage, path, problems) for stage in record["stages"]]
        recipe = Recipe(record["name"], record["title"], Path(record["path"]), record["expects"]["minutes"],
                        record["expects"]["memory_gib"], record["threads"], record["environment"], tuple(stages))
    except OSError as error:
        raise RecipeError([f"{path}: can't read the record of the run: {error.strerror}"]) from error
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecipeError([f"{path}: not a recipe recorded by a run, or damaged ({error!r}); start a new run"]) from error
    if problems:
        raise RecipeError(problems)
    return recipe


def _recorded_stage(record: dict, path: Path, problems: list[str]) -> Stage:
    notebook = Path(record["notebook"])
    origin = f"{path.parent.name}/{path.name}"
    settings = [Setting(record["key"], name, at["value"], at["origin"]) for name, at in record["parameters"].items()]
    declared = read_declared(notebook, f"{origin}: stage {record['key']}", problems) or {}
    return Stage(record["key"], notebook, tuple(record["needs"]), resolve(declared, settings, notebook, problems),
                 record["timeout_minutes"], record["cell_timeout_minutes"], record["max_output_kib"],
                 {metric: (low, high) for metric, (low, high) in record["bands"].items()})


def _read_stages(written: dict[str, At], homes: dict[str, Path], settings: list[Setting], problems: list[str]) -> list[Stage]:
    stages: list[Stage] = []
    taken: set[str] = set()  # names for which a setting meant for every stage reached one
    declared_by: dict[str, dict[str, Parameter] | None] = {}
    for key, at in written.items():
        label, where = f"stages.{key}", f"{at.origin}: stages.{key}"
        if not _NAME.fullmatch(key):
            problems.append(f"{where}: {_NAME_RULE}")
        fields = read_fields(at, STAGE, f"{label}.", problems)
        notebook = _notebook(fields.get("notebook", key), at, homes[key])
        declared = declared_by[key] = read_declared(notebook, where, problems)
        own = [Setting(key, name, item.bare(), item.origin)
               for name, item in read_mapping(fields.get("parameters"), f"{label}.parameters", problems).items()]
        everyones = [setting for setting in settings if setting.stage is None and setting.name in (declared or {})]
        taken |= {setting.name for setting in everyones} - {setting.name for setting in own}
        own = everyones + own + [setting for setting in settings if setting.stage == key]
        stages.append(Stage(
            key=key,
            notebook=notebook,
            needs=tuple(_needs(fields.get("needs", []), key, at, written, problems)),
            parameters={} if declared is None else resolve(declared, own, notebook, problems),
            timeout_minutes=fields.get("timeout_minutes", 60.0),
            cell_timeout_minutes=fields.get("cell_timeout_minutes"),
            max_output_kib=fields.get("max_output_kib", 512),
            bands=read_bands(fields.get("bands"), f"{label}.bands", problems),
        ))
    # With a notebook that can't be read nobody knows whether it declares the name.
    if None not in declared_by.values():
        require_used(settings, taken, declared_by, problems)
    return stages


def _notebook(name: str, at: At, home: Path) -> Path:
    named = at.value.get("notebook") if isinstance(at.value, dict) else None
    folder = (named.file if named else home).parent
    return (folder / name if name.endswith(".ipynb") else folder.parent / "notebooks" / f"{name}.ipynb").resolve()


def _needs(needs: list[str], key: str, at: At, written: dict[str, At], problems: list[str]) -> list[str]:
    order = list(written)
    for need in needs:
        earlier = order[: order.index(key)]
        if need not in earlier:
            why = "is the stage itself" if need == key else "stands later, move it up" if need in order else "is no stage of this recipe"
            problems.append(
                f"{at.value['needs'].origin}: stages.{key}.needs = {need}: {need} {why}{nearest(need, earlier)}; "
                f"earlier stages: {', '.join(earlier) or 'none'}"
            )
    return needs


