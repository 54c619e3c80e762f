"""Several runs as one: seeds of a set-up, whose scatter is the noise and whose medians are the curve."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.compare.align import ITERATION
from lossbisect.compare.ends import ends_of_groups
from lossbisect.compare.pipeline import compare_logs
from lossbisect.compare.types import Judgement, NoiseFloor, Repeats
from lossbisect.errors import AlignmentError
from lossbisect.parsers.runlog import RunLog

if TYPE_CHECKING:
    from lossbisect.parsers.runlog import ConfigValue

__all__ = ["Group", "compare_groups"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Runs of one set-up, which may differ in their seeds.

    Attributes:
        name: For people.
        runs: One run or more.
    """

    name: str
    runs: tuple[RunLog, ...]


def compare_groups(
    baseline: Group,
    candidate: Group,
    *,
    metric: str = "lm_loss",
    tolerance: float | str | NoiseFloor | None = None,
    on: str = ITERATION,
) -> Judgement:
    """Judge whether two groups show the same loss but for the scatter of their runs.

    The curves are each group's medians, iteration by iteration; the noise is what the runs of a group differ by. A
    value that isn't finite in any run of a group isn't finite in its curve. Settings are compared where all runs of a
    group share them, so seeds are no difference.

    Raises:
        AlignmentError: Each group has one run only, so nothing shows the scatter; or as `compare_logs`.
        ValueError: A tolerance outside [0, 1).
    """
    if len(baseline.runs) + len(candidate.runs) < 3:
        raise AlignmentError(
            f"Groups '{baseline.name}' and '{candidate.name}' have one run each, so nothing shows how far equal runs "
            f"scatter. Add a run to either, or compare the two logs without --group."
        )
    first, other = (_merged(group) for group in (baseline, candidate))
    return compare_logs(
        first,
        other,
        metric=metric,
        tolerance=tolerance,
        on=on,
        repeats=Repeats(
            baseline=baseline.runs[1:], candidate=candidate.runs[1:], noun="further run", are_medians_shown=True
        ),
        ends=ends_of_groups(baseline.runs, candidate.runs),
    )


def _merged(group: Group) -> RunLog:
    """The group's first run under the group's name, with the settings that all its runs share."""
    first = group.runs[0]
    config: dict[str, ConfigValue] = {
        key: value
        for key, value in first.config.items()
        if all(key in run.config and run.config[key] == value for run in group.runs)
    }
    name = f"{group.name} ({len(group.runs)} run{'s' if len(group.runs) > 1 else ''})"
    return replace(first, path=Path(name), config=config)
