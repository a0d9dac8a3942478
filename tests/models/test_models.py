"""One way to get a model: by name or by path, the same objects; sampling that is seeded, ends, and never mixes rows."""

import pytest
import torch

from nbcore import models
from nbcore.chat.checks import PreflightError
from nbcore.chat.masks import encode_prompt


@pytest.fixture(scope="module")
def nano():
    return models.load("nano")


def prompts(tokenizer):
    asked = ["1 + 2 = ?", "34 + 58 - 7 = ?", "What is the river of Pala?"]
    return [encode_prompt(tokenizer, [{"role": "user", "content": text}]) for text in asked]


def test_a_saved_model_loads_as_the_same_objects(nano, tmp_path):
    again = models.load(models.save(nano, tmp_path / "copy"))
    assert type(again) is type(nano) and type(again.model) is type(nano.model)
    assert again.tokenizer.get_vocab() == nano.tokenizer.get_vocab()
    assert again.tokenizer.chat_template == nano.tokenizer.chat_template
    for name, weight in nano.model.state_dict().items():
        assert torch.equal(weight, again.model.state_dict()[name])


def test_the_nano_model_suits_vllm(nano):
    assert nano.model.config.architectures == ["LlamaForCausalLM"]
    assert nano.model.config.head_dim in (32, 64)
    assert 1e6 <= nano.parameters <= 3e6


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="config.json is missing"):
        models.load(tmp_path)


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    broken = models.load("nano")
    with torch.no_grad():
        broken.model.get_input_embeddings().weight[3, 3] = float("nan")
    with pytest.raises(PreflightError):
        models.save(broken, tmp_path / "broken")
    assert not (tmp_path / "broken").exists()


def test_the_same_seed_gives_the_same_samples_and_another_gives_others(nano):
    rows = prompts(nano.tokenizer) * 4
    first, again, other = (models.generate(nano.model, nano.tokenizer, rows, 24, 1.0, 1.0, seed) for seed in (1, 1, 2))
    assert [c.ids for c in first] == [c.ids for c in again] != [c.ids for c in other]


def test_sampling_leaves_the_global_generator_alone(nano):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    models.generate(nano.model, nano.tokenizer, prompts(nano.tokenizer), 4, seed=9)
    assert torch.equal(torch.rand(3), expected)


def test_padding_in_a_batch_does_not_change_a_greedy_answer(nano):
    rows = prompts(nano.tokenizer)
    together = models.generate(nano.model, nano.tokenizer, rows, 16, temperature=0)
    alone = [models.generate(nano.model, nano.tokenizer, [row], 16, temperature=0)[0] for row in rows]
    assert [c.ids for c in together] == [c.ids for c in alone]


def test_an_ended_completion_keeps_its_end_and_shows_text_without_it(nano):
    class Ends:
        config = nano.model.config
        device = nano.model.device

        def generate(self, input_ids, **_):
            tail = torch.tensor([[65, nano.tokenizer.eos_token_id, nano.tokenizer.pad_token_id]]).repeat(len(input_ids), 1)
            return torch.cat([input_ids, tail], dim=1)

    done = models.generate(Ends(), nano.tokenizer, [[1, 2]], 3)[0]
    assert done.ended and done.ids == [65, nano.tokenizer.eos_token_id] and nano.tokenizer.eos_token not in done.text


def test_a_prompt_that_does_not_fit_is_refused(nano):
    with pytest.raises(ValueError, match="positions"):
        models.generate(nano.model, nano.tokenizer, [[1] * 2040], 64)
