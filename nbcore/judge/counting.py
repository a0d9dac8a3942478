"""A program rewritten so that it counts its own work: steps of loops, calls, and what happens inside builtins. Paper section 5 [C].

`instrument` takes the text of a program and gives another that does the same and charges `work.py` for each step. It is pure text to
text: the program is parsed here and runs only in the sandbox. What a program runs as text of its own (`exec`, `eval`) is not counted.
"""

from __future__ import annotations

import ast

RUNTIME = "__work__"
DEEP = 5000  # calls within calls, for the sizes are larger than those of tests; the counter adds some of its own
OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow", ast.LShift: "lshift",
    ast.BitOr: "or_", ast.BitAnd: "and_", ast.BitXor: "xor",
}  # fmt: skip
COMPARISONS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
NEEDS_ITS_FRAME = {"super", "locals", "globals", "vars", "dir", "eval", "exec"}


class Unreadable(ValueError):
    """The program's text is no Python, or too deep to be rewritten."""


def instrument(program: str, entry: str, budget: int) -> str:
    """The counting program; its function `__counted__(*arguments)` gives (units, result) of `entry`, (None, None) above the budget.

    Raises Unreadable for text that is no Python or nested too deeply.
    """
    try:
        tree = ast.parse(program)
        future = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
        tree.body = [node for node in tree.body if node not in future]  # they stand first, before the counter's own imports
        text = ast.unparse(ast.fix_missing_locations(_Rewrite(tree).visit(tree)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"the program cannot be rewritten: {type(error).__name__}") from error
    head = "".join(ast.unparse(node) + "\n" for node in future)
    return (
        f"{head}import sys, operator as __operator__, work as {RUNTIME}\n"
        f"{RUNTIME}.state['budget'] = {budget}\nsys.setrecursionlimit({DEEP})\n"
        f"{text}\n\ndef __counted__(*arguments):\n    return {RUNTIME}.counted({entry}, arguments, {budget})\n"
    )


def _runtime(name: str, *arguments: ast.expr) -> ast.Call:
    function = ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())
    return ast.Call(function, list(arguments), [])


def _operator(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("__operator__", ast.Load()), name, ast.Load())


class _Rewrite(ast.NodeTransformer):
    def __init__(self, tree: ast.Module) -> None:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        bodies = [node for node in ast.walk(tree) if hasattr(node, "body") and not isinstance(node, ast.ClassDef | ast.Lambda | ast.IfExp)]
        self.own = {line.name for node in bodies for line in node.body if isinstance(line, kinds)}  # methods are called as attributes

    def _stepped(self, node):
        self.generic_visit(node)
        first = node.body[0]
        words = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        node.body.insert(1 if words and isinstance(node, ast.FunctionDef) else 0, ast.Expr(_runtime("tick")))
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_For = visit_AsyncFor = visit_While = _stepped

    def visit_Lambda(self, node):
        self.generic_visit(node)
        node.body = ast.BoolOp(ast.And(), [_runtime("tick"), node.body])
        return node

    def visit_comprehension(self, node):
        self.generic_visit(node)
        node.ifs.insert(0, _runtime("tick"))
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and (node.func.id in self.own or node.func.id in NEEDS_ITS_FRAME):
            return node
        return ast.Call(_runtime("call").func, [node.func, *node.args], node.keywords)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if type(node.op) not in OPERATORS or (isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)):
            return node
        return _runtime("arithmetic", _operator(OPERATORS[type(node.op)]), node.left, node.right)

    def visit_Compare(self, node):
        self.generic_visit(node)
        if len(node.ops) > 1:
            return node
        kind, (right,) = type(node.ops[0]), node.comparators
        if kind in (ast.In, ast.NotIn):
            found = _runtime("contains", node.left, right)
            return found if kind is ast.In else ast.UnaryOp(ast.Not(), found)
        if kind not in COMPARISONS or any(isinstance(side, ast.Constant) for side in (node.left, right)):
            return node
        return _runtime("compare", _operator(COMPARISONS[kind]), node.left, right)

    def visit_Assign(self, node):
        target, value = node.targets[0], node.value
        grows = len(node.targets) == 1 and isinstance(target, ast.Name) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)
        if grows and isinstance(value.left, ast.Name) and value.left.id == target.id:
            node.value = _runtime("appended", value.left, self.visit(value.right))
            return node
        self.generic_visit(node)
        sliced = any(isinstance(t, ast.Subscript) and isinstance(t.slice, ast.Slice) for t in node.targets)
        starred = any(isinstance(part, ast.Starred) for t in node.targets if isinstance(t, ast.Tuple | ast.List) for part in t.elts)
        if sliced or starred:
            node.value = _runtime("made", node.value)
        return node

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if isinstance(node.op, ast.Add | ast.Mult | ast.BitOr):  # these may grow what is there in place, which `a = a + b` would not
            here = ast.Name(node.target.id, ast.Load()) if isinstance(node.target, ast.Name) else ast.Constant(0)
            node.value = _runtime("multiplied" if isinstance(node.op, ast.Mult) else "grown", here, node.value)
        elif isinstance(node.target, ast.Name) and type(node.op) in OPERATORS:
            now = ast.Name(node.target.id, ast.Load())
            return ast.Assign([node.target], _runtime("arithmetic", _operator(OPERATORS[type(node.op)]), now, node.value))
        return node

    def visit_Delete(self, node):
        self.generic_visit(node)
        held = [t.value for t in node.targets if isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name)]
        lists = [ast.Expr(_runtime("removed", ast.Name(one.id, ast.Load()))) for one in held]
        return [*lists, node]

    def visit_Subscript(self, node):
        self.generic_visit(node)
        return _runtime("made", node) if isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Slice) else node

    def visit_JoinedStr(self, node):
        return _runtime("made", node)  # its inside stays: rewriting it would need another kind of quote

    def visit_Starred(self, node):
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = _runtime("unpacked", node.value)
        return node

    def visit_AnnAssign(self, node):
        if node.value is not None:
            node.value = self.visit(node.value)
        return node  # annotations are no work

    def visit_arguments(self, node):
        node.defaults = [self.visit(value) for value in node.defaults]
        node.kw_defaults = [value and self.visit(value) for value in node.kw_defaults]
        return node

    def visit_match_case(self, node):
        node.body = [self.visit(line) for line in node.body]
        return node
