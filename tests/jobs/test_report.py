"""The report tells what happened, for a run in any state, and what it can't read it names."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from report_run import NEEDS, build

from nbcore.jobs import report
from nbcore.jobs.report.curves import ticks
from nbcore.jobs.report.gather import gather, thin
from nbcore.jobs.report.markup import cut, esc
from nbcore.jobs.report.pictures import moved, pipeline
from nbcore.jobs.words import duration, inside, memory, moment, number, outcome, share

VOID = {"meta", "link", "img", "br", "input", "hr"}


class Outline(HTMLParser):
    """Checks that tags close in order, and keeps ids, links, headings, texts of elements by class."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.outside: list[str] = []
        self.headings: list[str] = []
        self.words = ""
        self.feed(html)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(tag)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if tag == "a" else []
        self.outside += [attrs[a] for a in ("src", "href", "xlink:href", "srcset", "action") if a in attrs]
        assert not any(name.startswith("on") for name in attrs), attrs

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "title"):
            self.words += data + " "


def render(run: Path) -> tuple[str, Outline]:
    html = report.render(run).read_text(encoding="utf-8")
    for drawing in re.findall(r"<svg.*?</svg>", html, re.S):
        ElementTree.fromstring(drawing)
    return html, Outline(html)


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("runs"))


def test_one_file_that_fetches_nothing_and_runs_nothing(done):
    html, outline = render(done)
    assert all(where.startswith(("#", "data:")) for where in outline.outside), outline.outside
    assert "<script" not in html and "url(" not in html and "@import" not in html
    assert "default-src &#x27;none&#x27;" in html
    assert set(outline.links) == {f"#stage-{key}" for key in NEEDS} <= {f"#{name}" for name in outline.ids}
    assert len(outline.ids) == len(set(outline.ids))
    assert len(html) < 3 * 2**20


def test_it_says_in_order_what_happened_what_moved_and_how_each_stage_went(done):
    _, outline = render(done)
    said = [
        "From a base model to an evaluated one", "Done: 5 stages finished in 4 min 00 s. 1 of 3 metrics not inside the healthy band.",
        "Where the metric moved", "base → sft, n = 200: rose by 69 points, intervals apart", "fell by 3 points, intervals overlap",
        "The pipeline", "✗ act_accuracy 0.42, outside its band (+2)", "01_sft_data", "02_sft", "reason_accuracy", "inside", "not measured",
        "✓ holds: Every row has supervised tokens", "6 of 200 values missing (6 nan)", "Supervised tokens of the four abilities",
        "before", "3 3 3 3 3 3 3", "北京是中国的首都。", "learning_rate", "command line", "recipes/nano.yaml:7", "notebook default",
        "accuracy with 95 % intervals", "Environment", "versions.torch", "2.13.0", "Recipe",
    ]  # fmt: skip
    at = -1
    for words in said:
        found = outline.words.find(words, at + 1)
        assert found > at, f"{words!r} is missing or out of order"
        at = found
    assert outline.headings[0] == "h1" and outline.headings.count("h1") == 1


