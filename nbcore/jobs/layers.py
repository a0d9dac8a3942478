"""Recipe files read as YAML syntax, so that every value knows its file and line and keeps the text its author typed.

Design section 3 ("layering; where each value came from"). YAML's own guesses (`on` a bool, `1:30` ninety, `1e-4` a string) never
happen here: a scalar stays text until the declared type of its parameter reads it (`annotations.py`).
Left out on purpose: merge keys (`<<`, use `extends`), tags (`!!python/...`) and several documents in one file.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map", "timestamp", "value", "merge")}


class Plain(str):
    """Text that was typed without quotes, in a recipe or on the command line: `null` may then mean nothing at all."""

    __slots__ = ()

    @property
    def is_null(self) -> bool:
        """Whether YAML reads this as no value."""
        return self in ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True)
class At:
    """A value of a recipe file (Plain, str, list[At] or dict[str, At]) and the file and line where it stands."""

    value: object
    file: Path
    line: int

    @property
    def origin(self) -> str:
        """Where it stands, as people write it: `recipes/nano.yaml:12`, whatever the working folder is."""
        return f"{self.file.parent.name}/{self.file.name}:{self.line}"

    @property
    def is_null(self) -> bool:
        """Whether the recipe says null here."""
        return isinstance(self.value, Plain) and self.value.is_null

    def bare(self) -> object:
        """The value with the places taken off, all the way down."""
        if isinstance(self.value, dict):
            return {key: item.bare() for key, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.bare() for item in self.value]
        return self.value


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause ` (did you mean x?)` for the known name closest to `name`, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""


def flow(text: str) -> object:
    """One YAML value typed on the command line, such as `[1, 2]`, `{a: 1}` or `"null"`, with scalars left as text.

    Raises ValueError with a clause for people when the text is not one YAML value.
    """
    problems: list[str] = []
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(f"not readable as YAML: {_why(error)}") from error
    if node is None:
        return Plain("")
    value = _at(node, Path("command/line"), problems, ()).bare()
    if problems:
        raise ValueError(problems[0].partition(": ")[2])
    return value


def read_layers(path: Path, problems: list[str]) -> list[At] | None:
    """The mapping of the recipe file `path` and those it extends, deepest base first; what is wrong is added to `problems`.

    None when one of them can't be used at all (missing, no YAML, no mapping, part of a circle).
    """
    layers: list[At] = []
    chain: list[Path] = []
    asked = ""
    while True:
        path = path.resolve()
        if path in chain:
            circle = " → ".join(step.name for step in [*chain[chain.index(path):], path])
            problems.append(f"{asked}: extends goes in a circle: {circle}; let one of them extend nothing")
            return None
        chain.append(path)
        layer = _read(path, asked, problems)
        if layer is None:
            return None
        extends = layer.value.pop("extends", None)
        layers.insert(0, layer)
        if extends is None or extends.is_null:
            return layers
        if not isinstance(extends.value, str):
            problems.append(f"{extends.origin}: extends takes one file name, relative to this file")
            return None
        asked = f"{extends.origin}: extends = {extends.value}"
        path = path.parent / extends.value


def merge(base: At, child: At) -> At:
    """`child` over `base`: mappings are merged key by key, everything else (lists too) is replaced by the child's."""
    if not (isinstance(base.value, dict) and isinstance(child.value, dict)):
        return child
    merged = dict(base.value)
    for key, item in child.value.items():
        merged[key] = merge(merged[key], item) if key in merged else item
    return At(merged, child.file, child.line)


def stack(layers: list[At], problems: list[str]) -> tuple[At, dict[str, Path]]:
    """All layers merged, and for each stage the file that brought it in (its notebook is looked for from there).

    A stage set to null is taken away; a null that takes nothing away is a problem.
    """
    tree, homes = At({}, layers[-1].file, 1), {}
    for layer in layers:
        stages = layer.value.get("stages")
        written = stages.value if stages and isinstance(stages.value, dict) else {}
        for key, stage in written.items():
            if not stage.is_null:
                homes.setdefault(key, layer.file)
            elif homes.pop(key, None) is None:
                problems.append(
                    f"{stage.origin}: stages.{key} is empty, which takes away a stage that extends brings, and there is none; "
                    f"write {{}} for a stage with all its defaults"
                )
        tree = merge(tree, layer)
        if written:
            kept = {key: stage for key, stage in tree.value["stages"].value.items() if not stage.is_null}
            tree.value["stages"] = At(kept, stages.file, stages.line)
    return tree, homes


def _read(path: Path, asked: str, problems: list[str]) -> At | None:
    shown = f"{path.parent.name}/{path.name}"
    try:
        text = path.read_bytes().decode("utf-8-sig")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        beside = [file.name for file in path.parent.glob("*.yaml")] if path.parent.is_dir() else []
        problems.append(f"{asked or shown}: can't read this recipe file: {error.strerror}{nearest(path.name, beside)}")
        return None
    except UnicodeDecodeError as error:
        problems.append(f"{shown}: the file isn't UTF-8 (byte {error.start}); save it as UTF-8")
        return None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problems.append(f"{shown}:{mark.line + 1 if mark else 1}: not readable as YAML: {_why(error)}")
        return None
    layer = At({}, path, 1) if node is None else _at(node, path, problems, ())
    if not isinstance(layer.value, dict):
        kind = "list" if isinstance(layer.value, list) else "text"
        problems.append(f"{shown}:{layer.line}: a recipe is a mapping such as `stages: {{...}}`, not a {kind}")
        return None
    return layer


def _why(error: yaml.YAMLError) -> str:
    parts = (getattr(error, "context", None), getattr(error, "problem", None) or getattr(error, "reason", None))
    return ", ".join(part for part in parts if part) or str(error)


def _at(node: yaml.Node, file: Path, problems: list[str], above: tuple[int, ...]) -> At:
    line = node.start_mark.line + 1
    here = At(None, file, line)
    if node.tag not in _TAGS:
        problems.append(f"{here.origin}: the tag {node.tag} isn't allowed in a recipe; write the plain value")
    if id(node) in above:
        problems.append(f"{here.origin}: an alias that contains itself")
        return At(Plain(""), file, line)
    above = (*above, id(node))
    if isinstance(node, yaml.ScalarNode):
        return At(node.value if node.style else Plain(node.value), file, line)
    if isinstance(node, yaml.SequenceNode):
        return At([_at(item, file, problems, above) for item in node.value], file, line)
    mapping: dict[str, At] = {}
    for key_node, value_node in node.value:
        key_line = At(None, file, key_node.start_mark.line + 1).origin
        if not isinstance(key_node, yaml.ScalarNode):
            problems.append(f"{key_line}: a key must be one word, not a list or a mapping")
            continue
        key = key_node.value
        if key in mapping:
            problems.append(f"{key_line}: the key {key} stands twice (first in line {mapping[key].line}); remove one")
        item = _at(value_node, file, problems, above)
        # A block value begins a line below its key; people look for the key.
        mapping[key] = At(item.value, file, key_node.start_mark.line + 1)
    return At(mapping, file, line)
