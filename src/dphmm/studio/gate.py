"""Requests of the studio's own page: others are refused before anything reads them. Without a library of the web.

A page elsewhere cannot know the token of the address. Were it told, its requests would have another origin; and a name
that a stranger points to this computer has another host.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

HOST = "127.0.0.1"
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
#: Of every answer: nothing is stored, and no other page learns of this one.
_CLOSED = [
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
_REFUSED = b'{"error":"a request of another page"}'


def token() -> str:
    """A random part of the address, which nobody can guess."""
    return secrets.token_urlsafe(24)


class Gate:
    """An ASGI application for pages of this server alone, which listens on ``port``."""

    def __init__(self, app: App, port: int) -> None:
        self._app, self._hosts = app, [f"{name}:{port}" for name in (HOST, "localhost")]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with 403."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and not self._is_own(scope):
            kind = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 403, "headers": [*kind, *_CLOSED]})
            await send({"type": "http.response.body", "body": _REFUSED})
        elif scope["type"] == "http":

            async def closed(message: Message) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = [*message["headers"], *_CLOSED]
                await send(message)

            await self._app(scope, receive, closed)

    def _is_own(self, scope: Message) -> bool:
        """True if a request is of the own page: by its host, its origin, and the site that it comes from."""
        headers = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get("host"), headers.get("origin")
        if host not in self._hosts or headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return False
        # A browser tells the origin of every change.
        return origin == f"http://{host}" or (origin is None and scope["method"] in ("GET", "HEAD"))
