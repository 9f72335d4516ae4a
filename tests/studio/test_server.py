"""Requests of the page alone: others get nothing, whatever they know.

Claims: without the token, under another host, from another origin or site, as another kind of content, or larger than
the limit nothing is answered or changed; the page's policy allows its own script and style alone; a stale change is
409, and a refusal is one line. Requests are sent to the application itself, header by header.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import socket
import threading
from urllib.request import Request, urlopen

import msgspec
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import uvicorn

from dphmm.studio import server
from dphmm.studio.server import app_of, page
from studio.conftest import GRID

OWN = {"host": "127.0.0.1:8123", "origin": "http://127.0.0.1:8123", "content-type": "application/json"}


@pytest.fixture
def asked(studio, monkeypatch):
    """asked(path, body, **headers): status, headers and body of a request; asked.studio is the session."""
    monkeypatch.setattr("dphmm.studio.session.Studio._plans", lambda *rest: None)
    one = studio()
    app = app_of(one, "sesame", 8123)

    def sent(path, body=None, method=None, **headers):
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {**OWN, "content-length": str(len(data))} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": "",
            "method": method or ("GET" if body is None else "POST"), "path": path, "raw_path": path.encode(),
            "query_string": query.encode(), "server": ("127.0.0.1", 8123), "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode()) for name, value in named.items() if value is not None],
        }  # fmt: skip
        answered = []

        async def receive():
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message):
            answered.append(message)

        asyncio.run(app(scope, receive, send))
        told = {name.decode(): value.decode() for name, value in answered[0]["headers"]}
        return answered[0]["status"], told, b"".join(part.get("body", b"") for part in answered[1:])

    sent.studio = one
    return sent


def body(draft, version=1):
    return {"version": version, "draft": json.loads(msgspec.json.encode(draft))}


CHANGED = msgspec.structs.replace(GRID, covers="2km")


def test_the_page_gets_and_changes_the_setting(asked):
    assert asked("/sesame/setting")[0] == 200
    status, headers, told = asked("/sesame/setting", body(CHANGED))
    assert status == 200 and json.loads(told)["version"] == 2 and asked.studio.shown().draft.covers == "2km"
    assert headers["cache-control"] == "no-store" and headers["referrer-policy"] == "no-referrer"
    status, _, told = asked("/sesame/setting", body(GRID))
    assert status == 409 and asked.studio.shown().draft.covers == "2km" and b"another page" in told
    status, _, told = asked("/sesame/state", {"version": 2, "number": 10**6})
    assert status == 400 and "state" in json.loads(told)["error"]


@pytest.mark.parametrize("path", ["", "setting", "progress", "report", "saved/release.toml?version=1"])
def test_another_page_reads_and_changes_nothing(asked, path):
    for sent in (None, body(CHANGED)):
        status, _, told = asked(f"/sesame/{path}", sent, origin="http://evil.example")
        assert status == 403 and b"walks" not in told and asked.studio.shown().version == 1


@pytest.mark.parametrize(
    "path", ["/", "/setting", "/open/setting", "/sesam/setting", "/sesamee/setting", "/SESAME/setting"]
)
def test_without_the_token_there_is_nothing(asked, path):
    assert asked(path)[0] == 404
    assert asked(path, body(CHANGED))[0] in (404, 405) and asked.studio.shown().version == 1


@pytest.mark.parametrize(
    ("sent", "headers", "status"),
    [
        (b"{}", {}, 400), (b"[", {}, 400), (b'{"version": "1", "draft": {}}', {}, 400),
        (b'{"version": 1, "draft": {"kind": "h3"}}', {}, 400), (b'{"version": 1, "draft": {"other": 1}}', {}, 400),
        (b'{"version": 1, "draft": {}, "more": 1}', {}, 400),
        (b'{"version": 1, "draft": {}}', {"content_type": "text/plain"}, 415),
        (b'{"version": 1, "draft": {}}', {"content_length": "9999999"}, 413),
        (b'{"version": 1, "draft": {}}', {"content_length": None}, 413),
    ],
)  # fmt: skip
def test_what_is_no_request_of_the_page_is_refused(asked, sent, headers, status):
    assert asked("/sesame/setting", sent, **headers)[0] == status and asked.studio.shown().version == 1


def test_files_are_those_of_the_setting(asked):
    status, headers, told = asked("/sesame/saved/release.toml?version=1")
    assert (
        status == 200 and told.decode() == asked.studio.shown().text and headers["content-disposition"] == "attachment"
    )
    for path, status in (("saved/walks.csv?version=1", 400), ("saved/..%2Fwalks.csv?version=1", 400), ("report", 404)):
        assert asked(f"/sesame/{path}")[0] == status
    assert asked("/sesame/saved/release.toml?version=7")[0] == 409


def test_the_policy_of_the_page_allows_its_own_script_and_style_alone(asked):
    _, headers, told = asked("/sesame/")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "require-trusted-types-for 'script'" in policy
    for kind in ("script", "style"):
        (text,) = re.findall(f"<{kind}>(.*?)</{kind}>", told.decode(), re.S)
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert page()[1] == policy and not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page()[0])


@pytest.mark.replayed_words
def test_is_served_on_this_computer_under_its_token(studio, monkeypatch):
    """A real server: its address works, and listens on loopback alone."""
    monkeypatch.setattr("dphmm.studio.session.Studio._plans", lambda *rest: None)
    address, ready, servers = [], threading.Event(), []
    begin = uvicorn.Server.__init__
    monkeypatch.setattr(uvicorn.Server, "__init__", lambda self, config: (begin(self, config), servers.append(self))[0])

    def opened(at):
        address.append(at)
        ready.set()

    thread = threading.Thread(target=server.serve, args=(studio(), 0, opened))
    thread.start()
    try:
        assert ready.wait(30) and address[0].startswith("http://127.0.0.1:")
        with urlopen(Request(address[0]), timeout=30) as answer:
            assert b"dphmm studio" in answer.read()
        port = int(address[0].split(":")[2].split("/")[0])
        own = {name for *_, (name, *_) in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {
            "127.0.0.1"
        }
        for name in own:
            with socket.socket() as other:
                other.settimeout(5)
                assert other.connect_ex((name, port)) != 0
    finally:
        servers[0].should_exit = True
        thread.join(30)
    assert not thread.is_alive()
