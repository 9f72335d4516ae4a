"""Spoiling archives: what is in them, what they say of it, and their own bytes."""

from __future__ import annotations

import io
import random
import tarfile
import warnings
import zipfile

from fuzz.mutations import Mutation, bytes_anywhere

NAMES = (
    "../../a",
    "/etc/passwd",
    "C:/a",
    "a\\b",
    "a\0b",
    "",
    "Data/000/Trajectory/x.plt/",
    "x" * 300,
    "Data/\n/Trajectory/a.plt",
)


def _spoiled_members(files: dict[str, bytes], inner: Mutation, rng: random.Random) -> dict[str, bytes]:
    name = rng.choice(sorted(files)) if files else ""
    if not files or rng.randrange(4) == 0:
        return {**files, rng.choice(NAMES): b"1,2,3\n"}
    if rng.randrange(6) == 0:
        return {other: data for other, data in files.items() if other != name}
    return {**files, name: inner(files[name], rng)}


def zip_of(inner: Mutation) -> Mutation:
    """Members spoiled, renamed, added; links; or the archive's own bytes."""

    def mutate(data: bytes, rng: random.Random) -> bytes:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                files = {info.filename: archive.read(info) for info in archive.infolist()}
        except Exception:
            return bytes_anywhere(data, rng)
        buffer = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            # A name twice is meant.
            warnings.simplefilter("ignore")
            for name, content in _spoiled_members(files, inner, rng).items():
                info = zipfile.ZipInfo(name)
                info.external_attr = rng.choice((0, 0, 0o120777, 0o100644)) << 16
                archive.writestr(
                    info, content, rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_LZMA))
                )
        return buffer.getvalue()

    return mutate


def tar_of(inner: Mutation) -> Mutation:
    """The same of a tar, whose members may be links, devices and lies about their size."""

    def mutate(data: bytes, rng: random.Random) -> bytes:
        files: dict[str, bytes] = {}
        try:
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                for info in archive:
                    opened = archive.extractfile(info)
                    files[info.name] = b"" if opened is None else opened.read()
        except Exception:
            return bytes_anywhere(data, rng)
        buffer = io.BytesIO()
        with tarfile.open(
            fileobj=buffer, mode="w", format=rng.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
        ) as archive:
            for name, content in _spoiled_members(files, inner, rng).items():
                info = tarfile.TarInfo(name.replace("\0", "0"))
                info.size = len(content)
                info.type = rng.choice((tarfile.REGTYPE,) * 9 + (tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE))
                info.linkname = "/etc/passwd" if info.type == tarfile.SYMTYPE else ""
                archive.addfile(info, io.BytesIO(content))
        return buffer.getvalue()

    return mutate
