"""The doctor looks and tells; only what the nano recipe can't do without is called broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nbcore.jobs import doctor
from nbcore.jobs.doctor import examine


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    return examine(tmp_path_factory.mktemp("runs"))


def test_it_looks_at_everything_a_recipe_may_need(findings):
    names = [finding.name for finding in findings]
    looked_at = "python, packages, notebooks, cores, memory, disk, temporary files, gpu, sandbox, sandbox tools, fonts, git"
    assert set(looked_at.split(", ")) <= set(names)
    assert {finding.verdict for finding in findings} <= {"ok", "note", "broken"}
    assert all(finding.found for finding in findings)


def test_what_is_not_ok_comes_with_what_to_do(findings):
    assert all(finding.advice for finding in findings if finding.verdict != "ok")


def test_the_machine_that_runs_the_tests_is_ready(findings):
    assert [finding for finding in findings if finding.verdict == "broken"] == []


def test_another_version_than_the_tested_one_is_noted_with_both(tmp_path):
    pins = tmp_path / "constraints.txt"
    pins.write_text("# tested\ntyper==0.0.1\nno_such_package==1.0\n", encoding="utf-8")
    said = {finding.name: finding for finding in examine(tmp_path, pins)}
    assert said["packages"].verdict == "note" and "typer" in said["packages"].found and "(tested: 0.0.1)" in said["packages"].found
    assert said["extras"].found == "not installed: no-such-package"


def test_a_needed_package_that_is_missing_is_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: ["typer", "no_such_package", 'vllm; extra == "vllm"'])
    said = next(finding for finding in examine(tmp_path) if finding.name == "packages")
    assert said.verdict == "broken" and said.found == "missing: no-such-package" and "pip install" in said.advice


def test_a_folder_that_cannot_be_written_is_broken(tmp_path):
    # /proc takes no files from anybody, root included.
    said = next(finding for finding in examine(Path("/proc/runs")) if finding.name == "disk")
    assert said.verdict == "broken" and "--runs" in said.advice


def test_without_any_tool_on_the_path_it_still_tells(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = {finding.name: finding for finding in examine(tmp_path)}
    assert said["git"].verdict == said["gpu"].verdict == said["sandbox tools"].verdict == "note"
    assert "missing: bwrap" in said["sandbox tools"].found
    assert not [finding for finding in said.values() if finding.verdict == "broken"]


def test_the_command_prints_every_finding_and_exits_0(tmp_path):
    done = subprocess.run([sys.executable, "-m", "nbcore.cli", "doctor"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert "python: " in done.stdout and done.stdout.rstrip().endswith("Ready: nbcore run nano")
