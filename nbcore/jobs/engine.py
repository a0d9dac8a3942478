"""The papermill engine of a stage: own kernel, capped and masked outputs, a notebook saved in one step. Loaded by the worker only.

Left out on purpose: widget state (it bloats notebooks and breaks their display elsewhere; bars show as text) and papermill's
progress bar.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbcore.files import atomic_write
from nbcore.jobs.said import Log, Reporter
from nbcore.jobs.secrets import Masks

_SAVE_EVERY = 1.0  # seconds
_DISPLAYS_MIB = 16  # all that one cell displays, beside its text


def drawn(text: str) -> str:
    """`text` as a terminal shows it after carriage returns: of a line drawn over, what was drawn last."""
    if "\r" not in text:
        return text
    # By splitting, not by a regular expression: that takes the square of a long line's length.
    return "\n".join(line[line.rstrip("\r").rfind("\r") + 1 :] for line in text.split("\n"))


class Seen:
    """What the engine saw: code cell (from 1, the injected one not counted), number of code cells, how the kernel ended."""

    def __init__(self) -> None:
        self.cell = self.cells = 0
        self.left_early: str | None = None
        self.kernel_exit: int | None = None
        self.save_now: Any = lambda: None


def make_engine(job: dict, masks: Masks, log: Log, report: Reporter, sockets: Path) -> tuple[type, Seen]:
    """The engine class to register with papermill, and the record it fills. papermill and nbclient are imported here."""
    import nbformat
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient.exceptions import DeadKernelError
    from papermill.clientwrap import PapermillNotebookClient
    from papermill.engines import NBClientEngine, NotebookExecutionManager

    seen, target = Seen(), Path(job["folder"]) / "notebook.ipynb"
    text_limit = 2 * job["max_output_kib"] * 1024 + 4096  # stdout and stderr, each capped in the kernel, and the notes on it

    class StageManager(NotebookExecutionManager):
        saved = 0.0

        def save(self, **kwargs: Any) -> None:
            if time.monotonic() - self.saved >= _SAVE_EVERY or self.end_time is not None:
                self.save_now()

        def save_now(self) -> None:
            self.nb.metadata.pop("widgets", None)
            atomic_write(target, nbformat.writes(self.nb) + "\n")
            self.saved = time.monotonic()

        def autosave_cell(self) -> None:
            self.save()

        def notebook_start(self, **kwargs: Any) -> None:
            seen.save_now = self.save_now
            for cell in self.nb.cells:
                cell.source = masks.text(cell.source)
            self.numbers = {}
            for index, cell in enumerate(self.nb.cells):
                if cell.cell_type == "code" and "injected-parameters" not in cell.metadata.get("tags", []):
                    self.numbers[index] = len(self.numbers) + 1
            seen.cells = len(self.numbers)
            super().notebook_start(**kwargs)

        def cell_start(self, cell: Any, cell_index: int | None = None, **kwargs: Any) -> None:
            super().cell_start(cell, cell_index, **kwargs)
            if cell_index in self.numbers:
                seen.cell = self.numbers[cell_index]
                report.say(cell=seen.cell, cells=seen.cells)
                log.write(f"\n── {datetime.now(UTC):%H:%M:%S} code cell {seen.cell} of {seen.cells} ──\n")

        def cell_exception(self, cell: Any, cell_index: int | None = None, **kwargs: Any) -> None:
            super().cell_exception(cell, cell_index, **kwargs)
            error = kwargs.get("exception")
            if getattr(error, "ename", None) == "SystemExit":
                seen.left_early = f"SystemExit({error.evalue})"

    class StageKernel(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            argv = [sys.executable, "-m", "nbcore.jobs.kernel", "-f", "{connection_file}"]
            return KernelSpec(argv=argv, display_name="Python 3", language="python")

    class StageClient(PapermillNotebookClient):
        at_cell, text_left, display_left = -1, 0, 0

        def create_kernel_manager(self) -> StageKernel:
            # Sockets in a folder of their own: two runs that start at once can't take each other's ports.
            self.km = StageKernel(kernel_name="python3", transport="ipc", connection_file=str(sockets / "k.json"))
            return self.km

        def papermill_execute_cells(self) -> None:
            self.shutdown_kernel = "immediate"
            super().papermill_execute_cells()
            if not any(c.metadata.papermill.get("exception") for c in self.nb.cells):
                self.shutdown_kernel = "graceful"  # exit handlers of what the notebook used may still have something to write

        async def _async_check_alive(self) -> None:
            try:
                await super()._async_check_alive()
            except DeadKernelError:
                seen.kernel_exit = self.km.provisioner.process.returncode
                raise

        def process_message(self, msg: dict, cell: Any, cell_index: int) -> Any:
            msg["content"] = masks.data(msg["content"])
            if cell_index != self.at_cell or msg["msg_type"] == "clear_output":
                self.at_cell, self.text_left, self.display_left = cell_index, text_limit, _DISPLAYS_MIB * 2**20
            return super().process_message(msg, cell, cell_index)

        def output(self, outs: list, msg: dict, display_id: str | None, cell_index: int) -> Any:
            content = msg["content"]
            if msg["msg_type"] == "stream":
                self.text_left -= len(content["text"])
                if self.text_left < 0:
                    return None
                last = outs[-1] if outs and not self.clear_before_next_output else None
                if last and last.output_type == "stream" and last.name == content["name"]:
                    # One output per stream: a secret or a progress bar that came in pieces is whole here.
                    last.text = masks.text(drawn(last.text + content["text"]))
                    return nbformat.v4.new_output("stream", name=last.name, text=content["text"])
            elif "data" in content:
                size = sum(len(str(part)) for part in content["data"].values())
                if self.display_left < size:
                    note = f"[nbcore: left out, this cell displays more than {_DISPLAYS_MIB} MiB]"
                    content["data"] = {"text/plain": note}
                    if self.display_left < 0:
                        return None
                    size = self.display_left + 1
                self.display_left -= size
            return super().output(outs, msg, display_id, cell_index)

        def _update_display_id(self, display_id: str, msg: dict) -> None:
            size = sum(len(str(part)) for part in msg["content"]["data"].values())
            if size <= _DISPLAYS_MIB * 2**20:
                super()._update_display_id(display_id, msg)

    class StageEngine(NBClientEngine):
        @classmethod
        def execute_notebook(cls, nb: Any, kernel_name: str, **kwargs: Any) -> Any:
            manager = StageManager(nb, output_path=str(target), progress_bar=False)
            manager.notebook_start()
            try:
                StageClient(
                    manager, kernel_name=kernel_name, timeout=kwargs.get("execution_timeout"), startup_timeout=120, iopub_timeout=60,
                    stdout_file=log, stderr_file=log, store_widget_state=False,
                ).execute()
            finally:
                manager.notebook_complete()
            return manager.nb

    return StageEngine, seen
