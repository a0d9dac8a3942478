"""Recipes: layers, order of precedence, origins, and errors that name file, line, key, value and what is allowed."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nbcore.jobs.recipes import Recipe, RecipeError, Value, find, from_resolved, load, resolved

DATA = "rows: int = 200  # how many\nseed: int = 7"
SFT = (
    "learning_rate: float = 3e-4  # peak\n"
    "schedule: Literal['constant', 'cosine'] = 'cosine'\n"
    "note: str = ''\n"
    "packing: bool = True\n"
    "adapter: str | None = None\n"
    "mixture: dict[str, float] = {'reason': 1.0}\n"
    "lengths: list[int] = [128]\n"
    "seed: int = 7"
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project folder with two notebooks, and a function that writes recipe files into its recipes/."""
    folder = tmp_path / "kitchen"
    (folder / "notebooks").mkdir(parents=True)
    (folder / "recipes").mkdir()
    monkeypatch.chdir(folder)
    write_notebook(folder, "01_sft_data", DATA)
    write_notebook(folder, "02_sft", SFT)

    def write(text: str, name: str = "nano") -> Path:
        path = folder / "recipes" / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def write_notebook(folder: Path, name: str, parameters: str) -> None:
    cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": parameters}
    (folder / "notebooks" / f"{name}.ipynb").write_text(json.dumps({"cells": [cell]}), encoding="utf-8")


def problems_of(*args) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        load(*args)
    return caught.value.problems


def parameter(recipe: Recipe, stage: str, name: str) -> Value:
    return next(one for one in recipe.stages if one.key == stage).parameters[name]


BOTH = "stages:\n  01_sft_data: {}\n  02_sft: {needs: [01_sft_data]}\n"


# --- what a recipe says

def test_a_full_recipe_is_read_with_types_and_origins(project):
    path = project(
        "title: Both stages, in minutes\n"
        "expects: {minutes: 6, memory_gib: 3}\n"
        "threads: 1\n"
        "environment: {HF_HUB_OFFLINE: 1, WANDB: on}\n"
        "defaults: {seed: 0}\n"
        "stages:\n"
        "  01_sft_data: {parameters: {rows: 4_000}}\n"
        "  02_sft:\n"
        "    needs: [01_sft_data]\n"
        "    parameters:\n"
        "      learning_rate: 1e-4\n"
        "    timeout_minutes: 10\n"
        "    cell_timeout_minutes: null\n"
        "    max_output_kib: 64\n"
        "    bands: {reason_lift: [0.30, 1.0]}\n"
    )
    recipe = load("nano")
    assert (recipe.name, recipe.title, recipe.path) == ("nano", "Both stages, in minutes", path.resolve())
    assert (recipe.expects_minutes, recipe.expects_memory_gib, recipe.threads) == (6.0, 3.0, 1)
    assert recipe.environment == {"HF_HUB_OFFLINE": "1", "WANDB": "on"}
    data, sft = recipe.stages
    assert data.parameters == {"rows": Value(4000, "recipes/nano.yaml:7"), "seed": Value(0, "recipes/nano.yaml:5")}
    assert (sft.key, sft.needs, sft.notebook) == ("02_sft", ("01_sft_data",), path.parents[1].resolve() / "notebooks" / "02_sft.ipynb")
    assert sft.parameters["learning_rate"] == Value(1e-4, "recipes/nano.yaml:11")
    assert sft.parameters["mixture"] == Value({"reason": 1.0}, "notebook default")
    assert (sft.timeout_minutes, sft.cell_timeout_minutes, sft.max_output_kib) == (10.0, None, 64)
    assert sft.bands == {"reason_lift": (0.3, 1.0)}


def test_what_a_recipe_leaves_out_has_defaults(project):
    project(BOTH)
    recipe = load("nano")
    stage = recipe.stages[0]
    assert (recipe.expects_minutes, recipe.expects_memory_gib, recipe.threads, recipe.environment) == (None, None, 2, {})
    assert (stage.needs, stage.timeout_minutes, stage.cell_timeout_minutes, stage.max_output_kib, stage.bands) == ((), 60.0, None, 512, {})


