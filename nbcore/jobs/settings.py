"""Who sets which parameter of which stage, and what wins; part of `recipes.py`.

Design section 4.2: an unknown name or a wrong type is an error before a kernel starts, naming where it was set, the value given,
what is allowed and the nearest name. papermill only warns and runs for hours on the default.
Left out on purpose: setting anything but parameters from the command line (the stage's own keys are the recipe's).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbcore.jobs.annotations import given
from nbcore.jobs.fields import STAGE, secret_problem
from nbcore.jobs.layers import Plain, nearest
from nbcore.jobs.parameters import Parameter, ParameterError, read_parameters

COMMAND_LINE = "command line"


@dataclass(frozen=True)
class Value:
    """A parameter's value and its origin: `notebook default`, `recipes/nano.yaml:12` or `command line`."""

    value: object
    origin: str


@dataclass(frozen=True)
class Setting:
    """A value that someone set: for the parameter `name` of one stage, or of every stage that declares it (`stage` None)."""

    stage: str | None
    name: str
    value: object
    origin: str

    @property
    def where(self) -> str:
        """How an error message about it begins: `recipes/nano.yaml:12: 02_sft.learning_rate = 3`."""
        return f"{self.origin}: {given(f'{self.stage}.{self.name}' if self.stage else self.name, self.value)}"


def from_command_line(sets: Sequence[str], stages: Iterable[str], problems: list[str]) -> list[Setting]:
    """The `--set` texts `stage.parameter=value` and `parameter=value` as settings; unknown stages and other forms are problems."""
    settings = []
    for text in sets:
        key, equals, value = text.partition("=")
        stage, dot, name = key.strip().rpartition(".")
        if not equals or not name or (dot and not stage):
            problems.append(f"{COMMAND_LINE}: --set {key}: takes stage.parameter=value or parameter=value")
        elif stage and stage not in stages:
            where = f"{COMMAND_LINE}: --set {given(key.strip(), Plain(value))}"
            problems.append(f"{where}: no stage {stage}{nearest(stage, stages)}; stages: {', '.join(stages)}")
        else:
            settings.append(Setting(stage or None, name, Plain(value), COMMAND_LINE))
    return settings


def read_declared(notebook: Path, where: str, problems: list[str]) -> dict[str, Parameter] | None:
    """The parameters that a notebook declares, or None with the reasons in `problems` when it is missing or breaks the contract."""
    if not notebook.is_file():
        beside = sorted(file.stem for file in notebook.parent.glob("*.ipynb")) if notebook.parent.is_dir() else []
        there = f"notebooks there: {', '.join(beside)}" if beside else f"there are no notebooks in {notebook.parent}"
        problems.append(f"{where}: no notebook {notebook}{nearest(notebook.stem, beside)}; {there}")
        return None
    try:
        return read_parameters(notebook)
    except ParameterError as error:
        problems.extend(f"{where}: {problem}" for problem in error.problems)
        return None


def require_used(settings: list[Setting], taken: set[str], declared_by: dict[str, dict[str, Parameter]], problems: list[str]) -> None:
    """A problem for each setting meant for every stage that none declares, or that came too late at the command line.

    `taken` holds the names that reached a stage.
    """
    names = {name for declared in declared_by.values() for name in declared}
    for setting in settings:
        if setting.stage is None and setting.name not in taken:
            owners = ", ".join(f"{stage}.{setting.name}" for stage, declared in declared_by.items() if setting.name in declared)
            why = f"no notebook of the recipe declares {setting.name}{nearest(setting.name, names)}"
            if owners and setting.origin != COMMAND_LINE:
                continue  # What a recipe says for all stages may be refined for each; what someone just typed must not be lost.
            if owners:
                why = f"every stage that declares {setting.name} has its own value; name the stage: {owners}"
            problems.append(f"{setting.where}: {secret_problem(setting.name) or why}")


def resolve(declared: dict[str, Parameter], settings: list[Setting], notebook: Path, problems: list[str]) -> dict[str, Value]:
    """The value of each declared parameter, in the notebook's order; the later setting wins, each one is checked."""
    values = {name: Value(parameter.default, "notebook default") for name, parameter in declared.items()}
    for setting in settings:
        if setting.name not in declared:
            why = f"{notebook.name} declares no parameter {setting.name}{nearest(setting.name, declared)}"
            if setting.name in STAGE:
                why += f"; {setting.name} is a key of the stage itself, set it in the recipe"
            allowed = ", ".join(declared) or "none"
            problems.append(f"{setting.where}: {secret_problem(setting.name) or f'{why}; it declares: {allowed}'}")
            continue
        try:
            where = setting.where if setting.stage else f"{setting.where} (for {notebook.stem})"
            values[setting.name] = Value(declared[setting.name].check(setting.value, where), setting.origin)
        except ParameterError as error:
            problems.extend(error.problems)
    return values
