"""The command line: run, plan, status, report, params, doctor. Design section 3.

Exit codes: 0 done, 1 a stage failed (or the machine is not ready), 2 a wrong call, 3 killed, timed out or interrupted.
What a person got wrong is said in plain sentences on stderr; a traceback means a fault of nbcore.
Imports stand inside the commands, so that `--help` and `status` answer at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nbcore.jobs.recipes import Recipe

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
                  help="Post-training of Nanbeige4.1-3B as notebooks that people step through and machines run headless.")  # fmt: skip

Runs = Annotated[Path, typer.Option("--runs", envvar="NBCORE_RUNS", help="Folder of the runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object per line on stdout; the last one is the outcome.")]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="STAGE.KEY=VALUE", help="A parameter; KEY=VALUE sets it for every stage.")]
From = Annotated[str | None, typer.Option("--from", metavar="STAGE", help="Begin here; earlier stages are taken as they are.")]
Until = Annotated[str | None, typer.Option("--until", metavar="STAGE", help="End after this stage.")]
Force = Annotated[list[str] | None, typer.Option("--force", metavar="STAGE", help="Run this stage again although it is finished.")]
RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="Name of a recipe, or path of a .yaml file.")]
RunName = Annotated[str | None, typer.Argument(metavar="[RUN]", help="Name of a run, part of it, or its folder; default: the newest.")]


@app.command()
def run(
    recipe: Annotated[str | None, typer.Argument(metavar="RECIPE", help="Name of a recipe, or path of a .yaml file.")] = None,
    sets: Sets = None,
    start: From = None,
    until: Until = None,
    force: Force = None,
    resume: Annotated[str | None, typer.Option("--resume", metavar="RUN", help="Go on with this run, as its recipe was recorded.")] = None,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Run a recipe.

    Finished stages with the same fingerprint are reused. Exit codes: 0 done, 1 a stage failed, 2 a wrong call, 3 killed,
    timed out or interrupted.
    """
    with _sentences(as_json):
        from nbcore.jobs import pipeline
        from nbcore.jobs.display import watcher
        from nbcore.jobs.status import find_run, read_status
        from nbcore.jobs.words import outcome

        earlier = find_run(resume, runs) if resume else None
        chosen = _recorded(recipe, sets, earlier) if earlier else _load(recipe, sets)
        with watcher(sys.stdout, as_json) as watch:
            ended = pipeline.run(chosen, runs, start, until, force or (), earlier, watch)
            status = read_status(ended.run)
            report = ended.run / "report.html"
            facts = {"run": ended.run.name, "folder": str(ended.run), "state": ended.state, "exit_code": ended.exit_code}
            if as_json:
                watch.say("outcome", **facts, sentence=outcome(status), report=str(report) if report.is_file() else None)
    if not as_json:
        typer.echo(outcome(status))
        for fault in ("record_error", "report_error"):
            if status.get(fault):
                typer.echo(status[fault], err=True)
        if ended.exit_code:
            where = "" if runs == Path("runs") or os.environ.get("NBCORE_RUNS") else f" --runs {runs}"
            typer.echo(f"Continue with: nbcore run --resume {ended.run.name}{where}")
        if report.is_file():
            typer.echo(f"Report: {_near(report)}")
    raise typer.Exit(ended.exit_code)


