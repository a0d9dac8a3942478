"""Fingerprints: what makes a finished stage stale and what doesn't, found by reading imports, and told in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbcore.jobs.fingerprints import explain, fingerprint, versions
from nbcore.jobs.reach import reachable
from nbcore.jobs.recipes import Stage, Value

FILES = {
    "nbcore/__init__.py": "",
    "nbcore/stage.py": "from nbcore.files import atomic_write\n",
    "nbcore/files.py": "import os\n",
    "nbcore/chat/__init__.py": "from .template import render\n",
    "nbcore/chat/template.py": "render = 1\n",
    "nbcore/chat/chat.jinja": "{{ x }}",
    "nbcore/chat/README.md": "prose",
    "nbcore/models/__init__.py": "",
    "nbcore/models/load.py": "def load():\n    from nbcore.nano import model\n    return model\n",
    "nbcore/models/generate.py": "",
    "nbcore/nano/__init__.py": "",
    "nbcore/nano/model.py": "from ..chat import template\n",
    "nbcore/nano/base/model.safetensors": "weights",
    "nbcore/nano/base/card.md": "prose",
    "nbcore/training/__init__.py": "",
    "nbcore/training/launch.py": "import nbcore.models.generate\n",
    "nbcore/search/__init__.py": "def __getattr__(name): ...\n",
    "nbcore/search/graph.py": "",
    "nbcore/jobs/__init__.py": "",
    "nbcore/jobs/recipes.py": "",
}
CELL = "from nbcore import stage\nfrom nbcore.models.load import load\n"


@pytest.fixture
def root(tmp_path) -> Path:
    for name, content in FILES.items():
        write(tmp_path, name, content)
    return tmp_path


def write(root: Path, name: str, content: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


def make_stage(root: Path, *cells: dict, **changes) -> Stage:
    tagged = {"cell_type": "code", "source": "rows: int = 1", "metadata": {"tags": ["parameters"]}}
    cells = cells or ({"cell_type": "code", "source": CELL, "metadata": {}},)
    write(root, "notebooks/02_sft.ipynb", json.dumps({"cells": [tagged, *cells]}))
    fields = {"key": "02_sft", "notebook": root / "notebooks/02_sft.ipynb", "needs": ("01_sft_data",),
              "parameters": {"rows": Value(200, "notebook default"), "learning_rate": Value(3e-4, "notebook default")},
              "timeout_minutes": 60.0, "cell_timeout_minutes": None, "max_output_kib": 512, "bands": {}}
    return Stage(**{**fields, **changes})


def take(root: Path, *cells: dict, upstream: str = "a", **changes) -> dict:
    """A fingerprint as it comes back from a run's fingerprint.json."""
    return json.loads(json.dumps(fingerprint(make_stage(root, *cells, **changes), {"01_sft_data": upstream}, root)))


def reached(root: Path, *cells: str) -> set[str]:
    return {name.removeprefix("nbcore/") for name in reachable(cells, root)}


# --- reach

def test_imports_are_followed_through_packages_lazy_and_relative_imports_and_data(root):
    assert reached(root, CELL) == {
        "__init__.py", "stage.py", "files.py", "models/__init__.py", "models/load.py", "nano/__init__.py", "nano/model.py",
        "nano/base/model.safetensors", "chat/__init__.py", "chat/template.py", "chat/chat.jinja",
    }


@pytest.mark.parametrize(
    "cell",
    [
        "import nbcore.training.launch",
        "import nbcore.training.launch as launch",
        "from nbcore.training import launch",
        "from nbcore.training.launch import main",
        "def later():\n    from nbcore.training import launch",
        "import nbcore\nnbcore.training.launch.main()",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'nbcore.training.launch'])",
        "!python -m nbcore.training.launch",
        "if True:\n    !ls\n    from nbcore.training import launch",
        "%%bash\npython -m nbcore.training.launch --x 'y",
        "%load_ext autoreload\nfrom nbcore.training import launch",
        "if True:\n    !ls\nfrom nbcore.training import (\n    launch,\n)",
        "files = !ls\nfrom nbcore.training import launch",
    ],
)
def test_every_way_to_name_a_module_counts(root, cell):
    assert {"__init__.py", "training/__init__.py", "training/launch.py", "models/generate.py"} <= reached(root, cell)


def test_a_line_that_only_looks_like_a_magic_is_kept(root):
    assert "stage.py" in reached(root, "x = ('%d'\n    % 3)\nfrom nbcore import stage")


def test_a_package_with_lazy_attributes_counts_whole(root):
    assert "search/graph.py" in reached(root, "from nbcore import search")


def test_what_is_not_reached_is_left_out(root):
    assert reached(root, "import json") == set()
    assert reached(root, "from nbcore import stage") == {"__init__.py", "stage.py", "files.py"}


def test_half_written_source_doesn_t_stop_the_plan(root):
    write(root, "nbcore/models/load.py", "from nbcore.chat import template\ndef load(:\n")
    assert "chat/template.py" in reached(root, CELL)


def test_a_root_without_nbcore_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no nbcore"):
        reachable([CELL], tmp_path)


# --- what counts

