"""Requests of other pages are refused before the application sees them.

Claims: each header that a foreign page cannot set right decides by itself; own requests pass, and every answer says
that it is not stored and not for others; no web socket is opened; tokens are long and differ.
"""

from __future__ import annotations

import asyncio

import pytest

from dphmm.studio.gate import Gate, token

OWN = {"host": "127.0.0.1:8123", "origin": "http://127.0.0.1:8123", "sec-fetch-site": "same-origin"}
OTHERS = {
    "another origin": {"origin": "http://evil.example"},
    "a frame without an origin": {"origin": "null"},
    "no origin": {"origin": None},
    "another scheme": {"origin": "https://127.0.0.1:8123"},
    "another port": {"origin": "http://127.0.0.1:8124"},
    "another port as host": {"host": "127.0.0.1:80", "origin": "http://127.0.0.1:80"},
    "no host": {"host": None},
    "a name that was pointed here": {"host": "evil.example:8123", "origin": "http://evil.example:8123"},
    "another site": {"sec-fetch-site": "cross-site"},
    "the same site": {"sec-fetch-site": "same-site"},
}


def sent(method="POST", kind="http", **headers):
    """The status and the headers of an answer, and whether the application saw the request."""
    seen, answered = [], []

    async def app(scope, receive, send):
        seen.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]})

    async def send(message):
        answered.append(message)

    named = [(name.encode(), value.encode()) for name, value in headers.items() if value is not None]
    asyncio.run(Gate(app, 8123)({"type": kind, "method": method, "headers": named}, None, send))
    return (answered[0]["status"] if answered else None), dict(answered[0]["headers"] if answered else []), bool(seen)


@pytest.mark.parametrize("whose", OTHERS)
def test_a_change_of_another_page_is_refused(whose):
    status, headers, seen = sent(**{**OWN, **OTHERS[whose]})
    assert (status, seen) == (403, False) and headers[b"cache-control"] == b"no-store"


@pytest.mark.parametrize("whose", [name for name in OTHERS if name != "no origin"])
def test_another_page_reads_nothing(whose):
    assert sent("GET", **{**OWN, **OTHERS[whose]})[::2] == (403, False)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("host", ["127.0.0.1:8123", "localhost:8123"])
def test_the_own_page_is_answered(method, host):
    status, headers, seen = sent(method, host=host, origin=f"http://{host}")
    assert (status, seen) == (200, True)
    assert headers[b"referrer-policy"] == b"no-referrer" and headers[b"x"] == b"y"


def test_an_address_that_is_typed_is_answered():
    assert sent("GET", host="127.0.0.1:8123", **{"sec-fetch-site": "none"})[0] == 200


def test_no_other_connection_is_opened():
    assert sent(kind="websocket", **OWN) == (None, {}, False)


@pytest.mark.system_words(error="1e-40", because="two of 50 addresses of 192 random bits may be alike")
def test_tokens_cannot_be_guessed():
    found = {token() for _ in range(50)}
    assert len(found) == 50 and min(map(len, found)) >= 32