def test_text_that_yaml_would_twist_stays_what_was_typed(project):
    project("stages:\n  02_sft:\n    parameters: {note: on, lengths: [1_000], schedule: constant}\n")
    assert parameter(load("nano"), "02_sft", "note").value == "on"
    assert parameter(load("nano"), "02_sft", "lengths").value == [1000]
    project("stages:\n  02_sft:\n    parameters: {note: 1:30}\n")
    assert parameter(load("nano"), "02_sft", "note").value == "1:30"


def test_quotes_say_that_a_null_is_a_text(project):
    project('stages:\n  02_sft: {parameters: {adapter: "null", note: "null"}}\n')
    assert parameter(load("nano"), "02_sft", "adapter").value == "null"


def test_a_value_of_several_lines_has_the_line_of_its_key(project):
    project("stages:\n  02_sft:\n    parameters:\n      lengths:\n        - 1\n        - 2\n")
    assert parameter(load("nano"), "02_sft", "lengths") == Value([1, 2], "recipes/nano.yaml:4")


def test_one_notebook_can_serve_two_stages(project):
    project("stages:\n  a: {notebook: 02_sft}\n  b: {notebook: ../notebooks/02_sft.ipynb, needs: [a]}\n")
    a, b = load("nano").stages
    assert a.notebook == b.notebook


# --- precedence

def test_the_later_of_default_recipe_and_command_line_wins(project):
    project("defaults: {seed: 1}\nstages:\n  01_sft_data: {}\n  02_sft: {parameters: {seed: 2}}\n")
    assert parameter(load("nano"), "01_sft_data", "seed") == Value(1, "recipes/nano.yaml:1")
    assert parameter(load("nano"), "02_sft", "seed") == Value(2, "recipes/nano.yaml:4")
    everywhere = load("nano", ["seed=3"])
    assert parameter(everywhere, "01_sft_data", "seed") == Value(3, "command line")
    assert parameter(everywhere, "02_sft", "seed") == Value(2, "recipes/nano.yaml:4"), "a default doesn't override a stage's own value"
    assert parameter(load("nano", ["02_sft.seed=4", "seed=3"]), "02_sft", "seed") == Value(4, "command line")


def test_the_command_line_is_read_by_declared_type(project):
    project(BOTH)
    recipe = load("nano", ["02_sft.learning_rate=1e-4", "02_sft.mixture={reason: 1e-1, code: 1}", "02_sft.adapter=null",
                           "02_sft.note=a=b: [c]", "02_sft.lengths=[64, 1_28]", "02_sft.packing=false"])
    values = {name: value.value for name, value in recipe.stages[1].parameters.items()}
    assert values == {"learning_rate": 1e-4, "schedule": "cosine", "note": "a=b: [c]", "packing": False, "adapter": None,
                      "mixture": {"reason": 0.1, "code": 1.0}, "lengths": [64, 128], "seed": 7}


def test_a_recipe_may_refine_its_own_default_for_every_stage(project):
    project("defaults: {seed: 1}\nstages:\n  02_sft: {parameters: {seed: 2}}\n")
    assert parameter(load("nano"), "02_sft", "seed").value == 2


def test_a_typed_default_that_reaches_no_stage_is_an_error(project):
    project("stages:\n  02_sft: {parameters: {seed: 2}}\n")
    [problem] = problems_of("nano", ["seed=3"])
    assert "command line: seed = 3" in problem and "name the stage: 02_sft.seed" in problem


# --- extends

def test_extends_merges_mappings_and_replaces_lists(project):
    project(
        "name: base\nthreads: 1\ndefaults: {seed: 1}\nenvironment: {A: a, B: b}\n"
        "stages:\n"
        "  01_sft_data: {bands: {x: [0, 1], y: [0, 1]}}\n"
        "  02_sft:\n    needs: [01_sft_data]\n    parameters: {mixture: {reason: 1, code: 2}, lengths: [1, 2], note: base}\n",
        "base",
    )
    project(
        "extends: base.yaml\nenvironment: {B: null}\n"
        "stages:\n"
        "  01_sft_data: {bands: {x: null}}\n"
        "  02_sft: {parameters: {mixture: {code: 3}, lengths: [3]}}\n"
    )
    recipe = load("nano")
    assert (recipe.name, recipe.threads, recipe.environment) == ("nano", 1, {"A": "a"})
    assert recipe.stages[0].bands == {"y": (0.0, 1.0)}
    assert recipe.stages[1].needs == ("01_sft_data",)
    assert parameter(recipe, "02_sft", "mixture") == Value({"reason": 1.0, "code": 3.0}, "recipes/nano.yaml:5")
    assert parameter(recipe, "02_sft", "lengths").value == [3]
    assert parameter(recipe, "02_sft", "note") == Value("base", "recipes/base.yaml:9")


