"""One training of one commit: run, held against its history, and blamed on somebody only if it must be.

A commit that changes nothing costs one run. One whose curve has moved costs as many as settle it: the commit again, and
the reference commit in today's environment.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.names import pin_of
from lossbisect.bisect.repository import ask
from lossbisect.cause import Cause
from lossbisect.train.types import Outcome, RunRecord, TrainerName
from lossbisect.triage.bench import Bench, environment_digest, series_of, trainer_of
from lossbisect.triage.blame import Bisect, blame, is_pinned, suspects
from lossbisect.triage.classify import Change, Evidence, Finding, change_of, kind_of, spread
from lossbisect.triage.ledger import Ledger
from lossbisect.triage.level import Level, level_at
from lossbisect.triage.tip import is_suspect
from lossbisect.triage.types import Acknowledgement, Axis, Blame, Case, CaseReport, Curve, Entry, Kind, Point

if TYPE_CHECKING:
    from git import Repo

__all__ = ["Judge"]

_MOVED = (Kind.REGRESSION, Kind.IMPROVEMENT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Judge:
    """Judges commits of one checkout.

    Attributes:
        code: The checkout.
        ledger: The history.
        bench: Trains.
        bisect: Bisects.
        say: Told what is being done, one sentence each.
    """

    code: CodeBase
    ledger: Ledger
    bench: Bench
    bisect: Bisect
    say: Callable[[str], None]

    def judge(self, case: Case, tip: Point, asked: Point | None) -> CaseReport:
        """Run a case at a point, write the outcome into the history, and say what became of it.

        Args:
            case: What is trained.
            tip: The commit in question.
            asked: The commit to compare with; None: the nearest one of the history, or else its first parent.
        """
        hearing = _Hearing(self, case, tip, trainer_of(case, self.code))
        report, entry = hearing.verdict(asked)
        self.ledger.add(hearing.series, entry)
        return report


class _Hearing:
    """One case at one point."""

    def __init__(self, judge: Judge, case: Case, tip: Point, trainer: TrainerName) -> None:
        self._judge = judge
        self._case = case
        self._tip = tip
        self._trainer = trainer
        self._acknowledged: Mapping[str, Acknowledgement] = judge.ledger.acknowledged()
        self._runs = 0
        self.series = series_of(case, trainer, None)

    def verdict(self, asked: Point | None) -> tuple[CaseReport, Entry]:
        """The report, and the line of the history that it makes."""
        is_known = any(entry.point == self._tip for entry in self._level(None).entries)
        record = self._run(self._tip, is_fresh=is_known)
        self.series = series_of(self._case, self._trainer, record)
        known = self._level(asked)
        level = known.level
        if record.outcome is not Outcome.FINISHED:
            return self._not_run(record, level, asked)
        tip = self._judge.bench.curve(self._case, record)
        is_doubted = not level.alarm and is_suspect(level.before, tip)
        if level.accepted and not is_doubted and self._is_same(level.accepted.curve, tip, level.noise_rel):
            notes = (f"The curve is back to what it was before {level.alarm.point.short}.",) if level.alarm else ()
            reason = f"the same curve as at {level.accepted.point.short}"
            return self._told(
                Kind.OK, reason, tip, record, level.accepted.point, level.noise_rel,
                notes=notes, against=level.accepted.curve,
            )  # fmt: skip
        if level.alarm and self._is_same(level.alarm.curve, tip, level.noise_rel):
            return self._still(level.alarm, tip, record, level.noise_rel)
        reference = level.base.point if level.base else asked or self._parent()
        if reference is None:
            return self._told(Kind.OK, "the first record: nothing to compare it with yet", tip, record, None, 0.0)
        return self._moved(reference, level, tip, record)

    def _moved(self, reference: Point, level: Level, tip: Curve, record: RunRecord) -> tuple[CaseReport, Entry]:
        """The curve isn't the recorded one, or nothing is recorded: look at both sides in today's environment."""
        recorded = level.base.curve if level.base else {}
        tips = [tip] if record.stored_as is None else []
        references: list[Curve] = []
        is_itself = reference == self._tip
        if not is_itself:
            again = self._run(reference, is_fresh=bool(recorded))
            if again.outcome is not Outcome.FINISHED:
                reason = f"the reference commit {reference.short} doesn't run here today: {again.reason}"
                return self._told(Kind.UNDECIDED, reason, tip, record, reference, level.noise_rel)
            references.append(self._judge.bench.curve(self._case, again))
            if not recorded:
                self._note(reference, references[0], again, Kind.OK, "the first record")
                if self._is_same(references[0], tip, level.noise_rel):
                    reason = f"the same curve as at {reference.short}"
                    return self._told(Kind.OK, reason, tip, record, reference, level.noise_rel, against=references[0])
                if again.stored_as is not None:
                    recorded, references = references[0], []
                    self._more(reference, references, 1)
        self._more(self._tip, tips, self._case.repeats)
        if is_itself:
            references = tips
        elif spread(tips) or (recorded and not self._is_same(recorded, references[0], level.noise_rel)):
            self._more(reference, references, self._case.repeats)
        if len(tips) < self._case.repeats or not references:
            reason = "the curve moved, and a repeat of it doesn't run"
            return self._told(Kind.UNDECIDED, reason, tip, record, reference, level.noise_rel)
        evidence = Evidence(
            recorded=recorded, reference=references, tip=tips, noise_rel=level.noise_rel,
            tolerance=self._case.tolerance, before=() if level.alarm else level.before,
        )  # fmt: skip
        return self._settled(kind_of(evidence), evidence, reference, level, record)

    def _settled(
        self, found: Finding, evidence: Evidence, reference: Point, level: Level, record: RunRecord
    ) -> tuple[CaseReport, Entry]:
        tip, now = evidence.tip[0], evidence.reference[0]
        drift = f"The environment gives other numbers than it did, at {reference.short} too."
        notes = (drift,) if found.is_drifted and found.kind is not Kind.ENVIRONMENT else ()
        is_new_noise = reference != self._tip and len(evidence.reference) > 1 and not spread(evidence.reference)
        if found.kind is Kind.FLAKY and is_new_noise:
            notes = (*notes, f"{reference.short} repeats itself: it came with what is new since then.")
        if level.alarm and found.kind in (Kind.OK, Kind.ENVIRONMENT):
            return self._still(level.alarm, tip, record, found.noise_rel)
        if found.kind not in _MOVED:
            return self._told(
                found.kind, found.reason, tip, record, reference, found.noise_rel, notes=notes, against=now
            )
        if found.is_drifted and level.alarm is None:
            self._note(reference, now, record, Kind.ENVIRONMENT, drift)
        self._judge.say(f"{self.series.recipe}: the loss moved; looking for the commit")
        who = blame(
            self._judge.code, self._case, reference, self._tip, curves=(now, tip), noise_rel=found.noise_rel,
            is_drifted=found.is_drifted, bench=self._judge.bench, bisect=self._judge.bisect,
        )  # fmt: skip
        given = self._acknowledged.get(who.commits[0].sha) if len(who.commits) == 1 else None
        if given is not None:
            return self._told(
                Kind.ACKNOWLEDGED, found.reason, tip, record, reference, found.noise_rel,
                notes=notes, who=who, given=given, against=now,
            )  # fmt: skip
        return self._told(
            found.kind, found.reason, tip, record, reference, found.noise_rel, notes=notes, who=who, against=now
        )

    def _not_run(self, record: RunRecord, level: Level, asked: Point | None) -> tuple[CaseReport, Entry]:
        """A run that failed is the commit's fault only if the reference commit runs here today."""
        base = level.base.point if level.base else asked or self._parent()
        reason = f"{record.outcome}: {record.reason}"
        is_told = level.latest is not None and level.latest.point == self._tip and level.latest.kind is Kind.UNDECIDED
        if record.outcome is not Outcome.FAILED or record.cause is Cause.INFRASTRUCTURE:
            return self._told(Kind.UNDECIDED, reason, {}, record, base, 0.0, is_news=not is_told)
        if level.latest and level.latest.kind is Kind.BROKEN:
            return self._told(Kind.BROKEN, reason, {}, record, base, 0.0, is_news=False)
        if base is not None and base != self._tip:
            again = self._run(base, is_fresh=True)
            if again.outcome is not Outcome.FINISHED:
                reason = f"{reason}; the reference commit {base.short} doesn't run here today either: {again.reason}"
                return self._told(Kind.UNDECIDED, reason, {}, record, base, 0.0, is_news=not is_told)
        elif level.accepted is not None:
            reason = f"{reason}; it ran before, at the same commit: the environment has changed"
            return self._told(Kind.UNDECIDED, reason, {}, record, base, 0.0)
        who = None
        if base is not None and base != self._tip:
            is_mcore, is_bridge = base.mcore != self._tip.mcore, base.bridge != self._tip.bridge
            axis = Axis.BOTH if is_mcore and is_bridge else Axis.BRIDGE if is_bridge else Axis.MCORE
            found = suspects(self._judge.code, axis, base, self._tip)
            told = "the only commit in between" if len(found) == 1 else "one of the commits since it ran"
            who = Blame(axis=axis, commits=found, is_confirmed=len(found) == 1, reason=told)
        return self._told(Kind.BROKEN, reason, {}, record, base, 0.0, who=who)

    def _still(self, alarm: Entry, tip: Curve, record: RunRecord, noise: float) -> tuple[CaseReport, Entry]:
        reason = f"still as reported at {alarm.point.short}: {alarm.reason}"
        report, entry = self._told(
            alarm.kind, reason, tip, record, alarm.point, noise, is_news=False, against=alarm.curve
        )
        return report, replace(entry, culprits=alarm.culprits, reason=alarm.reason)

    def _told(
        self, kind: Kind, reason: str, curve: Curve, record: RunRecord, reference: Point | None, noise: float, *,
        notes: tuple[str, ...] = (), who: Blame | None = None, given: Acknowledgement | None = None,
        is_news: bool = True, against: Curve | None = None,
    ) -> tuple[CaseReport, Entry]:  # fmt: skip
        report = CaseReport(
            case=self._case, trainer=self._trainer, point=self._tip, reference=reference, kind=kind, reason=reason,
            is_news=is_news and kind not in (Kind.OK, Kind.ACKNOWLEDGED), runs=self._runs, blame=who,
            acknowledgement=given, notes=notes, curve=curve, reference_curve=against or {}, noise_rel=noise,
        )  # fmt: skip
        culprits = tuple(commit.sha for commit in who.commits) if who else ()
        entry = Entry(
            at=datetime.now(UTC), point=self._tip, kind=kind, reason=reason, noise_rel=noise, curve=curve,
            culprits=culprits, environment=environment_digest(record),
        )  # fmt: skip
        return report, entry

    def _note(self, point: Point, curve: Curve, record: RunRecord, kind: Kind, reason: str) -> None:
        entry = Entry(
            at=datetime.now(UTC), point=point, kind=kind, reason=reason, noise_rel=0.0, curve=curve,
            environment=environment_digest(record),
        )  # fmt: skip
        self._judge.ledger.add(self.series, entry)

    def _run(self, point: Point, *, is_fresh: bool) -> RunRecord:
        self._runs += 1
        self._judge.say(f"{self.series.recipe}: run {self._runs}, {point.short}")
        return self._judge.bench.run(self._case, point, is_fresh=is_fresh)

    def _more(self, point: Point, curves: list[Curve], wanted: int) -> None:
        """Run a point until there are so many curves of it; a run that fails ends it."""
        while len(curves) < wanted:
            record = self._run(point, is_fresh=True)
            if record.outcome is not Outcome.FINISHED:
                return
            curves.append(self._judge.bench.curve(self._case, record))

    def _is_same(self, one: Curve, other: Curve, noise: float) -> bool:
        return change_of(one, other, noise, self._case.tolerance) == Change.SAME

    def _parent(self) -> Point | None:
        """The point before this one: of Bridge's history where this one is of it, else of Megatron-Core's."""
        code = self._judge.code
        if code.bridge is not None and self._tip.bridge is not None and is_pinned(code, self._tip):
            before = _first_parent(code.bridge, self._tip.bridge)
            pin = pin_of(code.bridge, before) if before else None
            if pin is not None and ask(
                code.mcore, "rev-parse", "-q", "--verify", f"{pin}^{{commit}}", allowed=(0, 1, 128)
            ):
                return Point(mcore=pin, bridge=before)
        parent = _first_parent(code.mcore, self._tip.mcore)
        return replace(self._tip, mcore=parent) if parent else None

    def _level(self, asked: Point | None) -> "_Known":
        entries = self._judge.ledger.entries(self.series)
        if asked is not None:
            entries = [entry for entry in entries if entry.point in (asked, self._tip)]
        distances = _distances(self._judge.code, self._tip, {entry.point for entry in entries})
        level = level_at(entries, distances, self._acknowledged)
        return _Known(entries=entries, level=level)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    entries: list[Entry]
    level: Level


def _first_parent(repo: "Repo", sha: str) -> str | None:
    parents = ask(repo, "rev-list", "--parents", "--max-count=1", sha).split()[1:]
    return parents[0] if parents else None


def _distances(code: CodeBase, tip: Point, points: set[Point]) -> dict[Point, int]:
    """How many commits each point lies before the tip along first parents; others are left out."""
    if not points:
        return {}
    line = {sha: n for n, sha in enumerate(ask(code.mcore, "rev-list", "--first-parent", tip.mcore).split())}
    bridge: dict[str | None, int] = {None: 0}
    if code.bridge is not None and tip.bridge is not None:
        shas = ask(code.bridge, "rev-list", "--first-parent", tip.bridge).split()
        bridge = {sha: n for n, sha in enumerate(shas)}
    return {
        point: line[point.mcore] + bridge[point.bridge]
        for point in points
        if point.mcore in line and point.bridge in bridge
    }
