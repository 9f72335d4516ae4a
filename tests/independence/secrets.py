"""True places, moments and names with digits that occur nowhere else, and every form in which they could leak."""

from __future__ import annotations

import hashlib
import struct
from datetime import datetime
from pathlib import Path

from independence.commands import GRID

#: Inside of the town, outside of it, and far away; no cell's centre or corner has such digits.
PLACES = (
    (50.01937465, 10.02846193),
    (50.00718293, 10.00391847),
    (50.19283746, 10.91827364),
    (-33.84736251, 151.20918273),
)
MOMENTS = (
    "2024-05-06T08:03:41.867531Z",
    "2024-05-06T08:08:17.492683Z",
    "2024-05-06T08:13:59.318247Z",
    "2024-05-06T08:31:23.759146Z",
)
#: A name that no model knows, and one that cannot be read as a time or a number.
NAME, GARBAGE = "CANARY_7f3a_hidden", "50.0193746q8"


def _texts() -> dict[str, bytes]:
    """Characteristic parts of what a printed secret would look like."""
    found = {NAME: NAME.encode(), GARBAGE: GARBAGE.encode(), "half of the name": b"7f3a_hidden"}
    for lat, lon in PLACES:
        # The decimals but the last, which rounding may change; the first three are not rare enough.
        found |= {f"digits of {x}": str(x).partition(".")[2][:-1].encode() for x in (lat, lon)}
    for moment in MOMENTS:
        found |= {f"clock of {moment}": moment[11:19].encode(), f"micros of {moment}": moment[20:26].encode()}
    return found


def _numbers() -> dict[str, float]:
    """Secret numbers, as degrees, and as metres in the projection of the town."""
    found = {}
    for lat, lon in PLACES:
        metres = GRID.projection.to_metres([lat], [lon]).ravel().tolist()
        found |= {str(lat): lat, str(lon): lon, f"{lat} in metres": metres[1], f"{lon} in metres": metres[0]}
    return found


def _forms() -> dict[str, bytes]:
    forms = _texts()
    forms |= {f"{NAME} in UTF-16": NAME.encode("utf-16-le")}
    for name, number in _numbers().items():
        forms |= {f"{name} as {code}": struct.pack(code, number) for code in ("<d", ">d", "<f", ">f")}
    for moment in MOMENTS:
        micros = round(datetime.fromisoformat(moment).timestamp() * 1_000_000)
        forms |= {f"{moment} as {code}": struct.pack(code, micros) for code in ("<q", ">q")}
        forms[f"{moment} in microseconds"] = str(micros).encode()
    # A hash of a value from a small set is the value.
    for text in (NAME, *(str(x) for place in PLACES for x in place), *(f"{lat},{lon}" for lat, lon in PLACES)):
        for algorithm in ("md5", "sha1", "sha256"):
            digest = hashlib.new(algorithm, text.encode(), usedforsecurity=False)
            forms |= {
                f"{algorithm} of {text}": digest.hexdigest().encode(),
                f"{algorithm}() of {text}": digest.digest(),
            }
    return forms


FORMS = _forms()


def secrets_in(data: bytes) -> list[str]:
    """Which secrets occur in some bytes, in which form."""
    lowered = data.lower()
    return [name for name, form in FORMS.items() if form in data or (form.isascii() and form.lower() in lowered)]


def secrets_below(folder: Path) -> dict[str, list[str]]:
    """Secrets in the files of a folder, in names too; Parquet is read out besides, because it is compressed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        data = path.name.encode() + (path.read_bytes() if path.is_file() else b"")
        if path.suffix == ".parquet":
            data += _read_out(path)
        if secrets_in(data):
            found[str(path.relative_to(folder))] = secrets_in(data)
    return found


def _read_out(path: Path) -> bytes:
    import pyarrow.parquet as pq

    return repr(pq.read_table(path).to_pylist()).encode()
