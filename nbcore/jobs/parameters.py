"""The parameter cell of a notebook, read as a syntax tree and checked before any kernel starts.

Design section 4.2: exactly one code cell tagged `parameters`, one annotated literal a line with a comment. papermill itself only
warns about an unknown name and runs on, keeps a derived value stale, and lets a second or untagged cell overwrite what it injected:
here each of these is an error with the cell, the line and what to write instead.
Left out on purpose: executing the cell, and any value that isn't a literal (`float("inf")` and `float("nan")` count as literals).
"""

from __future__ import annotations

import ast
import io
import json
import math
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nbcore.jobs.annotations import Mismatch, coerce, looks_secret, parse, shown

__all__ = ["Cell", "Parameter", "ParameterError", "looks_secret", "read_cells", "read_parameters"]


class ParameterError(ValueError):
    """What is wrong with a notebook's parameters or a value given to one; `problems` holds one sentence each."""

    def __init__(self, problems: list[str]):
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Parameter:
    """One parameter of a notebook; `annotation` is source text, `line` counts from 1 within the cell."""

    name: str
    annotation: str
    default: object
    comment: str
    line: int

    def check(self, value: object, where: str) -> object:
        """`value`, a Python value or typed text, as the declared type. Raises ParameterError; `where` begins its message."""
        try:
            return coerce(parse(self.annotation), value, finite=_all_finite(self.default))
        except Mismatch as error:
            raise ParameterError(
                [f"{where}: {self.name} takes {self.annotation} (the notebook's default is {shown(self.default)}): {error}"]
            ) from error


@dataclass(frozen=True)
class Cell:
    """One cell of a notebook file: its kind (`code`, `markdown`, `raw`), source text and tags; `number` counts from 1."""

    number: int
    kind: str
    source: str
    tags: tuple[str, ...]


def read_cells(notebook: Path) -> list[Cell]:
    """The cells of a notebook file, outputs and other metadata left aside. Raises ParameterError when it can't be read."""
    try:
        content = json.loads(notebook.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ParameterError([f"{notebook}: can't read the notebook: {error.strerror}"]) from error
    except ValueError as error:
        raise ParameterError([f"{notebook}: not a notebook file (JSON in UTF-8): {error}"]) from error
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise ParameterError([f"{notebook}: not a notebook of format 4: it has no list of cells; open and save it in JupyterLab"])
    read = []
    for number, cell in enumerate(cells, start=1):
        source = cell.get("source", "")
        tags = (cell.get("metadata") or {}).get("tags") or ()
        read.append(Cell(number, cell.get("cell_type", ""), source if isinstance(source, str) else "".join(source), tuple(tags)))
    return read


def read_parameters(notebook: Path) -> dict[str, Parameter]:
    """The parameters a notebook declares, in their order, with defaults of their declared types.

    Raises ParameterError with every problem found: no tagged code cell or two, a computed value, no annotation or an unsupported
    one, a name twice, a default that isn't of its type, a name that looks like a secret, anything else in the cell.
    """
    shown = f"{notebook.parent.name}/{notebook.name}"
    tagged = [cell for cell in read_cells(notebook) if "parameters" in cell.tags]
    if not tagged:
        raise ParameterError([f"{shown}: no cell is tagged `parameters`; give exactly one code cell that tag (gear icon in JupyterLab)"])
    if len(tagged) > 1:
        numbers = ", ".join(str(cell.number) for cell in tagged)
        raise ParameterError([f"{shown}: cells {numbers} are all tagged `parameters`; the last would win, leave the tag on one"])
    cell = tagged[0]
    if cell.kind != "code":
        raise ParameterError([f"{shown}: cell {cell.number}, tagged `parameters`, is a {cell.kind} cell; it must be a code cell"])
    return _read_cell(cell, shown)


def _read_cell(cell: Cell, shown: str) -> dict[str, Parameter]:
    place = f"{shown} cell {cell.number} line"
    try:
        body = ast.parse(cell.source).body
    except SyntaxError as error:
        problem = f"{place} {error.lineno}: the parameters cell isn't plain Python ({error.msg}); magics don't belong there"
        raise ParameterError([problem]) from error
    comments = _comments(cell.source)
    parameters: dict[str, Parameter] = {}
    problems: list[str] = []
    last_line = 0
    for statement in body:
        where = f"{place} {statement.lineno}"
        if statement.lineno <= last_line:
            problems.append(f"{where}: two parameters in one line; give each its own line and comment")
        last_line = statement.end_lineno
        for name, result in _read_statement(statement, comments):
            if isinstance(result, str):
                problems.append(f"{where}: {result}")
            elif name in parameters:
                problems.append(f"{where}: {name} is declared twice (first in line {parameters[name].line}); remove one")
            else:
                parameters[name] = result
    if problems:
        raise ParameterError(problems)
    return parameters


def _read_statement(statement: ast.stmt, comments: dict[int, str]) -> Iterator[tuple[str, Parameter | str]]:
    """The parameter that a statement declares, or a sentence for each thing wrong with it."""
    source = ast.unparse(statement).splitlines()[0]
    if isinstance(statement, ast.Assign):
        yield "", f"`{source}` has no annotation; write for instance `{ast.unparse(statement.targets[0])}: int = ...`"
        return
    if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
        yield "", f"`{source}` isn't a parameter; only lines like `rows: int = 4000  # how many` belong here, the rest in another cell"
        return
    name = statement.target.id
    if looks_secret(name):
        yield name, f"{name} looks like a secret; secrets come from the environment (os.environ), never from parameters"
    if statement.value is None:
        yield name, f"{name} has no default; write `{source} = ...`"
        return
    annotation = ast.unparse(statement.annotation)
    try:
        default = _literal(statement.value)
    except (ValueError, TypeError):
        yield name, f"{name} = {ast.unparse(statement.value)} is computed and would stay stale when others are set; write a literal"
        return
    try:
        default = coerce(parse(annotation), default, texts=False, finite=False)
    except Mismatch as error:
        yield name, f"{name}: {annotation} = {shown(default)}: {error}"
        return
    comment = comments.get(statement.end_lineno) or comments.get(statement.lineno, "")
    yield name, Parameter(name, annotation, default, comment, statement.lineno)


def _literal(node: ast.expr) -> object:
    # Python has no literal for these; papermill writes them back in the same form.
    if isinstance(node, ast.Call) and ast.unparse(node) in ("float('inf')", "float('-inf')", "float('nan')"):
        return float(node.args[0].value)
    return ast.literal_eval(node)


def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string.lstrip("#").strip() for token in tokens if token.type == tokenize.COMMENT}


def _all_finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(_all_finite(item) for item in items)