def test_null_takes_a_stage_away_and_an_empty_stage_is_no_slip(project):
    project(BOTH, "base")
    project("extends: base.yaml\nstages:\n  01_sft_data: null\n  02_sft: {needs: []}\n")
    assert [stage.key for stage in load("nano").stages] == ["02_sft"]
    project("stages:\n  02_sft:\n")
    [problem] = problems_of("nano")
    assert "recipes/nano.yaml:2: stages.02_sft is empty" in problem and "write {}" in problem


def test_notebooks_are_looked_for_beside_the_file_that_brought_the_stage(project, tmp_path):
    base = project(BOTH, "base")
    (tmp_path / "mine").mkdir()
    mine = tmp_path / "mine" / "quick.yaml"
    mine.write_text(f"extends: {base}\nstages:\n  02_sft: {{parameters: {{seed: 5}}}}\n", encoding="utf-8")
    recipe = load(mine)
    assert recipe.stages[1].notebook == base.parents[1].resolve() / "notebooks" / "02_sft.ipynb"
    assert parameter(recipe, "02_sft", "seed") == Value(5, "mine/quick.yaml:3")


def test_a_notebook_named_in_a_recipe_is_looked_for_from_that_file(project, tmp_path):
    base = project(BOTH, "base")
    (tmp_path / "mine" / "notebooks").mkdir(parents=True)
    write_notebook(tmp_path / "mine", "my_sft", SFT)
    mine = tmp_path / "mine" / "quick.yaml"
    mine.write_text(f"extends: {base}\nstages:\n  02_sft: {{notebook: notebooks/my_sft.ipynb}}\n", encoding="utf-8")
    assert load(mine).stages[1].notebook == (tmp_path / "mine" / "notebooks" / "my_sft.ipynb").resolve()


def test_circular_extends_is_an_error(project):
    project("extends: nano.yaml\n", "base")
    project("extends: base.yaml\n" + BOTH)
    [problem] = problems_of("nano")
    assert "nano.yaml → base.yaml → nano.yaml" in problem and problem.startswith("recipes/base.yaml:1")


def test_extending_a_file_that_is_not_there_names_the_nearest(project):
    project(BOTH, "base")
    project("extends: bass.yaml\n" + BOTH)
    [problem] = problems_of("nano")
    assert problem.startswith("recipes/nano.yaml:1: extends = bass.yaml") and "did you mean base.yaml?" in problem


# --- finding

def test_a_recipe_is_found_by_name_or_path(project):
    path = project(BOTH).resolve()
    assert find("nano") == find("nano.yaml") == find("recipes/nano.yaml") == find(path) == path


def test_an_unknown_recipe_names_those_there_are(project):
    project(BOTH)
    [problem] = problems_of("nanno")
    assert "did you mean nano?" in problem


# --- errors

