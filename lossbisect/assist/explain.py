"""The facts for `lossbisect.assist.checklist`: two logs, a checkout, or both."""

from pathlib import Path

from lossbisect.assist.checklist import Explanation, explain
from lossbisect.assist.doctor import examine
from lossbisect.assist.findings import Finding
from lossbisect.assist.next_bisect import next_bisect
from lossbisect.assist.recommend.shortest import recipe_for
from lossbisect.errors import GitError, LossbisectError
from lossbisect.train.provenance import read_provenance
from lossbisect.train.types import Provenance

__all__ = ["explain_logs"]


def explain_logs(
    run: Path | None,
    baseline: Path | None,
    *,
    repo: Path | None,
    python: Path,
    is_python_named: bool,
    good: str | None = None,
    bad: str | None = None,
) -> Explanation:
    """Gather what is there, and walk the checklist.

    Args:
        run: Log of the run that went astray; None: no logs.
        baseline: Log of a run to trust.
        repo: The checkout; None: the one around the current folder, if it is in one.
        python: The interpreter that trains.
        is_python_named: The user named it.
        good: Last commit known to be good.
        bad: Commit known to be bad.

    Raises:
        LossbisectError: Neither logs nor a checkout are there, or one of them can't be read.
    """
    from lossbisect.compare import compare_logs
    from lossbisect.compare.config_diff import effective_settings
    from lossbisect.parsers import read_log

    judgement = logs = settings = ran = None
    if run is not None and baseline is not None:
        logs = (read_log(baseline), read_log(run))
        judgement = compare_logs(*logs)
        settings = (effective_settings(logs[0].config), effective_settings(logs[1].config))
        said = (_said(baseline), _said(run))
        ran = (said[0], said[1]) if said[0] and said[1] else None
    findings: tuple[Finding, ...] | None = None
    command, why = None, "With the checkout, the bisect can be named: add --repo PATH."
    try:
        findings = examine(repo or Path(), python=python, is_python_named=is_python_named).findings
    except GitError as error:
        if repo is not None:
            raise
        if logs is None:
            raise LossbisectError(
                "Nothing to explain: give the logs, RUN and BASELINE, a checkout (--repo PATH), or both."
            ) from error
    if findings is not None:
        recipe = recipe_for(settings[1]) if settings and settings[1] else "vanilla-cpu"
        command, why = _next(repo or Path(), recipe, good=good, bad=bad, ran=ran)
    return explain(judgement, logs, findings, settings, ran=ran, bisect=command, why=why)


def _next(
    repo: Path, recipe: str, *, good: str | None, bad: str | None, ran: tuple[Provenance, Provenance] | None
) -> tuple[str | None, str]:
    """The bisect to run next: between the commits that the user names, or else those that the two logs say they ran."""
    commits = (ran[0].mcore_commit, ran[1].mcore_commit) if ran else (None, None)
    if good is not None or bad is not None:
        return next_bisect(repo, recipe, good=good, bad=bad)
    if commits[0] is not None and commits[0] == commits[1]:
        return None, "Both runs ran the same commit of Megatron-Core, so there is none to look for between them."
    try:
        if commits[0] and commits[1]:
            named_by = "the commits that the two logs say they ran"
            return next_bisect(repo, recipe, good=commits[0], bad=commits[1], named_by=named_by)
        return next_bisect(repo, recipe, good=None, bad=None)
    except GitError as error:
        return None, f"No bisect can be named yet. {error}"


def _said(log: Path) -> Provenance | None:
    """What a run of lossbisect said about itself; other logs don't."""
    with log.open(encoding="utf-8", errors="replace") as lines:
        return read_provenance(lines)
