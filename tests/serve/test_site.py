"""The site's pages: what is on them, that they find nothing outside, and that others' text stays text."""

import re
import time
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import pytest

from lossbisect.bisect import bisect_range
from lossbisect.serve.lists import LINES
from lossbisect.serve.site import Site
from lossbisect.serve.watch import run_name
from lossbisect.train.executors import ExecutorOptions
from lossbisect.train.types import Outcome
from tests.bisect import support
from tests.browser.made import EVIL
from tests.serve.conftest import Get, asked
from tests.serve.made import SERIES, make_history, make_journal, make_report, make_run, running, sha_of

MENU = ("/", "/history", "/triages", "/bisects", "/runs")


@pytest.mark.parametrize("address", MENU)
def test_an_empty_cache_is_a_site_too(get: Get, root: Path, address: str) -> None:
    """Each list says that nothing is there yet, and nothing is made."""
    status, text = get(address)
    assert status is HTTPStatus.OK
    assert "<h1" in text
    assert not root.exists()


def test_now_shows_the_newest_of_everything(get: Get, root: Path) -> None:
    """The regression on top, the bisect that runs with its iteration and loss, and a link to each."""
    make_history(root)
    triage, run, bisect = make_report(root), make_run(root), make_journal(root)
    with running(root, bisect):
        _, text = get("/")
    assert "1 training moved or broken" in text
    assert "iteration 3/10, lm loss 9.87124" in text
    for address in (f"/triages/{triage}", f"/runs/{run}", f"/bisects/{bisect}"):
        assert f'href="{address}"' in text
        assert get(address)[0] is HTTPStatus.OK


def test_a_history_marks_moves_environments_and_acknowledgements(get: Get, root: Path) -> None:
    """Each once, at its record; the commit's subject is that of the triage that named it."""
    make_history(root)
    make_report(root, text="Respect depth (#9)")
    key = re.search(r"/history/(\w+)", get("/history")[1])
    assert key
    _, text = get(key[0])
    marks = re.search(r'"marks":(\[\[.*?\]\])', text)
    assert marks
    assert re.findall(r'"(moved|acknowledged|environment)"', marks[1]) == [
        "acknowledged",
        "environment",
        "moved",
    ]
    assert "regression, acknowledged" in text
    assert "a new initialisation" in text
    assert text.count("Respect depth (#9)") >= 2


