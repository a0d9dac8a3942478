"""One way to get a model: by name or by path, the same objects; sampling that is seeded, ends, and never mixes rows."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest
import torch

from nbcore import models
from nbcore.chat.checks import PreflightError
from nbcore.chat.masks import encode_prompt
from nbcore.models import fused


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


def test_a_tokenizer_without_padding_pads_with_a_special_token_that_ends_no_turn(nano, tmp_path):
    folder = models.save(nano, tmp_path / "bare")
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    pad = settings.pop("pad_token")
    for given, expected in (({"bos_token": pad}, pad), ({"unk_token": "<think>", "bos_token": pad}, "<think>")):
        (folder / "tokenizer_config.json").write_text(json.dumps({**settings, **given}), encoding="utf-8")
        assert models.load(folder).tokenizer.pad_token == expected


def test_a_tokenizer_whose_only_special_token_is_its_end_is_refused_with_what_to_do(nano, tmp_path):
    folder = models.save(nano, tmp_path / "bare")
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    kept = {name: value for name, value in settings.items() if name not in ("pad_token", "extra_special_tokens")}
    (folder / "tokenizer_config.json").write_text(json.dumps(kept), encoding="utf-8")
    with pytest.raises(ValueError, match="no padding token.*add_special_tokens"):
        models.load(folder)


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


def reference(model, tokenizer, row, new):
    """What transformers' own generate says, greedily."""
    ids = torch.tensor([row])
    out = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False,
                         eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    return out[0, len(row):].tolist()


@pytest.mark.parametrize("shared", [4, 2, 1])
def test_both_ways_to_read_agree_with_transformers_whatever_the_heads_share(nano, shared, monkeypatch):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(shared)
    config = LlamaConfig(vocab_size=832, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=shared,
                         head_dim=32, intermediate_size=96, initializer_range=0.3,
                         bos_token_id=None, eos_token_id=nano.tokenizer.eos_token_id)
    model, rows = LlamaForCausalLM(config).eval(), prompts(nano.tokenizer)
    wanted = [reference(model, nano.tokenizer, row, 12) for row in rows]
    assert fused.supports(model)
    quick = models.generate(model, nano.tokenizer, rows, 12, temperature=0)
    monkeypatch.setattr(fused, "supports", lambda _: False)
    plain = models.generate(model, nano.tokenizer, rows, 12, temperature=0)
    assert [c.ids for c in quick] == [c.ids for c in plain] == [ids[: len(c.ids)] for ids, c in zip(wanted, quick, strict=True)]
    for one, other in zip(quick, plain, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.6, 1.0])
def test_log_probabilities_are_the_models_own_on_the_sampled_tokens(nano, temperature):
    rows = prompts(nano.tokenizer) * 3
    for row, done in zip(rows, models.generate(nano.model, nano.tokenizer, rows, 20, temperature, 1.0, seed=3), strict=True):
        with torch.no_grad():
            logits = nano.model(torch.tensor([row + done.ids])).logits[0, len(row) - 1 : -1] / temperature
        own = logits.log_softmax(-1).gather(-1, torch.tensor(done.ids)[:, None])[:, 0]
        assert done.logprobs == pytest.approx(own.tolist(), abs=1e-4)


def test_samples_follow_the_models_distribution_and_top_p_cuts_its_tail(nano):
    row = prompts(nano.tokenizer)[0]
    with torch.no_grad():
        wanted = nano.model(torch.tensor([row])).logits[0, -1].softmax(-1)
    for top_p in (1.0, 0.8):
        firsts = [c.ids[0] for c in models.generate(nano.model, nano.tokenizer, [row] * 4000, 1, 1.0, top_p, seed=1, batch_size=4000)]
        got = torch.bincount(torch.tensor(firsts), minlength=len(wanted)) / len(firsts)
        ranked, where = wanted.sort(descending=True)
        inside = where[(ranked.cumsum(0) - ranked) <= top_p]
        kept = torch.zeros_like(wanted).index_copy(0, inside, wanted[inside])
        assert got[kept == 0].sum() == 0
        assert (got - kept / kept.sum()).abs().max() < 0.04


def test_rows_end_by_themselves_and_the_others_go_on(nano):
    """A frequent token stands for the end of turn, so that rows leave the batch one after the other."""
    rows = prompts(nano.tokenizer) * 20
    free = models.generate(nano.model, nano.tokenizer, rows, 30, 1.5, 1.0, seed=0)
    end = Counter(i for c in free for i in c.ids).most_common(1)[0][0]
    words = SimpleNamespace(pad_token_id=nano.tokenizer.pad_token_id, eos_token_id=end, decode=nano.tokenizer.decode)
    done = models.generate(nano.model, words, rows, 30, 1.5, 1.0, seed=0)
    assert len({len(c.ids) for c in done}) > 5, "the test wants rows of many lengths"
    for row, completion in zip(rows, done, strict=True):
        assert completion.ended == (completion.ids[-1] == end) and end not in completion.ids[:-1]
        assert completion.text == nano.tokenizer.decode(completion.ids[:-1] if completion.ended else completion.ids)
        with torch.no_grad():
            logits = nano.model(torch.tensor([row + completion.ids])).logits[0, len(row) - 1 : -1] / 1.5
        own = logits.log_softmax(-1).gather(-1, torch.tensor(completion.ids)[:, None])[:, 0]
        assert completion.logprobs == pytest.approx(own.tolist(), abs=1e-4)


def test_one_prompt_asked_often_answers_as_if_asked_each_time_by_itself(nano):
    rows = prompts(nano.tokenizer)
    mixed = [rows[0], rows[1], rows[0], rows[2], rows[0]]
    together = models.generate(nano.model, nano.tokenizer, mixed, 16, temperature=0)
    alone = [models.generate(nano.model, nano.tokenizer, [row], 16, temperature=0)[0].ids for row in rows]
    assert [c.ids for c in together] == [alone[0], alone[1], alone[0], alone[2], alone[0]]


def test_an_empty_prompt_is_refused(nano):
    with pytest.raises(ValueError, match="no tokens"):
        models.generate(nano.model, nano.tokenizer, [[1], []], 4)


def test_a_prompt_that_does_not_fit_is_refused(nano):
    with pytest.raises(ValueError, match="positions"):
        models.generate(nano.model, nano.tokenizer, [[1] * 2040], 64)
