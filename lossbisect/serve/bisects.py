"""A bisect's page on the site: what its file would say, with what runs now on top, each run a page of its own."""

from dataclasses import replace

from lossbisect.bisect.culprit import BisectResult
from lossbisect.bisect.recall import Unfinished
from lossbisect.bisect.types import BisectStep
from lossbisect.compare.wording import counted
from lossbisect.report.html.bisect import page_of, tail_of
from lossbisect.report.html.model import Block, Code, Facts, Inline, Link, Mark, Page, Section, Table, Text, Tone
from lossbisect.report.html.origin import Origin
from lossbisect.report.html.run import run_page
from lossbisect.report.stored import curves_of
from lossbisect.serve.watch import Glance, Slot, run_name

__all__ = ["bisect_site_page", "step_page"]


def bisect_site_page(
    bisect: Glance,
    answer: BisectResult | Unfinished | str,
    slots: tuple[Slot, ...],
    origin: Origin,
    *,
    is_running: bool,
) -> Page:
    """The page of a bisect.

    Args:
        bisect: How it stands.
        answer: Its answer, how far it is, or why neither can be told.
        slots: What runs now.
        origin: Where the page comes from.
        is_running: A process works on it.
    """
    if isinstance(answer, str):
        return _without_answer(bisect, answer)
    page = page_of(answer, origin, lambda step: _address(bisect, step))
    if not is_running:
        return page
    return replace(
        page,
        title=f"running: {page.reason}",
        verdict=Mark("running", Tone.NEUTRAL),
        sections=[_now(bisect, slots), *page.sections],
    )


def step_page(bisect: Glance, number: int) -> Page:
    """The page of a finished run of a bisect, by its number from 1 on."""
    step = bisect.steps[number - 1]
    stored = step.record.stored_as
    page = run_page(
        step.record,
        curves_of(step.record),
        tail_of(step.record.console),
        name=f"run {number} of {bisect.id}, {step.commit[:10]}",
        facts={"role": step.role.value, "says": f"{step.verdict}: {step.reason}", "from the store": stored or ""},
        whole_log=Link("The whole console", f"{_address(bisect, step)}/console.log"),
    )
    back = Section(title="The bisect", blocks=[Text(Link(bisect.id, f"/bisects/{bisect.id}"))])
    return replace(page, sections=[*page.sections, back])


def _address(bisect: Glance, step: BisectStep) -> str:
    return f"/bisects/{bisect.id}/runs/{run_name(step.record.out)}"


def _now(bisect: Glance, slots: tuple[Slot, ...]) -> Section:
    rows: list[list[Inline]] = [
        [
            slot.commit,
            slot.role,
            slot.progress,
            f"silent for {slot.silent_s // 60:.0f} min" if slot.silent_s >= 60 else "",
            Link("console", f"/bisects/{bisect.id}/slots/{slot.name}"),
        ]
        for slot in slots
    ]
    table = Table(head=["commit", "why", "is at", "", "log"], rows=rows)
    return Section(title="Running now", blocks=[table if rows else Text("Between two runs.")])


def _without_answer(bisect: Glance, trouble: str) -> Page:
    """What the journal alone tells, where the checkout or a run's files are gone."""
    rows: list[list[Inline]] = [
        [
            Link(str(number), _address(bisect, step)),
            step.commit[:10],
            step.role.value,
            step.verdict.value,
            step.reason,
        ]
        for number, step in enumerate(bisect.steps, start=1)
    ]
    plan = bisect.plan
    facts: list[tuple[str, Inline]] = [("folder", str(bisect.directory))]
    if plan is not None:
        facts = [
            ("range", f"{plan.good} .. {plan.bad}"),
            ("checkout", str(plan.repo)),
            ("recipe", f"{plan.recipe}, trainer {plan.trainer}, lane {plan.lane}"),
            *facts,
        ]
    blocks: list[Block] = [Table(head=["run", "commit", "why", "verdict", "reason"], rows=rows)] if rows else []
    return Page(
        kind="bisect",
        title=f"no answer: {bisect.id}",
        verdict=Mark("no answer", Tone.UNSURE),
        reason=f"{counted(len(bisect.steps), 'run')} in the journal, and no answer can be read from it.",
        sections=[
            Section(title="Why", blocks=[Code(trouble)]),
            Section(title="What was asked", blocks=[Facts(facts)]),
            Section(title="Runs", blocks=blocks),
        ],
    )
