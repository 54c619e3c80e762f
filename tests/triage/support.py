"""Triages on made histories, with a made-up trainer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lossbisect.cause import Cause
from lossbisect.train.types import Outcome, RunRecord, RunSpec
from tests.bisect.support import play, write_curve


@dataclass
class Machine:
    """A trainer whose numbers a test can change between runs.

    Attributes:
        ran: Commits in the order in which they were run.
        shift: Added to every loss: another environment.
        by_bridge: Added to the losses that a commit of Bridge gives.
        noisy: SHAs whose next runs have these added, one a run.
        fails: SHAs whose runs fail, by this cause; ``"*"``: all of them.
        breaks_bridge: SHAs of Bridge whose runs fail by their own fault.
    """

    ran: list[str] = field(default_factory=list)
    shift: float = 0.0
    noisy: dict[str, list[float]] = field(default_factory=dict)
    by_bridge: dict[str, float] = field(default_factory=dict)
    fails: dict[str, Cause] = field(default_factory=dict)
    breaks_bridge: set[str] = field(default_factory=set)

    def play(self, spec: RunSpec, out: Path, **others: object) -> RunRecord:
        """Stand in for `run_recipe`."""
        commit = str(spec.sources.mcore_commit)
        self.ran.append(commit)
        record = play(spec, out, **others)  # type: ignore[arg-type]
        failure = self.fails.get(commit) or self.fails.get("*")
        if spec.sources.bridge_commit in self.breaks_bridge:
            failure = Cause.OWN
        if failure:
            return replace(record, outcome=Outcome.FAILED, exit_code=1, cause=failure, reason="it died")
        if record.outcome is Outcome.FINISHED:
            write_curve(record.scalars, self._losses(spec, commit))
        return record

    def _losses(self, spec: RunSpec, commit: str) -> Sequence[float]:
        assert spec.sources.mcore is not None
        source = (spec.sources.mcore / "megatron/core/loss.py").read_text(encoding="utf-8")
        loss = float(source.removeprefix("LOSS = ")) + self.shift
        loss += self.by_bridge.get(str(spec.sources.bridge_commit), 0.0)
        queue = self.noisy.get(commit)
        loss += queue.pop(0) if queue else 0.0
        return [11.0 + self.shift, 10.5, loss, loss - 0.125]
