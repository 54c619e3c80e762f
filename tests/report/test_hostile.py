"""Texts of logs, commits and settings that would like to be more than text: a test for each place where they come out.

Pages in a browser are tested in ``tests/browser``, the site's in ``tests/serve``, triage's files in ``test_triage``.
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from lossbisect.bisect.culprit import Answer, BisectResult, Change
from lossbisect.bisect.recall import Unfinished
from lossbisect.cli import main
from lossbisect.compare import compare_logs
from lossbisect.report.bisect import again_command, bisect_json, bisect_markdown, bisect_text
from lossbisect.report.changes import changelog_json, changelog_markdown
from lossbisect.report.history import history_text
from lossbisect.report.html.bisect import page_of
from lossbisect.report.html.markdown import page_markdown
from lossbisect.report.html.model import Page
from lossbisect.report.html.render import page_html
from lossbisect.report.html.run import run_page as run_html
from lossbisect.report.log import write
from lossbisect.report.run import run_text
from lossbisect.report.runs import run_page, runs_table
from lossbisect.report.stored import curves_of
from lossbisect.report.unfinished import unfinished_text
from lossbisect.store.store import RunStore
from lossbisect.triage.hook import place_of
from lossbisect.triage.ledger import Ledger
from lossbisect.triage.run import triage
from tests.bisect.support import commit, git, make_history, make_record, read_play
from tests.browser.made import EVIL, ORIGIN, bisection
from tests.compare.logs import make_log
from tests.serve.made import SERIES, make_journal, make_run
from tests.serve.made import make_history as make_records
from tests.triage.support import Machine

FORMULAS = ['=HYPERLINK("https://evil.example")', "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1"]


def is_shown(text: str) -> bool:
    """A terminal shows the text and obeys none of it."""
    return all(mark.isprintable() or mark == "\n" for mark in text)


def changelog(folder: Path) -> BisectResult:
    """A changelog with one change, every text of it hostile."""
    result = bisection(folder, text=EVIL.replace("/", "_"))
    before, after = make_log([10.5, 10.25]), make_log([10.5, 10.75])
    change = Change(good=0, bad=1, judgement=compare_logs(before, after))
    finding = replace(result.finding, answer=Answer.EVERY_CHANGE, changes=(change,))
    return replace(result, finding=finding, culprit=None)


def unfinished(folder: Path) -> Unfinished:
    """A stopped bisect, every text of it hostile."""
    result = bisection(folder, text=EVIL.replace("/", "_"))
    return Unfinished(
        id=result.id, directory=result.directory, plan=result.plan, commits=result.commits, steps=result.finding.steps,
        repository=f"NVIDIA/{EVIL}", trouble=None,
    )  # fmt: skip


def stored(folder: Path) -> str:
    """Stored runs as a table, and one as a page for the terminal."""
    name = make_run(folder, text=EVIL, recipe=EVIL)
    run = RunStore(folder).find(name)
    return runs_table([run]) + run_page(run, curves_of(run.record))


def one_run(folder: Path) -> str:
    """What ``lossbisect run`` prints."""
    record = make_record("a" * 40, folder / EVIL.replace("/", "_"))
    return run_text(replace(record, reason=EVIL))


def records(folder: Path) -> str:
    """What ``lossbisect history`` prints."""
    series = replace(SERIES, recipe=EVIL, machine=EVIL, metric=EVIL)
    make_records(folder, count=10, series=series, text=EVIL)
    return history_text(series, Ledger(folder).entries(series))


@pytest.mark.parametrize(
    "text",
    [
        lambda folder: bisect_text(bisection(folder, text=EVIL.replace("/", "_"))),
        lambda folder: bisect_text(changelog(folder)),
        lambda folder: unfinished_text(unfinished(folder)),
        stored,
        one_run,
        records,
    ],
    ids=["bisect", "changes", "unfinished", "runs", "run", "history"],
)
def test_a_terminal_obeys_nothing(tmp_path: Path, text: Callable[[Path], str]) -> None:
    """No control character and no turn of the reading direction reaches it."""
    assert is_shown(text(tmp_path))


def test_bisect_status_and_log_obey_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a journal tells is printed as text, and the log stays one that 'replay' reads."""
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path))
    make_journal(tmp_path, text=EVIL, repo=Path(f"/nowhere/{EVIL}"))
    for words in (("bisect", "status"), ("bisect", "log")):
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        assert ended.value.code == 0
        assert is_shown(capsys.readouterr().out)


@pytest.mark.parametrize(
    "page",
    [
        lambda folder: page_of(changelog(folder), ORIGIN),
        lambda folder: page_of(unfinished(folder), ORIGIN),
        lambda folder: run_html(
            replace(make_record("a" * 40, folder), reason=EVIL, argv=("python", EVIL)), None, EVIL, name=EVIL,
            facts={EVIL: EVIL},
        ),
    ],
    ids=["changelog", "unfinished", "run"],
)  # fmt: skip
def test_a_page_and_its_markdown_hold_text(tmp_path: Path, page: Callable[[Path], Page]) -> None:
    """No element, attribute or address of others; in Markdown no element, link or mention."""
    made = page(tmp_path)
    text = page_html(made)
    text = re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>", "", text)
    text = re.sub(r'(?s)<script type="application/json" id="data">[^<>&]*</script>', "", text)
    assert "<script" not in text
    assert not re.search(r"<(img|iframe|object|svg onload)", text)
    assert not re.search(r'href="(?!#|https://github\.com/|data:,)', text)
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    prose = re.sub(r"(?s)^```.*?^```", "", page_markdown(made), flags=re.MULTILINE)
    assert not re.search(r"(?<!\\)<[a-zA-Z/!]", prose)
    assert "](javascript" not in prose
    assert is_shown(prose.replace("\u200b", ""))  # which keeps a name from ringing anybody


