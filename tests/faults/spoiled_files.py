"""Files that must not be taken for what their names say: pickles, bombs, archives that lead elsewhere."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from faults.place import Place

PLT = "Data/000/Trajectory/20081023025304.plt"
_PLT_HEADER = (
    b"Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,8421376\r\n0\r\n"
)


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return (open, (self.path, "w"))


def pickled(place: Place) -> bytes:
    """A pickle that would write the file ``ran``."""
    return pickle.dumps(Bomb(place / "ran"))


def plt(*rows: str) -> bytes:
    """A Geolife file."""
    return _PLT_HEADER + "".join(f"{row}\r\n" for row in rows).encode()


def zipped(files: dict[str, bytes]) -> bytes:
    """A zip of these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            # A ZipInfo of its own date: the same files give the same bytes.
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def zip_with_link(name: str, target: str) -> bytes:
    """A zip whose member is a symbolic link."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo(name)
        link.external_attr = 0o120777 << 16
        archive.writestr(link, target)
    return buffer.getvalue()


def tarred(files: dict[str, bytes], packed: bool = True) -> bytes:
    """A tar of these members, in gzip or not."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return gzip.compress(buffer.getvalue(), mtime=0) if packed else buffer.getvalue()


def tar_with(kind: bytes, name: str, target: str) -> bytes:
    """A tar with a link, a device or a pipe."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, target
        archive.addfile(info)
    return buffer.getvalue()


def gzip_bomb() -> bytes:
    """80 MB of rows in some hundred kilobytes."""
    line = b"u,alpha\n"
    return gzip.compress(b"user,state\n" + line * (80 * 2**20 // len(line)), compresslevel=9)


def zip_bomb(name: str) -> bytes:
    """A Geolife file of 80 MB in some hundred kilobytes."""
    return zipped({name: plt() + b"39.1,116.1,0,492,39744.12,2008-10-23,02:53:04\r\n" * (80 * 2**20 // 46)})


def parquet(table: pa.Table, plain: bool = False) -> bytes:
    """A table as the bytes of a Parquet file; ``plain`` without compression, and without Arrow's own schema."""
    buffer = io.BytesIO()
    if plain:
        pq.write_table(table, buffer, compression="none", use_dictionary=False, store_schema=False)
    else:
        pq.write_table(table, buffer)
    return buffer.getvalue()


def visits(**more: object) -> pa.Table:
    """Two visits of a page."""
    return pa.table({"user": ["u", "u"], "state": ["alpha", "beta"], **more})


def with_extension() -> bytes:
    """A column of an extension type, of which the name would be looked up."""
    storage = pa.array([b"0123456789abcdef"] * 2, pa.binary(16))
    return parquet(visits(extra=pa.ExtensionArray.from_storage(pa.uuid(), storage)))


def with_pickled_metadata(place: Place, key: str) -> bytes:
    """A table whose schema metadata is a pickle."""
    return parquet(visits().replace_schema_metadata({key: pickled(place)}))


def fifo(place: Place, name: str) -> Path:
    """A named pipe, which would be waited for forever."""
    os.mkfifo(place / name)
    return place / name
