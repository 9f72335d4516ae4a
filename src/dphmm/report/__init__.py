"""Reports: one self-contained HTML page about a release."""

from dphmm.report.content import ReleaseReport, Scenery
from dphmm.report.page import page, write_report

__all__ = ["ReleaseReport", "Scenery", "page", "write_report"]
