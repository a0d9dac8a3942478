"""The types a parameter may declare, and how a value (typed text or Python value) is read as one of them.

Design section 4.2: `int`, `float`, `str`, `bool`, `X | None`, `Literal[...]`, `list[...]`, `dict[str, ...]`, nested. The same
reading serves recipes, the command line and the recipe's own keys, so that `1e-4` is a number and `on` a text everywhere.
Left out on purpose: other unions (which side would `1` belong to?), tuples and sets (papermill can't pass them on).
"""

from __future__ import annotations

import ast
import math
import re

from nbcore.jobs.layers import Plain, flow, nearest

SUPPORTED = "int, float, str, bool, X | None, Literal[...], list[X], dict[str, X]"

_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}
_INT = re.compile(r"[+-]?(0|[1-9][0-9]*(_[0-9]+)*)")
_FLOAT = re.compile(r"[+-]?((0|[1-9][0-9]*(_[0-9]+)*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NON_FINITE = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf}

# Words before `token` that name a token of the vocabulary or a rate, not a key to a door.
_MODELLING = {"eos", "bos", "pad", "unk", "sep", "cls", "mask", "stop", "think", "end", "start", "begin", "special", "image", "per",
              "first", "next", "last", "every", "each", "max", "min", "new", "extra", "tool", "answer"}
_KEYS = {"api", "access", "private", "secret", "auth", "encryption", "signing", "ssh", "account", "license", "service", "deploy"}
_SECRET = {"secret", "secrets", "password", "passwords", "passwd", "passphrase", "credential", "credentials", "apikey", "apikeys",
           "bearer", "authorization"}


class Mismatch(ValueError):
    """A value that doesn't fit its annotation; the message is a clause that says why and what to write instead."""


def looks_secret(name: str) -> bool:
    """Whether a parameter or environment variable of this name probably holds a secret (`api_key`, `HF_TOKEN`; not `max_tokens`)."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    if _SECRET & set(words):
        return True
    pairs = list(zip(["", *words], words, strict=False))
    if any(word in ("key", "keys") and before in _KEYS for before, word in pairs):
        return True
    before, last = pairs[-1] if pairs else ("", "")
    return last == "token" and before not in _MODELLING


def given(key: str, value: object) -> str:
    """`key = value` for an error message, without the value when the key looks like a secret."""
    return key if looks_secret(key.rpartition(".")[2]) else f"{key} = {shown(value)}"


def shown(value: object) -> str:
    """A value as an error message repeats it: shortened, unquoted text as typed, nothing that lies under a secret-looking key."""
    if isinstance(value, str):
        text = str(value) if isinstance(value, Plain) and value else repr(str(value))
    elif isinstance(value, list):
        text = f"[{', '.join(map(shown, value))}]"
    elif isinstance(value, dict):
        text = f"{{{', '.join(given(str(key), item).replace(' = ', ': ', 1) for key, item in value.items())}}}"
    else:
        text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def parse(annotation: str) -> ast.expr:
    """The syntax tree of an annotation. Raises Mismatch naming what isn't supported."""
    try:
        kind = ast.parse(annotation, mode="eval").body
    except SyntaxError as error:
        raise Mismatch(f"{annotation!r} isn't an annotation; supported: {SUPPORTED}") from error
    _require_supported(kind)
    return kind


def coerce(kind: ast.expr, value: object, *, texts: bool = True, finite: bool = True) -> object:
    """`value` read as `kind` (a tree of `parse`); typed text is read by the declared type when `texts`. Raises Mismatch.

    `finite` refuses nan and infinities. Quoted and unquoted text differ only where `null` or a Literal would be ambiguous.
    """
    if isinstance(kind, ast.BinOp):
        inner = kind.left if _is_none(kind.right) else kind.right
        if value is None or (texts and isinstance(value, Plain) and value.is_null):
            return None
        if texts and isinstance(value, Plain) and value == "None":
            if ast.unparse(inner) != "str":
                return None
            raise Mismatch("None is ambiguous here; write null for no value, or \"None\" in quotes for the text")
        return coerce(inner, value, texts=texts, finite=finite)
    if isinstance(kind, ast.Subscript):
        head = kind.value.id
        if head == "Literal":
            return _literal(kind, value, texts)
        if texts and isinstance(value, Plain) and value.startswith(("[", "{")):
            value = _flow(value)
        if head == "list":
            if not isinstance(value, list):
                raise Mismatch(f"{shown(value)} isn't a list; write [a, b]")
            return [coerce(kind.slice, item, texts=texts, finite=finite) for item in value]
        if not isinstance(value, dict):
            raise Mismatch(f"{shown(value)} isn't a mapping; write {{a: 1, b: 2}}")
        return {_key(key, item): coerce(kind.slice.elts[1], item, texts=texts, finite=finite) for key, item in value.items()}
    if texts and isinstance(value, str) and kind.id != "str":
        return _from_text(kind.id, value, finite)
    return _from_python(kind.id, value, finite)


def options(kind: ast.expr) -> list[object]:
    """The values a Literal allows."""
    return list(ast.literal_eval(ast.Tuple(kind.slice.elts, ast.Load()) if isinstance(kind.slice, ast.Tuple) else ast.List([kind.slice])))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _require_supported(kind: ast.expr) -> None:
    text = ast.unparse(kind)
    if isinstance(kind, ast.Name) and kind.id in _WORDS:
        return
    if isinstance(kind, ast.BinOp) and isinstance(kind.op, ast.BitOr) and _is_none(kind.left) != _is_none(kind.right):
        return _require_supported(kind.left if _is_none(kind.right) else kind.right)
    if isinstance(kind, ast.Subscript) and isinstance(kind.value, ast.Name):
        head, inner = kind.value.id, kind.slice
        if head == "Literal":
            try:
                allowed = options(kind)
            except ValueError as error:
                raise Mismatch(f"{text}: a Literal lists plain values such as \"a\", 1 or None") from error
            if allowed and all(item is None or isinstance(item, str | int | float) for item in allowed):
                return
        elif head == "list" and not isinstance(inner, ast.Tuple):
            return _require_supported(inner)
        elif head == "dict" and isinstance(inner, ast.Tuple) and len(inner.elts) == 2 and ast.unparse(inner.elts[0]) == "str":
            return _require_supported(inner.elts[1])
    raise Mismatch(f"the annotation {text} isn't supported; supported: {SUPPORTED}")


def _literal(kind: ast.expr, value: object, texts: bool) -> object:
    allowed = options(kind)
    if texts and isinstance(value, str):
        unquoted = isinstance(value, Plain)
        # What is in quotes was meant as text; without quotes a number or null of the list comes first.
        for option in sorted(allowed, key=lambda option: isinstance(option, str) == unquoted):
            if option is None:
                if unquoted and (value.is_null or value == "None"):
                    return None
                continue
            try:
                read = _from_text(type(option).__name__, value, True) if not isinstance(option, str) else str(value)
            except Mismatch:
                continue
            if read == option:
                return option
        if unquoted and value.startswith(("'", '"')):
            return _literal(kind, _flow(value), texts)
    else:
        for option in allowed:
            if type(option) is type(value) and option == value:
                return option
    near = nearest(str(value), [str(option) for option in allowed])
    raise Mismatch(f"{shown(value)} isn't one of {', '.join(map(repr, allowed))}{near}")


def _from_text(kind: str, text: str, finite: bool) -> object:
    if kind == "bool":
        if text in ("true", "True", "false", "False"):
            return text in ("true", "True")
        raise Mismatch(f"{shown(text)} isn't a bool; write true or false")
    if kind == "int":
        if _INT.fullmatch(text):
            return int(text)
        hint = "write a whole number"
        if _FLOAT.fullmatch(text) and math.isfinite(float(text)) and float(text).is_integer():
            hint = f"write {int(float(text))}"
        elif re.fullmatch(r"[+-]?0[0-9_]+", text):
            hint = "zeros in front are ambiguous, leave them out"
        raise Mismatch(f"{shown(text)} isn't an int; {hint}")
    if _FLOAT.fullmatch(text):
        return _from_python("float", float(text), finite)
    if (special := text.lower().replace(".", "", 1)) in _NON_FINITE:
        return _from_python("float", _NON_FINITE[special], finite)
    raise Mismatch(f"{shown(text)} isn't a float; write a number such as 0.5 or 1e-4")


def _from_python(kind: str, value: object, finite: bool) -> object:
    if kind == "float" and isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
        if finite and not math.isfinite(number):
            raise Mismatch(f"{value} isn't a finite number")
        return number
    if kind == "str" and isinstance(value, str):
        if not isinstance(value, Plain):
            return value
        if value.is_null:
            raise Mismatch(f"{shown(value)} means no value, and this takes text; put it in quotes to mean the text")
        # Only the command line can hand over quotes as part of an unquoted text: they say "this is a text, whatever it looks like".
        quoted = value[0] in "'\"" and value[-1] == value[0] and len(value) > 1
        return str(_flow(value)) if quoted else str(value)
    if type(value).__name__ == kind and kind in ("int", "bool"):
        return value
    raise Mismatch(f"{shown(value)} isn't {'an' if kind == 'int' else 'a'} {kind}; write {_WORDS[kind]}")


def _flow(text: str) -> object:
    try:
        return flow(text)
    except ValueError as error:
        raise Mismatch(f"{shown(text)} is {error}") from error


def _key(key: object, item: object) -> str:
    if not isinstance(key, str):
        raise Mismatch(f"the key {key!r} isn't text")
    if isinstance(item, str) and looks_secret(key):
        raise Mismatch(f"the key {key} looks like a secret; secrets come from the environment (os.environ), never from parameters")
    return str(key)
