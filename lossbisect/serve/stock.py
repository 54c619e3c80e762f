"""What a cache directory holds, as the site's pages need it, and whether it has changed since a page was made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lossbisect.errors import LossbisectError
from lossbisect.serve.lists import BisectLine
from lossbisect.serve.watch import Watch
from lossbisect.store.store import RunStore
from lossbisect.store.types import digest_of
from lossbisect.triage.ledger import Ledger
from lossbisect.triage.saved import read_report, report_ids
from lossbisect.triage.types import Entry, Series, TriageReport

__all__ = ["Stock", "key_of", "line_stamp"]

_WATCHED = 200
"""Newest bisects that are asked whether they run."""
_MOST_NAMED = 5_000
"""Newest triages that commits' subjects are taken from."""

type FileStamp = tuple[int, int] | None


@dataclass(slots=True)
class Stock:
    """The histories, triages, bisects and runs of a cache directory. Safe from several threads.

    Attributes:
        root: The cache directory.
        watch: Its bisects.
        store: Its runs.
        ledger: Its histories.
    """

    root: Path
    watch: Watch = field(init=False)
    store: RunStore = field(init=False)
    ledger: Ledger = field(init=False)
    _reports: dict[str, TriageReport] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Open nothing yet."""
        self.watch, self.store, self.ledger = Watch(self.root), RunStore(self.root), Ledger(self.root)

    def newest_records(self) -> list[tuple[str, Series, list[Entry]]]:
        """Each training with the key of its page and its two newest records, the older one first."""
        return [(key_of(series), series, self.ledger.newest(series, most=2)) for series in self.ledger.all_series()]

    def series(self, key: str) -> Series | None:
        """The training whose page has this key."""
        return next((each for each in self.ledger.all_series() if key_of(each) == key), None)

    def triages(self) -> list[str]:
        """Every triage that has a report, the newest first."""
        return report_ids(self.root)[::-1]

    def reports(self, names: Sequence[str]) -> list[tuple[str, TriageReport]]:
        """Reports that can be read; one that was read isn't read again, since none ever changes."""
        for name in names:
            if name not in self._reports:
                try:
                    self._reports[name] = read_report(self.root, name)
                except LossbisectError:
                    continue
        return [(name, self._reports[name]) for name in names if name in self._reports]

    def subjects(self) -> Mapping[str, str]:
        """Subjects of the commits that a triage named, by full SHA."""
        found: dict[str, str] = {}
        for _, report in self.reports(self.triages()[:_MOST_NAMED]):
            blamed = (commit for case in report.cases if case.blame for commit in case.blame.commits)
            found |= {commit.sha: commit.subject for commit in (report.commit, *blamed)}
        return found

    def lines(self, names: Sequence[str]) -> list[BisectLine]:
        """How bisects stand, in the order given; what each says is looked up in the background if it isn't known."""
        return [line for line in map(self._line, names) if line is not None]

    def running(self) -> list[BisectLine]:
        """The bisects that a process works on now."""
        return self.lines([name for name in self.watch.ids()[:_WATCHED] if self.watch.is_running(name)])

    def stamp(self) -> list[FileStamp]:
        """Another one: runs, histories or triages have been added."""
        return [_stamp(self.root / name) for name in ("store.sqlite", "store.sqlite-wal", "triage")]

    def bisects_stamp(self) -> list[int | FileStamp]:
        """Another one: bisects have gone on."""
        names = self.watch.ids()
        return [len(names), *(_stamp(self.root / "bisects" / name / "journal.ndjson") for name in names[:_WATCHED])]

    def _line(self, name: str) -> BisectLine | None:
        bisect = self.watch.glance(name)
        if bisect is None:
            return None
        is_running = self.watch.is_running(name)
        return BisectLine(
            glance=bisect,
            is_running=is_running,
            answer=bisect.trouble or self.watch.answer(bisect),
            slots=self.watch.slots(bisect) if is_running else (),
        )


def key_of(series: Series) -> str:
    """A short name for an address: of what makes a series one."""
    parts = (series.recipe_digest, series.trainer.value, series.lane.value, series.machine, series.metric)
    return digest_of(parts)[:16]


def line_stamp(line: BisectLine) -> object:
    """Another one: a list shows something else of a bisect."""
    slots = [(slot.name, slot.progress) for slot in line.slots]
    return line.glance.id, line.glance.stamp, line.is_running, line.answer is not None, slots


def _stamp(file: Path) -> FileStamp:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
