"""A program's time-complexity class read from its source, for programs that nothing can be fed to. Paper section 5 [C].

A cost is a power of n and of log n, or exponential. Costs of lines in a row: the larger; of a loop: turns times body. Turns are read from
what is looped over; a `while` that halves or bisects turns log n times, one that only moves a pointer onwards does no more in total
than the loop around it. Calls of builtins cost what CPython does with a container; recursion is solved by how many calls of itself a
function makes and whether they halve. Sizes are guessed: parameters and what is built from them have size n, literals are constant.
`complexity.measure` is the better witness wherever there are inputs: this one does not run anything, so it can only recognise.
"""

from __future__ import annotations

import ast

from nbcore.judge.syntax import EXPONENTIAL, HASHED, LINEAR, LOG, ONE, SORT, Cost, called, halves, is_number, makes_hashed, names, root

LOOPS = (ast.For, ast.While, ast.AsyncFor)
WHOLE = frozenset(  # builtins and methods that look at all of what they are given
    "sum min max any all list tuple set frozenset dict sorted join count index remove insert extend copy reverse Counter deque "
    "split replace find rfind strip lower upper translate isdigit isalpha union intersection difference symmetric_difference issubset "
    "issuperset heapify reduce fsum prod mean median deepcopy fromkeys insort insort_left insort_right "
    "most_common bytes bytearray isalnum swapcase title encode decode rotate".split()
)
LOGARITHMIC = frozenset("heappush heappop heapreplace heappushpop bisect bisect_left bisect_right gcd bin".split())
LITERALS = frozenset("ascii_lowercase ascii_uppercase ascii_letters digits punctuation hexdigits".split())


