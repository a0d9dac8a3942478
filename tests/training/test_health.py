"""The health panel: what a sick run looks like stops it with a sentence, a sound or a short run never does, and one figure shows all."""

import io
import math

import nbformat
import pytest
from nbclient import NotebookClient

from nbcore.training.flags import Limits
from nbcore.training.health import QUESTIONS, Panel, RedFlag


def row(step, **changed):
    """A sound step, with some numbers changed."""
    sound = {
        "step": step, "total": 300, "loss": 0.01, "grad_norm": 0.4, "learning_rate": 1e-4, "reward_mean": 0.5, "reward_spread": 0.3,
        "no_signal": 0.25, "refilled": 1.0, "truncated": 0.1, "length": 60.0, "length_ended": 50.0, "entropy": 0.5, "clip_low": 0.0,
        "clip_high": 0.01, "kl_start": None, "repetitive": 0.02, "missing": 0.0, "gap_mean": 1e-6, "gap_max": 1e-4, "seconds": 1.0,
        "reward_seconds": 0.2, "part/correct": 0.4,
    }  # fmt: skip
    return sound | changed


def run(panel, steps, **changed):
    """Observe so many more steps; a changed value may be a list, one entry a step."""
    start = len(panel.rows)
    for i in range(steps):
        panel.observe(row(start + i + 1, **{k: v[i] if isinstance(v, list) else v for k, v in changed.items()}))
    return panel


# What is seen, how many sound steps come before it, how often it must be seen, and what the sentence has to tell.
SICK = [
    ({"truncated": 0.97}, 0, 3, "97% of the answers were cut off.*Raise max_new_tokens"),
    ({"truncated": 0.97}, 50, 3, "cut off"),
    ({"no_signal": 1.0, "reward_mean": 0.0}, 0, 5, "all rewards are equal.*mean reward is 0.*Filter"),
    ({"missing": 0.5}, 0, 3, "50% of the rollouts have no reward.*Mend the judge"),
    ({"missing": 1.0}, 0, 1, "no rollout got a reward"),
    ({"entropy": 0.02}, 3, 5, "below 10% of the start's 0.5.*clip"),
    ({"kl_start": 3.0}, 0, 2, "3 nats per token away.*KL"),
    ({"gap_mean": 0.4}, 0, 1, "disagree by 0.4 nats.*weights"),
    ({"repetitive": 0.7}, 0, 3, "70% of the answers repeat.*read samples"),
    ({"grad_norm": 90.0}, 5, 3, "norm is 90.*median of 0.4.*Lower the learning rate"),
    ({"loss": math.nan}, 0, 1, "loss is nan.*Lower the learning rate"),
    ({"grad_norm": math.inf}, 0, 1, "grad_norm is inf"),
    ({"reward_mean": math.nan}, 0, 1, "reward_mean is nan.*must be None"),
]


@pytest.mark.parametrize(("seen", "before", "times", "told"), SICK, ids=lambda value: str(value)[:40])
def test_a_sick_run_is_stopped_at_the_step_where_it_is_sure_and_not_before(seen, before, times, told):
    panel = run(Panel(), before)
    run(panel, times - 1, **seen)
    with pytest.raises(RedFlag, match=f"Step {before + times}: .*{told}"):
        run(panel, 1, **seen)
    assert len(panel.rows) == before + times and panel.notes[-1].startswith("Stopped. Step")  # the sick step is in the record too


@pytest.mark.parametrize(("seen", "before", "times", "told"), SICK, ids=lambda value: str(value)[:40])
def test_one_sound_step_in_between_begins_the_count_anew(seen, before, times, told):
    panel = run(Panel(), before)
    kl = {"kl_start": 0.1} if "kl_start" in seen else {}
    for _ in range(3):
        run(panel, times - 1, **seen)
        run(panel, 1, **kl)


def test_a_short_run_of_tiny_groups_passes_whatever_chance_shows_it():
    unlucky = {"truncated": 1.0, "no_signal": 1.0, "missing": 0.5, "repetitive": 1.0, "reward_seconds": 0.99, "entropy": [2.0, 0.01]}
    panel = run(Panel(), 2, **unlucky, grad_norm=[0.0, 40.0])
    assert len(panel.rows) == 2


