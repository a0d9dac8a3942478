"""Both reward models learn from choices; their losses are the stated formulas; a resumed run equals an undisturbed one."""

import math
from dataclasses import replace

import pytest
import torch

from nbcore import models
from nbcore.chat.checks import NotFinite, PreflightError
from nbcore.data.preferences import Pair
from nbcore.models import prefixes
from nbcore.nano import traits
from nbcore.rewards import pairwise, pointwise
from nbcore.training import reward_models


@pytest.fixture(scope="module")
def policy():
    return models.load("nano")


def pairs_of(count: int, seed: int) -> list[Pair]:
    """The right answer against two poor ones: two choices of each prompt, three different answers."""
    pairs = []
    for item in traits.instructions(count, seed):
        right, prompt = traits.written(item, item.format), [{"role": "user", "content": item.text}]
        texts = [f"<think>\nx\n</think>\n\n{text}" for text in (right, f"{right} {right}", "no")]
        pairs += [Pair(item.key, prompt, texts[0], texts[1]), Pair(item.key, prompt, texts[0], texts[2])]
    return pairs


def test_pairs_become_one_group_a_prompt_with_each_different_answer_once(policy):
    groups = reward_models.answers_of(policy.tokenizer, pairs_of(3, 0))
    assert [(len(g.rows), g.choices) for g in groups] == [(3, [(0, 1), (0, 2)])] * 3
    orders = reward_models.orders_of(policy.tokenizer, pairs_of(3, 0))
    assert [(len(g.rows), g.choices) for g in orders] == [(4, [(0, 1), (2, 3)])] * 3


def test_the_pointwise_loss_is_that_of_trls_reward_trainer_on_the_same_pairs(policy, tmp_path):
    from datasets import Dataset
    from trl import RewardConfig, RewardTrainer

    scorer = pointwise.from_policy(policy)
    torch.manual_seed(0)
    torch.nn.init.normal_(scorer.model.score.weight, std=0.1)
    groups = reward_models.answers_of(policy.tokenizer, pairs_of(4, 1))
    pairs = [(g.rows[i], g.rows[j]) for g in groups for i, j in g.choices]
    table = Dataset.from_dict({"chosen_ids": [c for c, _ in pairs], "rejected_ids": [r for _, r in pairs]})
    args = RewardConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", bf16=False, gradient_checkpointing=False, max_length=None)
    trainer = RewardTrainer(model=scorer.model, args=args, train_dataset=table, processing_class=policy.tokenizer)
    with torch.no_grad():
        theirs = trainer.compute_loss(scorer.model, trainer.data_collator([table[i] for i in range(len(table))]))
        hidden = [prefixes.ends(scorer.model.base_model, [prefixes.tree(g.rows)], policy.tokenizer.pad_token_id) for g in groups]
        scores = [scorer.model.score(h)[:, 0] for h in hidden]
        ours, _ = reward_models.pointwise_loss(
            torch.stack([s[i] for s, g in zip(scores, groups, strict=True) for i, _ in g.choices]),
            torch.stack([s[j] for s, g in zip(scores, groups, strict=True) for _, j in g.choices]),
        )
    assert float(theirs) != pytest.approx(math.log(2), abs=1e-3)
    assert float(ours) == pytest.approx(float(theirs), abs=1e-5)


def test_the_pairwise_loss_is_the_stated_formula():
    first, last = torch.tensor([1.5, -0.3]), torch.tensor([0.2, -2.0])
    p, q = first.sigmoid(), last.sigmoid()  # P(y1≻y2 | y1,y2) and P(y2≻y1 | y2,y1), y1 chosen
    wanted = (-p.log() - (1 - q).log() + 0.7 * (p + q - 1) ** 2).mean()
    loss, parts = reward_models.pairwise_loss(first, last, 0.7)
    assert float(loss) == pytest.approx(float(wanted), abs=1e-6)
    assert float(parts["accuracy"]) == 0.5 and float(parts["flips"]) == 1.0
    steady, _ = reward_models.pairwise_loss(first, -first, 100.0)
    assert float(steady) == pytest.approx(float(-2 * p.log().mean()), abs=1e-5), "no term for a verdict that keeps to its word"


def test_without_a_term_the_orders_may_hold_different_choices():
    first, last = torch.tensor([1.5]), torch.tensor([0.2, -2.0])
    p, q = first.sigmoid(), last.sigmoid()
    loss, parts = reward_models.pairwise_loss(first, last, None)
    assert float(loss) == pytest.approx(float(-torch.cat([p.log(), (1 - q).log()]).mean()), abs=1e-6)
    assert float(parts["accuracy"]) == pytest.approx(2 / 3) and "flips" not in parts


def test_one_order_reads_each_choice_once_in_a_place_that_is_drawn(policy):
    pairs = pairs_of(60, 0)
    whole, once = (reward_models.orders_of(policy.tokenizer, pairs, both, seed=3) for both in (True, False))
    first = [i >= 0 for group in once for i, _ in group.choices]
    assert 0.35 < sum(first) / len(first) < 0.65
    for group, both in zip(once, whole, strict=True):
        assert len(group.rows) == len(group.choices) == len(both.choices)
        for (i, j), (k, m) in zip(group.choices, both.choices, strict=True):
            assert (i < 0) != (j < 0) and group.rows[max(i, j)] == both.rows[k if i >= 0 else m]
    again = reward_models.orders_of(policy.tokenizer, pairs, both=False, seed=3)
    assert again == once != reward_models.orders_of(policy.tokenizer, pairs, both=False, seed=4)


