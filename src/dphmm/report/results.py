"""An experiment's results as files: tables (Parquet, CSV), one page of Markdown, and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dphmm.report.figures import can_draw, save
from dphmm.storage.inputs import replacing
from dphmm.storage.tables import write_table

if TYPE_CHECKING:
    import pandas as pd

    from dphmm.evaluation.experiment import Experiment, Settings
    from dphmm.evaluation.running import Results

#: Longer tables are in the files only.
_MOST_LINES = 60


def write_results(experiment: Experiment, settings: Settings, results: Results, folder: Path) -> list[Path]:
    """Write everything that is made of an experiment's rows; the files that were written."""
    import pyarrow as pa

    paths = []
    for name, table in {"rows": results.rows, **results.tables}.items():
        for suffix in (".parquet", ".csv"):
            path = folder / f"{name}{suffix}"
            write_table(path, pa.Table.from_pandas(table, preserve_index=False))
            paths.append(path)
    figures = []
    if can_draw():
        for figure in experiment.figures:
            if len(results.tables[figure.table]):
                figures += save(figure, results.tables[figure.table], folder)
    page = folder / "results.md"
    with replacing(page) as temporary:
        temporary.write_text(_page(experiment, settings, results, figures), encoding="utf-8")
    return [*paths, *figures, page]


def _page(experiment: Experiment, settings: Settings, results: Results, figures: list[Path]) -> str:
    quick = ", quick" if settings.quick else ""
    parts = [
        f"# {experiment.title}",
        f"{experiment.source}. `dphmm experiment {experiment.name}`, seed {settings.seed}{quick}; "
        f"{len(results.rows)} rows measured.",
    ]
    for name, table in results.tables.items():
        parts += [f"## {name}", markdown_table(table)]
    drawn = {path.stem for path in figures}
    parts += [f"![{figure.title}]({figure.name}.svg)" for figure in experiment.figures if figure.name in drawn]
    return "\n\n".join(parts) + "\n"


def markdown_table(table: pd.DataFrame) -> str:
    """The first lines of a table in Markdown, numbers with four significant digits."""
    shown = table.head(_MOST_LINES)
    lines = ["| " + " | ".join(map(str, shown.columns)) + " |", "|" + "---|" * len(shown.columns)]
    lines += ["| " + " | ".join(_text(value) for value in row) + " |" for row in shown.itertuples(index=False)]
    if len(table) > _MOST_LINES:
        lines.append(f"\n{len(table) - _MOST_LINES} more lines are in the table's files.")
    return "\n".join(lines)


def _text(value: object) -> str:
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{float(value):.4g}"
    return str(value).replace("|", "\\|")