def test_what_a_model_wrote_stays_text(tmp_path):
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x00\x1b[31m\u202e&amp;"
    run = build(tmp_path, sample=evil)
    with (run / "stages/02_sft/samples.jsonl").open("a", encoding="utf-8") as f:
        f.write('{"suite": "code", "prompt": [{"role": "user", "content": "</div>"}], "completion": "\\ud83d half a pair"}\n{"torn": ')
    html, outline = render(run)
    assert "</script><script>alert(1)</script><img src=x onerror=alert(2)>␀␛[31m\u202e&amp;" in outline.words
    assert "\ufffd half a pair" in outline.words and "samples.jsonl: 1 torn line left out." in outline.words
    assert "<script" not in html


@pytest.mark.parametrize("state", ["failed", "timed-out", "killed", "interrupted"])
def test_a_run_that_went_wrong_says_where_why_and_shows_the_end_of_the_log(tmp_path, state):
    run = build(tmp_path, {"02_sft": state, "03_reward": "skipped", "04_rl": "skipped", "12_evaluate": "skipped"})
    _, outline = render(run)
    word = {"timed-out": "Timed out"}.get(state, state.capitalize())
    assert f"{word} in 02_sft: the kernel died at cell 3 of 9" in outline.words and "1 of 5 stages finished." in outline.words
    assert "MemoryError: 内存不足" in outline.words and "line 99" in outline.words and "line 40 " not in outline.words.replace("\n", " ")
    assert "\x1b" not in outline.words and "␛" not in outline.words and "10%" not in outline.words and "55%" in outline.words
    assert "No finished stage has said that a metric moved." in outline.words
    assert "3 bands not checked" in outline.words, "bands of a stage without a result are neither inside nor outside"


def test_a_running_run_whose_runner_is_gone_is_not_said_to_run(tmp_path):
    run = build(tmp_path, {"02_sft": "running", "03_reward": "waiting", "04_rl": "waiting", "12_evaluate": "waiting"})
    _, outline = render(run)
    assert "Killed in 02_sft: The runner was killed" in outline.words and "▶" not in outline.words


def test_a_reused_stage_names_its_run_and_shows_its_result(tmp_path):
    origin = build(tmp_path / "old")
    run = build(tmp_path / "new")
    status = json.loads((run / "status.json").read_text(encoding="utf-8"))
    folder = origin / "stages/12_evaluate"
    reused = {"state": "reused", "reason": "same fingerprint", "reused_from": "old-run", "folder": str(folder), "attempt": 0}
    status["stages"]["12_evaluate"] = reused
    (run / "status.json").write_text(json.dumps(status), encoding="utf-8")
    html, outline = render(run)
    assert "↺ reused" in outline.words and "old-run" in outline.words and "rose by 69 points" in outline.words
    assert "1 of them reused from earlier runs" in outline.words


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("stages/12_evaluate/result.json", b'{"stage": "12_ev', "12_evaluate/result.json cannot be read"),
        ("stages/12_evaluate/result.json", None, "result.json is missing: the stage did not finish."),
        ("stages/02_sft/metrics.jsonl", b"\xff\xfe\n5\n", None),
        ("stages/02_sft/samples.jsonl", b"\xff\xfe\n[]\n", "samples.jsonl: 2 torn lines left out."),
        ("stages/02_sft/figures/mixture.json", b"[", "mixture.json can't be read"),
        ("stages/02_sft/figures/mixture.png", b"\x89PNG" + b"\0" * 2**21, "Figure mixture.png is left out (2.0 MiB)"),
        ("status.json", b'{"state": ', "What became of this run is not known"),
        ("status.json", None, "status.json is missing"),
        ("recipe.yaml", b"a: [", "recipe.yaml can't be read"),
        ("recipe.yaml", None, "recipe.yaml can't be read"),
        ("environment.json", b"[1", "environment.json can't be read"),
        ("environment.json", None, "environment.json is missing."),
    ],
)
def test_a_file_that_is_damaged_or_gone_is_named_and_the_rest_is_shown(tmp_path, name, content, said):
    run = build(tmp_path)
    if content is None:
        (run / name).unlink()
    else:
        (run / name).write_bytes(content)
    _, outline = render(run)
    assert said is None or said in outline.words
    assert "03_reward" in outline.words and "4000" in outline.words


def test_a_result_of_the_right_outline_with_nonsense_inside(tmp_path):
    run = build(tmp_path)
    path = run / "stages/12_evaluate/result.json"
    result = json.loads(path.read_text(encoding="utf-8"))
    result |= {"tables": {"a": 5, "b": {"columns": ["x"], "rows": [[1, 2]]}}, "checks": ["yes"]}
    result["moves"] += [7, {"before": {}, "after": None}, {"suite": None, "before": {}, "after": {"value": "much"}}]
    path.write_text(json.dumps(result), encoding="utf-8")
    _, outline = render(run)
    assert "2 of 2 tables" in outline.words and "2 of 8 moves" in outline.words and "1 of 1 checks" in outline.words
    assert "not measured on both sides" in outline.words


def test_an_empty_folder_and_a_run_of_which_nothing_is_done(tmp_path):
    (tmp_path / "empty").mkdir()
    _, outline = render(tmp_path / "empty")
    assert "What became of this run is not known" in outline.words and "No stage is known." in outline.words
    _, outline = render(build(tmp_path, dict.fromkeys(NEEDS, "waiting")))
    assert outline.words.count("○ waiting") >= 5 and "not run" in outline.words
    assert "<svg" in report.picture(tmp_path / "empty")


