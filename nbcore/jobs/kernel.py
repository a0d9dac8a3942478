"""`python -m nbcore.jobs.kernel -f FILE`: the IPython kernel of a stage, tied to its worker, its output capped.

The interpreter is the worker's own, whatever kernels are installed elsewhere under the name `python3`.
Left out on purpose: everything else; a notebook sees the kernel it sees in JupyterLab.
"""

from __future__ import annotations

import os
import sys

from nbcore.jobs import capped
from nbcore.jobs.processes import die_with_parent


def main() -> None:
    """Serve the kernel until it is shut down; ends at once when the worker that started it is gone."""
    die_with_parent()
    if os.getppid() != int(os.environ.get("JPY_PARENT_PID", os.getppid())):
        sys.exit("The worker ended before its kernel began.")
    try:
        # If memory runs out the kernel goes first, not the processes that can tell the story.
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as f:
            f.write("500")
    except OSError:
        sys.stderr.write("The kernel could not put itself first in line for the out-of-memory killer.\n")
    if sys.path[0] in ("", os.getcwd()):
        del sys.path[0]  # as ipykernel_launcher does: IPython adds it back after its own imports
    from ipykernel.kernelapp import IPKernelApp

    capped.CappedStream = capped.stream_class(int(os.environ["NBCORE_OUTPUT_KIB"]))
    app = IPKernelApp.instance(outstream_class="nbcore.jobs.capped.CappedStream")
    app.initialize()
    streams = (sys.stdout, sys.stderr)
    app.shell.events.register("pre_run_cell", lambda info: [stream.cap.start() for stream in streams])
    app.shell.events.register("post_run_cell", lambda result: [stream.end_cell() for stream in streams])
    capped.cap_messages(app.session)
    app.start()


if __name__ == "__main__":
    main()
