"""The health panel of a reinforcement run: one row a step goes in, red flags stop the run, one figure shows how it fares.

Paper sections 3 to 6 (every stage of RL); the limits are ours [C] and stand in `flags.py`. The rows are plain data: the panel
computes nothing that the trainer did not hand over, so a figure drawn later from stored rows is the same figure.
Left out on purpose: storing (the stage's log has the rows), and other backends than matplotlib.
"""

from __future__ import annotations

import difflib
import io
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from nbcore.training.flags import KEYS, START, Limits, RedFlag, Row, amber, measured, red

GREY, COLOURS = "#999999", ("#2a6f97", "#d1495b", "#edae49", "#66a182", "#8d6a9f")  # a step; what the eye should follow
SPARSE = 30  # up to so many points each is marked, and no mean is drawn
PAUSE, EFFORT = 2.0, 0.1  # in a live kernel: least seconds between two drawings, and the largest share of the time they may take

# One small multiple each: the question, what answers it as (key, label), the axis.
QUESTIONS = (
    ("Does the reward rise?", [("reward_mean", "reward")], "mean reward"),
    ("Do groups carry signal?", [("no_signal", "all equal"), ("missing", "no reward"), ("reward_spread", "spread")],
     "share; deviation"),
    ("Do answers end?", [("truncated", "cut off"), ("repetitive", "repetitive")], "share of answers"),
    ("How long are they?", [("length", "all"), ("length_ended", "those that ended")], "tokens"),
    ("Does it still explore?", [("entropy", "entropy")], "nats per token"),
    ("How far from its start?", [("kl_start", "KL to the start")], "nats per token"),
    ("Does the sampler agree?", [("gap_mean", "mean"), ("gap_max", "largest")], "|Δ log p|, nats"),
    ("Are the updates steady?", [("grad_norm", "gradient"), ("clip_low", "clipped low"), ("clip_high", "high")],
     "norm; share of tokens"),
)  # fmt: skip
SHARES = {"truncated", "repetitive", "no_signal"}
LIMITED = ("truncated", "no_signal", "kl_start", "gap_mean")  # the one limit that is drawn in a multiple


@dataclass(frozen=True)
class Change:
    """One number of the run: means of its first and last `steps` measured steps. change is None when both are the same step."""

    name: str
    first: float
    last: float
    change: float | None
    steps: int


