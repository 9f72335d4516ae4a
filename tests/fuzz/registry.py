"""Every reader of a file, in one list: what the fuzz tests, the guided driver and the walk go through."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

import dphmm
from dphmm.audit.plain_plans import plain_plans, read_plain_laws
from dphmm.audit.released import ReleasedFile
from dphmm.errors import DphmmError
from dphmm.reconstruction.regions import read_regions
from dphmm.release.stream import BadLine, parse_line
from dphmm.report.backdrop import read_backdrop
from dphmm.session.setting import Setting
from dphmm.statement.files import load_statement
from dphmm.storage import models
from dphmm.storage.geo_files import read_zones
from dphmm.storage.importers import IMPORTERS
from dphmm.storage.private_tables import read_edges
from dphmm.storage.public_tables import labels_by_state, read_costs, read_numbers, space_of_answers
from dphmm.storage.tables import read_table
from experiments.journal import Journal
from faults.forging import model_members, write_members
from faults.spoiled_files import PLT, parquet, plt, tarred, zipped
from fuzz.archive_files import tar_of, zip_of
from fuzz.ledger_files import ledger_file
from fuzz.model_files import model_file
from fuzz.mutations import (
    Mutation,
    bytes_anywhere,
    inside_gzip,
    json_lines,
    json_text,
    quoted_cells,
    table_text,
)
from fuzz.parquet_files import parquet_file

STATE, DIGITS, MOMENT = "CANARY_7f3a", "50.01937465", "2024-05-06T08:03:41.867531Z"
#: What no message may repeat of a private file.
SECRETS = (STATE, "01937465", "867531")
NAMES = ("alpha", "beta", "gamma", "delta")
_PEOPLE = json.dumps(
    {
        "format": models.PEOPLE_FORMAT,
        "kind": models._PEOPLE,
        "model_sha256": "ab" * 32,
        "key": "01" * 32,
        "digests": ["23" * 16, "45" * 16],
    }
).encode()


@dataclass(frozen=True)
class Reader:
    """How to read a file, valid files of its format, and how to spoil them.

    ``place``: the path under a folder at which the reader finds the file; the reader gets the folder and that path.
    """

    read: Callable[[Path], object]
    suffix: str
    seeds: Callable[[], list[bytes]]
    mutations: tuple[Mutation, ...]
    private: bool = False
    writes: bool = False
    errors: tuple[type[Exception], ...] = (DphmmError,)
    place: str = ""
    #: The public function this reader stands for, as the walk finds it.
    covers: str = ""

    def path(self, folder: Path) -> Path:
        """Where the file goes."""
        return folder / (self.place or f"x{self.suffix}")

    def secrets(self, content: bytes) -> tuple[str, ...]:
        """What may not be told. Names of columns may: they are the first row, whatever it says."""
        if not self.private:
            return ()
        first = next((line for line in content.splitlines() if line), b"").decode("utf-8", "replace")
        return tuple(secret for secret in SECRETS if secret[0].isdigit() or secret not in first)


@cache
def chain() -> Any:
    """A model on four named states."""
    space = dphmm.StateSpace([[0, 0], [1, 0], [0, 2], [1, 2]], NAMES)
    return dphmm.MarkovModel([0.25] * 4, np.full((4, 4), 0.25), space=space)


def _plain_plans() -> list[bytes]:
    setting = Setting.of(chain(), dphmm.policy.complete(4), chain().space, 1)
    return [json.dumps(plain_plans([(setting.first_plan(), setting.planner)])).encode()]


def _made(write: Callable[[Path], object], suffix: str) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{suffix}"
        write(path)
        return path.read_bytes()


@cache
def _models() -> list[bytes]:
    grid = dphmm.Grid(10.0, 50.0, 10.03, 50.02, "1km")
    n = grid.n_states
    on_map = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), space=grid, step=300)
    snapped = dphmm.StateSpace([0.1, 0.25, 0.7], ["a", "b", "c"])
    plain = dphmm.MarkovModel([1, 0, 0], np.eye(3), space=snapped, provenance={"private": False})
    jumping = plain.with_jump(0.01, [0.2, 0.3, 0.5])
    forged = model_members([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], names=["a", "b"])
    saved = [
        _made(lambda path, m=m: dphmm.storage.save_model(m, path), ".npz") for m in (on_map, plain, jumping, chain())
    ]
    return [*saved, _made(lambda path: write_members(path, forged), ".npz")]


@cache
def _tables() -> list[bytes]:
    space, n = dphmm.StateSpace([0, 1, 2]), 3
    model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))
    made = [dphmm.choose.optimize(model, dphmm.policy.complete(n), space, epsilon) for epsilon in (1, 20)]
    return [_made(lambda path, m=m: dphmm.storage.save_table(m, path), ".npz") for m in made]


@cache
def _policies() -> list[bytes]:
    policy, model = dphmm.policy, chain()
    kinds = [
        policy.complete(4),
        policy.categorical(["a", "a", "b", "b"]),
        policy.radius(model.space, 1.5),
        policy.transition(model),
        policy.from_edges([(0, 1), (2, 3)], 4),
    ]
    kinds.append(kinds[1].union(kinds[4]))
    return [_made(lambda path, k=k: dphmm.storage.save_policy(k, path, model=model), ".json") for k in kinds]


def _setting() -> bytes:
    setting, complete = {"constraint": "delta=0.1", "start": "at"}, dphmm.policy.complete(4)
    return _made(lambda path: dphmm.storage.save_policy(complete, path, model=chain(), setting=setting), ".json")


@cache
def _plans() -> list[bytes]:
    model, complete = chain(), dphmm.policy.complete(4)
    promise = dphmm.SequencePromise(2, per=6)
    made = [
        dphmm.choose.plan(model, complete, model.space, promise, schedule=kind, people=2)
        for kind in ("planned", "paced")
    ]
    return [_made(lambda path, plan=plan: dphmm.choose.save_plan(plan, path), ".json") for plan in made]


@cache
def _ledgers() -> list[bytes]:
    def write(path: Path) -> None:
        model = chain()
        with dphmm.open_ledger(path) as ledger:
            complete, bits = dphmm.policy.complete(4), dphmm.ReplayBits(1)
            running = dphmm.ReleaseSession(model, complete, model.space, 1, subject="a", ledger=ledger, bits=bits)
            running.release(0)
            running.skip(2)
            running.release(1)

    return [_made(write, ".db")]


def _read_ledger(path: Path) -> None:
    from dphmm.accounting.ledger import summarise_ledger

    with dphmm.open_ledger(path) as ledger:
        for subject, query in ledger.sessions():
            ledger.entries(subject, query)
            ledger.spent(subject)
        summarise_ledger(ledger, None)
        model = chain()
        # The views of a session read the plans of its answers.
        dphmm.ReleaseSession.resume(ledger, "a", model, dphmm.policy.complete(4), model.space).estimate()
        ledger.check()


def _lines(on_map: bool) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        for line in path.read_bytes().splitlines():
            parse_line(line, on_map)

    return read


_ROWS = (
    f"user,t,lat,lon,trip\nu1,{MOMENT},{DIGITS},10.01,1\nu2,2024-05-06T08:05:00Z,{DIGITS},-116.3,2\n"
    f"u1,2024-05-06T10:05:00+02:00,{DIGITS},10.02,1\n"
).encode()
_VISITS = f"user,step,state\nv1,1,{STATE}_a\nv1,2,{STATE}_b\nv2,1,{STATE}_a\n".encode()
_RELEASED = b"user,t,step,z_0,epsilon,cost,plan\nu1,2024-05-06T08:05:00Z,1,-3,1,inf,ab\n"
_ANSWERS = (
    b'{"user": "u1", "t": "2024-05-06T08:05:00Z", "step": 1, "z_0": -3.0, "z_1": 0.0, '
    b'"epsilon": 1.0, "cost": 2.5, "plan": "' + b"ab" * 32 + b'"}\n'
    b'{"user": "u2", "t": "2024-05-06T08:05:00.5Z", "step": 7, "z_0": 2.0, "z_1": -4.0, '
    b'"epsilon": 0.5, "cost": 1.25, "plan": "' + b"cd" * 32 + b'"}\n'
)
_ALONE = _ANSWERS.partition(b"\n")[0].replace(b'"t": "2024-05-06T08:05:00Z", ', b"") + b"\n"
_BACKDROP = (
    b'{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"name":"Lake"},"geometry":{"type":'
    b'"Polygon","coordinates":[[[10.001,50.001],[10.003,50.001],[10.003,50.003],[10.001,50.001]]]}},{"type":"Feature",'
    b'"properties":{"name":"Harbour"},"geometry":{"type":"Point","coordinates":[10.002,50.002]}},{"type":"Feature",'
    b'"properties":null,"geometry":{"type":"LineString","coordinates":[[10.0,50.0],[10.004,50.004]]}}]}'
)
_PLT = plt(f"{DIGITS},116.1,0,492,39744.1,2008-10-23,02:53:04", f"{DIGITS},116.2,0,492,39744.1,2008-10-23,02:53:09")
_GOWALLA = (
    f"0\t2010-10-19T23:55:27Z\t{DIGITS}\t-97.795\t22847\n1\t2010-10-18T22:17:43Z\t{DIGITS}\t-97.764\t420\n".encode()
)
_SEQ = b"% a comment\nfrontpage news tech\n1 1 2\n3\n2 3 1\n"
_WIDE = f"id,s1,s2,s3\np1,{STATE}_a,{STATE}_b,\np2,{STATE}_b,,{STATE}_a\n".encode()
_GRAPHML = (
    b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="w" for="edge" attr.name="weight"/>'
    b'<graph edgedefault="undirected"><node id="alpha"/><node id="beta"/><edge source="alpha" target="beta">'
    b'<data key="w">1.0</data></edge></graph></graphml>'
)
_NODE_LINK = json.dumps(
    {
        "directed": False,
        "nodes": [{"id": name} for name in NAMES],
        "edges": [{"source": "alpha", "target": "beta", "weight": 1}],
    }
).encode()
_STATEMENTS = [
    (Path(__file__).parents[1] / "statement" / "kept" / f"{name}.json").read_bytes() for name in ("plain", "learned")
]
_PLACES = (
    f'{{"user": "u", "t": "{MOMENT}", "lat": {DIGITS}, "lon": 10.0}}\n{{"user": 3, "lat": {DIGITS}, "lon": 350}}\n'
).encode()
_PAGES = f'{{"user": "u", "t": "{MOMENT}", "state": "{STATE}"}}\n{{"user": 3, "state": "{STATE}"}}\n'.encode()


def _table_seed() -> list[bytes]:
    stamps = pa.array([1_714_982_400_000_000] * 2, pa.timestamp("us", "UTC"))
    places = pa.table(
        {"user": ["u1", "u2"], "t": stamps, "lat": [float(DIGITS)] * 2, "lon": [10.0, 11.0], "trip": [1, 2]}
    )
    visits = pa.table({"user": [1, 2], "step": [1, 2], "state": [f"{STATE}_a", f"{STATE}_b"]})
    return [parquet(places), parquet(visits)]


def town() -> Any:
    """A small grid."""
    import dphmm

    return dphmm.Grid.from_bounds(10.0, 50.0, 10.01, 50.01, cell=200.0)


def _features(features: Iterable[tuple[Any, Any]], **more: object) -> bytes:
    """A GeoJSON file of properties with their geometry."""
    members = [{"type": "Feature", "properties": properties, "geometry": geometry} for properties, geometry in features]
    return json.dumps({"type": "FeatureCollection", **more, "features": members}).encode()


_POINTS = _features([({"user": "u1", "t": MOMENT}, {"type": "Point", "coordinates": [10.0, float(DIGITS)]})])
#: Features of every kind that the reader tells apart, and coordinates that are no degrees.
_FEATURES = _features(
    [
        ({"user": "u1", "t": MOMENT, "trip": 1, "n": 1.0}, {"type": "Point", "coordinates": [39e4, 5.82e6]}),
        ({"user": 7, "t": "2024-05-06T08:03:41", "trip": None}, {"type": "Point", "coordinates": [1e400, 0]}),
        ({"user": True, "t": [1], "more": {"a": "b"}}, {"type": "LineString", "coordinates": [[0, 1], [1, 2]]}),
        (None, None),
        ({"user": "u1", "t": 1714982400}, {"type": "Point", "coordinates": ["392000", None]}),
    ],
    crs={"type": "name", "properties": {"name": "EPSG:25833"}},
)
_GPX = (
    '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>'
    f'<trkpt lat="{DIGITS}" lon="13.35"><time>{MOMENT}</time></trkpt></trkseg></trk></gpx>'
).encode()
_LOG = (
    '<log><trace><string key="concept:name" value="a"/><event><string key="concept:name" '
    f'value="{STATE}"/><date key="time:timestamp" value="{MOMENT}"/></event></trace></log>'
).encode()
_KML = (
    '<kml xmlns:gx="x"><Placemark><gx:Track>'
    f"<when>{MOMENT}</when><gx:coord>{DIGITS} 13.35</gx:coord></gx:Track></Placemark></kml>"
).encode()
_LOCATIONS = b'{"locations": [{"latitudeE7": 501937465, "longitudeE7": 1335, "timestamp": "%s"}]}' % MOMENT.encode()
_TIMELINE = json.dumps(
    {
        "semanticSegments": [{"timelinePath": [{"point": f"{DIGITS}\u00b0, 8.5\u00b0", "time": MOMENT}]}],
        "rawSignals": [{"position": {"LatLng": f"geo:{DIGITS},8.5", "timestamp": MOMENT}}],
    },
    ensure_ascii=False,
).encode()
_REPORTS = (
    b'2015-08-24T05:55:07Z\t*  \t{"tst":1440395361,"_type":"location","lon":10.0,"lat":%s}\n'
    b'2015-08-24T05:55:08Z\t-  \t{"_type":"lwt"}\n' % DIGITS.encode()
)
_OBJECTS = f'{{"user": "a", "t": "{MOMENT}", "at": {{"lat": {DIGITS}, "lon": 1}}}}\n{{"user": "{STATE}"}}\n'.encode()
_TRIPS = (
    b"started_at,ended_at,start_lat,start_lng,end_lat,end_lng\n"
    b"2024-09-06 16:30:38.511,2024-09-06 16:39:13.554,%s,-73.9541,40.7218,-73.9504\n" % DIGITS.encode()
)
_ANIMALS = (
    b"visible,timestamp,location-lat,location-long,individual-local-identifier\n"
    b"true,2011-02-11 18:06:13.999,%s,-73.86,F1\ntrue,2011-02-11 17:30:00.000,,,F1\n" % DIGITS.encode()
)
#: Cells that the polygons lie on.
_CELLS = dphmm.Grid.from_bounds(0.1, 0.1, 1.9, 0.9, 20_000.0)
_ZONES = _features(
    ({"id": name}, {"type": "Polygon", "coordinates": [[[x, 0], [x + 1, 0], [x + 1, 1], [x, 1], [x, 0]]]})
    for x, name in enumerate("ab")
)
_CAB = b"%s -122.42 0 1211023883\n37.77 -122.42 1 1211023796\n" % DIGITS.encode()
_PORTO = (
    b'"TRIP_ID","TAXI_ID","TIMESTAMP","MISSING_DATA","POLYLINE"\n'
    b'"1","t","1372636858","False","[[-8.629,%s],[-8.63,41.16]]"\n' % DIGITS.encode()
)


def _gowalla(path: Path) -> object:
    return IMPORTERS["gowalla"](path)


def _load(path: Path) -> object:
    return dphmm.storage.load_trajectories(path)


def _hidden_models() -> list[bytes]:
    """Learned privately, one with dense and one with sparse moves."""
    from tempfile import TemporaryDirectory

    found = []
    with TemporaryDirectory() as folder:
        file = Path(folder) / "x.npz"
        for moves in (np.full((2, 2), 0.5), sparse.csr_array(np.eye(2))):
            hmm = dphmm.markov.CategoricalHMM(2, n_features=3, random_state=1, init_params="")
            hmm.startprob_, hmm.transmat_ = np.array([0.5, 0.5]), moves
            hmm.emissionprob_ = np.full((2, 3), 1 / 3)
            hmm.fit_private([[0, 1, 2]], epsilon=1, max_length=3, bits=dphmm.ReplayBits(1))
            dphmm.storage.save_hidden_model(hmm, file, symbols=NAMES[:3])
            found.append(file.read_bytes())
    return found


_CSV = (table_text(","), quoted_cells, bytes_anywhere)
_TABS, _BLANKS = ((table_text(between), bytes_anywhere) for between in "\t ")
_JSON, _MORE_JSON = (json_text, bytes_anywhere), (json_text, json_text, bytes_anywhere)
_LINES = (json_lines, bytes_anywhere)
_MODEL = (model_file, model_file, bytes_anywhere)
_PARQUET = (parquet_file, bytes_anywhere)
_COLUMNS = "s1:s3"

READERS: dict[str, Reader] = {
    "model": Reader(dphmm.storage.load_model, ".npz", _models, _MODEL, covers="load_model"),
    "made table": Reader(dphmm.storage.load_table, ".npz", _tables, _MODEL, covers="load_table"),
    "costs": Reader(
        lambda path: read_costs(path, ("a", "b")),
        ".csv",
        lambda: [b"state,a,b\na,0,1\nb,2.5,0\n", b"b,a\n0,1\n1e3,0\n"],
        _CSV,
        covers="read_costs",
    ),
    # A torn last line of it is cut off.
    "journal": Reader(
        Journal,
        ".jsonl",
        lambda: [b'{"cell": {"n": 1}, "rows": [{"x": 0.5}]}\n{"cell": {"n": 2}, "rows": []}\n', b""],
        (bytes_anywhere, json_lines),
        writes=True,
        covers="Journal",
    ),
    "hidden model": Reader(dphmm.storage.load_hidden_model, ".npz", _hidden_models, _MODEL, covers="load_hidden_model"),
    "plan": Reader(
        lambda path: dphmm.choose.read_plan(path, chain(), dphmm.policy.complete(4), chain().space),
        ".json",
        _plans,
        _MORE_JSON,
        covers="read_plan",
    ),
    "plans in plain form": Reader(read_plain_laws, ".json", _plain_plans, _MORE_JSON, covers="read_plain_laws"),
    "policy": Reader(
        lambda path: dphmm.storage.load_policy(path, model=chain()),
        ".json",
        _policies,
        _MORE_JSON,
        covers="load_policy",
    ),
    "setting of a policy": Reader(
        dphmm.storage.load_setting, ".json", lambda: [*_policies()[:2], _setting()], _MORE_JSON, covers="load_setting"
    ),
    "policy and its space": Reader(
        lambda path: dphmm.storage.load_policy_space(path, chain().space),
        ".json",
        _policies,
        _MORE_JSON,
        covers="load_policy_space",
    ),
    "people of a model": Reader(
        models._read_people, ".people", lambda: [_PEOPLE], _MORE_JSON, True, covers="load_people"
    ),
    "policy without a model": Reader(
        dphmm.storage.load_policy, ".json", lambda: [*_policies()[:2], *_policies()[4:]], _JSON
    ),
    "trajectories csv": Reader(_load, ".csv", lambda: [_ROWS, _VISITS], _CSV, True, covers="load_trajectories"),
    "trajectories csv.gz": Reader(
        _load, ".csv.gz", lambda: [gzip.compress(_ROWS, mtime=0)], (inside_gzip(table_text(",")), bytes_anywhere), True
    ),
    "trajectories parquet": Reader(_load, ".parquet", _table_seed, _PARQUET, True),
    "trajectories with semicolons": Reader(
        lambda path: dphmm.storage.load_trajectories(path, delimiter=";", order_column="step"),
        ".csv",
        lambda: [_VISITS.replace(b",", b";")],
        (table_text(";"), bytes_anywhere),
        True,
    ),
    "local times": Reader(
        lambda path: dphmm.storage.load_trajectories(path, timezone="Europe/Berlin"),
        ".csv",
        lambda: [_ROWS.replace(b"Z,", b",")],
        _CSV,
        True,
    ),
    "edges": Reader(read_edges, ".txt", lambda: [b"# from to\n1\t2\n2\t3\n", b"a b\nb c\n"], _TABS, True),
    "edges csv": Reader(read_edges, ".csv", lambda: [_VISITS], _CSV, True),
    "released table": Reader(read_table, ".csv", lambda: [_RELEASED], _CSV, covers="read_table"),
    "released parquet": Reader(read_table, ".parquet", _table_seed, _PARQUET, True),
    "released lines": Reader(
        lambda path: ReleasedFile.read(path, chain().space),
        ".jsonl",
        lambda: [_ANSWERS, _ALONE],
        _LINES,
        covers="table_of_lines",
    ),
    "samples": Reader(
        read_numbers, ".csv", lambda: [b"x,y\n1,2\n3,-4e1\n", b"1,2\n3,.5\n"], _CSV, covers="read_numbers"
    ),
    "samples of numpy": Reader(
        read_numbers,
        ".npy",
        lambda: [_made(lambda path, a=a: np.save(path, a), ".npy") for a in (np.eye(3), np.arange(5, dtype=np.int16))],
        (bytes_anywhere,),
    ),
    "backdrop": Reader(
        lambda path: read_backdrop(path, town()),
        ".geojson",
        lambda: [_BACKDROP],
        (bytes_anywhere,),
        covers="read_backdrop",
    ),
    "import csv": Reader(IMPORTERS["csv"], ".csv", lambda: [_ROWS, _VISITS], _CSV, True, covers="csv"),
    "geolife file": Reader(
        lambda path: IMPORTERS["geolife"](path.parents[3]),
        ".plt",
        lambda: [_PLT],
        (table_text(","), bytes_anywhere),
        True,
        place=PLT,
        covers="geolife",
    ),
    "geolife zip": Reader(
        IMPORTERS["geolife"], ".zip", lambda: [zipped({PLT: _PLT})], (zip_of(table_text(",")), bytes_anywhere), True
    ),
    "geolife tar": Reader(
        IMPORTERS["geolife"],
        ".tar",
        lambda: [tarred({PLT: _PLT}, packed=False)],
        (tar_of(table_text(",")), bytes_anywhere),
        True,
    ),
    "geolife tgz": Reader(
        IMPORTERS["geolife"],
        ".tgz",
        lambda: [tarred({PLT: _PLT})],
        (inside_gzip(tar_of(bytes_anywhere)), bytes_anywhere),
        True,
    ),
    "gowalla": Reader(_gowalla, ".txt", lambda: [_GOWALLA], _TABS, True, covers="gowalla"),
    "gowalla gz": Reader(
        _gowalla,
        ".txt.gz",
        lambda: [gzip.compress(_GOWALLA, mtime=0)],
        (inside_gzip(table_text("\t")), bytes_anywhere),
        True,
    ),
    "layout of text": Reader(
        lambda path: IMPORTERS["csv"](
            path, names="lat,lon,user,t", delimiter="space", comment="#", skip_lines=1, encoding="latin-1"
        ),
        ".txt",
        lambda: [b"title\n# c\n%s  10.5 u1 1213084687\n50.5 10.5 u2 1213084687\n" % DIGITS.encode()],
        _BLANKS,
        True,
    ),
    "folder of texts in a zip": Reader(
        IMPORTERS["cabspotting"],
        ".zip",
        lambda: [zipped({"d/new_a.txt": _CAB, "d/new_b.txt": _CAB, "d/_cabs.txt": b"x"})],
        (zip_of(table_text(" ")), bytes_anywhere),
        True,
        covers="cabspotting",
    ),
    "geo points": Reader(
        lambda path: IMPORTERS["geo"](path), ".geojson", lambda: [_POINTS, _FEATURES], _JSON, True, covers="geo"
    ),
    "geo points of named properties": Reader(
        lambda path: IMPORTERS["geo"](path, user_column="user", time_column="t", trip_column="more", timezone="UTC"),
        ".json",
        lambda: [_FEATURES],
        _JSON,
        True,
    ),
    "geo track": Reader(
        lambda path: IMPORTERS["geo"](path, user_name="a"), ".gpx", lambda: [_GPX], (bytes_anywhere,), True
    ),
    "zones": Reader(lambda path: read_zones(path, "id"), ".geojson", lambda: [_ZONES], _JSON, covers="read_zones"),
    "regions": Reader(
        lambda path: read_regions(path, _CELLS),
        ".csv",
        lambda: [b"state,region\nx0y0,west\nx1y0,west\nx2y1,east\n"],
        _CSV,
        covers="read_regions",
    ),
    "regions of polygons": Reader(lambda path: read_regions(path, _CELLS), ".geojson", lambda: [_ZONES], _JSON),
    "tdrive": Reader(
        IMPORTERS["tdrive"],
        ".txt",
        lambda: [b"1,2008-02-02 15:36:08,116.4,%s\n" % DIGITS.encode()],
        _CSV,
        True,
        covers="tdrive",
    ),
    "foursquare": Reader(
        IMPORTERS["foursquare"],
        ".txt",
        lambda: [b"2\tv\tc\tCaf\xe9\t%s\t-73.9\t-240\tTue Apr 03 18:00:09 +0000 2012\n" % DIGITS.encode()],
        _TABS,
        True,
        covers="foursquare",
    ),
    "porto": Reader(IMPORTERS["porto"], ".csv", lambda: [_PORTO], (*_CSV, quoted_cells), True, covers="porto"),
    "intervals": Reader(
        lambda path: IMPORTERS["intervals"](path, step="1h", timezone="UTC", user_name="a"),
        ".txt",
        lambda: [
            b"Start time \tEnd time \tActivity\n----\t----\t---\n"
            b"2011-11-28 02:27:59\t\t2011-11-28 10:18:11\t\t%s\t\n" % STATE.encode()
        ],
        _TABS,
        True,
        covers="intervals",
    ),
    "xes": Reader(IMPORTERS["xes"], ".xes", lambda: [_LOG], (bytes_anywhere, quoted_cells), True, covers="xes"),
    "events": Reader(
        lambda path: IMPORTERS["events"](path, case_names="kept", length=3),
        ".xes",
        lambda: [_LOG],
        (bytes_anywhere, quoted_cells),
        True,
        covers="events",
    ),
    "kml": Reader(
        lambda path: IMPORTERS["kml"](path, user_name="a"),
        ".kml",
        lambda: [_KML],
        (bytes_anywhere,),
        True,
        covers="kml",
    ),
    "google": Reader(
        lambda path: IMPORTERS["google"](path, user_name="a"),
        ".json",
        lambda: [_LOCATIONS, _TIMELINE],
        _JSON,
        True,
        covers="google",
    ),
    "owntracks": Reader(
        lambda path: IMPORTERS["owntracks"](path, user_name="a"),
        ".rec",
        lambda: [_REPORTS],
        (*_TABS, json_lines),
        True,
        covers="owntracks",
    ),
    "json lines": Reader(
        lambda path: IMPORTERS["jsonl"](path, lat_column="at.lat", lon_column="at.lon"),
        ".jsonl",
        lambda: [_OBJECTS],
        _LINES,
        True,
        covers="jsonl",
    ),
    "trips": Reader(
        lambda path: IMPORTERS["trips"](path, each_trip=True, timezone="UTC"),
        ".csv",
        lambda: [_TRIPS],
        _CSV,
        True,
        covers="trips",
    ),
    "movebank": Reader(IMPORTERS["movebank"], ".csv", lambda: [_ANIMALS], _CSV, True, covers="movebank"),
    "ais": Reader(
        IMPORTERS["ais"],
        ".csv",
        lambda: [b"MMSI,BaseDateTime,LAT,LON\n%s,2020-01-31T23:59:58,%s,-74.1\n" % (STATE.encode(), DIGITS.encode())],
        _CSV,
        True,
        covers="ais",
    ),
    "avl": Reader(
        IMPORTERS["avl"],
        ".csv",
        lambda: [b"vehicle_id,timestamp,latitude,longitude\nbus,%s,%s,13.4\n" % (MOMENT.encode(), DIGITS.encode())],
        _CSV,
        True,
        covers="avl",
    ),
    "sequences": Reader(IMPORTERS["sequences"], ".seq", lambda: [_SEQ], _BLANKS, True, covers="sequences"),
    "wide table": Reader(
        lambda path: IMPORTERS["sequences"](path, columns=_COLUMNS, user_column="id"),
        ".csv",
        lambda: [_WIDE],
        _CSV,
        True,
    ),
    "edge list": Reader(
        lambda path: dphmm.policy.from_edge_list(path, chain().space),
        ".csv",
        lambda: [b"alpha,beta\nbeta,gamma\n"],
        _CSV,
        covers="from_edge_list",
    ),
    "node-link graph": Reader(
        lambda path: dphmm.policy.from_node_link(path, chain().space),
        ".json",
        lambda: [_NODE_LINK],
        _JSON,
        covers="from_node_link",
    ),
    "graphml": Reader(
        lambda path: dphmm.policy.from_graphml(path, chain().space),
        ".graphml",
        lambda: [_GRAPHML],
        _BLANKS,
        covers="from_graphml",
    ),
    "labels": Reader(
        lambda path: labels_by_state(str(path), chain().space),
        ".csv",
        lambda: [b"state,label\nalpha,x\nbeta,x\ngamma,y\ndelta,y\n"],
        _CSV,
        covers="labels_by_state",
    ),
    "answers": Reader(
        lambda path: space_of_answers(str(path)),
        ".csv",
        lambda: [b"state,x,y\nalpha,1,2\nbeta,0.5,3\n"],
        _CSV,
        covers="space_of_answers",
    ),
    "answers parquet": Reader(
        lambda path: space_of_answers(str(path)),
        ".parquet",
        lambda: [parquet(pa.table({"state": NAMES, "x": [1.0, 2, 3, 4]}))],
        _PARQUET,
    ),
    "privacy statement": Reader(
        lambda path: load_statement(path.with_name("x")),
        ".privacy.json",
        lambda: _STATEMENTS,
        _JSON,
        covers="load_statement",
    ),
    "ledger": Reader(_read_ledger, ".db", _ledgers, (ledger_file,), writes=True, covers="open_ledger"),
    "stream of places": Reader(
        _lines(True), ".jsonl", lambda: [_PLACES], _LINES, True, errors=(DphmmError, BadLine), covers="parse_line"
    ),
    "stream of states": Reader(_lines(False), ".jsonl", lambda: [_PAGES], _LINES, True, errors=(DphmmError, BadLine)),
}