@app.command()
def plan(
    recipe: RecipeName,
    sets: Sets = None,
    start: From = None,
    until: Until = None,
    force: Force = None,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Say what would run, and why.

    What would be reused from which run, what not and why, and where each value comes from.
    """
    with _sentences(as_json):
        from nbcore.jobs import pipeline
        from nbcore.jobs.display import Events
        from nbcore.jobs.words import count

        chosen = _load(recipe, sets)
        planned = pipeline.plan(chosen, runs, start, until, force or ())
        if as_json:
            events = Events(sys.stdout)
            for item in planned:
                values = {name: {"value": v.value, "origin": v.origin} for name, v in item.stage.parameters.items()}
                origin = item.from_run.name if item.from_run else None
                events.say("planned", stage=item.stage.key, action=item.action, reason=item.reason, from_run=origin, parameters=values)
            events.say("outcome", state="planned", exit_code=0)
            return
        for item in planned:
            typer.echo(f"{item.action:6} {item.stage.key}: {item.reason}")
            width = max((len(name) for name in item.stage.parameters), default=0)
            for name, value in item.stage.parameters.items():
                typer.echo(f"         {name:{width}} = {value.value!r}  ({value.origin})")
        amount = {action: sum(item.action == action for item in planned) for action in ("run", "reuse", "skip")}
        typer.echo(f"{count(len(planned), 'stage')}: {amount['run']} to run, {amount['reuse']} to reuse, {amount['skip']} to skip.")


@app.command()
def status(
    run: RunName = None,
    watch: Annotated[bool, typer.Option("--watch", help="Follow the run until it ends; exit with its exit code.")] = False,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Say how a run goes, or how it ended."""
    with _sentences(as_json):
        from nbcore.jobs.display import Events, follow, rows, summary, watcher
        from nbcore.jobs.status import find_run, newest_run, read_status
        from nbcore.jobs.words import outcome

        folder = find_run(run, runs) if run else newest_run(runs)
        if watch:
            with watcher(sys.stdout, as_json) as show:
                for now in follow(lambda: read_status(folder)):
                    show(now)
        else:
            now = read_status(folder)
            show = Events(sys.stdout)
        if as_json:
            report = folder / "report.html"
            show.say("outcome", **now, folder=str(folder), sentence=outcome(now), report=str(report) if report.is_file() else None)
        else:
            if not watch:
                width = max((len(key) for key in now["stages"]), default=0)
                for state, colour, key, said in rows(now):
                    typer.echo(f"{typer.style(f'{state:13}', fg=colour)} {key:{width}}  {said}".rstrip())
                typer.echo(summary(now))
            typer.echo(outcome(now))
    if watch and now.get("exit_code"):
        raise typer.Exit(now["exit_code"])


@app.command()
def params(notebook: Annotated[Path, typer.Argument(metavar="NOTEBOOK", help="A notebook, or the name of one in notebooks/.")]) -> None:
    """List the parameters of a notebook."""
    with _sentences(False):
        from nbcore.jobs.parameters import read_parameters

        named = Path("notebooks") / f"{notebook}.ipynb"
        declared = read_parameters(named if named.is_file() and not notebook.is_file() else notebook)
        width = max((len(f"{p.name}: {p.annotation} = {p.default!r}") for p in declared.values()), default=0)
        for p in declared.values():
            typer.echo(f"{f'{p.name}: {p.annotation} = {p.default!r}':{min(width, 70)}}" + (f"  # {p.comment}" if p.comment else ""))


@app.command()
def report(
    run: RunName = None,
    picture: Annotated[Path | None, typer.Option("--picture", metavar="PATH.svg", help="Also draw moves and pipeline as one SVG.")] = None,
    runs: Runs = Path("runs"),
) -> None:
    """Make the report of a run again."""
    with _sentences(False):
        from nbcore.files import atomic_write
        from nbcore.jobs import report as reports
        from nbcore.jobs.status import find_run, newest_run

        folder = find_run(run, runs) if run else newest_run(runs)
        typer.echo(f"Report: {_near(reports.render(folder))}")
        if picture:
            typer.echo(f"Picture: {_near(atomic_write(picture, reports.picture(folder)))}")


@app.command()
def doctor(runs: Runs = Path("runs")) -> None:
    """Look whether this machine is ready.

    Exit code 1 when something is broken that the nano recipe needs.
    """
    from nbcore.jobs.doctor import examine

    signs = {"ok": "✓", "note": "·", "broken": "✗"}
    findings = examine(runs)
    for finding in findings:
        typer.echo(f"{signs[finding.verdict]} {finding.verdict:6} {finding.name}: {finding.found}")
        if finding.advice:
            typer.echo(f"           {finding.advice}")
    broken = [finding.name for finding in findings if finding.verdict == "broken"]
    typer.echo(f"To be mended first: {', '.join(broken)}." if broken else "Ready: nbcore run nano")
    raise typer.Exit(1 if broken else 0)


@contextmanager
def _sentences(as_json: bool) -> Iterator[None]:
    """Errors that are for people become sentences on stderr and an exit code; others pass."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("Interrupted.", err=True)
        raise typer.Exit(3) from None
    except (ValueError, RuntimeError, OSError) as error:
        from nbcore.jobs.parameters import ParameterError
        from nbcore.jobs.plans import PipelineError
        from nbcore.jobs.recipes import RecipeError
        from nbcore.jobs.status import StatusError

        if not isinstance(error, RecipeError | ParameterError | PipelineError | StatusError | OSError):
            raise
        code = 1 if isinstance(error, OSError) else getattr(error, "exit_code", 2)
        problems = getattr(error, "problems", None) or [str(error)]
        for problem in problems:
            typer.echo(problem, err=True)
        if as_json:
            from nbcore.jobs.display import Events

            Events(sys.stdout).say("outcome", state="refused", exit_code=code, problems=problems)
        raise typer.Exit(code) from None


def _load(recipe: str | None, sets: list[str] | None) -> Recipe:
    from nbcore.jobs.recipes import RecipeError, load

    if recipe is None:
        raise RecipeError(["Name a recipe (nbcore run nano), or a run to go on with (nbcore run --resume RUN)."])
    return load(recipe, sets or ())


def _recorded(recipe: str | None, sets: list[str] | None, folder: Path) -> Recipe:
    from nbcore.jobs.recipes import RecipeError, from_resolved

    if sets:
        raise RecipeError(["--set with --resume: a run goes on as it began. Leave --resume out; what is unchanged is reused."])
    made = from_resolved(folder / "recipe.yaml")
    if recipe is not None and made.name not in (recipe, Path(recipe).stem) and made.path != Path(recipe).absolute():
        raise RecipeError([f"Run {folder.name} is of recipe {made.name}, not {recipe}. Leave the recipe out."])
    return made


def _near(path: Path) -> str:
    """The path as short as it can be typed here."""
    there = os.path.relpath(path)
    return str(path) if there.startswith("..") else there


if __name__ == "__main__":
    app(prog_name="nbcore")
