"""The point-wise reward model: one answer in, one number out. Paper section 3.

A causal model whose last layer gives one number at the last token of the row [C]; scores are centred and scaled to mean 0 and
deviation 1 on the training answers, so that "+1" means the same for every reward model. A score is a function of the *text*:
two tokenisations of one text get one score, so a policy gains nothing by spelling a word in unusual pieces.
Known silent fault: a score that is read at the padding, or that shifts with the batch. A test holds scores alone, in a batch
and by transformers' own classifier equal. What cannot be scored is None, counted in `missing` with its reason.
Left out on purpose: training (training.reward_models), ensembles, scores of single steps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbcore.models import prefixes
from nbcore.models.load import Loaded
from nbcore.rewards.rollouts import Rollout


@dataclass
class PointwiseModel:
    """A scorer with its tokenizer; calling it on rollouts is the reward. mean, sd: of raw scores on training answers."""

    model: Any
    tokenizer: Any
    mean: float = 0.0
    sd: float = 1.0
    missing: Counter[str] = field(default_factory=Counter)

    def __call__(self, rollouts: Sequence[Rollout]) -> list[float | None]:
        """The reward of each rollout, or None."""
        return self.score([answered(self.tokenizer, r.prompt_ids, r.text, r.ended) for r in rollouts])

    def score(self, rows: Sequence[Sequence[int]]) -> list[float | None]:
        """Centred scores of rows of token ids (prompt and answer), in order."""
        return [None if raw is None else (raw - self.mean) / self.sd for raw in self.raw(rows)]

    def raw(self, rows: Sequence[Sequence[int]]) -> list[float | None]:
        """Scores before centring. None for a row that is empty or does not fit, and for a score that is not finite."""
        import torch

        room, found = self.model.config.max_position_embeddings, dict[int, float | None]()
        fit = [i for i, row in enumerate(rows) if 0 < len(row) <= room]
        with torch.inference_mode():
            for numbers, hidden in prefixes.read(self.model.base_model, [rows[i] for i in fit], self.tokenizer.pad_token_id):
                found.update(zip((fit[n] for n in numbers), self.model.score(hidden)[:, 0].float().tolist(), strict=True))
        for i in range(len(rows)):
            if i not in found:
                self.missing[f"a row must have 1 to {room} tokens"] += 1
            elif not math.isfinite(found[i]):
                self.missing["the score is not finite"] += 1
                found[i] = None
        return [found.get(i) for i in range(len(rows))]


def answered(tokenizer: Any, prompt_ids: Sequence[int], text: str, ended: bool = True) -> list[int]:
    """The row that is scored: prompt, the answer's tokens, and the end of turn if the answer has one."""
    # A special token before the text keeps tokenizers from treating it as the start of a document (chat.masks does the same).
    words = tokenizer(tokenizer.eos_token + text, add_special_tokens=False)["input_ids"][1:]
    return [*prompt_ids, *words, *([tokenizer.eos_token_id] if ended else [])]


def from_policy(policy: Loaded) -> PointwiseModel:
    """A scorer that starts from a policy's weights, with a head of zeros: every first score is 0, whatever the seed."""
    import copy

    import torch
    from transformers import AutoModelForSequenceClassification

    config = copy.deepcopy(policy.model.config)
    config.num_labels, config.pad_token_id, config.architectures = 1, policy.tokenizer.pad_token_id, None
    model = AutoModelForSequenceClassification.from_config(config)
    model.base_model.load_state_dict(policy.model.base_model.state_dict())
    torch.nn.init.zeros_(model.score.weight)
    return PointwiseModel(model.eval(), policy.tokenizer)


def save(scorer: PointwiseModel, folder: str | Path) -> Path:
    """Write model and tokenizer; centre and scale go into config.json. Raises PreflightError for weights that are not finite."""
    from nbcore.chat.checks import require_finite_weights

    require_finite_weights(scorer.model.state_dict())
    scorer.model.config.reward_mean, scorer.model.config.reward_sd = scorer.mean, scorer.sd
    scorer.model.save_pretrained(folder)
    scorer.tokenizer.save_pretrained(folder)
    return Path(folder)


def load(folder: str | Path) -> PointwiseModel:
    """Load what `save` wrote. Raises FileNotFoundError for a missing folder, ValueError for a model that is no scorer."""
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    if not (Path(folder) / "config.json").is_file():
        raise FileNotFoundError(f"There is no reward model at {folder}: config.json is missing. Run the notebook that trains it.")
    config = AutoConfig.from_pretrained(folder)
    if not hasattr(config, "reward_mean") or config.num_labels != 1:
        raise ValueError(f"{folder} is no point-wise reward model (config.json has no reward_mean). Take what pointwise.save wrote.")
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
    return PointwiseModel(model.eval(), AutoTokenizer.from_pretrained(folder), config.reward_mean, config.reward_sd)
