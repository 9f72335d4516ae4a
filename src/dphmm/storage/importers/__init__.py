"""Importers: a function for each format, registered here under the name the command line knows it by."""

from dphmm.storage.importers.imported import Imported, Importer, ImportReport, Progress
from dphmm.storage.importers.rows import import_csv, import_geolife, import_gowalla
from dphmm.storage.importers.sequences import import_sequences

IMPORTERS: dict[str, Importer] = {
    "geolife": import_geolife,
    "gowalla": import_gowalla,
    "csv": import_csv,
    "sequences": import_sequences,
}

__all__ = ["IMPORTERS", "ImportReport", "Imported", "Importer", "Progress"]
