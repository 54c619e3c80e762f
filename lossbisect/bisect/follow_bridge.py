"""Another Bridge where the frozen one can't load a commit of Megatron-Core: the one of that commit's day."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.events import Runner
from lossbisect.bisect.names import resolve
from lossbisect.bisect.repository import ask
from lossbisect.bisect.scope import Searched
from lossbisect.bisect.signs import failure_sign
from lossbisect.bisect.types import BisectStep
from lossbisect.compare.wording import counted
from lossbisect.errors import GitError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.curves import count_losses
from lossbisect.train.types import Outcome, RunRecord

__all__ = ["FollowingRunner", "bridge_of_day", "cannot_load", "other_bridges"]

_API = re.compile(r"^(?:\w+\.)*(?:ImportError|ModuleNotFoundError|AttributeError|TypeError|NameError|KeyError)\b")
_MOST_NAMED = 5


class FollowingRunner:
    """Runs a commit with the frozen Bridge, and if that can't load it, with the Bridge of its day."""

    def __init__(self, runner: Runner, code: CodeBase, frozen: str | None) -> None:
        """Run by another runner.

        Args:
            runner: Also runs two commits named ``BRIDGE+MCORE``.
            code: The user's checkout.
            frozen: Full SHA that Bridge stays at; None: there is no Bridge to follow.
        """
        self._runner = runner
        self._code = code
        self._frozen = frozen

    def run(
        self,
        commit: str,
        out: Path,
        on_line: Callable[[str], None],
        *,
        repeat: int | None = 0,
        should_stop: Callable[[], bool] | None = None,
        without: str | None = None,
    ) -> RunRecord:
        """As `Runner.run`; a second run has a folder of its own beside ``out``, and counts if it goes well."""
        record = self._runner.run(commit, out, on_line, repeat=repeat, should_stop=should_stop, without=without)
        if self._frozen is None or not cannot_load(record):
            return record
        bridge = bridge_of_day(self._code, commit)
        if bridge in (None, self._frozen):
            return record
        on_line(f"[lossbisect] Bridge {self._frozen[:10]} can't load it ({record.reason}): again with {bridge[:10]}")
        followed = self._runner.run(
            f"{bridge}+{commit}",
            out.with_name(f"{out.name}.bridge-{bridge[:10]}"),
            on_line,
            repeat=repeat,
            should_stop=should_stop,
            without=without,
        )
        if followed.outcome not in (Outcome.FINISHED, Outcome.CUT):
            # No name of that Bridge in it: failures that say the same are taken for one.
            return replace(record, reason=f"{record.reason}; with the Bridge of its day: {followed.reason}")
        sources = followed.spec.sources
        own = None if sources.mcore_commit == commit else commit
        return replace(followed, spec=replace(followed.spec, sources=replace(sources, stands_for=own)))

    def read(self, record: RunRecord) -> RunLog:
        """The curves of a run."""
        return self._runner.read(record)


def cannot_load(record: RunRecord) -> bool:
    """It failed before the first iteration, with an error that says that two versions don't fit together."""
    sign = failure_sign(record)
    if sign is None or count_losses(record.scalars) > 0:
        return False
    return sign.kind == "import-error" or (sign.kind == "traceback" and _API.match(sign.text) is not None)


def bridge_of_day(code: CodeBase, commit: str) -> str | None:
    """Full SHA of Bridge's newest first-parent commit by the day (UTC) of a commit of Megatron-LM; None: none is."""
    seconds = int(ask(code.mcore, "show", "--no-patch", "--format=%ct", commit))
    try:
        return resolve(code, f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}", Searched.BRIDGE)
    except GitError:
        return None


def other_bridges(steps: Sequence[BisectStep], frozen: str | None) -> str | None:
    """Which commits ran with another Bridge than the frozen one, a sentence; None if none did."""
    ran = dict.fromkeys((step.commit, step.record.spec.sources.bridge_commit) for step in steps)
    others = [(commit, bridge) for commit, bridge in ran if bridge is not None and bridge != frozen]
    if frozen is None or not others:
        return None
    named = [f"{commit[:10]} with {bridge[:10]}" for commit, bridge in others]
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return (
        f"Bridge {frozen[:10]} can't load {counted(len(named), 'commit')}, run with the Bridge of their day instead: "
        f"{', '.join(named[:_MOST_NAMED])}{more}."
    )
