"""The HTTP server alone: what it lets in, and what it answers."""

import http.client
import socket
import threading
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from lossbisect.serve.web import Answer, Asked, is_loopback, open_server, refused_host


class Echo:
    """Answers with what was asked."""

    def answer(self, asked: Asked) -> Answer:
        """The parts of the path; a tag where there is one."""
        return Answer(body=lambda: repr(asked).encode(), kind="text/plain", policy="default-src 'none'", tag="one")

    def trouble(self, status: HTTPStatus, message: str) -> Answer:
        """The message."""
        return Answer(body=message.encode, kind="text/plain", policy="default-src 'none'", status=status)


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """Where a server listens."""
    with open_server(Echo(), "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield "127.0.0.1", server.server_address[1]
        server.shutdown()


def ask(
    address: tuple[str, int], method: str = "GET", path: str = "/", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """One request of a connection of its own."""
    connection = http.client.HTTPConnection(*address, timeout=20)
    connection.request(method, path, headers=headers or {})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


@pytest.mark.parametrize(
    ("header", "is_refused"),
    [
        ("localhost", False),
        ("LOCALHOST:8642", False),
        ("127.0.0.1:1", False),
        ("[::1]:8642", False),
        ("192.168.1.7", False),
        ("node7:8642", False),
        ("evil.example", True),
        ("evil.example:8642", True),
        ("localhost.evil.example", True),
        ("127.0.0.1.evil.example", True),
        ("evil.example@localhost", True),
        ("localhost/evil", True),
        ("localhost:x y", True),
        ("[::1", True),
        ("", True),
        (None, True),
    ],
)
def test_only_this_servers_names_are_taken(header: str | None, is_refused: bool) -> None:
    """A name that somebody else may point here is refused, so that no other site's script reads what is served."""
    assert refused_host(header, {"localhost", "node7"}) is is_refused


def test_another_name_gets_nothing(address: tuple[str, int]) -> None:
    """A rebound name is told so, and sees no content."""
    status, _, body = ask(address, headers={"Host": "evil.example"})
    assert status == HTTPStatus.MISDIRECTED_REQUEST
    assert b"Asked" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_nothing_but_get_and_head(address: tuple[str, int], method: str) -> None:
    """Every other method is refused with the two that are allowed, and the connection ends."""
    status, headers, body = ask(address, method)
    assert (status, headers["Allow"]) == (HTTPStatus.METHOD_NOT_ALLOWED, "GET, HEAD")
    assert b"GET and HEAD only" in body


def test_head_is_get_without_content(address: tuple[str, int]) -> None:
    """The same headers, and no body."""
    got, head = ask(address), ask(address, "HEAD")
    assert head[2] == b""
    assert {**got[1], "Date": ""} == {**head[1], "Date": ""}


def test_what_the_asker_has_isnt_sent_again(address: tuple[str, int]) -> None:
    """With the tag of before: 304 and nothing else."""
    tag = ask(address)[1]["ETag"]
    assert ask(address, headers={"If-None-Match": tag})[::2] == (HTTPStatus.NOT_MODIFIED, b"")
    assert ask(address, headers={"If-None-Match": '"other"'})[0] == HTTPStatus.OK


def test_headers_trust_nothing(address: tuple[str, int]) -> None:
    """No sniffing, no frame, no referrer, no other origin, a policy; errors have them too."""
    for method in ("GET", "POST"):
        headers = ask(address, method)[1]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Content-Security-Policy"] == "default-src 'none'"
        assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    "text",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40\r\n\r\nGET /two HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET //evil.example/%2e%2e HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_odd_requests_get_one_answer(address: tuple[str, int], text: bytes) -> None:
    """Whatever comes: one answer, no second request within a content, and the server lives."""
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        got = b""
        while block := connection.recv(65536):
            got += block
    assert got.count(b"HTTP/1.1 ") == 1
    assert ask(address)[0] == HTTPStatus.OK


def test_loopback_is_told_from_the_rest() -> None:
    """Only addresses of this machine alone are."""
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "node7")))  # noqa: S104
