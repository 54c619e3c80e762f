"""Which page an address is.

Every name in an address is looked up among those that are there: none becomes part of a path unseen.
"""

import hashlib
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

from lossbisect.compare.wording import counted
from lossbisect.errors import LossbisectError
from lossbisect.redact import redact
from lossbisect.report.html.bisect import tail_of
from lossbisect.report.html.history import KIND_TONES, entry_rows, history_page
from lossbisect.report.html.model import Link, Mark, Page, Section, Tone
from lossbisect.report.html.origin import origin_of
from lossbisect.report.html.render import SITE_POLICY, Place, page_html, site_asset
from lossbisect.report.html.run import run_page
from lossbisect.report.html.triage import triage_page
from lossbisect.report.stored import curves_of, run_facts
from lossbisect.serve.bisects import bisect_site_page, step_page
from lossbisect.serve.lists import (
    LINES,
    BisectLine,
    Paging,
    bisects_table,
    histories_table,
    list_page,
    runs_table,
    triages_table,
)
from lossbisect.serve.stock import Stock, line_stamp
from lossbisect.serve.watch import Glance, run_name
from lossbisect.serve.web import Answer, Asked
from lossbisect.store.types import RunFilter, StoredRun
from lossbisect.triage.saved import read_report
from lossbisect.triage.types import Kind, Series

__all__ = ["Site"]

_MENU = (
    Link("Now", "/"),
    Link("Histories", "/history"),
    Link("Triages", "/triages"),
    Link("Bisects", "/bisects"),
    Link("Runs", "/runs"),
)
_HTML = "text/html; charset=utf-8"
_KINDS = {"site.css": "text/css; charset=utf-8", "site.js": "text/javascript; charset=utf-8"}
_LOG_POLICY = "default-src 'none'; sandbox"
_NEWEST = 10
_MOST_DRAWN = 5_000
_BAD = (Kind.REGRESSION, Kind.IMPROVEMENT, Kind.BROKEN)


class _NotHereError(Exception):
    """There is no such page."""