@dataclass
class Panel:
    """Rows of a run, the notes on them, and the limits. rows: those of an earlier part of the same run, when it is resumed.

    observe(row) raises RedFlag; figure() draws; live() shows the figure while the run goes on; table() says what changed.
    """

    limits: Limits = field(default_factory=Limits)
    rows: list[dict[str, float | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _standing: set[str] = field(default_factory=set, repr=False)  # amber rules that held in the step before
    _every: int = field(default=0, repr=False)  # 0: nothing is shown by itself
    _headless: bool = field(default=False, repr=False)
    _handle: Any = field(default=None, repr=False)
    _next: float = field(default=0.0, repr=False)  # when a picture may be drawn again, on the monotonic clock

    def observe(self, row: Row, reasons: Mapping[str, int] | None = None) -> None:
        """Take one step's numbers (keys: `flags.KEYS` and `part/<component>`; None or absent is not measured).

        reasons: why rewards were missing, with counts, for the messages. The row is kept before it is judged. Raises RedFlag when
        the run should end, ValueError for a row without step, a step that does not rise, and a key that looks misspelt.
        """
        _check(row, self.rows)
        self.rows.append(dict(row))
        sentence = red(self.rows, self.limits, reasons)
        notes = amber(self.rows, self.limits, reasons)
        self.notes += [f"Step {row['step']:g}: {said}" for rule, said in notes.items() if rule not in self._standing]
        self._standing = set(notes)
        if sentence:
            self.notes.append(f"Stopped. {sentence}")
        self._show(last=sentence is not None or row["step"] == row.get("total"))
        if sentence:
            raise RedFlag(sentence)

    def live(self, every: int = 10, headless: bool = False) -> Panel:
        """Show the figure by IPython's display: every so many steps in place, at least 2 s apart; at the end and at a red flag always.

        headless: only at the end and at a red flag, so that the stored notebook holds one picture. Returns the panel.
        """
        if every < 1:
            raise ValueError(f"every counts steps and is 1 or more; given was {every}.")
        self._every, self._headless = every, headless
        return self

    def table(self) -> list[Change]:
        """What changed: for each number that was measured, the mean of its last 10 steps against its first 10 (of short runs, halves)."""
        names = [n for n in dict.fromkeys(name for row in self.rows for name in row) if n not in ("step", "total")]
        changes = []
        for name in names:
            if values := measured(self.rows, name):
                k = min(10, max(1, len(values) // 2))
                first, last = fmean(values[:k]), fmean(values[-k:])
                changes.append(Change(name, first, last, last - first if len(values) > 1 else None, k))
        return changes

    def figure(self) -> Any:
        """A matplotlib Figure of eight small multiples, one question each; steps that measured nothing are left out.

        Thin grey: each step; colour: the mean of about the last fifteenth; dotted: the limit of the red flag. The figure is not
        pyplot's: a cell shows it as its last value. Raises ValueError when there are no rows yet.
        """
        from matplotlib.figure import Figure

        if not self.rows:
            raise ValueError("The panel has no rows yet: observe at least one step before drawing.")
        figure = Figure(figsize=(13, 6.6))
        axes = figure.subplots(2, 4)
        # By hand: matplotlib's own layouts draw everything several times, and this is redrawn while a run goes on.
        figure.subplots_adjust(left=0.05, right=0.99, top=0.86, bottom=0.14, hspace=0.5, wspace=0.26)
        parts = sorted({key for row in self.rows for key in row if key.startswith("part/")})
        for ax, (title, lines, unit) in zip(axes.flat, QUESTIONS, strict=True):
            if title == "Does the reward rise?":
                lines = [*lines, *((key, key.removeprefix("part/")) for key in parts)]
            _multiple(ax, self.rows, lines, self.limits)
            ax.set_title(title, fontsize=11, loc="left", fontweight="bold", pad=8 + 11 * max(1, _legend(ax)))
            ax.set_ylabel(unit, fontsize=8)
        for ax in axes[1]:
            ax.set_xlabel("step", fontsize=9)
        figure.text(0.005, 0.99, self._headline(), fontsize=10, va="top")
        shown = "\n".join(textwrap.fill(note, 200) for note in self.notes[-3:])
        figure.text(0.005, 0.065, shown, fontsize=9, va="top", color="#7a1f2b")
        return figure

    def _headline(self) -> str:
        row = self.rows[-1]
        total = row.get("total")
        said = [f"step {row['step']:g}" + (f" of {total:g}" if total is not None else "")]
        if seconds := measured(self.rows, "seconds"):
            said.append(f"{fmean(seconds[-10:]):.2g} s a step")
            judged = measured(self.rows, "reward_seconds")
            if judged and fmean(seconds[-10:]):
                said[-1] += f", {fmean(judged[-10:]) / fmean(seconds[-10:]):.0%} of it for rewards"
        if rate := row.get("learning_rate"):
            said.append(f"learning rate {rate:.2g}")
        return " · ".join([*said, f"{len(self.notes)} note{'s' * (len(self.notes) != 1)}"])

    def _show(self, last: bool) -> None:
        if not self._every or not (last or not self._headless and (len(self.rows) - 1) % self._every == 0):
            return
        began = time.monotonic()
        if not last and began < self._next:
            return  # the next one will show it; drawing can take longer than a small model's step
        from IPython.display import Image, display

        image = io.BytesIO()
        self.figure().savefig(image, format="png", dpi=80)
        picture = Image(image.getvalue(), format="png")
        if self._handle is None:
            self._handle = display(picture, display_id=True)
        else:
            self._handle.update(picture)
        self._next = time.monotonic() + max(PAUSE, (time.monotonic() - began) / EFFORT)


def _check(row: Row, before: Sequence[Row]) -> None:
    if row.get("step") is None:
        raise ValueError("A row of the health panel needs its step.")
    if before and row["step"] <= before[-1]["step"]:
        raise ValueError(
            f"Step {row['step']:g} came after step {before[-1]['step']:g}. One panel serves one run; for a resumed run give it the rows "
            "before the checkpoint: Panel(rows=...)."
        )
    for key in row:
        if key not in KEYS and (near := difflib.get_close_matches(key, KEYS, n=1, cutoff=0.9)):
            raise ValueError(f"The row has the key {key!r}; {near[0]!r} was probably meant. A misspelt key would switch its rule off.")


def _multiple(ax: Any, rows: Sequence[Row], lines: Sequence[tuple[str, str]], limits: Limits) -> None:
    from matplotlib.ticker import MaxNLocator

    keys = [key for key, _ in lines]
    for number, (key, label) in enumerate(lines):
        points = [(row["step"], row[key]) for row in rows if row.get(key) is not None]
        if not points:
            continue
        steps, values = zip(*points, strict=True)
        colour = COLOURS[number % len(COLOURS)]
        if len(points) <= SPARSE:
            ax.plot(steps, values, "o-", color=colour, markersize=3, linewidth=1.2, label=label)
            continue
        window = max(5, len(points) // 15)
        smooth = [fmean(values[max(0, i + 1 - window) : i + 1]) for i in range(len(values))]
        ax.plot(steps, values, linewidth=0.5, color=GREY if len(lines) == 1 else colour, alpha=0.5)
        ax.plot(steps, smooth, linewidth=1.6, color=colour, label=label)
    for key in LIMITED:
        if key in keys and (limit := getattr(limits, key)) is not None and measured(rows, key):
            ax.axhline(limit, color="black", linestyle=":", linewidth=1, label="red flag")
    if "entropy" in keys and limits.entropy is not None and (values := measured(rows, "entropy")):
        ax.axhline(limits.entropy * fmean(values[:START]), color="black", linestyle=":", linewidth=1, label="red flag")
    if not ax.lines:
        ax.text(0.5, 0.5, "not measured", ha="center", va="center", color=GREY, transform=ax.transAxes)
        ax.set(xticks=[], yticks=[])
        return
    if SHARES & set(keys):
        ax.set_ylim(-0.03, max(1.03, ax.get_ylim()[1]))
    elif "gap_mean" in keys:
        ax.set_yscale("symlog", linthresh=1e-6)  # an exact agreement is 0, which a plain logarithm would hide
        ax.set_ylim(0, 3 * max(ax.dataLim.y1, limits.gap_mean or 0.0, 1e-6))
    elif keys[0] != "reward_mean":
        ax.set_ylim(0, 1.08 * ax.dataLim.y1 or 1)
    ax.set_xlim(rows[0]["step"] - 0.5, rows[-1]["step"] + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
    ax.tick_params(labelsize=8)
    ax.grid(alpha=0.25)


def _legend(ax: Any) -> int:
    """A legend between title and axes, where it hides nothing; gives its lines of text."""
    handles, labels = ax.get_legend_handles_labels()
    if len(labels) < 2:
        return 0
    columns = 4 if sum(map(len, labels)) / len(labels) < 9 else 3
    ax.legend(
        handles, labels, loc="lower left", bbox_to_anchor=(-0.03, 0.97), ncols=columns, fontsize=7.5, frameon=False, handlelength=1.2,
        columnspacing=1.0, handletextpad=0.4, labelspacing=0.2,
    )  # fmt: skip
    return -(-len(labels) // columns)
