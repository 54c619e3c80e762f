"""The site of ``lossbisect serve`` in a real browser, as a person uses it."""

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from lossbisect.serve.site import Site
from lossbisect.serve.watch import Watch
from lossbisect.serve.web import open_server
from lossbisect.store.database import writing
from tests.browser.made import EVIL, bisection
from tests.serve.conftest import asked
from tests.serve.made import SERIES, make_history, make_journal, make_report, make_run, running, sha_of

HERE = Path(__file__).parent
COLUMNS = (
    "at, recipe, recipe_digest, trainer, lane, machine, metric, mcore_commit, bridge_commit, environment, kind, "
    "reason, noise_rel, curve, culprits"
)
"""Of the history's table, its number aside."""

type Visit = Callable[..., Page]


class Shown:
    """A served cache directory.

    Attributes:
        root: The cache directory.
        site: Its pages.
        base: The site's address.
    """

    def __init__(self, root: Path, site: Site, base: str) -> None:
        self.root, self.site, self.base = root, site, base

    def fill(self, *, text: str = "") -> dict[str, str]:
        """Something of everything; the addresses of its pages by name."""
        make_history(self.root, text=text)
        make_history(
            self.root, count=12, series=replace(SERIES, recipe=f"other{text}", recipe_digest="f" * 64), text=text
        )
        triage, run = make_report(self.root, text=text or "Change (#7)"), make_run(self.root, text=text)
        bisect = make_journal(self.root, text=text)
        key = re.search(r"/history/\w+", self.text("/history"))
        assert key
        return {
            "now": "/", "history": key[0], "triage": f"/triages/{triage}", "bisects": "/bisects",
            "bisect": f"/bisects/{bisect}", "run": f"/runs/{run}",
        }  # fmt: skip

    def text(self, address: str) -> str:
        """A page's source."""
        body = self.site.answer(asked(address)).body()
        assert isinstance(body, bytes)
        return body.decode()


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    """A site that is served."""
    site = Site(tmp_path / "cache", quick_s=0.3, slow_s=0.3)
    with open_server(site, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True, kwargs={"poll_interval": 0.05}).start()
        yield Shown(tmp_path / "cache", site, f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()


@pytest.fixture
def visit(browser: Browser, shown: Shown) -> Iterator[Visit]:
    """Open a page; at the end none has complained, and each has asked this site alone."""
    contexts, complaints, foreign = [], [], []

    def _visit(address: str, *, width: int = 1200, is_dark: bool = False) -> Page:
        scheme = "dark" if is_dark else "light"
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith((shown.base, "data:,")) else foreign.append(request.url),
        )
        page.goto(shown.base + address)
        page.locator("html[data-ready]").wait_for(state="attached")
        return page

    yield _visit
    for context in contexts:
        context.close()
    assert (complaints, foreign) == ([], [])


def test_menu_leads_everywhere_by_keyboard(shown: Shown, visit: Visit) -> None:
    """Tab goes through skip link and menu, Enter follows, and the page says where one is."""
    shown.fill()
    page = visit("/")
    for name, title in (("Histories", "Histories"), ("Bisects", "Bisects"), ("Runs", "Runs")):
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == name:
                break
        page.keyboard.press("Enter")
        page.locator(".menu [aria-current]", has_text=name).wait_for()
        assert title.upper() in page.locator("h1").inner_text().upper()


