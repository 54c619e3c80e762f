"""A headless Chromium, and pages opened in it under watch."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")


@dataclass
class Watched:
    """A page with all that it said and asked for.

    Attributes:
        page: The page.
        complaints: Lines of the console and uncaught errors.
        requests: Addresses that it asked for, its own file aside.
    """

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


type Open = Callable[..., Watched]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, or the one that $LOSSBISECT_CHROMIUM names."""
    program = os.environ.get("LOSSBISECT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        reason = "there is no Chromium: 'make browser' installs it as root on a Debian; or set LOSSBISECT_CHROMIUM"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open a file; at the end each page must have been quiet and have asked for nothing."""
    opened: list[Watched] = []
    contexts = []

    def _open(file: Path, *, width: int = 1200, is_dark: bool = False, **more: Any) -> Watched:
        scheme: Any = "dark" if is_dark else "light"
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
        contexts.append(context)
        watched = Watched(context.new_page())
        watched.page.on("console", lambda message: watched.complaints.append(message.text))
        watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        watched.page.on("request", lambda request: watched.requests.append(request.url))
        watched.page.goto(file.as_uri())
        watched.page.wait_for_function("document.documentElement.dataset.ready")
        opened.append(watched)
        return watched

    yield _open
    said = [(watched.complaints, watched.requests[1:]) for watched in opened]
    for context in contexts:
        context.close()
    assert said == [([], [])] * len(opened)
