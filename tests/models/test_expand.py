"""A model with more blocks says the same as before, word for word, until it learns; then the new blocks learn too."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Qwen2Config, Qwen2ForCausalLM

from nbcore import models
from nbcore.models.expand import expanded
from nbcore.models.load import Loaded


@pytest.fixture(scope="module")
def nano():
    return models.load("nano")


def read(model):
    ids = torch.tensor([[5, 90, 200, 31, 7]])
    return model(ids).logits


def test_nothing_is_changed_by_blocks_that_have_learned_nothing(nano):
    larger = expanded(nano.model, 2)
    assert larger.config.num_hidden_layers == len(larger.model.layers) == nano.model.config.num_hidden_layers + 2
    assert torch.equal(read(larger), read(nano.model))
    assert len(nano.model.model.layers) == nano.model.config.num_hidden_layers == 3  # the given model stays as it was


def test_the_new_blocks_learn(nano):
    larger = expanded(nano.model, 1).train()
    read(larger).logsumexp(-1).sum().backward()
    new = larger.model.layers[-1]
    assert new.self_attn.o_proj.weight.grad.norm() > 0 and new.mlp.down_proj.weight.grad.norm() > 0


def test_a_saved_one_comes_back_whole_and_samples_with_its_own_cache(nano, tmp_path):
    larger = expanded(nano.model, 2)
    with torch.no_grad():
        for block in larger.model.layers[-2:]:
            torch.nn.init.normal_(block.mlp.down_proj.weight, 0, 0.05, generator=torch.Generator().manual_seed(0))
    again = models.load(models.save(Loaded(larger, nano.tokenizer, "larger"), tmp_path / "larger"))
    assert torch.equal(read(again.model), read(larger)) and not torch.equal(read(larger), read(nano.model))
    written = larger.generate(torch.tensor([[5, 90, 200]]), max_new_tokens=6, do_sample=False, eos_token_id=-1)[0, 3:]
    assert models.generate(larger, nano.tokenizer, [[5, 90, 200]], 6, temperature=0)[0].ids == written.tolist()


def test_layer_kinds_of_a_configuration_are_continued():
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2}
    larger = expanded(Qwen2ForCausalLM(Qwen2Config(**sizes, vocab_size=300)).eval(), 2)
    assert larger.config.layer_types == ["full_attention"] * 4 and read(larger).shape == (1, 5, 300)


def test_zero_blocks_are_a_plain_copy_of_any_model():
    small = GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=1, n_head=1, vocab_size=300))
    assert expanded(small, 0) is not small
    with pytest.raises(ValueError, match="GPT2LMHeadModel can't be expanded"):
        expanded(small, 1)


def test_a_negative_number_of_blocks_is_refused(nano):
    with pytest.raises(ValueError, match="not by -1"):
        expanded(nano.model, -1)
