"""The parameter contract: what a parameters cell may hold, and how a value is read by its declared type."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from nbcore.jobs.annotations import looks_secret
from nbcore.jobs.layers import Plain
from nbcore.jobs.parameters import Parameter, ParameterError, read_cells, read_parameters


def write_notebook(path: Path, *cells: tuple[str, tuple[str, ...]], kind: str = "code") -> Path:
    content = [{"cell_type": kind, "metadata": {"tags": list(tags)}, "source": source.splitlines(keepends=True)} for source, tags in cells]
    path.write_text(json.dumps({"cells": content, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    return path


@pytest.fixture
def declare(tmp_path):
    """Reads the parameters of a notebook whose parameters cell is the given text."""
    return lambda source: read_parameters(write_notebook(tmp_path / "02_sft.ipynb", ("import os", ()), (source, ("parameters",))))


def problems_of(call, *args) -> list[str]:
    with pytest.raises(ParameterError) as caught:
        call(*args)
    return caught.value.problems


def given(annotation: str, value: object, default: object = None) -> object:
    """What a parameter of this annotation makes of a value; unquoted text as in a recipe is Plain."""
    return Parameter("rate", annotation, default, "", 1).check(value, "recipes/nano.yaml:12")


# --- the cell

def test_declared_parameters_keep_order_default_type_comment_and_line(declare):
    parameters = declare(
        "# the sizes\n"
        "rows: int = 4_000  # how many, ≤ 10⁵\n"
        "learning_rate: float = 3e-4  # peak, after warm-up\n"
        "adapter: str | None = None\n"
        "mixture: dict[str, float] = {\n"
        "    'reason': 0.5,  # inner\n"
        "}  # shares\n"
    )
    assert list(parameters) == ["rows", "learning_rate", "adapter", "mixture"]
    assert parameters["rows"] == Parameter("rows", "int", 4000, "how many, ≤ 10⁵", 2)
    assert parameters["learning_rate"].default == 3e-4
    assert parameters["adapter"] == Parameter("adapter", "str | None", None, "", 4)
    assert parameters["mixture"].default == {"reason": 0.5}
    assert parameters["mixture"].comment == "shares"


def test_an_integer_default_of_a_float_becomes_a_float(declare):
    default = declare("warmup: float = 1")["warmup"].default
    assert (default, type(default)) == (1.0, float)


def test_no_tagged_cell_is_refused(tmp_path):
    notebook = write_notebook(tmp_path / "a.ipynb", ("rows: int = 1", ()))
    assert "no cell is tagged `parameters`" in problems_of(read_parameters, notebook)[0]


def test_two_tagged_cells_are_refused_with_their_numbers(tmp_path):
    tagged = ("rows: int = 1", ("parameters",))
    notebook = write_notebook(tmp_path / "a.ipynb", tagged, ("x = 1", ()), tagged)
    assert "cells 1, 3" in problems_of(read_parameters, notebook)[0]


def test_a_tagged_markdown_cell_is_refused(tmp_path):
    notebook = write_notebook(tmp_path / "a.ipynb", ("rows", ("parameters",)), kind="markdown")
    assert "markdown cell" in problems_of(read_parameters, notebook)[0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('out: str = f"run_{rows}"', "computed"),
        ("width: int = 2 * 32", "computed"),
        ("device: str = pick()", "computed"),
        ("table: dict[str, int] = {[]: 1}", "computed"),
        ("rows = 4000", "no annotation"),
        ("rows: int", "no default"),
        ("rows: int = 3.5", "isn't an int"),
        ("rows: int = True", "isn't an int"),
        ("rate: float = '1e-4'", "isn't a float"),
        ("on: bool = 1", "isn't a bool"),
        ("name: str = None", "isn't a str"),
        ("names: list[str] = ['a', 1]", "isn't a str"),
        ("mode: Literal['a', 'b'] = 'c'", "isn't one of 'a', 'b'"),
        ("pair: tuple[int, int] = (1, 2)", "isn't supported"),
        ("either: int | str = 1", "isn't supported"),
        ("table: dict[int, int] = {}", "isn't supported"),
        ("names: list = []", "isn't supported"),
        ("import os", "isn't a parameter"),
        ("a: int = 1; b: int = 2", "each its own line"),
        ("rows: int = 1\nrows: int = 2", "declared twice (first in line 1)"),
        ("%matplotlib inline", "isn't plain Python"),
    ],
)
def test_what_is_no_annotated_literal_is_refused_with_cell_and_line(declare, line, said):
    [problem] = problems_of(declare, line)
    number = line.count("\n") + 1
    assert said in problem
    assert f"02_sft.ipynb cell 2 line {number}" in problem


def test_all_problems_of_a_cell_are_told_at_once(declare):
    assert len(problems_of(declare, "a = 1\nb: int = 2.5\nc: float = f()")) == 3


def test_non_finite_defaults_have_a_spelling(declare):
    parameters = declare("clip: float = float('inf')  # none\nfill: float = float('nan')")
    assert parameters["clip"].default == math.inf
    assert math.isnan(parameters["fill"].default)


@pytest.mark.parametrize("name", ["api_key", "hf_token", "token", "client_secret", "password", "wandbApiKey"])
def test_a_secret_is_never_a_parameter(declare, name):
    assert "secrets come from the environment" in problems_of(declare, f"{name}: str = ''")[0]


@pytest.mark.parametrize("name", ["max_tokens", "new_tokens", "tokens_per_step", "eos_token", "tokenizer", "sort_key", "keys", "secretary"])
def test_tokens_and_keys_of_modelling_are_no_secrets(name):
    assert not looks_secret(name)


@pytest.mark.parametrize("name", ["HF_TOKEN", "WANDB_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "GITHUB_TOKEN"])
def test_usual_environment_names_of_secrets_are_known(name):
    assert looks_secret(name)


# --- the file

@pytest.mark.parametrize(
    ("content", "said"),
    [(b"{", "not a notebook file"), (b"\xff\xfe", "not a notebook file"), (b"[]", "format 4"), (b'{"worksheets": []}', "format 4")],
)
def test_a_broken_notebook_file_is_an_error_for_people(tmp_path, content, said):
    (tmp_path / "a.ipynb").write_bytes(content)
    assert said in problems_of(read_parameters, tmp_path / "a.ipynb")[0]


def test_a_missing_notebook_is_an_error_for_people(tmp_path):
    assert "can't read the notebook" in problems_of(read_parameters, tmp_path / "a.ipynb")[0]


def test_source_may_be_one_text_or_a_list_of_lines(tmp_path):
    cells = [{"cell_type": "code", "source": "a\nb"}, {"cell_type": "code", "source": ["a\n", "b"], "metadata": {"tags": ["smoke"]}}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    first, second = read_cells(tmp_path / "a.ipynb")
    assert (first.source, first.tags, second.source, second.tags) == ("a\nb", (), "a\nb", ("smoke",))


# --- values

@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        ("float", "1e-4", 1e-4),
        ("float", Plain("1e5"), 1e5),
        ("float", Plain("1_000"), 1000.0),
        ("float", Plain("-.5"), -0.5),
        ("float", 3, 3.0),
        ("int", Plain("1_000"), 1000),
        ("int", Plain("-7"), -7),
        ("int", 0, 0),
        ("bool", Plain("true"), True),
        ("bool", Plain("False"), False),
        ("str", Plain("on"), "on"),
        ("str", Plain("no"), "no"),
        ("str", Plain("1:30"), "1:30"),
        ("str", Plain("001"), "001"),
        ("str", "null", "null"),
        ("str", Plain('"null"'), "null"),
        ("str", Plain("[x]: y"), "[x]: y"),
        ("int | None", Plain("null"), None),
        ("int | None", Plain("None"), None),
        ("None | int", Plain("3"), 3),
        ("str | None", Plain("~"), None),
        ("str | None", "null", "null"),
        ("Literal['on', 'off']", Plain("on"), "on"),
        ("Literal[1, 2]", Plain("2"), 2),
        ("Literal[1, '1']", "1", "1"),
        ("Literal[1, '1']", Plain("1"), 1),
        ("Literal['a', None]", Plain("null"), None),
        ("Literal['a']", Plain("'a'"), "a"),
        ("list[float]", Plain("[1e-4, 2]"), [1e-4, 2.0]),
        ("list[int]", ["1", Plain("2")], [1, 2]),
        ("dict[str, float]", Plain("{reason: 1e-1, code: 1}"), {"reason": 0.1, "code": 1.0}),
        ("dict[str, list[int | None]]", {"a": ["1", Plain("null")]}, {"a": [1, None]}),
        ("list[str] | None", Plain("[on, off]"), ["on", "off"]),
    ],
)
def test_a_value_is_read_by_the_declared_type(annotation, value, expected):
    read = given(annotation, value)
    assert read == expected
    assert type(read) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "value", "said"),
    [
        ("int", Plain("3.5"), "isn't an int"),
        ("int", Plain("3.0"), "write 3"),
        ("int", Plain("1e5"), "write 100000"),
        ("int", Plain("1:30"), "isn't an int"),
        ("int", Plain("001"), "zeros in front"),
        ("int", 3.0, "isn't an int"),
        ("int", True, "isn't an int"),
        ("int", Plain("１"), "isn't an int"),
        ("int", Plain("null"), "isn't an int"),
        ("float", True, "isn't a float"),
        ("float", Plain("1:30"), "isn't a float"),
        ("float", Plain("fast"), "isn't a float"),
        ("float", Plain("nan"), "isn't a finite number"),
        ("float", Plain(".inf"), "isn't a finite number"),
        ("float", math.inf, "isn't a finite number"),
        ("float", Plain("1e999"), "isn't a finite number"),
        ("list[float]", Plain("[.nan]"), "isn't a finite number"),
        ("bool", Plain("on"), "write true or false"),
        ("bool", Plain("no"), "write true or false"),
        ("bool", Plain("1"), "write true or false"),
        ("bool", 1, "write true or false"),
        ("str", 3, "isn't a str"),
        ("str", Plain("null"), "put it in quotes"),
        ("str", Plain(""), "put it in quotes"),
        ("str | None", Plain("None"), "ambiguous"),
        ("Literal['constant', 'cosine']", Plain("cosinus"), "did you mean cosine?"),
        ("Literal[1, 2]", True, "isn't one of 1, 2"),
        ("list[int]", Plain("1"), "write [a, b]"),
        ("list[int]", "[1]", "write [a, b]"),
        ("list[int]", Plain("[1, 2.5]"), "isn't an int"),
        ("list[int]", Plain("[1, 2"), "not readable as YAML"),
        ("dict[str, int]", Plain("[1]"), "isn't a mapping"),
        ("dict[str, int]", Plain("{a: 1, a: 2}"), "stands twice"),
        ("dict[str, str]", {"api_key": "x"}, "secrets come from the environment"),
    ],
)
def test_a_value_of_another_type_is_refused(annotation, value, said):
    [problem] = problems_of(given, annotation, value)
    assert said in problem
    assert problem.startswith(f"recipes/nano.yaml:12: rate takes {annotation} ")


def test_a_parameter_whose_default_is_infinite_takes_infinity():
    assert given("float", Plain(".inf"), default=math.inf) == math.inf
    assert given("list[float]", Plain("[-inf]"), default=[math.nan]) == [-math.inf]
