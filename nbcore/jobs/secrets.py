"""Secrets never enter the record: values of environment variables whose names look secret are masked wherever they would appear.

Texts are masked inside JSON values, never in the JSON text itself, so that a masked file stays a valid one.
Left out on purpose: artifacts (weights, data sets: large, and not ours to rewrite) and guessing what else might be a secret.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nbcore.files import atomic_write
from nbcore.jobs.annotations import looks_secret

MASK = "***"
_SHORTEST = 6  # a shorter value would also hide innocent words
# Beyond what a parameter may be called: the names that shells and services give to secrets.
_NAME = re.compile(r"(^|_)(KEYS?|TOKENS?|PAT|PASS|AUTH)$|PASSW(OR)?D|SECRET|CREDENTIAL|API_?KEY|PRIVATE_KEY")


class Masks:
    """The secrets of an environment, and how to hide them in a text, in JSON data, in a file."""

    def __init__(self, environment: Mapping[str, str]):
        forms: set[str] = set()
        for name, value in environment.items():
            if not (looks_secret(name) or _NAME.search(name.upper())) or _is_path(value):
                continue
            for part in {value, value.strip(), *(value.split("\n") if "\n" in value else ())}:
                if len(part) >= _SHORTEST:
                    forms |= {part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1], html.escape(part)}
                    forms |= {repr(part)[1:-1], quote(part, safe="")}
        self._pattern = re.compile("|".join(re.escape(f) for f in sorted(forms, key=len, reverse=True))) if forms else None

    def text(self, text: str) -> str:
        """`text` with every secret replaced by `***`."""
        return self._pattern.sub(MASK, text) if self._pattern else text

    def data(self, value: Any) -> Any:
        """JSON data with the secrets masked in every text value; numbers and keys stay."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.data(item) for key, item in value.items()}
        return [self.data(item) for item in value] if isinstance(value, list | tuple) else value

    def file(self, path: Path) -> None:
        """Mask a text, .json or .jsonl file in place; a file without secrets is not touched."""
        if self._pattern is None or not path.is_file():
            return
        old = path.read_text(encoding="utf-8", errors="replace")
        if not self._pattern.search(old):
            return
        try:
            if path.suffix in (".json", ".ipynb"):
                new = json.dumps(self.data(json.loads(old)), ensure_ascii=False, indent=1)
            elif path.suffix == ".jsonl":
                rows = [json.loads(line) for line in old.removesuffix("\n").split("\n")]
                new = "".join(json.dumps(self.data(row), ensure_ascii=False) + "\n" for row in rows)
            else:
                new = self.text(old)
        except json.JSONDecodeError:
            new = self.text(old)  # torn by a kill: it is no JSON any more, but it still must not tell
        atomic_write(path, new)


def _is_path(value: str) -> bool:
    # GOOGLE_APPLICATION_CREDENTIALS=/home/me/key.json names a place, not a secret.
    return value.startswith(("/", "~", "./")) and Path(value).expanduser().exists()
