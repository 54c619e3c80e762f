"""The page of a correlation: Megatron-LM against Bridge, with what each run really was."""

from collections.abc import Sequence
from dataclasses import replace

from lossbisect.compare.types import Judgement
from lossbisect.redact import redact_words
from lossbisect.report.html.compare import compare_page
from lossbisect.report.html.model import Code, Inline, Page, Section, Table
from lossbisect.report.html.origin import Origin
from lossbisect.train.types import RunRecord

__all__ = ["correlate_page"]


def correlate_page(judgement: Judgement, records: Sequence[RunRecord], origin: Origin) -> Page:
    """The comparison's page with the two runs, the baseline's first."""
    page = compare_page([judgement], origin)
    *sections, files, once_more = page.sections
    runs = Section(title="What ran", blocks=[_runs(records), *(Code(_command(record)) for record in records)])
    return replace(page, kind="correlate", sections=[*sections, runs, files, once_more])


def _runs(records: Sequence[RunRecord]) -> Table:
    rows: list[list[Inline]] = []
    for record in records:
        ran = record.provenance
        core = "unknown" if ran is None else f"{ran.megatron_core_version} {(ran.mcore_commit or 'no commit')[:10]}"
        setup = "" if ran is None else f"Python {ran.python}, torch {ran.torch}"
        rows.append(
            [
                record.spec.trainer.value,
                record.spec.recipe,
                record.spec.lane.value,
                core,
                setup,
                f"{record.duration_s:.0f} s",
            ]
        )
    return Table(
        head=["trainer", "recipe", "lane", "Megatron-Core", "set-up", "time"], rows=rows, numeric=frozenset({5})
    )


def _command(record: RunRecord) -> str:
    import shlex

    return shlex.join(redact_words(record.argv))
