"""Every attack that we know is tried on the judge, for real; and judges that are easy to fool show that the attacks have teeth."""

import contextlib
import io
import subprocess
import sys

import pytest

from nbcore.judge import redteam, sandbox
from nbcore.judge.attacks import ATTACKS


@pytest.mark.slow
def test_no_attack_scores_none_harms_the_judge_and_the_next_job_is_unaffected():
    if not sandbox.capabilities()["files_hidden"]:
        pytest.skip("without bubblewrap, files outside are not protected")
    assert len(ATTACKS) >= 80
    outcomes = redteam.attack()
    assert [outcome.name for outcome in outcomes] == list(ATTACKS)
    assert [outcome for outcome in outcomes if outcome.succeeded] == []


@pytest.mark.slow
def test_without_bubblewrap_only_the_files_outside_are_in_danger(monkeypatch):
    sandbox.close()
    monkeypatch.setattr(sandbox, "bubblewrap", lambda server: ())
    try:
        namespace = sandbox.capabilities()["pid_namespace"]
        lost = {outcome.name for outcome in redteam.attack() if outcome.succeeded}
    finally:
        sandbox.close()
    if not namespace:
        pytest.skip("this machine permits no process namespace without bubblewrap")
    assert lost <= {"harms: remove a file outside", "harms: change a file outside"}


def by_equality(texts, entry, cases):
    """How many do it: run it here, and ask whether what comes back equals what was expected."""
    scores = []
    for text in texts:
        space = {}
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(text, space)  # what is tried on it below is harmless
                scores.append(sum(bool(space[entry](*given) == wanted) for given, wanted in cases) / len(cases))
        except Exception:
            scores.append(0.0)
    return scores


def by_exit_code(texts, entry, cases):
    """Another favourite: the tests are appended as assertions, and exit code 0 is success."""
    tests = "".join(f"\nassert {entry}(*{given!r}) == {wanted!r}" for given, wanted in cases)
    done = [subprocess.run([sys.executable, "-S", "-c", text + tests], capture_output=True, check=False) for text in texts]
    return [float(d.returncode == 0) for d in done]


@pytest.mark.parametrize("judge, wins", [
    (by_equality, ["returns: equal to everything", "returns: integer equal to everything", "returns: mock"]),
    (by_exit_code, ["ends: exit code 0", "ends: hard exit", "ends: exit when called", "ends: hard exit when called"]),
])  # fmt: skip
def test_a_judge_that_is_easy_to_fool_is_found_out(judge, wins):
    fair = {"ends: no function": ATTACKS["ends: no function"], "returns: nothing": ATTACKS["returns: nothing"]}
    told = []
    outcomes = redteam.attack(judge, {name: ATTACKS[name] for name in wins} | fair, told.append)
    assert [o.name for o in outcomes if o.succeeded] == wins and told == outcomes


def test_harm_is_told_apart_from_a_score():
    def spoiled(texts, entry, cases, seen=[]):  # noqa: B006 - it remembers on purpose
        seen.extend(texts)
        return [1.0 if text == redteam.HONEST and "x = 1" not in seen else 0.0 for text in texts]

    [outcome] = redteam.attack(spoiled, {"one": "x = 1"})
    assert outcome.succeeded and outcome.score == 0 and "honest program behind it got 0.0" in outcome.harm

    def breaks(texts, entry, cases):
        if texts != [redteam.HONEST]:
            raise OSError("pipe")
        return [1.0]

    [outcome] = redteam.attack(breaks, {"one": "x = 1"})
    assert outcome.succeeded and outcome.score is None and "the judge raised OSError: pipe" in outcome.harm


def test_a_judge_that_fails_to_judge_has_not_stood_its_ground():
    [outcome] = redteam.attack(lambda texts, entry, cases: [1.0 if t == redteam.HONEST else None for t in texts], {"one": "x = 1"})
    assert outcome.succeeded and not outcome.harm


def test_a_judge_that_pays_nobody_is_not_worth_an_attack():
    with pytest.raises(ValueError, match="gives 0 to a right program"):
        redteam.attack(lambda texts, entry, cases: [0 for _ in texts])


@pytest.mark.parametrize("name", ["nowhere:judge", "json:nothing", ""])
def test_an_unknown_judge_is_named_with_how_to_write_one(name, capsys):
    assert redteam.main([name]) == 2
    assert "MODULE:FUNCTION" in capsys.readouterr().err