@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tread: 1\n" + BOTH, ["recipes/nano.yaml:1: tread = 1", "did you mean threads?", "allowed here"]),
        ("expects: {minute: 6}\n" + BOTH, ["nano.yaml:1: expects.minute = 6", "did you mean minutes?"]),
        ("stages:\n  02_sft:\n    timeout: 5\n", ["nano.yaml:3: stages.02_sft.timeout = 5", "timeout_minutes"]),
        ("stages:\n  02_sft:\n    parameters:\n      learnin_rate: 1\n",
         ["nano.yaml:4: 02_sft.learnin_rate = 1", "02_sft.ipynb declares no parameter", "did you mean learning_rate?", "packing"]),
        ("stages:\n  02_sft: {parameters: {timeout_minutes: 5}}\n", ["a key of the stage itself"]),
        ("stages:\n  02_sft: {parameters: {packing: on}}\n", ["nano.yaml:2", "packing takes bool", "on isn't a bool", "true or false"]),
        ("stages:\n  02_sft: {parameters: {seed: 3.5}}\n", ["seed takes int", "default is 7", "3.5 isn't an int"]),
        ("stages:\n  02_sft: {parameters: {schedule: cosin}}\n", ["did you mean cosine?"]),
        ("stages:\n  02_sft: {parameters: [1]}\n", ["stages.02_sft.parameters = [1]", "takes a mapping"]),
        ("defaults: {sede: 1}\n" + BOTH, ["nano.yaml:1: sede = 1", "no notebook of the recipe declares sede (did you mean seed?)"]),
        ("defaults: {rows: many}\n" + BOTH, ["nano.yaml:1: rows = many (for 01_sft_data)", "isn't an int"]),
        ("stages:\n  02_sft: {needs: [01_sft_data]}\n  01_sft_data: {}\n", ["nano.yaml:2", "stands later, move it up"]),
        ("stages:\n  01_sft_data: {}\n  02_sft: {needs: [01_sft_dat]}\n", ["no stage of this recipe (did you mean 01_sft_data?)"]),
        ("stages:\n  02_sft: {needs: [02_sft]}\n", ["the stage itself"]),
        ("stages:\n  02_sfd: {}\n", ["nano.yaml:2: stages.02_sfd: no notebook", "did you mean 02_sft?"]),
        ("stages:\n  ../x: {notebook: 02_sft}\n", ["letters, digits, _ and -"]),
        ("name: a/b\n" + BOTH, ["nano.yaml:1: name = a/b"]),
        ("stages:\n  02_sft: {bands: {lift: [1, 0.3]}}\n", ["stages.02_sft.bands.lift = [1, 0.3]", "write [0.3, 1]"]),
        ("stages:\n  02_sft: {bands: {lift: [1]}}\n", ["two numbers [low, high]"]),
        ("stages:\n  02_sft: {bands: {lift: [low, .inf]}}\n", ["two numbers [low, high]"]),
        ("stages:\n  02_sft: {timeout_minutes: 0}\n", ["stages.02_sft.timeout_minutes = 0: must be above 0"]),
        ("stages:\n  02_sft: {cell_timeout_minutes: -1}\n", ["must be above 0"]),
        ("stages:\n  02_sft: {max_output_kib: 0}\n", ["must be above 0"]),
        ("threads: 0\n" + BOTH, ["nano.yaml:1: threads = 0: must be above 0"]),
        ("expects: {minutes: 0}\n" + BOTH, ["expects.minutes = 0: must be above 0"]),
        ("threads: 1\nthreads: 2\n" + BOTH, ["nano.yaml:2: the key threads stands twice (first in line 1)"]),
        ("stages: {}\n", ["no stages"]),
        ("", ["no stages"]),
        ("- a\n", ["a recipe is a mapping"]),
        ("stages: [\n", ["nano.yaml:2: not readable as YAML"]),
        ("stages: !!python/object:os.system {}\n", ["tag", "isn't allowed"]),
        ("stages:\n  02_sft: &x {parameters: *x}\n", ["an alias that contains itself"]),
        ("environment: {NBCORE_RUN_ID: x}\n" + BOTH, ["the runner sets NBCORE_RUN_ID itself"]),
        ("environment: {A-B: x}\n" + BOTH, ["not a name of an environment variable"]),
    ],
)
def test_a_mistake_is_told_with_place_value_and_way_out(project, text, said):
    project(text)
    told = "\n".join(problems_of("nano"))
    for part in said:
        assert part in told


@pytest.mark.parametrize(
    "text",
    ["environment: {HF_TOKEN: hf_123abc}\n" + BOTH, "defaults: {api_key: hf_123abc}\n" + BOTH, "api_key: hf_123abc\n" + BOTH,
     "stages:\n  02_sft: {parameters: {hub_token: hf_123abc}}\n", "stages:\n  02_sft: {parameters: {note: [{password: hf_123abc}]}}\n"],
)
def test_a_secret_is_refused_and_its_value_not_repeated(project, text):
    project(text)
    told = "\n".join(problems_of("nano"))
    assert "hf_123abc" not in told


