"""Mutants: a program with one small mistake each, as in mutation testing. Paper section 5 (code data: are the tests any good?).

Tests that accept a mutant don't look where the mistake is, unless the mutant happens to mean the same (an *equivalent* mutant: nothing
tells them apart). Ready-made mutation testers work on installed packages and their own test runners; here one function is judged.
Left out on purpose: mutants with several mistakes, and a proof of equivalence, which nobody has.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """The program with its mistake; kind: bound, operator, constant, name or statement; line: of the program as it was given."""

    program: str
    kind: str
    line: int


def mutants(program: str) -> list[Mutant]:
    """Every mutant of a program, in the order of its source; none equals the program. Raises SyntaxError for what is no Python."""
    tree = ast.parse(program)
    plain, made, seen = ast.unparse(tree), [], set[str]()
    kept = dict(zip(plain.splitlines(), program.splitlines(), strict=False)) if plain.count("\n") == program.rstrip().count("\n") else {}
    for number, node in enumerate(ast.walk(tree)):
        for kind, change in _changes(node):
            other = copy.deepcopy(tree)
            twin = next(n for i, n in enumerate(ast.walk(other)) if i == number)
            change(twin)
            text = ast.unparse(ast.fix_missing_locations(other))
            if text != plain and text not in seen:
                seen.add(text)
                lines = [kept.get(line, line) for line in text.splitlines()]  # as they were written, where nothing changed
                made.append(Mutant("\n".join(lines) + "\n", kind, getattr(node, "lineno", 1)))
    return sorted(made, key=lambda mutant: mutant.line)


def _changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """(kind, what to do to a copy of the node) for each mistake that can be made at this node itself."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        for by in (1, -1):
            yield "constant", lambda twin, by=by: setattr(twin, "value", twin.value + by)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "constant", lambda twin: setattr(twin, "value", not twin.value)
    elif isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
        yield "operator", lambda twin: setattr(twin, "op", SWAPS[type(twin.op)]())
    elif isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            if type(op) in SWAPS:
                yield "operator", lambda twin, at=at: twin.ops.__setitem__(at, SWAPS[type(twin.ops[at])]())
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield "name", lambda twin: setattr(twin, "id", NAMES[twin.id])
    elif isinstance(node, ast.Slice) and node.upper is not None:
        yield "bound", lambda twin: setattr(twin, "upper", ast.BinOp(twin.upper, ast.Sub(), ast.Constant(1)))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range" and len(node.args) == 1:
        for op in (ast.Add, ast.Sub):
            yield "bound", lambda twin, op=op: twin.args.__setitem__(0, ast.BinOp(twin.args[0], op(), ast.Constant(1)))
        yield "bound", lambda twin: twin.args.insert(0, ast.Constant(1))
    if isinstance(node, ast.FunctionDef | ast.For | ast.While | ast.If):
        for at, statement in enumerate(node.body):
            docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign) and not docstring:
                yield "statement", lambda twin, at=at: twin.body.__setitem__(at, ast.Pass())