def test_a_running_bisect_is_live_and_a_stopped_one_says_how_to_go_on(
    get: Get, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real bisect on a made history: its answer afterwards, its runs' pages and consoles, its slot while it runs."""
    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", support.play)
    monkeypatch.setattr("lossbisect.bisect.runner.read_curves", support.read_play)
    shas = support.make_history(tmp_path / "mlm", [10.25] * 3 + [None] + [10.25, 10.26])
    result = bisect_range(tmp_path / "mlm", shas[0], "main", executor=ExecutorOptions(jobs=1), work_dir=root)
    _, text = get(f"/bisects/{result.id}")
    assert f"{shas[5][:10]} is the first bad commit" in text
    skipped = next(run_name(step.record.out) for step in result.finding.steps if step.record.outcome is Outcome.FAILED)
    assert f'href="/bisects/{result.id}/runs/{skipped}"' in text
    status, text = get(f"/bisects/{result.id}/runs/{skipped}")
    assert status is HTTPStatus.OK
    assert "No module named" in text
    assert "No module named" in get(f"/bisects/{result.id}/runs/{skipped}/console.log")[1]
    with running(root, result.id, at=4) as console:
        _, text = get(f"/bisects/{result.id}")
        assert "iteration 4/10" in text
        assert 'data-live="2000"' in text
        assert "iteration        4/" in get(f"/bisects/{result.id}/slots/{run_name(console.parent)}")[1]
    assert "iteration 4/10" not in get(f"/bisects/{result.id}")[1]


def test_the_list_says_what_finished_bisects_found(root: Path) -> None:
    """It's looked up in the background: the page comes at once, and its tag changes when the answer is there."""
    name = make_journal(root)
    site = Site(root)
    first = site.answer(asked("/bisects")).tag
    until_s = time.monotonic() + 60
    while site.answer(asked("/bisects")).tag == first and time.monotonic() < until_s:
        time.sleep(0.05)
    body = site.answer(asked("/bisects")).body()
    assert isinstance(body, bytes)
    assert "no such folder" in body.decode()
    assert name in body.decode()


def test_a_bisect_whose_checkout_is_gone_shows_its_journal(get: Get, root: Path) -> None:
    """Its runs with their verdicts, and why there is no answer."""
    name = make_journal(root, steps=3)
    _, text = get(f"/bisects/{name}")
    assert "no such folder" in text
    assert text.count("/runs/") >= 3


def test_stages_of_a_bisect_are_one_bisect(get: Get, root: Path) -> None:
    """A later stage has a journal of its own: its runs and its slot are on the first one's page; it isn't listed."""
    name = make_journal(root, steps=2)
    make_journal(root, steps=3, name=f"{name}.2")
    _, text = get(f"/bisects/{name}")
    assert len(set(re.findall(rf"/bisects/{name}/runs/([12]\.[\w.-]+)", text))) == 5
    listed = get("/bisects")[1]
    assert listed.count(f'href="/bisects/{name}') == 1
    assert get(f"/bisects/{name}.2")[0] is HTTPStatus.NOT_FOUND
    with running(root, name), running(root, f"{name}.2", at=5) as console:
        slots = Site(root).answer(asked("/")).body()
        assert isinstance(slots, bytes)
        assert b"iteration 5/10" in slots
        assert get(f"/bisects/{name}/slots/{run_name(console.parent)}")[0] is HTTPStatus.OK


def test_a_damaged_journal_harms_no_other_page(get: Get, root: Path) -> None:
    """It is listed as what it is; neither list nor page fails."""
    name = make_journal(root)
    (root / "bisects" / name / "journal.ndjson").write_text('{"kind": "plan"}\n')
    for address in ("/", "/bisects", f"/bisects/{name}"):
        status, text = get(address)
        assert status is HTTPStatus.OK
        assert name in text
    assert "unreadable" in get("/bisects")[1]


def test_tags_change_only_with_what_is_shown(root: Path) -> None:
    """The same tag while nothing changes; another one after a run, a record, a finished step or a slot's iteration."""
    site = Site(root)
    make_history(root, count=4)
    name, _ = make_journal(root), make_run(root)
    addresses = ("/runs", "/history", f"/bisects/{name}")
    before = [site.answer(asked(address)).tag for address in addresses]
    assert before == [site.answer(asked(address)).tag for address in addresses]
    make_run(root, number=5)
    make_history(root, count=4, series=replace(SERIES, recipe="other", recipe_digest="f" * 64))
    with running(root, name) as console:
        after = [site.answer(asked(address)).tag for address in addresses]
        assert all(one != other for one, other in zip(before, after, strict=True))
        console.write_text(console.read_text().replace("iteration        3/", "iteration        4/"))
        assert site.answer(asked(addresses[2])).tag != after[2]


def test_runs_come_in_pages(get: Get, root: Path) -> None:
    """A hundred a page, the newest first; a number too large or nonsense shows the nearest page; a recipe narrows."""
    for number in range(LINES + 5):
        make_run(root, number=number, recipe="odd one" if number % 2 else "vanilla-cpu")
    rows = r"<tr><td[^>]*><a href=\"/runs/"
    assert len(re.findall(rows, get("/runs")[1])) == LINES
    assert len(re.findall(rows, get("/runs?page=2")[1])) == 5
    assert get("/runs?page=99999999999999999999")[1].count("<p>Page 2 of 2") == 1
    assert get("/runs?page=-1%27")[1].count("<p>Page 1 of 2") == 1
    _, text = get("/runs?recipe=odd%20one")
    assert len(re.findall(rows, text)) == (LINES + 5) // 2
    assert f"{sha_of(3)[:10]}" in text


OUTSIDE = [
    "/../secret",
    "/runs/..%2f..%2fsecret",
    "/runs/..%2f..%2fsecret/console.log",
    "/bisects/..",
    "/bisects/%2e%2e%2f%2e%2e/runs/1/console.log",
    "/bisects/{bisect}/slots/..",
    "/bisects/{bisect}/slots/%2fetc",
    "/bisects/{bisect}/slots/..%2f..%2f..",
    "/bisects/{bisect}/runs/0",
    "/bisects/{bisect}/runs/99",
    "/bisects/{bisect}/runs/1e0",
    "/bisects/{bisect}/runs/%C2%B2",
    "/bisects/{bisect}/runs/-1/console.log",
    "/triages/..%2f..%2fsecret",
    "/triages/%00",
    "/history/..%2f..",
    "/history/%27%20OR%201=1",
    "/runs/%25",
    "/runs/_",
    "/assets/..%2f..%2f__init__.py",
    "/assets/page.js",
    "/store.sqlite",
]


@pytest.mark.parametrize("address", OUTSIDE)
def test_no_address_leads_out(get: Get, root: Path, address: str) -> None:
    """Whatever stands in an address: what isn't one of the stored things isn't there."""
    (root.parent / "secret").mkdir()
    (root.parent / "secret" / "console.log").write_text("SECRET")
    make_run(root)
    make_report(root)
    bisect = make_journal(root)
    status, text = get(address.replace("{bisect}", bisect))
    assert status is HTTPStatus.NOT_FOUND
    assert "SECRET" not in text


def test_a_link_out_of_the_cache_isnt_followed(get: Get, root: Path) -> None:
    """A console that is a link to a file elsewhere isn't there."""
    secret = root.parent / "secret.txt"
    secret.write_text("SECRET")
    run = make_run(root)
    console = root / "store" / run / "console.log"
    console.unlink()
    console.symlink_to(secret)
    assert get(f"/runs/{run}/console.log")[0] is HTTPStatus.NOT_FOUND
    bisect = make_journal(root)
    with running(root, bisect) as slot:
        slot.unlink()
        slot.symlink_to(secret)
        assert get(f"/bisects/{bisect}/slots/{run_name(slot.parent)}")[0] is HTTPStatus.NOT_FOUND
        assert "SECRET" not in get(f"/bisects/{bisect}")[1]


def test_evil_text_is_text_on_every_page(get: Get, root: Path) -> None:
    """Subjects, reasons, recipes, consoles, acknowledgements: no element, attribute or address comes of them."""
    make_history(root, text=EVIL, series=replace(SERIES, recipe=f"{EVIL}", machine=EVIL, metric=f"{EVIL}_loss"))
    triage, run = make_report(root, text=EVIL), make_run(root, text=EVIL, recipe=EVIL)
    bisect = make_journal(root, text=EVIL, repo=Path(f"/nowhere/{EVIL}"))
    key = re.search(r"/history/(\w+)", get("/history")[1])
    assert key
    step = re.search(r"/bisects/[\w-]+/runs/[\w.-]+", get(f"/bisects/{bisect}")[1])
    assert step
    addresses = (
        *MENU, key[0], f"/triages/{triage}", f"/runs/{run}", f"/bisects/{bisect}", step[0],
        f"/nope/{EVIL.replace('/', '%2f')}", f"/runs?recipe={EVIL.replace('&', '%26').replace('#', '%23')}",
    )  # fmt: skip
    for address in addresses:
        text = get(address)[1]
        text = re.sub(r'(?s)<script type="application/json" id="data">[^<>&]*</script>', "", text)
        assert text.count("<script") == 1, address
        assert not re.search(r"<(img|svg onload|iframe|object)", text), address
        assert not re.search(r'href="(?!/|#|https://github\.com/|data:,)', text), address
        assert not {"\x1b", "\x07", "\u202e"} & set(text), address


def test_secrets_dont_reach_a_page(get: Get, root: Path) -> None:
    """A token in a console is masked on the page of its run, and in the console itself."""
    run = make_run(root, text="HF_TOKEN=hf_abcdefghijklmnopqrstuvwx")
    for address in (f"/runs/{run}", f"/runs/{run}/console.log"):
        assert "hf_abcdefghijklmnop" not in get(address)[1]


def test_a_store_that_cant_be_read_is_told(get: Get, root: Path) -> None:
    """The page says which file and why; no traceback."""
    root.mkdir()
    (root / "store.sqlite").write_text("this is no database, and long enough to be told from one" * 20)
    status, text = get("/runs")
    assert status is HTTPStatus.SERVICE_UNAVAILABLE
    assert "store.sqlite" in text
