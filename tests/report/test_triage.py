"""Reports of a triage in every format, with texts that try to be more than text."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lossbisect.bisect.types import CommitInfo
from lossbisect.errors import LossbisectError
from lossbisect.report.triage import triage_json, triage_text
from lossbisect.report.triage_files import FORMATS, add_step_summary, triage_markdown, write_triage
from lossbisect.train.types import TrainerName
from lossbisect.triage.notify import notify
from lossbisect.triage.types import Acknowledgement, Axis, Blame, Case, CaseReport, Kind, Point, TriageReport

EVIL = (
    "</script><img src=x onerror=alert(1)> \x1b[31mred\x1b]0;title\x07 $(touch pwned) `touch pwned`; "
    "]]> &lt; [a](javascript:b) **bold** @everyone #12 | =1+1 \x00\u202e \\"
)
SHA = "a" * 40


def _commit(sha: str = SHA) -> CommitInfo:
    return CommitInfo(
        sha=sha, parents=(), author=EVIL, email=EVIL, date="2026-11-30T12:00:00Z", subject=EVIL, pull_request="#12"
    )


def _case(kind: Kind) -> CaseReport:
    point = Point(mcore=SHA)
    blame = Blame(axis=Axis.MCORE, commits=(_commit(),), is_confirmed=True, reason=EVIL)
    return CaseReport(
        case=Case(recipe=f"{EVIL}.toml", owners=(EVIL,)),
        trainer=TrainerName.MLM,
        point=point,
        reference=Point(mcore="b" * 40),
        kind=kind,
        reason=EVIL,
        is_news=kind is not Kind.OK,
        runs=3,
        blame=blame if kind is not Kind.OK else None,
        acknowledgement=Acknowledgement(commit=SHA, reason=EVIL, by=EVIL, at=datetime(2026, 11, 30, tzinfo=UTC)),
        notes=(EVIL,),
    )


@pytest.fixture
def report() -> TriageReport:
    """One training of each kind, every text of it hostile."""
    cases = tuple(_case(kind) for kind in Kind)
    return TriageReport(commit=_commit(), point=Point(mcore=SHA), repository="NVIDIA/Megatron-LM", cases=cases)


def test_a_terminal_is_shown_text_and_obeys_none(report: TriageReport) -> None:
    """No control character reaches it, nor one that turns the direction of writing."""
    assert all(mark.isprintable() or mark == "\n" for mark in triage_text(report))


def test_html_in_a_markdown_comment_stays_text(report: TriageReport) -> None:
    """Neither a tag, nor a link of the text's own, nor a mention or an issue's number is made of it."""
    text = triage_markdown(report)
    outside = "\n".join(text.split("```")[::2])
    assert "<img" not in outside.replace("\\<", "")
    assert "[a](javascript" not in outside
    assert "@everyone" not in outside
    assert "#12" not in outside
    assert "\x1b" not in text
    assert f"[{SHA}](https://github.com/NVIDIA/Megatron-LM/commit/{SHA})" in text


def test_the_step_summary_is_added_to_what_is_there(
    report: TriageReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the same Markdown, after what other steps wrote; outside of a workflow it is refused."""
    file = tmp_path / "summary"
    file.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    add_step_summary(report)
    assert file.read_text(encoding="utf-8") == f"before\n{triage_markdown(report)}\n"
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    with pytest.raises(LossbisectError, match="GITHUB_STEP_SUMMARY"):
        add_step_summary(report)


def test_junit_is_whole_xml_with_one_case_a_training(report: TriageReport, tmp_path: Path) -> None:
    """It parses, a moved loss is a failure, and what can't be said is an error and never a pass."""
    write_triage(report, tmp_path / "a.xml")
    root = ElementTree.fromstring((tmp_path / "a.xml").read_text(encoding="utf-8"))  # noqa: S314  # ours
    cases = root.findall(".//testcase")
    told = {kind: [child.tag for child in case] for kind, case in zip(Kind, cases, strict=True)}
    assert told == {
        Kind.OK: ["system-out"],
        Kind.REGRESSION: ["failure"],
        Kind.IMPROVEMENT: ["failure"],
        Kind.FLAKY: ["error"],
        Kind.ENVIRONMENT: ["system-out"],
        Kind.BROKEN: ["error"],
        Kind.ACKNOWLEDGED: ["system-out"],
        Kind.UNDECIDED: ["error"],
    }
    assert root.get("failures") == "2"
    assert "<img src=x onerror=alert(1)>" in (cases[1][0].text or "")


def test_sarif_has_a_result_for_all_that_is_not_ok(report: TriageReport, tmp_path: Path) -> None:
    """Each names a rule that is there and a file; what would be a link in its text is none."""
    write_triage(report, tmp_path / "a.sarif")
    run = json.loads((tmp_path / "a.sarif").read_text(encoding="utf-8"))["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) == len(Kind) - 1
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert "[a](" not in result["message"]["text"]
        assert "\x1b" not in result["message"]["text"]


def test_json_is_whole(report: TriageReport) -> None:
    """Texts come through unchanged: whoever reads JSON escapes for itself."""
    told = json.loads(triage_json(report))
    assert told["kind"] == "regression"
    assert told["exit_code"] == 1
    assert told["cases"][1]["blame"]["commits"][0]["subject"] == EVIL


def test_the_page_holds_no_script_of_a_commit(report: TriageReport, tmp_path: Path) -> None:
    """Every text is escaped in the page, and no tag of it comes alive."""
    write_triage(report, tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<img src=x" not in text
    assert "&lt;img src=x" in text


def test_a_notification_has_the_report_as_input_and_no_shell(report: TriageReport, tmp_path: Path) -> None:
    """What a subject says isn't run, nor is anything after a semicolon of the command itself."""
    file = tmp_path / "got"
    script = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
    assert notify(f'{sys.executable} -c "{script}" {file} ; touch {tmp_path}/pwned', triage_markdown(report)) is None
    assert file.read_text(encoding="utf-8") == triage_markdown(report)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("command", ["/nothing/there", "false", "unclosed 'quote", ""])
def test_a_notification_that_fails_is_told_in_a_line(command: str) -> None:
    """A broken command is no failure of the triage."""
    complaint = notify(command, "report")
    assert complaint is not None
    assert "\n" not in complaint


def test_every_format_can_be_written(report: TriageReport, tmp_path: Path) -> None:
    """And a folder that isn't there is an error of ours with the file's name."""
    for suffix in FORMATS:
        write_triage(report, tmp_path / f"report{suffix}")
        assert (tmp_path / f"report{suffix}").stat().st_size > 0
    with pytest.raises(LossbisectError, match="report can't be written"):
        write_triage(report, tmp_path / "nowhere" / "a.md")
