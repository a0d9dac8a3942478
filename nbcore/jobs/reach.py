"""The files of `nbcore` that a notebook can reach, found by reading imports as syntax trees; part of `fingerprints.py`.

Design section 5. Followed transitively: imports at the top and inside functions, relative ones, `nbcore.x.y` written out, module names
as whole strings (`"nbcore.training.launch"` for `python -m` or importlib), and every module of a package with a lazy `__getattr__`.
Left out on purpose: module names put together at run time, and prose files (.md, .rst), which change no result.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

_MODULE = re.compile(r"nbcore(\.\w+)+")
_FROM = re.compile(r"from\s+(nbcore[\w.]*)\s+import\s+([\w, ]+)")
_MAGIC = re.compile(r"^([ \t]*)([%!?].*)$", re.MULTILINE)
_PROSE = (".md", ".rst", ".pyc")


def reachable(cells: Iterable[str], root: Path) -> dict[str, bytes]:
    """Path relative to `root` → content of each source and data file of `root/nbcore` that code cells reach, sorted by path.

    Data files are those beside the modules of a reached package and in its folders that are no packages themselves.
    Raises FileNotFoundError when `root` holds no `nbcore`.
    """
    if not (root / "nbcore" / "__init__.py").is_file():
        raise FileNotFoundError(f"{root} holds no nbcore package; root must be the folder of the project")
    waiting = [name for cell in cells for name in _mentions(cell, "")]
    modules: dict[str, bytes] = {}
    packages: set[Path] = set()
    while waiting:
        name = waiting.pop()
        path = _file(name, root)
        if path is None:
            continue
        packages.add(path.parent)
        relative = path.relative_to(root).as_posix()
        if relative in modules:
            continue
        modules[relative] = path.read_bytes()
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        source = modules[relative].decode("utf-8", errors="replace")
        waiting += [name.rpartition(".")[0], *_mentions(source, package)]
        if path.name == "__init__.py" and "def __getattr__" in source:
            waiting += [f"{name}.{file.stem}" for file in path.parent.glob("*.py")]
    data = {file.relative_to(root).as_posix(): file.read_bytes() for package in packages for file in _data(package)}
    return dict(sorted({**modules, **data}.items()))


def _file(name: str, root: Path) -> Path | None:
    path = root.joinpath(*name.split(".")) if name else root
    for file in (path / "__init__.py", path.with_suffix(".py")):
        if name and file.is_file():
            return file
    return None


def _data(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if path.is_dir() and not (path / "__init__.py").is_file():
            yield from _data(path)
        elif path.is_file() and path.suffix not in (".py", *_PROSE):
            yield path


@lru_cache(maxsize=1024)
def _mentions(source: str, package: str) -> tuple[str, ...]:
    """Dotted names in `source` that may be modules of nbcore; `package` is the package the source lies in ("" for a cell)."""
    names: list[str] = []
    try:
        tree = ast.parse(source)
    except SyntaxError:
        names += [name for _, magic in _MAGIC.findall(source) for name in _in_plain_sight(magic)]
        try:
            tree = ast.parse(_MAGIC.sub(r"\1pass", source))
        except SyntaxError:
            # A shell cell or half-written code: what it names still counts, and its own hash changes with a repair.
            return _in_plain_sight(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            names += [module, *(f"{module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute):
            names.append(_dotted(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _MODULE.fullmatch(node.value):
            names.append(node.value)
    return tuple(name for name in names if name == "nbcore" or name.startswith("nbcore."))


def _dotted(node: ast.expr) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _in_plain_sight(text: str) -> tuple[str, ...]:
    named = [match.group() for match in _MODULE.finditer(text)]
    for module, names in _FROM.findall(text):
        named += [module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))]
    return tuple(named)
