"""Hook: the notebooks given on the command line say kernelspec python3; those that do not are corrected, and the hook fails once."""

import json
import sys
from pathlib import Path

WANTED = {"display_name": "Python 3", "language": "python", "name": "python3"}


def correct(path: Path) -> bool:
    """True when the file had to be changed."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    if notebook["metadata"].get("kernelspec") == WANTED:
        return False
    notebook["metadata"]["kernelspec"] = WANTED
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return True


if __name__ == "__main__":
    sys.exit(any([correct(Path(name)) for name in sys.argv[1:]]))