@dataclass(slots=True)
class Site:
    """The pages of one cache directory; `lossbisect.serve.web.open_server` serves them. Safe from several threads.

    Attributes:
        root: The cache directory.
        quick_s: Time after which a page of something that goes on asks whether it has changed, seconds.
        slow_s: The same of every other page.
    """

    root: Path
    quick_s: float = 2.0
    slow_s: float = 10.0
    _stock: Stock = field(init=False)

    def __post_init__(self) -> None:
        """Open nothing yet."""
        self._stock = Stock(self.root)

    def answer(self, asked: Asked) -> Answer:
        """The page of an address."""
        try:
            return self._route(asked)
        except _NotHereError:
            return self.trouble(HTTPStatus.NOT_FOUND, "There is no such page, or it is gone.")
        except (LossbisectError, OSError) as error:
            return self.trouble(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except Exception as error:  # one page that fails must not end the others
            traceback.print_exc()
            told = f"A bug in lossbisect ({type(error).__name__}); the terminal of 'lossbisect serve' says more."
            return self.trouble(HTTPStatus.INTERNAL_SERVER_ERROR, told)

    def trouble(self, status: HTTPStatus, message: str) -> Answer:
        """The page that says why there is no other."""
        page = Page(
            kind="serve",
            title=status.phrase,
            verdict=Mark(status.phrase, Tone.UNSURE),
            reason=redact(message),
            sections=[],
        )
        return replace(_page(lambda: page, here="", tag=None), status=status)

    def _route(self, asked: Asked) -> Answer:
        match asked.parts:
            case ():
                return self._now()
            case ("assets", name) if name in _KINDS:
                body = site_asset(name).encode()
                return Answer(
                    body=lambda: body, kind=_KINDS[name], policy=SITE_POLICY, tag=hashlib.sha256(body).hexdigest()[:16]
                )
            case ("history",):
                return self._histories()
            case ("history", key):
                return self._history(key, asked)
            case ("triages",):
                return self._triages(asked)
            case ("triages", name):
                return self._triage(name)
            case ("bisects",):
                return self._bisects(asked)
            case ("bisects", name):
                return self._bisect(name)
            case ("bisects", name, "runs", run):
                return self._step(name, run)
            case ("bisects", name, "runs", run, "console.log"):
                bisect, number = self._numbered(name, run)
                return self._log(bisect.steps[number - 1].record.console)
            case ("bisects", name, "slots", run):
                return self._slot_log(name, run)
            case ("runs",):
                return self._runs(asked)
            case ("runs", name):
                return self._run(name)
            case ("runs", name, "console.log"):
                return self._log(self._stored(name).record.console)
        raise _NotHereError

    # ---- what is new ----

    def _now(self) -> Answer:
        running = self._stock.running()
        latest = self._stock.lines(self._stock.watch.ids()[:_NEWEST])
        told = [line_stamp(line) for line in (*running, *latest)]
        tag = _tag(self._stock.stamp(), self._stock.bisects_stamp(), told)
        live_s = self.quick_s if running or any(line.answer is None for line in latest) else self.slow_s
        return _page(partial(self._now_page, running, latest), here="/", tag=tag, live_s=live_s)

    def _now_page(self, running: list[BisectLine], latest: list[BisectLine]) -> Page:
        newest = self._stock.newest_records()
        bad = [(series, entries[-1]) for _, series, entries in newest if entries[-1].kind in _BAD]
        reports = self._stock.reports(self._stock.triages()[:_NEWEST])
        runs, count = self._stock.store.newest(most=_NEWEST), self._stock.store.count()
        if bad:
            verdict = Mark(counted(len(bad), "training") + " moved or broken", Tone.BAD)
        elif newest:
            unsure = [
                entries for _, _, entries in newest if KIND_TONES.get(entries[-1].kind, Tone.UNSURE) is Tone.UNSURE
            ]
            verdict = Mark("unsure" if unsure else "all as it was", Tone.UNSURE if unsure else Tone.GOOD)
        else:
            verdict = Mark("nothing judged yet", Tone.NEUTRAL)
        reason = (
            f"{counted(len(newest), 'training')} watched, {counted(len(running), 'bisect')} running, "
            f"{counted(count, 'run')} stored in {self.root}"
        )
        return Page(
            kind="serve",
            title=verdict.text,
            verdict=verdict,
            reason=reason,
            sections=[
                Section(title="Running now", blocks=[bisects_table(running)] if running else []),
                Section(
                    title="Newest commit of each training",
                    blocks=[histories_table(newest, self._stock.subjects())] if newest else [],
                ),
                Section(title="Latest triages", blocks=[triages_table(reports)] if reports else []),
                Section(title="Latest bisects", blocks=[bisects_table(latest)] if latest else []),
                Section(title="Latest runs", blocks=[runs_table(runs)] if runs else []),
            ],
        )

    # ---- histories ----

    def _histories(self) -> Answer:
        def made() -> Page:
            newest = self._stock.newest_records()
            return Page(
                kind="history",
                title="Histories",
                verdict=Mark("Histories", Tone.NEUTRAL),
                reason=f"{counted(len(newest), 'training')} with records."
                if newest
                else "There is no history yet: 'lossbisect triage' makes one.",
                sections=[
                    Section(
                        title="Newest commit of each training",
                        blocks=[histories_table(newest, self._stock.subjects())] if newest else [],
                    )
                ],
            )

        return _page(made, here="/history", tag=_tag(self._stock.stamp()), live_s=self.slow_s)

    def _history(self, key: str, asked: Asked) -> Answer:
        series = self._stock.series(key)
        if series is None:
            raise _NotHereError
        return _page(
            partial(self._history_page, series, f"/history/{key}", asked),
            here="/history",
            tag=_tag(self._stock.stamp(), asked.query),
            live_s=self.slow_s,
        )

    def _history_page(self, series: Series, path: str, asked: Asked) -> Page:
        count = self._stock.ledger.count(series)
        paging = _paging(path, asked, count)
        shown = self._stock.ledger.newest(series, skip=paging.skip, most=LINES + 1)
        before = shown[0] if len(shown) > LINES else None
        given, subjects = self._stock.ledger.acknowledged(), self._stock.subjects()
        table = entry_rows(shown[-LINES:], before, given, subjects)
        return history_page(
            series,
            self._stock.ledger.newest(series, most=_MOST_DRAWN),
            given,
            count=count,
            subjects=subjects,
            table=Section(title="Records, the newest first", blocks=[table, *paging.links()]),
        )

    # ---- triages ----

    def _triages(self, asked: Asked) -> Answer:
        names = self._stock.triages()
        paging = _paging("/triages", asked, len(names))

        def made() -> Page:
            table = triages_table(self._stock.reports(names[paging.skip :][:LINES]))
            return list_page("triage", "Triages", table, paging, empty="No triage yet: 'lossbisect triage' makes one.")

        return _page(made, here="/triages", tag=_tag(names[:1], len(names), asked.query), live_s=self.slow_s)

    def _triage(self, name: str) -> Answer:
        if name not in self._stock.triages():
            raise _NotHereError
        return _page(lambda: triage_page(read_report(self.root, name), is_site=True), here="/triages", tag=_tag(name))

    # ---- bisects ----

    def _bisects(self, asked: Asked) -> Answer:
        names = self._stock.watch.ids()
        paging = _paging("/bisects", asked, len(names))
        lines = self._stock.lines(names[paging.skip :][:LINES])
        is_busy = any(line.is_running or line.answer is None for line in lines)
        return _page(
            lambda: list_page("bisect", "Bisects", bisects_table(lines), paging, empty="No bisect yet."),
            here="/bisects",
            tag=_tag([line_stamp(line) for line in lines], len(names), asked.query),
            live_s=self.quick_s if is_busy else self.slow_s,
        )

    def _bisect(self, name: str) -> Answer:
        bisect = self._glance(name)
        is_running = self._stock.watch.is_running(name)
        slots = self._stock.watch.slots(bisect) if is_running else ()

        def made() -> Page:
            origin = origin_of(("report", name), [bisect.directory / "journal.ndjson"])
            answer = bisect.trouble or self._stock.watch.recall(bisect)
            return bisect_site_page(bisect, answer, slots, origin, is_running=is_running)

        told = [(slot.name, slot.progress, slot.silent_s // 60) for slot in slots]
        return _page(
            made,
            here="/bisects",
            tag=_tag(bisect.stamp, is_running, told),
            live_s=self.quick_s if is_running else self.slow_s,
        )

    def _step(self, name: str, run: str) -> Answer:
        bisect, number = self._numbered(name, run)
        return _page(lambda: step_page(bisect, number), here="/bisects", tag=_tag(name, run))

    def _slot_log(self, name: str, run: str) -> Answer:
        slot = next((slot for slot in self._stock.watch.slots(self._glance(name)) if slot.name == run), None)
        if slot is None:
            raise _NotHereError
        return self._log(slot.console)

    def _glance(self, name: str) -> Glance:
        bisect = self._stock.watch.glance(name)
        if bisect is None:
            raise _NotHereError
        return bisect

    def _numbered(self, name: str, run: str) -> tuple[Glance, int]:
        """A bisect, and the number of one of its runs, from 1 on."""
        bisect = self._glance(name)
        for number, step in enumerate(bisect.steps, start=1):
            if run_name(step.record.out) == run:
                return bisect, number
        raise _NotHereError

    # ---- runs ----

    def _runs(self, asked: Asked) -> Answer:
        query = {name: value for name, value in asked.query.items() if name in ("recipe", "commit") and value}
        chosen = RunFilter(recipe=query.get("recipe"), commit=query.get("commit"))
        paging = replace(_paging("/runs", asked, self._stock.store.count(chosen)), query=query)

        def made() -> Page:
            table = runs_table(self._stock.store.newest(chosen, skip=paging.skip, most=LINES))
            return list_page("runs", "Runs", table, paging, empty="No such run is stored.")

        return _page(made, here="/runs", tag=_tag(self._stock.stamp(), asked.query), live_s=self.slow_s)

    def _run(self, name: str) -> Answer:
        run = self._stored(name)

        def made() -> Page:
            return run_page(
                run.record,
                curves_of(run.record),
                tail_of(run.record.console),
                name=run.id,
                facts=run_facts(run),
                whole_log=Link("The whole console", f"/runs/{run.id}/console.log"),
            )

        return _page(made, here="/runs", tag=_tag(run.id, run.is_stale))

    def _stored(self, name: str) -> StoredRun:
        try:
            run = self._stock.store.find(name)
        except LossbisectError:
            raise _NotHereError from None
        if run.id != name:
            raise _NotHereError
        return run

    # ---- logs ----

    def _log(self, console: Path) -> Answer:
        """A console as plain text; a file outside the cache directory, or a link to one, isn't there."""
        place = console.resolve()
        if not place.is_relative_to(self.root.resolve()) or not place.is_file():
            raise _NotHereError

        def opened() -> BinaryIO:
            return os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW), "rb")

        return Answer(body=opened, kind="text/plain; charset=utf-8", policy=_LOG_POLICY)


def _page(made: Callable[[], Page], *, here: str, tag: str | None, live_s: float | None = None) -> Answer:
    place = Place(menu=_MENU, here=here, live_s=live_s)
    return Answer(
        body=lambda: page_html(made(), place).encode("utf-8", "replace"), kind=_HTML, policy=SITE_POLICY, tag=tag
    )


def _paging(path: str, asked: Asked, count: int) -> Paging:
    wanted = asked.query.get("page", "1")
    number = int(wanted[:9]) if wanted.isascii() and wanted.isdigit() else 1
    last = max(1, -(-count // LINES))
    return Paging(path=path, number=min(max(1, number), last), count=count, query={})


def _tag(*facts: object) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:20]