def test_one_order_is_the_one_in_which_the_choice_was_made_where_that_is_known(policy):
    pairs = [replace(pair, chosen_first=n % 2 == 0) for n, pair in enumerate(pairs_of(6, 0))]
    once = reward_models.orders_of(policy.tokenizer, pairs, both=False)
    assert [i >= 0 for group in once for i, _ in group.choices] == [True, False] * 6


def test_before_it_has_learned_anything_the_pointwise_loss_is_log_two(policy, tmp_path):
    history = reward_models.train_pointwise(policy, pairs_of(4, 0), tmp_path, steps=2, batch=2)[1]
    assert history[0]["loss"] == pytest.approx(math.log(2), abs=1e-5)


@pytest.mark.slow
def test_the_scorer_learns_to_tell_right_from_repeated_on_new_prompts_and_is_centred(policy, tmp_path):
    before = {name: weight.clone() for name, weight in policy.model.state_dict().items()}
    pairs = pairs_of(120, 0)
    scorer, history = reward_models.train_pointwise(policy, pairs, tmp_path, steps=50, batch=4)
    assert [row["step"] for row in history] == list(range(1, 51))
    assert {"loss", "accuracy", "margin", "learning_rate", "grad_norm"} <= set(history[0])
    fresh = reward_models.answers_of(policy.tokenizer, pairs_of(40, 9))
    scores = [scorer.score(g.rows) for g in fresh]
    assert sum(s[i] > s[j] for s, g in zip(scores, fresh, strict=True) for i, j in g.choices) > 0.8 * 80
    seen = torch.tensor(scorer.score([row for g in reward_models.answers_of(policy.tokenizer, pairs) for row in g.rows]))
    assert abs(float(seen.mean())) < 1e-4 and float(seen.std(unbiased=False)) == pytest.approx(1, abs=1e-4)
    assert all(torch.equal(weight, before[name]) for name, weight in policy.model.state_dict().items())


@pytest.mark.slow
def test_the_judge_learns_on_new_prompts_in_both_orders(policy, tmp_path):
    judge, history = reward_models.train_pairwise(policy, pairs_of(120, 0), tmp_path, steps=60, batch=4)
    assert {"cross_entropy", "swap", "accuracy", "flips"} <= set(history[0])
    asked = [reward_models.comparison_of(pair) for pair in pairs_of(40, 9)]
    assert sum(p > 0.5 for p in judge.probability(asked)) > 0.75 * 80
    assert sum(p < 0.5 for p in judge.probability([c.swapped() for c in asked])) > 0.75 * 80


def test_a_judge_may_be_deeper_than_the_policy_it_starts_from(policy, tmp_path):
    judge = reward_models.train_pairwise(policy, pairs_of(6, 0), tmp_path, steps=2, batch=1, blocks=2)[0].loaded.model
    assert judge.config.num_hidden_layers == policy.model.config.num_hidden_layers + 2
    assert judge.model.layers[-1].mlp.down_proj.weight.abs().sum() > 0


def test_a_judge_that_reads_one_order_trains_on_batches_of_any_mixture(policy, tmp_path):
    history = reward_models.train_pairwise(policy, pairs_of(6, 0), tmp_path, steps=4, batch=1, consistency=None)[1]
    assert history[0]["cross_entropy"] == pytest.approx(history[0]["loss"], abs=1e-5)


@pytest.mark.parametrize("kind", ["point", "pair"])
def test_a_resumed_run_equals_an_undisturbed_one_bit_for_bit(policy, tmp_path, kind):
    torch.set_num_threads(1)

    class Killed(Exception):
        pass

    def kill(row):
        if row["step"] == 5:
            raise Killed

    def train(folder, log=lambda row: None):
        given = dict(steps=6, batch=2, save_every=3, log=log)
        if kind == "point":
            return reward_models.train_pointwise(policy, pairs_of(6, 0), tmp_path / folder, **given)[0].model
        return reward_models.train_pairwise(policy, pairs_of(6, 0), tmp_path / folder, **given, blocks=1)[0].loaded.model

    whole = train("whole")
    with pytest.raises(Killed):
        train("halted", kill)
    resumed = train("halted")
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, resumed.state_dict()[name]), name


def test_pairs_that_cannot_teach_stop_the_run_before_its_first_step(policy, tmp_path):
    with pytest.raises(PreflightError, match="no pairs"):
        reward_models.train_pointwise(policy, [], tmp_path, steps=1)
    long = [replace(pairs_of(1, 0)[0], chosen="tea " * 3000)]
    for train in (reward_models.train_pointwise, reward_models.train_pairwise):
        with pytest.raises(PreflightError, match="positions"):
            train(policy, [*pairs_of(2, 0), *long], tmp_path, steps=1)


def test_a_loss_that_is_not_finite_stops_the_run_at_that_step(tmp_path):
    broken = models.load("nano")
    with torch.no_grad():
        broken.model.get_input_embeddings().weight[:] = math.inf
    with pytest.raises(NotFinite, match="loss"):
        reward_models.train_pairwise(broken, pairs_of(4, 0), tmp_path, steps=3, batch=2)


def test_an_answer_that_was_cut_off_is_another_row_in_both_models(policy):
    whole = pairs_of(1, 0)[:1]
    cut = [replace(whole[0], rejected_ended=False)]
    assert reward_models.answers_of(policy.tokenizer, cut)[0].rows[1] == reward_models.answers_of(policy.tokenizer, whole)[0].rows[1][:-1]
    assert reward_models.comparison_of(cut[0]).second == reward_models.comparison_of(whole[0]).second + pairwise.CUT_OFF