def test_history_is_drawn_zoomed_and_read_by_keyboard(shown: Shown, visit: Visit) -> None:
    """The newest record is told; arrows move along, a drag and keys zoom, each mark says what it is."""
    page = visit(shown.fill()["history"])
    canvas = page.locator(".trend canvas")
    inked = "(c) => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    assert canvas.evaluate(inked) > 20
    told = page.locator(".trend .at")
    assert f"{sha_of(29)[:10]}" in told.inner_text()
    page.locator(".trend .frame").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(80)
    assert f"moved by {sha_of(28)[:10]}" in told.inner_text()
    page.keyboard.press("+")
    low, high = map(float, (page.locator(".trend").get_attribute("data-window") or "").split())
    assert high - low < 20
    page.keyboard.press("0")
    assert page.locator(".trend").get_attribute("data-window") == ""
    box = page.locator(".trend .u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 50, steps=4)
    page.mouse.up()
    low, high = map(float, (page.locator(".trend").get_attribute("data-window") or "").split())
    assert 12 < low < high < 24


def test_running_bisect_refreshes_itself_without_a_jerk(
    shown: Shown, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new iteration shows by itself; what is focused and scrolled stays so, and what is the same isn't touched."""
    name = make_journal(shown.root, steps=40)
    with running(shown.root, name) as console:
        # Without its checkout a bisect has no answer: the page of a made-up one stands in.
        result = bisection(shown.root / "made", steps=60)
        monkeypatch.setattr(Watch, "recall", lambda *_: result)
        page = visit(f"/bisects/{name}", width=700)
        assert "iteration 3/10" in page.locator("main").inner_text()
        page.locator("#run-9 a").evaluate("(link) => link.focus({preventScroll: true})")
        page.evaluate("scrollTo({top: 900, behavior: 'instant'})")
        page.evaluate("document.querySelector('#section-1').dataset.mine = 'yes'")
        at = page.evaluate("scrollY")
        console.write_text(console.read_text().replace("iteration        3/", "iteration        4/"), encoding="utf-8")
        page.get_by_text("iteration 4/10").wait_for(timeout=20_000)
        assert page.evaluate("document.querySelector('#section-1').dataset.mine") == "yes"
        assert abs(page.evaluate("scrollY") - at) < 2
        assert page.evaluate("document.activeElement.closest('li').id") == "run-9"
    page.locator("h1", has_text="first bad commit").wait_for()


def test_now_learns_of_a_new_run(shown: Shown, visit: Visit) -> None:
    """A list grows by itself, and a history's chart is drawn anew."""
    addresses = shown.fill()
    page, history = visit("/runs"), visit(addresses["history"])
    new = make_run(shown.root, number=77)
    make_history(shown.root, count=3)
    page.get_by_text(new).wait_for()
    history.locator(".reason", has_text="33 records").wait_for()
    assert history.locator(".trend canvas").count() == 1


def test_server_that_is_gone_is_told(shown: Shown, visit: Visit) -> None:
    """The page stays as it was and says that nobody answers."""
    page = visit(shown.fill()["bisects"])
    page.route("**/bisects", lambda route: route.fulfill(status=204))
    page.get_by_text("No answer from lossbisect serve").wait_for(timeout=30_000)
    assert page.locator("table").count() == 1


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_contrast_of_every_page(shown: Shown, visit: Visit, is_dark: bool) -> None:
    """Every visible text has a contrast of 4.5 or more against its ground (WCAG 2, AA)."""
    for address in shown.fill().values():
        page = visit(address, is_dark=is_dark)
        ratios = page.evaluate((HERE / "contrast.js").read_text(encoding="utf-8"))
        assert len(ratios) > 10
        assert [pair for pair in ratios if pair[0] < 4.5] == [], address


def test_every_page_fits_a_phone(shown: Shown, visit: Visit) -> None:
    """At 360 pixels no page scrolls sideways, and a list's cells say which column they are."""
    for address in shown.fill(text="x" * 200).values():
        page = visit(address, width=360)
        assert page.evaluate("document.documentElement.scrollWidth") == 360, address
    page = visit("/runs", width=360)
    assert not page.locator("thead").is_visible()
    assert "last loss" in page.locator("td").nth(6).evaluate("(cell) => getComputedStyle(cell, '::before').content")


def test_evil_text_does_nothing(shown: Shown, visit: Visit) -> None:
    """Nothing runs, nothing is fetched, and it's shown as it is, also after the page has refreshed itself."""
    for address in shown.fill(text=EVIL).values():
        page = visit(address)
        page.mouse.wheel(0, 5000)
        assert page.evaluate("window.hacked") is None, address
        assert page.locator("img, iframe, object, embed, [onerror], [onload]").count() == 0
        assert page.locator("script").count() == 2
        assert page.locator('a[href^="javascript"]').count() == 0
    make_history(shown.root, count=3, text=EVIL)
    page = visit("/")
    make_history(shown.root, count=3, text=EVIL)
    page.locator("html[data-updates]").wait_for(state="attached")
    assert page.evaluate("window.hacked") is None


def test_large_things_stay_smooth(shown: Shown, visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of 100,000 rows, a history of 102,400 records, a bisect of 1,000 steps: drawn in 10 s, frames of 0.2 s.

    The limits are many times what two idle cores need without a GPU, so that only a change of kind breaks them.
    """
    make_history(shown.root, count=25)
    with writing(shown.root / "store.sqlite") as connection:
        for _ in range(12):
            connection.execute(f"INSERT INTO triage ({COLUMNS}) SELECT {COLUMNS} FROM triage")  # noqa: S608
    run = make_run(shown.root)
    row = '{{"tag": "{tag}", "iteration": {at}, "value": {value}}}\n'
    with (shown.root / "store" / run / "scalars.ndjson").open("w", encoding="utf-8") as file:
        for at in range(1, 100_001):
            file.write(row.format(tag="lm loss", at=at, value=10 - at * 1e-5 + (at * 7919 % 1000) * 1e-5))
            file.write(row.format(tag="grad-norm", at=at, value=1 + (at * 7919 % 997) * 1e-3))
    name = make_journal(shown.root)
    result = bisection(shown.root / "made", steps=1000)
    monkeypatch.setattr(Watch, "recall", lambda *_: result)
    key = re.search(r"/history/\w+", shown.text("/history"))
    assert key
    told: list[tuple[bool, str]] = []
    for address in (key[0], f"/runs/{run}", f"/bisects/{name}"):
        page = visit(address)
        answered = int(page.evaluate("performance.getEntriesByType('navigation')[0].responseEnd"))
        ready = int(page.evaluate("document.documentElement.dataset.ready")) - answered
        frames = page.evaluate((HERE / "hover.js").read_text(encoding="utf-8"))
        size = page.evaluate("document.documentElement.outerHTML.length")
        is_smooth = ready < 10_000 and answered < 60_000 and frames[20] < 200 and size < 4_000_000
        told.append(
            (
                is_smooth,
                f"{address}: answered {answered} ms, drawn {ready} ms, frame {frames[20]:.0f} ms, {size:,} bytes",
            )
        )
    assert all(is_smooth for is_smooth, _ in told), told
    assert page.locator("ol.steps > li").count() == 1000