def test_the_same_stage_has_the_same_fingerprint(root):
    first, second = take(root), take(root)
    assert first == second
    assert explain(first, second) is None
    assert len(first["digest"]) == 64
    assert set(first) == {"notebook", "parameters", "upstream", "source", "versions", "digest"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda root: take(root, parameters={"rows": Value(200, ""), "learning_rate": Value(1e-4, "")}),
         "parameter learning_rate 3e-4 → 1e-4"),
        (lambda root: take(root, parameters={"rows": Value(200, "")}), "parameter learning_rate is gone"),
        (lambda root: take(root, upstream="b"), "upstream 01_sft_data changed"),
        (lambda root: take(root, {"cell_type": "code", "source": CELL + "x = 1"}), "notebook changed"),
        (lambda root: take(root, {"cell_type": "code", "source": CELL, "metadata": {"tags": ["smoke-only"]}}), "notebook changed"),
    ],
)
def test_a_change_makes_stale_and_is_told_in_one_line(root, change, said):
    assert explain(take(root), change(root)) == said


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nbcore/models/load.py", FILES["nbcore/models/load.py"] + "\n", "nbcore/models/load.py changed"),
        ("nbcore/chat/template.py", "render = 2\n", "nbcore/chat/template.py changed"),
        ("nbcore/nano/base/model.safetensors", "Weights", "nbcore/nano/base/model.safetensors changed"),
        ("nbcore/nano/base/tokenizer.json", "{}", "nbcore/nano/base/tokenizer.json added"),
        ("nbcore/files.py", "import sys\n", "nbcore/files.py changed"),
    ],
)
def test_a_change_of_reached_source_or_data_makes_stale(root, name, content, said):
    old = take(root)
    write(root, name, content)
    assert explain(old, take(root)) == said


@pytest.mark.parametrize("name", ["nbcore/jobs/recipes.py", "nbcore/training/launch.py", "nbcore/models/generate.py",
                                  "nbcore/nano/base/card.md", "nbcore/chat/__pycache__/x.pyc", "nbcore/chat/.hidden"])
def test_a_change_out_of_reach_or_in_prose_keeps_the_result(root, name):
    old = take(root)
    write(root, name, "changed = True\n")
    assert explain(old, take(root)) is None


def test_outputs_prose_timeouts_bands_and_origins_keep_the_result(root):
    old = take(root)
    cell = {"cell_type": "code", "source": CELL.splitlines(keepends=True), "outputs": [{"text": "x"}], "execution_count": 3,
            "metadata": {"papermill": {"status": "completed"}}}
    prose = {"cell_type": "markdown", "source": "# Why"}
    parameters = {"learning_rate": Value(3e-4, "command line"), "rows": Value(200, "recipes/nano.yaml:3")}
    new = take(root, prose, cell, parameters=parameters, timeout_minutes=1.0, max_output_kib=1, bands={"x": (0.0, 1.0)})
    assert explain(old, new) is None


def test_a_library_version_makes_stale(root):
    old, new = take(root), take(root)
    old["versions"]["torch"], new["versions"]["torch"], new["digest"] = "2.13.0", "2.14.0", "other"
    assert explain(old, new) == "torch 2.13.0 → 2.14.0"
    old["versions"]["torch"], old["versions"]["peft"], new["versions"]["torch"] = "1", None, "1"
    assert explain(old, {**new, "versions": {**new["versions"], "peft": "0.21.2"}}) == "peft none → 0.21.2"


def test_versions_name_python_and_the_libraries_that_matter():
    assert list(versions()) == ["python", "torch", "transformers", "trl", "peft", "accelerate", "tokenizers", "datasets"]
    assert versions()["python"].count(".") == 1


def test_many_causes_stay_one_line(root):
    old = take(root)
    new = take(root, {"cell_type": "code", "source": "pass"}, upstream="b", parameters={"rows": Value(400, "")})
    line = explain(old, new)
    assert line.startswith("parameter rows 200 → 400; parameter learning_rate is gone; notebook changed; and ")
    assert "\n" not in line


def test_long_and_many_lined_values_are_shortened(root):
    old = take(root, parameters={"prompt": Value("a\nb" * 100, "")})
    line = explain(old, take(root, parameters={"prompt": Value("c", "")}))
    assert len(line) < 80 and "\n" not in line and line.endswith("→ c")


def test_a_whole_number_and_a_float_a_list_and_infinity_are_told_apart(root):
    values = [1, 1.0, True, "1", [1], {"a": 1}, float("inf"), float("-inf"), float("nan"), None]
    digests = {take(root, parameters={"x": Value(value, "")})["digest"] for value in values}
    assert len(digests) == len(values)
    one, real = take(root, parameters={"x": Value(1, "")}), take(root, parameters={"x": Value(1.0, "")})
    assert explain(one, real) == "parameter x 1 → 1.0"
    nan = [take(root, parameters={"x": Value(float("nan"), "")}) for _ in range(2)]
    assert explain(*nan) is None
    assert explain(nan[0], take(root, parameters={"x": Value(float("inf"), "")})) == "parameter x nan → inf"


def test_a_fingerprint_of_another_kind_is_never_taken_as_equal(root):
    new = take(root)
    assert explain({}, new) is not None
    assert explain({**new, "digest": "x"}, new) == "its fingerprint was made in another way"


def test_upstream_digests_must_cover_what_the_stage_needs(root):
    with pytest.raises(ValueError, match="01_sft_data"):
        fingerprint(make_stage(root), {}, root)
