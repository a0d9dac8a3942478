"""What the trainers of the project share: settings, a record of every step, and going on from the newest checkpoint.

trl's and transformers' trainers all take these names. Left out on purpose: what makes a stage (rates over time, data, losses).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nbcore.chat.checks import require_finite

Log = Callable[[dict[str, float]], None]


def common(folder: Path, steps: int, batch: int, learning_rate: float, seed: int, save_every: int) -> dict[str, Any]:
    """Settings of one training: CPU or one GPU, whichever is there, every step logged to us alone, a checkpoint every so many steps."""
    import torch

    return {
        "output_dir": str(folder), "max_steps": steps, "per_device_train_batch_size": batch, "learning_rate": learning_rate, "seed": seed,
        "weight_decay": 0.0, "max_grad_norm": 1.0, "logging_steps": 1, "logging_nan_inf_filter": False, "report_to": "none",
        "disable_tqdm": True, "use_cpu": not torch.cuda.is_available(), "gradient_checkpointing": False, "bf16": False,
        "dataloader_pin_memory": False, "save_strategy": "steps" if save_every else "no", "save_steps": max(1, save_every),
        "save_total_limit": 1,
    }  # fmt: skip


def cosine(steps: int) -> dict[str, Any]:
    """A short warm-up, then a cosine to zero."""
    return {"lr_scheduler_type": "cosine", "warmup_steps": max(1, steps // 20)}


def recorder(log: Log, parts: Mapping[str, float] | None = None) -> tuple[list[dict[str, float]], Any]:
    """(rows, callback): a row a step with loss, rate and gradient norm, and what stands in `parts` by then; each row goes to `log`.

    The callback raises NotFinite at the step whose loss is not finite.
    """
    from transformers import TrainerCallback

    history: list[dict[str, float]] = []

    class Record(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: dict | None = None, **_: Any) -> None:
            if logs and "loss" in logs:
                kept = {name: float(logs[name]) for name in ("loss", "learning_rate", "grad_norm") if name in logs}
                history.append({"step": state.global_step, **kept, **(parts or {})})
                log(history[-1])
                require_finite("loss", history[-1]["loss"])

    return history, Record()


def run(trainer: Any, model: Any, folder: Path, seed: int) -> None:
    """Train `model` in place, from the newest checkpoint in `folder` when there is one; it is left ready to sample."""
    import torch
    from transformers import PrinterCallback
    from transformers.trainer_utils import get_last_checkpoint

    folder.mkdir(parents=True, exist_ok=True)
    trainer.remove_callback(PrinterCallback)  # the record has every row; a line a step would drown the notebook
    torch.manual_seed(seed)
    model.train()
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)))
    model.eval()
