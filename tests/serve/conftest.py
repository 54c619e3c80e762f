"""A site on a made-up cache directory, asked without a socket."""

from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from lossbisect.serve.site import Site
from lossbisect.serve.web import Answer, Asked

type Get = Callable[[str], tuple[HTTPStatus, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The cache directory."""
    return tmp_path / "cache"


@pytest.fixture
def get(root: Path) -> Iterator[Get]:
    """Ask for an address: the status and the text."""
    site = Site(root)

    def _get(address: str) -> tuple[HTTPStatus, str]:
        answer = site.answer(asked(address))
        return answer.status, text_of(answer)

    yield _get


def asked(address: str) -> Asked:
    """A request as the server makes it of an address."""
    split = urlsplit(address)
    parts = tuple(unquote(part) for part in split.path.split("/") if part)
    return Asked(parts=parts, query=dict(parse_qsl(split.query)))


def text_of(answer: Answer) -> str:
    """The content of an answer."""
    body = answer.body()
    if isinstance(body, bytes):
        return body.decode()
    with body:
        return body.read().decode()
