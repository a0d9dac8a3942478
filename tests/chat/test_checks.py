import types

import pytest
import torch

from nbcore.chat import checks
from nbcore.chat.checks import NotFinite, PreflightError
from nbcore.chat.masks import EncodedChat, encode

USER = {"role": "user", "content": "1+1?"}
ANSWER = {"role": "assistant", "content": "2", "reasoning_content": "simple"}


@pytest.fixture
def good(tokenizer):
    return encode(tokenizer, [USER, ANSWER])


@pytest.fixture
def unsupervised(tokenizer):
    return encode(tokenizer, [USER, {**ANSWER, "train": False}])


def test_healthy_rows_pass_every_check(tokenizer, good):
    checks.preflight(tokenizer, [good] * 3, len(tokenizer), context_length=len(good.input_ids))
    checks.require_prefix_preserving(tokenizer, [[USER, ANSWER, USER, ANSWER]])


def test_rows_without_a_supervised_token_are_named_and_counted(good, unsupervised):
    with pytest.raises(PreflightError, match=r"^2 of 3 rows \(b, c\) have no supervised token"):
        checks.require_supervised([good, unsupervised, unsupervised], ids=["a", "b", "c"])
    checks.require_supervised([good])


def test_long_lists_of_rows_are_shortened(unsupervised):
    with pytest.raises(PreflightError, match=r"^9 of 9 rows \(0, 1, 2, 3, 4, \.\.\.\)"):
        checks.require_supervised([unsupervised] * 9)


def test_a_row_that_truncation_emptied_says_so(tokenizer):
    with pytest.raises(PreflightError, match="1 of them were cut at max_length"):
        checks.require_supervised([encode(tokenizer, [USER, ANSWER], max_length=10)])


def test_a_prompt_as_long_as_the_context_leaves_nothing_to_learn(good):
    start = good.spans[0].start
    checks.require_room([good], start + 1)
    with pytest.raises(PreflightError, match=rf"fills the context of {start} tokens"):
        checks.require_room([good], start)


def test_a_row_that_never_supervises_the_end_of_turn_is_refused(tokenizer, good):
    end = good.spans[0].end - 1
    silenced = EncodedChat(good.input_ids, [m * (i != end) for i, m in enumerate(good.assistant_mask)], good.spans)
    checks.require_end_of_turn([good], tokenizer.eos_token_id)
    with pytest.raises(PreflightError, match="never supervise the end of turn"):
        checks.require_end_of_turn([good, silenced], tokenizer.eos_token_id)
    with pytest.raises(PreflightError, match="never supervise the end of turn"):
        checks.require_end_of_turn([good], tokenizer.convert_tokens_to_ids("<|endoftext|>"))


def test_a_row_that_was_cut_need_not_hold_its_end_of_turn(tokenizer, good):
    checks.require_end_of_turn([encode(tokenizer, [USER, ANSWER], max_length=len(good.input_ids) - 3)], tokenizer.eos_token_id)


def test_padding_with_the_end_of_turn_is_refused(tokenizer, build_tokenizer):
    checks.require_distinct_pad(tokenizer)
    with pytest.raises(PreflightError, match="never stop"):
        checks.require_distinct_pad(build_tokenizer(pad_token="<|im_end|>"))
    with pytest.raises(PreflightError, match="no padding token"):
        checks.require_distinct_pad(build_tokenizer(pad_token=None))


def test_a_template_that_rewrites_the_past_is_refused_before_training(build_tokenizer):
    tokenizer = build_tokenizer()
    tokenizer.chat_template = "{{ messages | length }}{% for m in messages %}{{ m.content }}<|im_end|>\n{% endfor %}"
    with pytest.raises(PreflightError, match=r"1 of 2 rows \(two\) cannot be masked. The first: Message 1"):
        checks.require_prefix_preserving(tokenizer, [[USER], [USER, ANSWER]], ids=["one", "two"])


def test_token_ids_without_an_embedding_are_refused(tokenizer):
    largest = max(tokenizer.get_vocab().values())
    checks.require_vocabulary(tokenizer, largest + 1)
    with pytest.raises(PreflightError, match=f"largest token id is {largest}"):
        checks.require_vocabulary(tokenizer, largest)


def test_a_special_token_that_exists_twice_is_refused(build_tokenizer):
    tokenizer = build_tokenizer()
    tokenizer.add_tokens([" <think>"], special_tokens=True)
    with pytest.raises(PreflightError, match="exist twice: '<think>'"):
        checks.require_vocabulary(tokenizer, 10_000)


def test_preflight_says_everything_at_once(build_tokenizer, unsupervised):
    with pytest.raises(PreflightError) as error:
        checks.preflight(build_tokenizer(pad_token="<|im_end|>"), [unsupervised], embedding_rows=3, context_length=10)
    assert len(str(error.value).splitlines()) == 5


def test_no_rows_at_all_is_a_problem_too(tokenizer):
    with pytest.raises(PreflightError, match="no rows"):
        checks.preflight(tokenizer, [], len(tokenizer))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), torch.tensor(float("nan"))])
def test_a_loss_that_is_not_finite_stops_the_run(value):
    with pytest.raises(NotFinite, match="^loss is (nan|inf)"):
        checks.require_finite("loss", value)


def test_a_finite_loss_is_handed_back_as_a_float():
    assert checks.require_finite("loss", torch.tensor(0.5)) == 0.5


def test_weights_that_are_not_finite_are_named_before_they_are_saved():
    layer = torch.nn.Linear(3, 2)
    checks.require_finite_weights(layer.state_dict() | {"steps": torch.tensor(3), "note": types.SimpleNamespace()})
    with torch.no_grad():
        layer.weight[0, 0] = float("nan")
    with pytest.raises(NotFinite, match=r"1 of 2 tensors .*: weight \(1 of 6\)"):
        checks.require_finite_weights(layer.state_dict())
