"""The report of a run: one HTML file that works offline, made from the run folder alone. Design section 5."""

from __future__ import annotations

from pathlib import Path

from nbcore.files import atomic_write
from nbcore.jobs.report.gather import gather
from nbcore.jobs.report.page import HERE, page, sentence
from nbcore.jobs.report.pictures import picture as _picture


def render(run: str | Path) -> Path:
    """Write <run>/report.html for a run in any state, and return its path. Raises OSError when it can't be written."""
    run = Path(run).resolve()
    return atomic_write(run / "report.html", page(gather(run)))


def picture(run: str | Path) -> str:
    """Where the metric moved, and the pipeline, as one SVG that stands alone (light and dark), for a README."""
    record = gather(Path(run).resolve())
    return _picture(record, (HERE / "palette.css").read_text(encoding="utf-8"), sentence(record))