def test_curves_of_a_resumed_stage_are_one_curve_and_say_where_the_attempts_meet(tmp_path):
    run = build(tmp_path, rows=0)
    rows = [{"attempt": 1, "step": s, "loss": 9.0} for s in range(1, 80)] + [{"attempt": 2, "step": s, "loss": 1.0} for s in range(51, 101)]
    (run / "stages/02_sft/metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    stage = gather(run).stages[1]
    (series,) = stage.series
    assert [x for x, _ in series.points] == list(range(1, 101)) and series.points[49][1] == 9.0 and series.points[50][1] == 1.0
    assert stage.attempts == [(2, 51.0)]
    assert "dashed: attempt 2 took over" in render(run)[1].words


def test_huge_logs_are_thinned_without_losing_extremes_or_gaps(tmp_path):
    points = [(float(i), None if i == 777 else (50.0 if i == 4321 else float(i % 7))) for i in range(100_000)]
    kept = thin(points)
    assert len(kept) <= 500 and (4321.0, 50.0) in kept and (777.0, None) in kept and kept == sorted(kept, key=lambda p: p[0])
    run = build(tmp_path, rows=0)
    with (run / "stages/02_sft/metrics.jsonl").open("w", encoding="utf-8") as f:
        for i in range(20_000):
            f.write(json.dumps({"attempt": 1, "step": i, "loss": i % 13, "reward": -1e308 if i % 2 else 1e308}) + "\n")
    html, outline = render(run)
    assert "20000 values, thinned to" in outline.words and len(html) < 2**20


def test_many_samples_and_long_ones_are_counted_not_all_shown(tmp_path):
    run = build(tmp_path)
    with (run / "stages/02_sft/samples.jsonl").open("w", encoding="utf-8") as f:
        for i in range(500):
            record = {"suite": f"s{i % 4}", "prompt": str(i), "completion": "word " * 2000}
            f.writelines(json.dumps({"when": when} | record) + "\n" for when in ("before", "after"))
    html, outline = render(run)
    assert html.count('class="sample"') == 24 and "952 more records in samples.jsonl." in outline.words
    assert "6000 more characters" in outline.words and len(html) < 2**20


def test_a_prompt_drawn_twice_is_two_pairs(tmp_path):
    run = build(tmp_path)
    with (run / "stages/02_sft/samples.jsonl").open("w", encoding="utf-8") as f:
        for when, completion in (("before", "b1"), ("before", "b2"), ("after", "a1"), ("after", "a2")):
            f.write(json.dumps({"when": when, "suite": "reason", "prompt": "1 + 1", "completion": completion}) + "\n")
    html, outline = render(run)
    assert html.count('class="sample"') == 2
    assert re.search(r"b1.*a1.*b2.*a2", outline.words, re.S)


def test_the_picture_stands_alone(done):
    picture = report.picture(done)
    ElementTree.fromstring(picture)
    assert "prefers-color-scheme: dark" in picture and "<a " not in picture
    assert "Where the metric moved" in picture and "12_evaluate" in picture


def test_a_suite_followed_through_three_models_is_one_dumbbell_of_the_picture_and_two_of_the_page(tmp_path):
    run = build(tmp_path)
    path = run / "stages/12_evaluate/result.json"
    result = json.loads(path.read_text(encoding="utf-8"))
    ends = [{"name": name, "value": value, "low": value - 0.05, "high": value + 0.05} for name, value in (("b", 0.1), ("s", 0.5))]
    ends.append({"name": "r", "value": 0.7, "low": 0.65, "high": 0.75})
    result["moves"] = [{"suite": "reason", "before": one, "after": other, "n": 9, "unit": "share"} for one, other in pairwise(ends)]
    path.write_text(json.dumps(result), encoding="utf-8")
    page, picture = report.render(run).read_text(encoding="utf-8"), report.picture(run)
    assert "b → s" in page and "s → r" in page
    assert "b → r" in picture and "rose by 60 points" in picture and "b → s" not in picture


def test_arrows_of_the_pipeline_are_the_needs(done):
    body, _ = pipeline(gather(done))
    # Every arrow has one tip; the six needs of the recipe are six arrows.
    assert body.count('class="tip"') == sum(map(len, NEEDS.values())) == 6


def luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_of_a_text_has_a_contrast_of_at_least_four_and_a_half(scheme):
    css = (Path(report.__file__).parent / "palette.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, re.S)
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[scheme == "dark"]))
    for ground in ("paper", "card"):
        for name in set(colours) - {"paper", "card", "line", "grid"}:
            light, dark = sorted((luminance(colours[name]), luminance(colours[ground])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, f"{name} on {ground}"


def test_how_numbers_times_and_states_are_said():
    said = ["0.4 s", "12 s", "1 min 00 s", "3 min 12 s", "2 h 05 min", "–", "–"]
    assert [duration(s) for s in (0.44, 12.3, 59.7, 192, 7500, None, -1)] == said
    assert [memory(m) for m in (812, 1300, None)] == ["812 MiB", "1.3 GiB", "–"]
    assert [number(x) for x in (0, 3, 0.71234, 3e-4, 1e-7, 1234567.0, 1e20, None, True, "a")] == [
        "0", "3", "0.7123", "0.0003", "1e-7", "1234567", "1e20", "not measured", "True", "a",
    ]  # fmt: skip
    assert [share(x) for x in (0.714, 0.7, 1.0, None)] == ["71.4 %", "70 %", "100 %", "not measured"]
    assert [inside(x, (0, 1)) for x in (0, 1, 1.1, None, float("nan"))] == ["inside", "inside", "outside", "not measured", "not measured"]
    assert moment("2026-12-02T08:00:00+00:00") == moment(1796198400) and moment("soon") is None
    failed = {"state": "failed", "stages": {"a": {"state": "failed", "error": "no milk"}}}
    assert outcome(failed) == "Failed in a: no milk. 0 of 1 stage finished."


def test_words_and_marks_of_a_move():
    ends = {"low": 0.1, "high": 0.2, "value": 0.15}
    assert moved({"before": ends, "after": {"low": 0.3, "high": 0.4, "value": 0.35}}) == "rose by 20 points, intervals apart"
    assert moved({"before": {"value": 3.0}, "after": {"value": 1.0}, "unit": "tokens"}) == "fell by 2"
    assert moved({"before": ends, "after": ends}) == "did not move, intervals overlap"
    assert esc('<a href="x">\x07\ud800') == "&lt;a href=&quot;x&quot;&gt;␇\ufffd"
    assert cut("北京是中国的首都", 5) == "北京是中…" and cut("short", 5) == "short"
    assert ticks(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0] and ticks(2.0, 2.0) == [2.0] and len(ticks(0.0195, 3.2)) >= 3