def predict(program: str, entry: str) -> str | None:
    """The class of the function `entry`, a name of `growth.CLASSES`; None for text that is no Python or lacks the function."""
    try:
        tree = ast.parse(program)
        functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        return _Reader(tree, functions).function(entry).name if entry in functions else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Reader:
    def __init__(self, tree: ast.Module, functions: dict) -> None:
        self.functions, self.known, self.open = functions, {}, []
        self.constant, self.hashed = set(LITERALS), set()
        assigns = [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None]
        for node in assigns:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                self.hashed |= {root(one) for one, value in pairs if makes_hashed(value)}
        for argument in (one for function in functions.values() for one in function.args.args if one.annotation is not None):
            if any(word in ast.unparse(argument.annotation).lower() for word in ("set[", "dict[", "counter", "mapping")):
                self.hashed.add(argument.arg)
        changed = {name for node in ast.walk(tree) if isinstance(node, ast.AugAssign) for name in names(node.target)}
        changed |= {name for node in ast.walk(tree) if isinstance(node, ast.For | ast.comprehension) for name in names(node.target)}
        changed |= {root(node.func.value) for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}
        for node in tree.body + [line for function in functions.values() for line in function.body]:
            if isinstance(node, ast.Assign) and self.fixed(node.value):
                ours = {target.id for target in node.targets if isinstance(target, ast.Name)}
                others = [one for one in assigns if one is not node and isinstance(one, ast.Assign) and ours & names(one, ast.Store)]
                self.constant |= set() if others else ours - changed

    def fixed(self, node: ast.AST) -> bool:
        """Whether the value does not grow with n: literals, and what is made of them alone."""
        return not isinstance(node, ast.Call) and all(
            not isinstance(one, ast.Name | ast.Attribute | ast.Call) or getattr(one, "id", getattr(one, "attr", None)) in self.constant
            for one in ast.walk(node)
        )

    # how often

    def turns(self, over: ast.expr) -> Cost:
        """How many items there are to loop over."""
        if self.fixed(over):
            return ONE
        if isinstance(over, ast.Call):
            name, given = called(over), over.args
            if name in ("permutations", "combinations", "combinations_with_replacement", "product"):
                return self.chosen(name, over)
            if name == "range":
                ends = given[:2]
                if all(self.fixed(end) for end in ends):
                    return ONE
                if len(ends) == 2 and isinstance(ends[1], ast.BinOp) and isinstance(ends[1].op, ast.Add):
                    if ast.dump(ends[1].left) == ast.dump(ends[0]) and self.fixed(ends[1].right):
                        return ONE
                last = ends[-1]
                if isinstance(last, ast.BinOp) and isinstance(last.op, ast.LShift | ast.Pow) and self.fixed(last.left):
                    return EXPONENTIAL
                if isinstance(last, ast.BinOp) and isinstance(last.op, ast.Mult) and not self.fixed(last.left) | self.fixed(last.right):
                    return LINEAR * LINEAR
                if any(isinstance(one, ast.Attribute) and one.attr == "bit_length" for one in ast.walk(over)):
                    return LOG
                return LINEAR
            if name in ("enumerate", "reversed", "sorted", "list", "set", "iter", "tuple", "zip", "islice") and given:
                return min(self.turns(one) for one in given) if name == "zip" else self.turns(given[0])
            if name in ("bin", "str") and given and not self.fixed(given[0]):
                return LOG
        if isinstance(over, ast.Subscript) and isinstance(over.slice, ast.Slice) and self.width(over.slice):
            return ONE
        return LINEAR

    def chosen(self, name: str, call: ast.Call) -> Cost:
        """Items of an iterator of itertools: a constant number chosen is a power, anything else exponential."""
        repeat = next((word.value for word in call.keywords if word.arg in ("repeat", "r")), None)
        if name == "product":
            many = [argument for argument in call.args if not self.fixed(argument)]
            if repeat is None:
                return EXPONENTIAL if any(isinstance(one, ast.Starred) for one in call.args) else Cost(power=len(many))
            return Cost(power=repeat.value * len(many)) if isinstance(repeat, ast.Constant) else EXPONENTIAL
        size = call.args[1] if len(call.args) > 1 else repeat
        return Cost(power=size.value) if isinstance(size, ast.Constant) and isinstance(size.value, int) else EXPONENTIAL

    def width(self, part: ast.Slice) -> bool:
        """Whether a slice has a constant number of items."""
        low, high = part.lower, part.upper
        if isinstance(high, ast.BinOp) and isinstance(high.op, ast.Add) and low is not None and ast.dump(high.left) == ast.dump(low):
            return self.fixed(high.right)
        if low is None or isinstance(low, ast.Constant) and low.value >= 0:
            return high is not None and self.fixed(high) and not (isinstance(high, ast.UnaryOp))
        return isinstance(low, ast.UnaryOp) and self.fixed(low) and high is None

    # what a line costs

    def block(self, lines: list[ast.stmt], around: list[ast.stmt] | None = None) -> Cost:
        return max((self.line(line, around) for line in lines), default=ONE)

    def line(self, node: ast.stmt, around: list[ast.stmt] | None) -> Cost:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
            return ONE
        if isinstance(node, ast.For | ast.AsyncFor):
            turns = ONE if isinstance(node.body[-1], ast.Return | ast.Break) else self.turns(node.iter)
            return max(self.expression(node.iter), turns * self.block(node.body, node.body), self.block(node.orelse, around))
        if isinstance(node, ast.While):
            turns = self.repeats(node, around)
            return turns * max(self.expression(node.test), self.block(node.body, node.body))
        if isinstance(node, ast.Delete):
            return LINEAR if any(isinstance(one, ast.Subscript) and root(one) not in self.hashed for one in node.targets) else ONE
        parts = [ONE]
        for name, value in ast.iter_fields(node):
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.stmt | ast.ExceptHandler | ast.match_case):
                    parts.append(self.line(one, around) if isinstance(one, ast.stmt) else self.block(one.body, around))
                elif isinstance(one, ast.withitem):
                    parts.append(self.expression(one.context_expr))
                elif isinstance(one, ast.expr) and name != "annotation":
                    parts.append(self.expression(one))
        return max(parts)

    def repeats(self, node: ast.While, around: list[ast.stmt] | None) -> Cost:
        """How often a `while` turns; ONE where its turns are shared out over those of the loop around it."""
        body = ast.Module(node.body, [])
        tested, moved = names(node.test), names(body, ast.Store)
        middle = {name for line in ast.walk(body) if isinstance(line, ast.Assign) and halves(line.value) for name in names(line, ast.Store)}
        changes = [line for line in ast.walk(body) if isinstance(line, ast.AugAssign | ast.Assign)]
        for line in changes:
            ours = names(line, ast.Store) & (tested or moved)
            bisects = isinstance(line, ast.Assign) and names(line.value) & middle
            lowest_bit = isinstance(line, ast.AugAssign) and any(isinstance(one, ast.BitAnd) for one in ast.walk(line))
            if ours and (bisects or halves(line)) or lowest_bit:
                return LOG
        if around is not None:
            own = set(map(id, ast.walk(node)))
            outside = {
                name for line in around for one in ast.walk(line) if id(one) not in own and isinstance(one, ast.Assign | ast.For)
                for target in (one.targets if isinstance(one, ast.Assign) else [one.target]) for name in names(target, ast.Store)
            }  # fmt: skip
            taken = [one for one in ast.walk(body) if isinstance(one, ast.Call) and called(one) in ("pop", "popleft")]
            shrinking = {root(one.func) for one in taken}
            pointers = (tested & moved) | (tested & shrinking)
            if pointers and not pointers & outside:
                return ONE
        return LINEAR

    def expression(self, node: ast.expr) -> Cost:
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            inner = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            cost = max(map(self.expression, inner))
            for part in reversed(node.generators):
                cost = max(self.expression(part.iter), self.turns(part.iter) * max([cost, *map(self.expression, part.ifs)]))
            return cost
        if isinstance(node, ast.Lambda):
            return ONE
        parts = [ONE, *(self.expression(one) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))]
        if isinstance(node, ast.Call):
            parts += [self.expression(word.value) for word in node.keywords]
            parts.append(self.call(node))
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and not self.width(node.slice):
            parts.append(ONE if self.fixed(node.value) else LINEAR)
        elif isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            parts += [ONE if self.quick(one) else LINEAR for one in node.comparators]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List | ast.Tuple):
            parts.append(ONE if self.fixed(node.right) else self.turns(ast.Call(ast.Name("range", ast.Load()), [node.right], [])))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            parts.append(LINEAR if any(isinstance(side, ast.List | ast.ListComp) for side in (node.left, node.right)) else ONE)
        return max(parts)

    def quick(self, container: ast.expr) -> bool:
        made = isinstance(container, ast.Call) and called(container) in ("range", "keys", *HASHED)
        return made or self.fixed(container) or root(container) in self.hashed

    def call(self, node: ast.Call) -> Cost:
        name, given = called(node), node.args
        if name in self.functions and not (isinstance(node.func, ast.Attribute) and name in WHOLE):
            return self.function(name)
        key = next((word.value for word in node.keywords if word.arg == "key"), None)
        handed = key if key is not None else given[0] if name in ("map", "filter") and given else None
        each = ONE
        if isinstance(handed, ast.Lambda):
            each = self.expression(handed.body)
        elif handed is not None:
            each = self.call(ast.Call(handed, [], [])) if isinstance(handed, ast.Name | ast.Attribute) else ONE
        if name in LOGARITHMIC:
            return LOG
        if name == "pow" and len(given) == 3:
            return ONE if self.fixed(given[1]) else LOG
        if name in ("sorted", "sort", "nlargest", "nsmallest"):
            subject = given[-1] if given else node.func.value if isinstance(node.func, ast.Attribute) else None
            return ONE if subject is None or self.fixed(subject) else max(SORT, LINEAR * each)
        if name in ("map", "filter"):
            return max(LINEAR * each, ONE) if each > ONE else ONE
        if name in ("pop", "popleft"):
            return LINEAR if name == "pop" and given and is_number(given[0], 0) and root(node.func) not in self.hashed else ONE
        if name not in WHOLE or (isinstance(node.func, ast.Name) and (not given or len(given) > 1 and name in ("min", "max"))):
            return ONE
        if isinstance(node.func, ast.Attribute):
            if name == "remove" and root(node.func) in self.hashed:
                return ONE
            subject = given[0] if name in ("extend", "join", "Counter", "deque", "reduce") and given else node.func.value
        else:
            subject = given[-1] if name == "reduce" and len(given) < 3 else given[0]
        if self.fixed(subject) or isinstance(subject, ast.Tuple | ast.List) and not any(isinstance(o, ast.Starred) for o in subject.elts):
            return ONE
        if isinstance(subject, ast.Subscript) and isinstance(subject.slice, ast.Slice) and self.width(subject.slice):
            return ONE
        if isinstance(subject, ast.GeneratorExp | ast.ListComp | ast.SetComp):
            return ONE  # counted where it stands
        return LINEAR * each if not isinstance(subject, ast.Call) else max(self.turns(subject), ONE) * each

    # recursion

    def function(self, name: str) -> Cost:
        """The cost of a call; of a call of itself, ONE: how these add up is solved when its body has been read."""
        if name in self.known:
            return self.known[name]
        if name in self.open:
            return ONE
        self.open.append(name)
        node = self.functions[name]
        body = self.block(node.body)
        self.open.pop()
        calls = [one for one in ast.walk(node) if isinstance(one, ast.Call) and called(one) == name]
        self.known[name] = self.solved(node, body, calls) if calls else body
        return self.known[name]

    def solved(self, node: ast.FunctionDef, body: Cost, calls: list[ast.Call]) -> Cost:
        """The cost of a function whose body costs `body` besides these calls of itself."""
        inside = list(ast.walk(node))

        def among(one: ast.AST) -> int:
            return sum(part in calls for part in ast.walk(one))

        turning = (*LOOPS, ast.ListComp, ast.SetComp, ast.GeneratorExp)
        looped = any(among(loop) for loop in inside if isinstance(loop, turning))
        assigned = [one for one in inside if isinstance(one, ast.Assign)]
        remembers = any("cache" in ast.unparse(one) or "memo" in ast.unparse(one) for one in node.decorator_list)
        if remembers or any(isinstance(one.targets[0], ast.Subscript) and root(one.targets[0]) in self.hashed for one in assigned):
            own = [argument.arg for argument in node.args.args if argument.arg != "self"]
            moving = {
                place for call in calls for place, one in enumerate(call.args)
                if place >= len(own) or not (isinstance(one, ast.Name) and one.id == own[place])
            }  # fmt: skip
            return Cost(power=max(1, len(moving))) * body  # each state once
        marks = any(word in ast.unparse(node) for word in ("seen", "visited", "parent", "done", "colour", "color"))
        if looped and marks and not isinstance(node.body[0], ast.If):
            return max(LINEAR, body)  # each node once
        middle = {name for one in assigned if halves(one.value) for name in names(one, ast.Store)}
        middle |= {name for one in assigned if names(one.value) & middle for name in names(one, ast.Store)}
        halving = all(any(halves(one) or names(one) & middle for one in call.args) for call in calls)
        returns = [one for one in inside if isinstance(one, ast.Return) and among(one)]
        elsewhere = len(calls) - sum(map(among, returns))
        most = max([*map(among, returns), elsewhere + bool(returns and elsewhere)])
        if halving and not looped:
            if most <= 1:
                return max(body, LOG) if body.power else body * LOG
            return body * LOG if body.power == 1 else max(LINEAR, body)
        if looped or most > 1:
            tree = any(isinstance(one, ast.Attribute) and one.attr in ("left", "right", "children") for one in inside)
            return LINEAR * body if tree else EXPONENTIAL
        return LINEAR * body