def test_a_secret_is_sent_to_the_environment(project):
    project("environment: {HF_TOKEN: x}\nstages:\n  02_sft: {parameters: {hub_token: x}}\n")
    told = problems_of("nano", ["02_sft.api_key=x", "password=x"])
    assert ["secrets come from the environment" in problem for problem in told] == [True] * 4


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("03_sft.seed=1", "no stage 03_sft (did you mean 02_sft?)"),
        ("02_sft.sed=1", "did you mean seed?"),
        ("02_sft.seed", "takes stage.parameter=value"),
        (".seed=1", "takes stage.parameter=value"),
        ("02_sft.=1", "takes stage.parameter=value"),
        ("02_sft.seed=1.5", "command line: 02_sft.seed = 1.5: seed takes int"),
        ("02_sft.lengths=[1", "not readable as YAML"),
        ("02_sft.learning_rate=nan", "isn't a finite number"),
    ],
)
def test_a_mistake_on_the_command_line_is_told(project, setting, said):
    project(BOTH)
    [problem] = problems_of("nano", [setting])
    assert said in problem


def test_all_problems_are_told_at_once(project):
    project("tread: 1\nstages:\n  01_sft_data: {parameters: {rows: many}}\n  02_sft: {needs: [x], bands: {a: [1, 0]}}\n  03_rl: {}\n")
    assert len(problems_of("nano", ["04.x=1"])) == 6


def test_a_notebook_that_breaks_the_contract_is_told_with_the_line_that_names_it(project, tmp_path):
    write_notebook(tmp_path / "kitchen", "02_sft", "width: int = 2 * 32")
    project("defaults: {unknown: 1}\n" + BOTH)
    [problem] = problems_of("nano")
    assert problem.startswith("recipes/nano.yaml:4: stages.02_sft: ") and "cell 1 line 1" in problem and "computed" in problem


def test_a_recipe_in_another_encoding_is_an_error_for_people(project):
    project("").write_bytes("title: Küche\n".encode("cp1252"))
    assert "isn't UTF-8" in problems_of("nano")[0]


# --- the record

def test_a_recorded_recipe_comes_back_equal(project, tmp_path, monkeypatch):
    write_notebook(tmp_path / "kitchen", "01_sft_data", "rows: int = 1\nclip: float = float('inf')\ntext: str = 'on'")
    project("expects: {minutes: 6}\ndefaults: {seed: 1}\nenvironment: {A: on}\n" + BOTH + "    \n")
    recipe = load("nano", ["02_sft.learning_rate=1e-5", "02_sft.note=1e-4"])
    record = tmp_path / "run" / "recipe.yaml"
    record.parent.mkdir()
    record.write_text(yaml.safe_dump(resolved(recipe)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    again = from_resolved(record)
    assert again == recipe
    assert parameter(again, "01_sft_data", "clip").value == math.inf
    assert parameter(again, "02_sft", "learning_rate") == Value(1e-5, "command line")


def test_a_record_follows_the_notebook_of_today(project, tmp_path):
    project(BOTH)
    record = tmp_path / "recipe.yaml"
    record.write_text(yaml.safe_dump(resolved(load("nano"))), encoding="utf-8")
    write_notebook(tmp_path / "kitchen", "01_sft_data", DATA + "\nsplit: str = 'train'")
    assert parameter(from_resolved(record), "01_sft_data", "split") == Value("train", "notebook default")
    write_notebook(tmp_path / "kitchen", "01_sft_data", "seed: int = 7")
    with pytest.raises(RecipeError, match="declares no parameter rows"):
        from_resolved(record)


@pytest.mark.parametrize("content", ["", "stages: 3", "stages: [{key: a}]", "{", "name: a"])
def test_a_damaged_record_is_an_error_for_people(tmp_path, content):
    (tmp_path / "recipe.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(RecipeError, match="damaged"):
        from_resolved(tmp_path / "recipe.yaml")


def test_a_missing_record_is_an_error_for_people(tmp_path):
    with pytest.raises(RecipeError, match="can't read the record"):
        from_resolved(tmp_path / "recipe.yaml")


def test_reading_recipes_imports_no_heavy_library():
    code = ("import sys, nbcore.jobs.fingerprints, nbcore.jobs.recipes; "
            "print(sorted(set(sys.modules) & {'torch', 'transformers', 'trl', 'pandas', 'datasets', 'papermill', 'nbformat', 'numpy'}))")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