def test_steps_that_measured_nothing_neither_count_nor_break_a_row():
    panel = run(Panel(), 3, kl_start=[2.0, None, None])
    with pytest.raises(RedFlag, match="Step 4.*away"):
        run(panel, 1, kl_start=2.0)
    run(panel, 3)  # a caller that goes on all the same is not stopped again by an old number
    for missing in ({}, {"entropy": None, "truncated": None, "loss": None}):
        panel.observe({"step": len(panel.rows) + 1, **missing})


def test_a_run_with_rare_signal_is_no_explosion():
    """Steps without any signal have gradient 0; they do not make an ordinary gradient look large."""
    run(Panel(), 60, grad_norm=[0.3 if i % 10 >= 5 else 0.0 for i in range(60)])


def test_every_limit_can_be_moved_and_switched_off():
    rules = ("truncated", "no_signal", "missing", "entropy", "kl_start", "gap_mean", "grad_growth", "repetitive")
    off = Limits(**dict.fromkeys(rules))
    for seen, before, times, _ in SICK:
        if all(math.isfinite(v) for v in seen.values()):
            run(Panel(limits=off), before + 1)
            run(Panel(limits=off), 2 * times, **seen)
        else:
            with pytest.raises(RedFlag):
                run(Panel(limits=off), times, **seen)
    with pytest.raises(RedFlag, match="40%.*more than 30% for 2 steps"):
        run(Panel(limits=Limits(truncated=0.3, in_a_row=2)), 2, truncated=0.4)


def test_the_sentence_says_why_rewards_are_missing():
    panel, why = Panel(), {"HTTP 429": 2, "no answer within 60 s": 6}
    with pytest.raises(RedFlag, match=r"have no reward.* \(6 × no answer within 60 s; 2 × HTTP 429\)"):
        for step in (1, 2, 3):
            panel.observe(row(step, missing=0.5), why)
    assert "HTTP 429" in panel.notes[0]


def test_amber_notes_are_kept_once_for_each_time_and_stop_nothing():
    panel = run(Panel(), 30, missing=[0.1 if i in (4, 5, 20) else 0.0 for i in range(30)], reward_seconds=0.9)
    run(panel, 4, clip_high=0.3, gap_max=[0.0, 9.0, 9.0, 0.0])
    said = [note.split(":")[0] for note in panel.notes]
    assert said == ["Step 5", "Step 10", "Step 21", "Step 32", "Step 33"]
    assert "10.0% of the rollouts have no reward; they are left out, not counted as 0" in panel.notes[0]
    assert "Rewards take 90% of a step" in panel.notes[1]
    assert "differ by 9 nats" in panel.notes[3] and "31% of the tokens are clipped" not in panel.notes[3]
    assert "30% of the tokens are clipped" in panel.notes[4]


def test_a_row_that_would_switch_a_rule_off_is_refused():
    with pytest.raises(ValueError, match="'trucated'; 'truncated' was probably meant"):
        Panel().observe({"step": 1, "trucated": 0.9})
    with pytest.raises(ValueError, match="needs its step"):
        Panel().observe({"truncated": 0.9})
    with pytest.raises(ValueError, match="Step 3 came after step 3"):
        panel = run(Panel(), 3)
        panel.observe(row(3))
    Panel().observe(row(1) | {"turn_reward": 0.1})  # numbers of a stage's own are welcome


def test_a_resumed_run_goes_on_where_its_rows_end():
    first = run(Panel(), 7, entropy=[0.5, 0.5, 0.5, 0.02, 0.02, 0.02, 0.02])
    with pytest.raises(RedFlag, match="Step 8.*entropy"):
        run(Panel(rows=list(first.rows)), 1, entropy=0.02)


