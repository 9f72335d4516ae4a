"""Importers: a function for each format, registered here under the name the command line knows it by.

Published sets that are a layout of rows are registered in `RECIPES`.
"""

from dphmm.storage.importers.imported import Imported, Importer, ImportReport
from dphmm.storage.importers.intervals import import_intervals
from dphmm.storage.importers.published import RECIPES
from dphmm.storage.importers.rows import import_csv, import_geo, import_geolife
from dphmm.storage.importers.sequences import import_sequences
from dphmm.storage.layouts import Progress

IMPORTERS: dict[str, Importer] = {
    "csv": import_csv,
    "geo": import_geo,
    "intervals": import_intervals,
    "sequences": import_sequences,
    "geolife": import_geolife,
    **{name: recipe.importer(name) for name, recipe in RECIPES.items()},
}

__all__ = ["IMPORTERS", "RECIPES", "ImportReport", "Imported", "Importer", "Progress"]
