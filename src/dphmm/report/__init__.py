"""Reports: one self-contained HTML page about a release."""

from dphmm.report.assembling import read_report
from dphmm.report.backdrop import read_backdrop
from dphmm.report.content import Backdrop, ReleaseReport
from dphmm.report.page import page, write_report
from dphmm.report.svg import Figure

__all__ = ["Backdrop", "Figure", "ReleaseReport", "page", "read_backdrop", "read_report", "write_report"]