def test_the_table_compares_the_end_with_the_beginning():
    panel = run(Panel(), 40, reward_mean=[i / 40 for i in range(40)], kl_start=[i / 100 if i % 10 == 0 else None for i in range(40)])
    table = {change.name: change for change in panel.table()}
    assert table["reward_mean"].change == pytest.approx(30 / 40) and table["reward_mean"].steps == 10
    assert (table["kl_start"].first, table["kl_start"].last, table["kl_start"].steps) == (pytest.approx(0.05), pytest.approx(0.25), 2)
    assert "step" not in table and "total" not in table and "part/correct" in table
    single = {change.name: change for change in run(Panel(), 1).table()}
    assert single["loss"].first == single["loss"].last == 0.01 and single["loss"].change is None


def drawn(figure):
    """title → {label: (steps, values)} of what a figure shows, after it was really drawn."""
    image = io.BytesIO()
    figure.savefig(image, format="png")
    assert image.getvalue().startswith(b"\x89PNG")
    return {
        ax.get_title(loc="left"): {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in ax.lines}
        for ax in figure.axes
    }


def test_the_figure_asks_eight_questions_and_leaves_missing_values_out():
    panel = run(Panel(), 25, kl_start=[0.1 if i % 10 == 0 else None for i in range(25)], entropy=None)
    shown = drawn(panel.figure())
    assert list(shown) == [title for title, *_ in QUESTIONS]
    assert shown["Does the reward rise?"]["correct"][1] == [0.4] * 25  # the parts stand with the whole
    assert shown["How far from its start?"]["KL to the start"] == ([1, 11, 21], [0.1] * 3)
    assert shown["Does it still explore?"] == {}
    assert shown["Do answers end?"]["red flag"][1] == [0.8, 0.8]


@pytest.mark.parametrize("steps", [1, 300])
def test_one_step_and_three_hundred_can_be_drawn(steps):
    shown = drawn(run(Panel(), steps, reward_mean=[i / steps for i in range(steps)]).figure())
    assert shown["Does the reward rise?"]["reward"][0] == list(range(1, steps + 1))
    with pytest.raises(ValueError, match="no rows yet"):
        Panel().figure()


def test_a_step_that_is_not_finite_can_be_drawn_too():
    panel = run(Panel(), 40)
    with pytest.raises(RedFlag):
        run(panel, 1, loss=math.nan, grad_norm=math.inf, gap_max=math.inf)
    drawn(panel.figure())


CELL = """
from nbcore.training.health import Panel
panel = Panel().live(every=1, headless={headless})
for step in range(1, {steps} + 1):
    panel.observe({{"step": step, "total": 12, "truncated": {truncated}}})
"""


@pytest.fixture(scope="module")
def cells():
    """What a real kernel shows for a live run and for a headless one that is stopped: cell → (messages, errors)."""
    made = [
        nbformat.v4.new_code_cell(CELL.format(headless=headless, steps=steps, truncated=truncated))
        for headless, steps, truncated in ((False, 12, 0.1), (True, 4, 0.9))
    ]
    client = NotebookClient(nbformat.v4.new_notebook(cells=made), timeout=60, kernel_name="python3", allow_errors=True)
    told = [[], []]

    def listen(message, cell, index, true=client.process_message):
        if message["header"]["msg_type"] in ("display_data", "update_display_data"):
            told[index].append((message["header"]["msg_type"], message["content"]["transient"]["display_id"], message["content"]["data"]))
        return true(message, cell, index)

    client.process_message = listen
    client.execute()
    return [(seen, [o.ename for o in cell.outputs if o.output_type == "error"]) for seen, cell in zip(told, made, strict=True)]


def test_in_a_live_kernel_one_picture_is_updated_in_place_and_not_too_often(cells):
    told, errors = cells[0]
    # The first step and the last; the ten in between came within the pause.
    assert [kind for kind, *_ in told] == ["display_data", "update_display_data"] and not errors
    assert len({identity for _, identity, _ in told}) == 1 and "image/png" in told[0][2]


def test_a_headless_run_shows_one_picture_at_its_end_or_at_its_red_flag(cells):
    told, errors = cells[1]
    assert [kind for kind, *_ in told] == ["display_data"] and errors == ["RedFlag"]
