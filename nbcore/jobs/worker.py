"""`python -m nbcore.jobs.worker`: one notebook executed by papermill; started by the guardian, told what to do by one JSON line.

Papermill injects, executes and keeps the notebook. What it says about success is not passed on (2.7.0 calls a killed cell
"completed"): the worker reports what it saw itself, line by line, through a pipe.
Left out on purpose: the verdict on the stage, which needs result.json and is the runner's (`execute.py`).
"""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbcore.jobs.processes import end_all
from nbcore.jobs.said import Log, Reporter
from nbcore.jobs.secrets import Masks


def main() -> None:
    """Execute the notebook of the job and report how it ended; exit status 0 whatever the notebook did."""
    job = json.loads(sys.stdin.buffer.readline())
    masks = Masks(os.environ)
    sys.stdout = sys.stderr = log = Log(masks)
    report = Reporter(job["report"], masks)
    threading.Thread(target=_watch_guardian, daemon=True).start()
    began = time.monotonic()
    # jsonschema would compile a grammar of web addresses, two seconds long, that no notebook is checked against.
    sys.modules.setdefault("rfc3987_syntax", None)
    import papermill

    from nbcore.jobs.engine import make_engine

    imported = time.monotonic() - began
    logging.basicConfig(stream=log, level=logging.WARNING, format="%(name)s: %(message)s")
    with tempfile.TemporaryDirectory(prefix="nbcore-") as sockets:
        engine, seen = make_engine(job, masks, log, report, Path(sockets))
        papermill.engines.papermill_engines.register("nbcore", engine)
        # Asked to stop, the worker saves what the notebook shows so far; the guardian ends the kernel.
        signal.signal(signal.SIGTERM, lambda *_: (seen.save_now(), os._exit(0)))
        ending = _execute(job, seen, log)
    try:
        report.say(end=ending | {"import_seconds": imported})
    except BrokenPipeError:
        _clean_up()  # the guardian is dead, and perhaps that is why the kernel is
    os._exit(0)  # all is written; taking papermill's modules down one by one would only cost time


def _execute(job: dict, seen: Any, log: Log) -> dict:
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    notebook = Path(job["notebook"])
    try:
        papermill.execute_notebook(
            str(notebook), "notebook.ipynb", parameters=job["parameters"], engine_name="nbcore", kernel_name="python3",
            language="python", progress_bar=False, cwd=str(notebook.parent), execution_timeout=job["cell_timeout_seconds"],
        )
        ending = {"kind": "ran"}
    except papermill.exceptions.PapermillExecutionError as error:
        log.write("\n" + "\n".join(error.traceback) + "\n")
        ending = {"kind": "cell", "name": error.ename, "text": error.evalue}
    except DeadKernelError:
        ending = {"kind": "kernel", "exit": seen.kernel_exit}
    except CellTimeoutError:
        ending = {"kind": "cell-timeout"}
    except Exception as error:  # whatever papermill or the disk raise here must become a sentence, not a vanished worker
        logging.getLogger("nbcore").exception("papermill could not go on")
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        ending = {"kind": "disk" if full else "engine", "name": type(error).__name__, "text": str(error)}
    log.write(f"\n── {datetime.now(UTC):%H:%M:%S} ended: {ending['kind']} ──\n")
    return ending | {"cell": seen.cell, "cells": seen.cells, "left_early": seen.left_early}


def _watch_guardian() -> None:
    # Nothing more comes through stdin: its end means that the guardian is dead, and then nobody else cleans up.
    while os.read(0, 4096):
        continue
    _clean_up()


def _clean_up() -> None:
    end_all("NBCORE_STAGE_DIR", os.environ["NBCORE_STAGE_DIR"])
    os._exit(1)


if __name__ == "__main__":
    main()
