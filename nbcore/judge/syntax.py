"""What `reading.py` asks of a syntax tree: costs as powers of n and log n, and small questions about names and calls."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from nbcore.judge.growth import CLASSES


@dataclass(frozen=True, order=True)
class Cost:
    """n to a power, times a power of log n; or exponential. Greater is dearer."""

    exponential: bool = False
    power: int = 0
    logs: int = 0

    def __mul__(self, other: Cost) -> Cost:
        return Cost(self.exponential or other.exponential, self.power + other.power, self.logs + other.logs)

    @property
    def name(self) -> str:
        """The class of `growth.CLASSES`; what is dearer than n³ and not exponential is called n³."""
        if self.exponential:
            return CLASSES[-1]
        if self.power >= 3:
            return "O(n³)"
        return CLASSES[(0, 2, 4)[self.power] + (self.logs > 0)]


ONE, LOG, LINEAR, EXPONENTIAL = Cost(), Cost(logs=1), Cost(power=1), Cost(True)
SORT = LINEAR * LOG
HASHED = frozenset("set frozenset dict Counter defaultdict OrderedDict fromkeys".split())


def names(node: ast.AST, kind: type = ast.expr_context) -> set[str]:
    """The names under a node, or those in one context (ast.Store: what is assigned)."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, kind)}


def called(node: ast.Call) -> str:
    """The last part of what is called; empty where that has no name."""
    return node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""


def is_number(node: ast.AST | None, value: int) -> bool:
    """Whether the node is this constant."""
    return isinstance(node, ast.Constant) and node.value == value


def halves(node: ast.AST) -> bool:
    """Whether something under the node is divided, shifted or multiplied by a constant, or loses its lowest bit."""
    for one in ast.walk(node):
        if isinstance(one, ast.AugAssign | ast.BinOp):
            by = one.value if isinstance(one, ast.AugAssign) else one.right
            if isinstance(one.op, ast.FloorDiv | ast.RShift | ast.LShift) and isinstance(by, ast.Constant):
                return True
            if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Mult | ast.Div) and isinstance(by, ast.Constant):
                return True
            if isinstance(one.op, ast.BitAnd) and isinstance(by, ast.BinOp | ast.UnaryOp):
                return True
    return False


def makes_hashed(node: ast.expr) -> bool:
    """Whether the value is one in which `in` looks at one place only."""
    made = isinstance(node, ast.Call) and called(node) in HASHED
    return made or isinstance(node, ast.Dict | ast.Set | ast.DictComp | ast.SetComp)


def root(node: ast.AST) -> str | None:
    """The name at the beginning of `a.b[c].d`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return node.attr
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
