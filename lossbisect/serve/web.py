"""The HTTP server: answers to GET and HEAD, headers that trust nothing, and no write. Knows nothing of what it serves.

Who may ask: anybody who reaches the address it listens on, which is this machine alone by default. Two things keep
other sites' scripts out. They can't read an answer, since no header lets another origin do so. And a name that an
attacker points at this machine (DNS rebinding) is refused, since only ``localhost``, numbers and the name that was
given are taken as ``Host``.
"""

import ipaddress
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import BinaryIO, Protocol, cast
from urllib.parse import parse_qsl, unquote, urlsplit

__all__ = ["Answer", "Asked", "Pages", "is_loopback", "open_server", "refused_host"]

_PATIENCE_S = 30.0
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A request.

    Attributes:
        parts: The path's parts, decoded; none for ``/``. A part may hold anything, a slash or a dot too.
        query: What stands after the question mark.
    """

    parts: tuple[str, ...]
    query: dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What is answered.

    Attributes:
        body: Makes the content, bytes or an open file; called only if the asker doesn't have it yet.
        kind: Content-Type.
        policy: Content-Security-Policy.
        tag: Changes when the content does; None: it isn't told.
        status: HTTP's code.
    """

    body: Callable[[], bytes | BinaryIO]
    kind: str
    policy: str
    tag: str | None = None
    status: HTTPStatus = HTTPStatus.OK


class Pages(Protocol):
    """What is served."""

    def answer(self, asked: Asked) -> Answer:
        """The answer to a request; what isn't there is an answer too."""
        ...

    def trouble(self, status: HTTPStatus, message: str) -> Answer:
        """The page that says that a request can't be answered."""
        ...


def open_server(pages: Pages, host: str, port: int) -> ThreadingHTTPServer:
    """A server that listens; ``serve_forever`` answers, each request in a thread of its own.

    Args:
        pages: What is served.
        host: Name or address to listen on.
        port: 0: any free one.

    Raises:
        OSError: It can't listen there.
    """
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    names = {"localhost", host.lower()}
    if not is_loopback(host):
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    class Server(ThreadingHTTPServer):
        address_family = family
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A connection that breaks is nobody's news."""

    class Handler(_Handler):
        served = pages
        allowed = frozenset(names)

    return Server((host, port), Handler)


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refused_host(header: str | None, names: Collection[str]) -> bool:
    """Whether a ``Host`` header is one that no link to this server has.

    Args:
        header: The header; None: there is none.
        names: Names that are taken, lower case; an address in numbers always is.
    """
    if header is None:
        return True
    try:
        name = urlsplit(f"//{header}").hostname
    except ValueError:
        return True
    if name is None or set(header) & set("@/?#\\ "):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name not in names
    return False


class _Handler(BaseHTTPRequestHandler):
    served: Pages
    allowed: frozenset[str]
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.1"  # of a request that can't be read: its answer has headers too
    server_version = "lossbisect"
    sys_version = ""
    timeout = _PATIENCE_S

    def do_GET(self) -> None:
        """Answer."""
        self._send(self._answer(), is_head=False)

    def do_HEAD(self) -> None:
        """Answer without the content."""
        self._send(self._answer(), is_head=True)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server refuses by itself, methods above all: a page as any other."""
        del explain
        is_method = code == HTTPStatus.NOT_IMPLEMENTED
        status = HTTPStatus.METHOD_NOT_ALLOWED if is_method else HTTPStatus(code)
        self.close_connection = True
        told = "Nothing can be changed here: GET and HEAD only." if is_method else message or status.phrase
        self._send(self.served.trouble(status, told), is_head=self.command == "HEAD")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: a page that keeps itself up to date would fill the terminal."""

    def _answer(self) -> Answer:
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # a content that nobody reads must not be taken for the next request
        if refused_host(self.headers.get("Host"), self.allowed):
            return self.served.trouble(
                HTTPStatus.MISDIRECTED_REQUEST,
                "This name isn't one of this server's. Open it by its address in numbers, or as localhost.",
            )
        try:
            split = urlsplit(self.path)
            parts = tuple(unquote(part, errors="strict") for part in split.path.split("/") if part)
            asked = Asked(parts=parts, query=dict(parse_qsl(split.query, max_num_fields=16)))
        except ValueError:
            return self.served.trouble(HTTPStatus.BAD_REQUEST, "This address can't be read.")
        return self.served.answer(asked)

    def _send(self, answer: Answer, *, is_head: bool) -> None:
        tag = f'"{answer.tag}"' if answer.tag else None
        headers = getattr(self, "headers", None) or {}  # none where the request couldn't be read
        if tag and answer.status is HTTPStatus.OK and tag in (headers.get("If-None-Match") or "").split(", "):
            self._begin(HTTPStatus.NOT_MODIFIED, answer, tag)
            self.end_headers()
            return
        body = answer.body()
        self._begin(answer.status, answer, tag)
        try:
            size = len(body) if isinstance(body, bytes) else _size(body)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            if not is_head:
                if isinstance(body, bytes):
                    self.wfile.write(body)
                else:
                    _copy(body, cast(BinaryIO, self.wfile), size)
        finally:
            if not isinstance(body, bytes):
                body.close()

    def _begin(self, status: HTTPStatus, answer: Answer, tag: str | None) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", answer.policy)
        self.send_header("Cache-Control", "no-cache" if tag else "no-store")
        if tag:
            self.send_header("ETag", tag)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        if self.close_connection:
            self.send_header("Connection", "close")


def _size(file: BinaryIO) -> int:
    size = file.seek(0, 2)
    file.seek(0)
    return size


def _copy(file: BinaryIO, to: BinaryIO, size: int) -> None:
    """No more than was promised: a log may grow meanwhile."""
    left = size
    while left > 0 and (block := file.read(min(left, 1 << 20))):
        to.write(block)
        left -= len(block)
