"""Pages of made-up comparisons and bisections, with text in them that would like to be a program."""

import random
from dataclasses import replace
from pathlib import Path

import polars as pl

from lossbisect.bisect.culprit import Answer, BisectResult, Culprit, Finding
from lossbisect.bisect.types import BisectStep, CommitInfo, CommitRange, CommitVerdict, FileChange, Role
from lossbisect.compare import Judgement, compare_logs
from lossbisect.compare.types import NoiseFloor
from lossbisect.parsers.runlog import Note, RunLog
from lossbisect.report.html.bisect import bisect_page, read_evidence
from lossbisect.report.html.compare import compare_page
from lossbisect.report.html.origin import Origin, write_page
from lossbisect.train.types import Outcome
from tests.bisect.support import make_plan, make_record, write_curve
from tests.compare.logs import FLOAT32, make_log

EVIL = (
    "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'><svg onload=window.hacked=1>"
    '"><a href="javascript:window.hacked=1">x</a>\x1b[31mred\x1b[0m\x1b]0;title\x07\u202e$(touch hacked)`touch hacked`'
    '=HYPERLINK("https://evil.example")<!--\\u003c/script>{{7*7}}${7*7}'
)
"""HTML, an address, a terminal's colours, a turn of the reading direction, a shell's and a spreadsheet's commands."""

ORIGIN = Origin(
    command=f"lossbisect compare '{EVIL}'", folder=EVIL, made_at="2026-01-01 00:00 UTC", made_by="lossbisect", files=()
)


def pair(*, rows: int = 40, since: int = 20, path: str = "candidate.log") -> Judgement:
    """Two curves that part at an iteration; the gradient norm parts too, the learning rate doesn't."""
    base = [10.0 - 0.01 * i for i in range(rows)]
    other = [value * (1.002 if i + 1 >= since else 1.0) for i, value in enumerate(base)]
    norms = [1.0 + 0.01 * (i % 7) for i in range(rows)]
    rates = [1e-4] * rows
    baseline = make_log(base, path="baseline.log", grad_norm=norms, learning_rate=rates)
    parted = [value * (2.0 if i + 1 >= since else 1.0) for i, value in enumerate(norms)]
    return compare_logs(baseline, make_log(other, path=path, grad_norm=parted, learning_rate=rates))


def evil_pair() -> Judgement:
    """The same with evil in every text that comes from a log."""

    def log(losses: list[float], value: str) -> RunLog:
        note = Note(line_no=7, kind="cut-row", text=EVIL)
        config = FLOAT32 | {"optimizer": f"{value}{EVIL}", EVIL: value}
        made = make_log(losses, path=f"{value}{EVIL}".replace("/", "_"), config=config, notes=(note,))
        frame = made.iterations.with_columns(pl.Series(f"{EVIL}loss", losses))
        return replace(made, iterations=frame)

    return compare_logs(log([5.0, 4.0, 3.0, 2.0], "a"), log([5.0, 4.0, 3.5, 2.5], "b"))


def long_pair(rows: int, seed: int = 1) -> Judgement:
    """Noisy curves with three columns and a lasting shift."""
    chance = random.Random(seed)
    base = [round(10.4 * (i + 1) ** -0.12 + chance.gauss(0, 0.01), 6) for i in range(rows)]
    shift = 0.6 * rows
    other = [
        round(value * (1 + chance.gauss(0, 1e-3) + (0.03 if i >= shift else 0)), 6) for i, value in enumerate(base)
    ]
    norms, zeros = ([round(chance.uniform(0.5, 1.5), 6) for _ in range(rows)] for _ in range(2))
    return compare_logs(
        make_log(base, path="a.log", grad_norm=norms, num_zeros=zeros),
        make_log(other, path="b.log", grad_norm=zeros, num_zeros=norms),
        tolerance=1e-2,
    )


def bisection(folder: Path, *, steps: int = 9, text: str = "Change the loss (#7)") -> BisectResult:
    """A finished bisection that ran each commit once, with its runs on the disk."""
    info = [
        CommitInfo(
            sha=f"{number:040x}"[::-1], parents=(f"{number - 1:040x}"[::-1],), author=text, email=f"{text}@example.com",
            date="2026-01-01T00:00:00+00:00", subject=text, pull_request=f"#7{text}",
        )
        for number in range(1, steps + 1)
    ]  # fmt: skip
    commits = CommitRange(good=info[0], commits=tuple(info[1:]), notes=(text,))
    change = steps // 2
    made = []
    for number in range(steps):
        index = number - 1 if number <= change else steps - 2 - (number - change - 1)
        is_bad = index >= change
        record = make_record(info[index + 1].sha, folder / f"{number:04d}")
        record.out.mkdir(parents=True)
        write_curve(record.scalars, [10.5, 10.25, 9.876 if is_bad else 9.875, 9.6 if is_bad else 9.5])
        record.console.write_text(f"first line\n{text}\nHF_TOKEN=hf_abcdefghijklmnopqrstuvwx\n", encoding="utf-8")
        is_skipped = number % 5 == 3 and index not in (change - 1, change, steps - 2)
        verdict = CommitVerdict.SKIP if is_skipped else CommitVerdict.BAD if is_bad else CommitVerdict.GOOD
        outcome = Outcome.FAILED if is_skipped else Outcome.FINISHED
        made.append(
            BisectStep(
                role=Role.SEARCH if number else Role.GOOD_END, index=index, commit=info[index + 1].sha,
                record=replace(record, outcome=outcome),
                verdict=verdict, reason=text,
            )
        )  # fmt: skip
    noise = NoiseFloor(source="bit-exact", surely_noise_rel=0.0, surely_real_rel=0.0)
    judgement = compare_logs(
        make_log([10.5, 10.25, 9.875, 9.5], path="last good"), make_log([10.5, 10.25, 9.876, 9.6], path="first bad")
    )
    finding = Finding(
        answer=Answer.FOUND, reason=text, good=change - 1, bad=change, steps=tuple(made), noise=noise,
        judgement=judgement, warnings=(text,),
    )  # fmt: skip
    culprit = Culprit(
        commit=commits.at(change), parent=commits.at(change - 1), files=(FileChange(path=text, status="modified"),),
        merged=(info[1],), harmless=None,
    )  # fmt: skip
    return BisectResult(
        id="20260101-000000-abcd", directory=folder / "bisects" / "20260101-000000-abcd",
        plan=make_plan(folder, info[0].sha, info[-1].sha), commits=commits, finding=finding, culprit=culprit,
        candidates=(commits.at(change),), repository="NVIDIA/Megatron-LM",
    )  # fmt: skip


def compare_file(folder: Path, *judgements: Judgement) -> Path:
    """The page of a comparison as a file."""
    write_page(compare_page(judgements, ORIGIN), folder / "compare.html")
    return folder / "compare.html"


def bisect_file(folder: Path, result: BisectResult) -> Path:
    """The page of a bisection as a file."""
    write_page(bisect_page(result, read_evidence(result), ORIGIN), folder / "bisect.html")
    return folder / "bisect.html"