@pytest.mark.parametrize("made", [bisect_json, changelog_json], ids=["bisect", "changelog"])
def test_json_is_json(tmp_path: Path, made: Callable[[BisectResult], str]) -> None:
    """It is read back, and a terminal that it's printed on obeys none of it."""
    text = made(changelog(tmp_path))
    assert json.loads(text)
    assert is_shown(text)


def test_markdown_of_a_bisect_and_of_a_changelog_hold_text(tmp_path: Path) -> None:
    """No element comes of a subject, and no cell ends early."""
    for text in (bisect_markdown(changelog(tmp_path / "one")), changelog_markdown(changelog(tmp_path / "two"))):
        table = [line for line in text.splitlines() if line.startswith("|")]
        assert table
        assert not any(re.search(r"(?<!\\)<[a-zA-Z/!]", line) for line in table)


def test_csv_holds_no_formula(tmp_path: Path) -> None:
    """A spreadsheet calculates nothing: text that would be a formula has an apostrophe before it, numbers have none."""
    write(pl.DataFrame({"iteration": list(range(len(FORMULAS))), "text": FORMULAS}), tmp_path / "rows.csv")
    cells = pl.read_csv(tmp_path / "rows.csv")["text"].to_list()
    assert all(cell.startswith("'") for cell in cells)
    write(pl.DataFrame({"loss": [-1.5, 2.0]}), tmp_path / "losses.csv")
    assert (tmp_path / "losses.csv").read_text() == "loss\n-1.5\n2.0\n"


@pytest.mark.parametrize("key", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1"])
def test_csv_has_no_formula_as_a_column(tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A log's own key may be anything; the column that it becomes isn't a formula."""
    log, out = tmp_path / "run.log", tmp_path / "run.csv"
    row = " [2026-11-30 12:00:00] iteration {0:8d}/      10 | consumed samples: {0} | {1}: 1.0 | lm loss: 9.8E+00 |\n"
    log.write_text("".join(row.format(at, key) for at in (1, 2)), encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["parse", str(log), "-o", str(out)])
    assert is_shown(capsys.readouterr().err)
    head = out.read_text(encoding="utf-8").splitlines()[0]
    assert not [name for name in head.split(",") if name.strip('"')[:1] in ("=", "+", "-", "@", "\t", "\r")]


def test_commands_to_copy_are_quoted(tmp_path: Path) -> None:
    """A path or a name within them stays one word for a shell."""
    result = bisection(tmp_path, text="one")
    name = "$(touch hacked)`touch hacked`; touch hacked"
    plan = replace(result.plan, repo=tmp_path / name, recipe=f"{name}.toml", good=name)
    words = shlex.split(again_command(replace(result, plan=plan)))
    assert str(tmp_path / name) in words
    subprocess.run(["sh", "-c", f": {again_command(replace(result, plan=plan))}"], cwd=tmp_path, check=True)
    assert not (tmp_path / "hacked").exists()


def test_the_hooks_log_and_a_notification_hold_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit's subject and a branch's name do nothing in the log, in the command that is notified, or on disk."""
    repo = tmp_path / "mlm"
    make_history(repo, [10.25])
    machine = Machine()
    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", machine.play)
    monkeypatch.setattr("lossbisect.bisect.runner.read_curves", read_play)
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    assert triage(repo) is not None
    git(repo, "checkout", "--quiet", "-b", "$(touch${IFS}hacked)")
    commit(repo, EVIL.replace("\x00", ""), {"megatron/core/loss.py": "LOSS = 10.5\n"})
    told = tmp_path / "told.md"
    copy = f"{shlex.quote(sys.executable)} -c 'import sys; open(sys.argv[1], \"w\").write(sys.stdin.read())' {told}"
    with pytest.raises(SystemExit) as ended:
        main(["hook", "run", "--repo", str(repo), "--notify", copy])
    assert ended.value.code == 0
    log = place_of(repo).log.read_text(encoding="utf-8")
    assert "REGRESSION" in log
    assert is_shown(log)
    assert not re.search(r"(?<!\\)<[a-zA-Z/!]", told.read_text(encoding="utf-8"))
    assert not list(tmp_path.rglob("hacked"))
    assert machine.ran


@pytest.mark.parametrize("name", ["--output=hacked", "-x", "", "HEAD; touch hacked", "$(touch hacked)"])
def test_a_name_of_a_commit_is_no_option(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is never given to git as an option, and no shell sees it: one line, exit code 2."""
    make_history(tmp_path / "mlm", [10.25])
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["triage", "--repo", str(tmp_path / "mlm"), f"--commit={name}"])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.count("\n") == 1
    assert is_shown(said)
    assert not (tmp_path / "hacked").exists()
