"""Values of environment variables whose names look secret are masked wherever they would appear."""

from __future__ import annotations

import json

import pytest

from nbcore.jobs.secrets import Masks

SECRET = 'ab"c/déf\nsecond-line'


@pytest.mark.parametrize("name", "HF_TOKEN OPENAI_API_KEY MY_KEY DB_PASSWORD PGPASSWORD AWS_SECRET X_CREDENTIALS GH_PAT".split())
def test_names_that_look_secret(name):
    assert Masks({name: "hunter22"}).text("it is hunter22.") == "it is ***."


@pytest.mark.parametrize(
    ("name", "value"),
    [("TOKENIZERS_PARALLELISM", "parallel"), ("KEYBOARD", "qwertz-de"), ("HF_TOKEN", "short"), ("GOOGLE_CREDENTIALS", "/etc/hosts"),
     ("HOME", "/home/me")],
)  # fmt: skip
def test_innocent_or_too_short_values_stay(name, value):
    assert Masks({name: value}).text(f"it is {value}") == f"it is {value}"


@pytest.mark.parametrize("form", [SECRET, json.dumps(SECRET), repr(SECRET), json.dumps(SECRET, ensure_ascii=False), "x second-line"])
def test_every_way_to_write_a_secret_is_masked(form):
    assert "second-line" not in Masks({"A_TOKEN": SECRET}).text(form)


def test_masked_json_is_still_json(tmp_path):
    masks = Masks({"PIN_TOKEN": "123456", "WORD_TOKEN": "notebook"})
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"notebook": 123456, "text": "123456 of a notebook"}), encoding="utf-8")
    masks.file(path)
    assert json.loads(path.read_text(encoding="utf-8")) == {"notebook": 123456, "text": "*** of a ***"}


def test_a_torn_file_is_masked_too(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"note": "hunter22"}\n{"note": "hunter2', encoding="utf-8")
    Masks({"A_TOKEN": "hunter22"}).file(path)
    assert "hunter22" not in path.read_text(encoding="utf-8")


def test_a_file_without_secrets_is_not_touched(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(b"caf\xe9\r\n")
    Masks({"A_TOKEN": "hunter22"}).file(path)
    assert path.read_bytes() == b"caf\xe9\r\n"
