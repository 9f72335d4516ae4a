"""The page and its requests, for this computer alone: loopback, one random token, and requests of the page itself.

    GET  /TOKEN/                the page; its script and style are in it, and it loads nothing
    GET  /TOKEN/setting         PageState
    POST /TOKEN/setting         {version, draft} -> PageState; /file {version, text} and /demo {version} alike
    GET  /TOKEN/progress        Progressed
    POST /TOKEN/state           {version, number, draw} -> State
    GET  /TOKEN/saved/NAME      ?version=N -> a file to download
    POST /TOKEN/save            {version} -> names of files
    POST /TOKEN/check           {version} -> Checked
    POST /TOKEN/ask             {version} -> Asked
    POST /TOKEN/release         {version, word} -> Progressed
    GET  /TOKEN/report          the page of the release

A refusal is {error} with 400; 403 for another origin or host, 404 without the token, 409 for a stale version.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from dphmm.errors import DphmmError
from dphmm.report.page import content_policy
from dphmm.report.svg import style
from dphmm.studio.draft import Draft
from dphmm.studio.gate import HOST, Gate, token
from dphmm.studio.session import Stale, Studio

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

#: Larger requests are none of the page's.
_LARGEST = 2_000_000


class Posted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request about a version, with the members that its address needs.

    text : a pipeline file in place of the setting. number, draw : a state, and which answer is drawn there. word : the
    agreement to a release.
    """

    version: int
    text: str = ""
    number: int = 0
    draw: int = 0
    word: str = ""


class Change(Posted, frozen=True, kw_only=True):
    """A draft in place of that of a version."""

    draft: Draft


def page() -> tuple[str, str]:
    """The page, and its content security policy: nothing runs but the page's script, and no text becomes markup."""
    folder = files("dphmm.studio").joinpath("page")
    rules = style("palette") + folder.joinpath("studio.css").read_text(encoding="utf-8")
    script = folder.joinpath("studio.js").read_text(encoding="utf-8")
    text = folder.joinpath("studio.html").read_text(encoding="utf-8")
    whole = text.replace("/* style */", rules).replace("/* script */", script)
    return whole, f"{content_policy(rules, script)}; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'"


def app_of(studio: Studio, token: str, port: int) -> Gate:
    """The requests of a session, for pages of this server alone; ``port`` is the one that is listened on."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    html, policy = page()

    def posted(path: str, work: Callable[[Any], Any], taken: type[Posted] = Posted) -> Route:
        async def answer(sent: Request) -> Response:
            length = sent.headers.get("content-length", "")
            if not length.isdecimal() or int(length) > _LARGEST:
                return _json({"error": f"a request of more than {_LARGEST:,} bytes"}, 413)
            if sent.headers.get("content-type") != "application/json":
                return _json({"error": "a request that is no JSON"}, 415)
            try:
                body = msgspec.json.decode(await sent.body(), type=taken)
            except msgspec.DecodeError as error:
                return _json({"error": f"setting: {error}"}, 400)
            return await run_in_threadpool(_answered, lambda: _json(work(body)))

        return Route(path, answer, methods=["POST"])

    def got(path: str, work: Callable[[int, str], Response]) -> Route:
        async def answer(sent: Request) -> Response:
            version, name = sent.query_params.get("version", ""), sent.path_params.get("name", "")
            return await run_in_threadpool(_answered, lambda: work(int(version) if version.isdecimal() else 0, name))

        return Route(path, answer)

    def report(version: int, name: str) -> Response:
        text = studio.report
        return _json({"error": "no report yet"}, 404) if text is None else Response(text, media_type="text/html")

    def saved(version: int, name: str) -> Response:
        text, headers = studio.companion(version, name), {"content-disposition": "attachment"}
        return Response(text, media_type="text/plain; charset=utf-8", headers=headers)

    async def start(_: Request) -> Response:
        return Response(html, media_type="text/html", headers={"content-security-policy": policy})

    routes = [
        Route("/", start),
        got("/setting", lambda version, name: _json(studio.shown())),
        posted("/setting", lambda one: studio.change(one.version, one.draft), Change),
        posted("/file", lambda one: studio.read(one.version, one.text)),
        posted("/demo", lambda one: studio.demo(one.version)),
        got("/progress", lambda version, name: _json(studio.progressed())),
        posted("/state", lambda one: studio.look(one.version, one.number, one.draw)),
        got("/saved/{name}", saved),
        posted("/save", lambda one: studio.save(one.version)),
        posted("/check", lambda one: studio.check(one.version)),
        posted("/ask", lambda one: studio.ask(one.version)),
        posted("/release", lambda one: studio.release(one.version, one.word)),
        got("/report", report),
    ]
    return Gate(Starlette(routes=[Mount(f"/{token}", routes=routes)]), port)


def _answered(work: Callable[[], Response]) -> Response:
    """An answer, or the line of a refusal."""
    try:
        return work()
    except Stale:
        return _json({"error": "another page has changed the setting: this one shows it now"}, 409)
    except DphmmError as error:
        return _json({"error": str(error)}, 400)


def _json(value: Any, status: int = 200) -> Response:
    from starlette.responses import Response

    return Response(msgspec.json.encode(value), status, media_type="application/json")


def serve(studio: Studio, port: int, opened: Callable[[str], None]) -> None:
    """Serve a session on this computer until Ctrl-C. ``port`` 0: a free one; ``opened`` is called with the address.

    Raises OSError for a port that is in use.
    """
    import uvicorn

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        # Whoever is told the address is answered.
        listening.listen()
        port, key = int(listening.getsockname()[1]), token()
        # Addresses hold the token: nothing of requests is logged.
        config = uvicorn.Config(app_of(studio, key, port), log_level="critical", access_log=False, server_header=False)
        opened(f"http://{HOST}:{port}/{key}/")
        try:
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            studio.close()
