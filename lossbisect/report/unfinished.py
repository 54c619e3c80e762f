"""A bisection that goes on, or was stopped, as text."""

from lossbisect.bisect.recall import Unfinished
from lossbisect.bisect.terms import terms_of
from lossbisect.compare.wording import counted
from lossbisect.report.bisect import resume_command
from lossbisect.report.plain import printable

__all__ = ["bracket_of", "bracket_text", "unfinished_text"]


def bracket_of(bisect: Unfinished) -> tuple[int, int]:
    """Index of the last commit known good before the change (-1: the good end), and of the first known bad one."""
    from lossbisect.report.html.bracket import brackets

    last = len(bisect.commits.commits) - 1
    return brackets(bisect.steps, last)[-1] if bisect.steps else (-1, last)


def bracket_text(bisect: Unfinished) -> str:
    """Where the change lies, one sentence."""
    good, bad = bracket_of(bisect)
    terms = terms_of(bisect.plan.search)
    ends = f"{bisect.commits.at(good).short} ({terms.old}) and {bisect.commits.at(bad).short} ({terms.new})"
    return f"After {counted(len(bisect.steps), 'run')} the change lies between {ends}: {counted(bad - good, 'commit')}."


def unfinished_text(bisect: Unfinished) -> str:
    """Several lines for a terminal, without a final newline: the bracket, the runs so far, how to go on."""
    terms = terms_of(bisect.plan.search)
    lines = [f"UNFINISHED: {bisect.trouble or bracket_text(bisect)}", ""]
    for number, step in enumerate(bisect.steps, start=1):
        what = f"{terms.role(step.role)}: {terms.verdict(step.verdict)}, {step.reason}"
        lines.append(f"  {number:>3}  {step.commit[:10]}  {what}")
    lines += ["", f"runs and journal: {bisect.directory}"]
    lines.append(f"to go on: {resume_command(bisect.id, bisect.directory.parents[1])}")
    return printable("\n".join(lines))
