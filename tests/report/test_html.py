"""Pages as HTML and Markdown, without a browser; `tests/browser` opens them in one."""

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.bisect.types import CommitVerdict
from lossbisect.compare import compare_logs
from lossbisect.compare.stats import classify
from lossbisect.errors import LossbisectError
from lossbisect.report.html import markdown, render
from lossbisect.report.html.bracket import brackets, picture_of
from lossbisect.report.html.charts import chart_data
from lossbisect.report.html.compare import compare_page
from lossbisect.report.html.model import Bullets, Charts, Code, Link, Mark, Page, Section, Table, Text, Tone
from lossbisect.report.html.origin import check_page_path, origin_of, write_page
from lossbisect.report.panels import axis_label, panels_of, short_names
from tests.browser.made import EVIL, ORIGIN, bisection, evil_pair, pair
from tests.compare.logs import make_log


def _page(*blocks: Text | Bullets | Table | Code | Charts, title: str = "Section") -> Page:
    verdict = Mark("same", Tone.GOOD)
    return Page(kind="compare", title="t", verdict=verdict, reason="r", sections=[Section(title=title, blocks=blocks)])


def _data(html: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    loaded: dict[str, object] = json.loads(found[1])
    return loaded


@settings(deadline=None, max_examples=50)
@given(st.text(st.characters(exclude_categories=())))
def test_no_text_leaves_its_place(text: str) -> None:
    """Whatever a text holds, the page has the tags of the template and no others, and its data reads back."""
    blocks = (Text(text), Bullets([text, Mark(text, Tone.BAD), Link(text, text)]), Code(text))
    html = render.page_html(_page(*blocks, Table(head=[text], rows=[[text]]), title=text))
    empty = render.page_html(
        _page(Text(""), Bullets(["", Mark("", Tone.BAD), ""]), Code(""), Table(head=[""], rows=[[""]]), title="")
    )
    tags = r"<(/?[a-zA-Z!][\w]*)"
    strip = r"(?s)<script.*?</script>|<style>.*?</style>"
    assert re.findall(tags, re.sub(strip, "", html)) == re.findall(tags, re.sub(strip, "", empty))
    assert set(_data(html)) == {"markdown", "charts"}
    assert html.encode()


def test_only_its_own_scripts_may_run() -> None:
    """The policy names the hash of the one script and of the one style, and forbids all else."""
    html = render.page_html(compare_page([evil_pair()], ORIGIN))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert "default-src &#39;none&#39;" in policy[1]
    assert "unsafe" not in policy[1]
    for tag in ("script", "style"):
        (text,) = re.findall(rf"(?s)<{tag}>(.*?)</{tag}>", html)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in policy[1]


def test_page_names_no_other_place() -> None:
    """No address is fetched: none stands in an attribute, but for links that a person may follow."""
    html = render.page_html(compare_page([pair()], ORIGIN))
    assert re.findall(r"(?:src|action|data|poster)=[\"']?\w+:", re.sub(r"(?s)<script>.*?</script>", "", html)) == []
    assert re.findall(r"url\(|@import", html.split("</style>")[0]) == []


@pytest.mark.parametrize(
    "href", ["javascript:alert(1)", "data:text/html,x", "http://a b", "https://x\"onclick='1'", ""]
)
def test_unsafe_links_are_text(href: str) -> None:
    """Only anchors and https addresses become links."""
    html = render.page_html(_page(Text(Link("here", href))))
    assert "<p>here</p>" in html


def test_control_characters_are_not_shown() -> None:
    """Colours of a terminal are left out, and what turns the reading direction is marked."""
    assert render.readable("a\x1b[31mb\x1b[0m\x1b]0;title\x07c\u202ed\te\nf\x00") == "abc\ufffdd\te\nf\ufffd"


def test_markdown_shows_text_as_it_is() -> None:
    """No markup, table or mention of a log's text survives, and a fence can't be ended from within."""
    text = markdown.page_markdown(_page(Text("a|b <i> @ada #12 [x](y) `z`"), Code("```\nevil\n```")))
    assert "a\\|b \\<i\\> @\u200bada #\u200b12 \\[x\\](y) \\`z\\`" in text
    assert "````\n```\nevil\n```\n````" in text


def test_markdown_says_what_the_page_says() -> None:
    """Verdict, sections and tables, without the pictures."""
    text = markdown.page_markdown(compare_page([pair()], ORIGIN))
    assert text.startswith("# diverged: lm loss diverges from iteration 20")
    assert "| grad norm | **differs** |" in text
    assert "## Curves" not in text


def test_chart_has_every_value_and_the_noise_by_its_corners() -> None:
    """Values as they were read, one list a line; the floor of float32 grows after 50 rows: three corners."""
    judgement = pair(rows=200, since=100)
    data = chart_data([judgement], ["baseline", "candidate"])
    panels = data["panels"]
    assert isinstance(panels, list)
    loss = panels[0]
    rows = classify(judgement.comparison.curves, judgement.comparison.noise)
    assert loss["values"] == [rows["baseline"].to_list(), rows["candidate"].to_list()]
    assert [x for x, _ in loss["noise"]] == [1.0, 50.0, 200.0]
    assert loss["noise"][-1][1] == pytest.approx(rows["noise_rel"][-1])
    assert loss["onsets"] == [100]
    assert [panel["x"] is None for panel in panels] == [False, True, True]


def test_chart_of_runs_with_other_iterations() -> None:
    """Lines of several candidates share one axis; where a run has no row its line has none."""
    base = make_log([5.0, 4.0, 3.0, 2.0])
    short = compare_logs(base, make_log([5.0, 4.0]))
    late = compare_logs(base, make_log([3.0, float("nan")], first=3))
    data = chart_data([short, late], ["a", "b", "c"])
    panels = data["panels"]
    assert isinstance(panels, list)
    assert panels[0]["x"] == [1, 2, 3, 4]
    assert panels[0]["values"] == [[5.0, 4.0, 3.0, 2.0], [5.0, 4.0, None, None], [None, None, 3.0, None]]
    assert panels[0]["gone"] == [[], [], [4]]


def test_brackets_shrink_to_the_change(tmp_path: Path) -> None:
    """After each run the change lies in the bracket; skips change nothing; the last bracket holds one commit."""
    result = bisection(tmp_path, steps=21)
    steps, last = result.finding.steps, len(result.commits.commits) - 1
    found = brackets(steps, last)
    assert all(good < result.finding.bad <= bad for good, bad in found)
    widths = [bad - good for good, bad in found]
    assert widths == sorted(widths, reverse=True)
    for step, before, after in zip(steps[1:], found, found[1:], strict=False):
        assert step.verdict is not CommitVerdict.SKIP or before == after
    assert found[-1] == (result.finding.good, result.finding.bad)
    picture = picture_of(steps, result.commits, result.terms)
    assert sum(shape.kind == "bar" for shape in picture.shapes) == 21
    assert all(0 <= shape.x <= picture.width and 0 <= shape.y <= picture.height for shape in picture.shapes)


def test_names_of_lines_tell_files_apart() -> None:
    """As many folders as are needed, and no more."""
    assert short_names(["runs/a/train.log", "runs/b/train.log"]) == ("a/train.log", "b/train.log")
    assert short_names(["x/one.log", "x/two.log"]) == ("one.log", "two.log")
    assert short_names(["same.log", "same.log"]) == ("same.log", "same.log")
    assert len(short_names(["x" * 200])[0]) == 60


def test_axes_have_units() -> None:
    """A loss is in nats per token; another column's unit is the end of its name."""
    assert axis_label("lm_loss") == "lm loss (nats per token)"
    assert axis_label("elapsed_time_per_iteration_ms") == "elapsed time per iteration (ms)"
    assert axis_label("grad_norm") == "grad norm"


def test_panels_begin_with_the_judged_metric() -> None:
    """Then the witnesses, each with its own noise."""
    panels = panels_of([pair()])
    assert [panel.metric for panel in panels] == ["lm_loss", "grad_norm", "learning_rate"]
    floors = [panel.noise[0] for panel in panels]
    assert [floor.surely_noise_rel if floor else None for floor in floors] == [2e-5, 2e-4, 1e-6]
    assert [panel.is_different for panel in panels] == [True, True, False]


def test_origin_masks_secrets_and_knows_its_files(tmp_path: Path) -> None:
    """The command has no token in it; each file has its digest, and one that is gone is said to be gone."""
    (tmp_path / "a.log").write_bytes(b"x")
    origin = origin_of(["compare", "--wandb-key", "0123456789abcdef"], [tmp_path / "a.log", tmp_path / "no.log"])
    assert "0123456789abcdef" not in origin.command
    assert [file.size_bytes for file in origin.files] == [1, None]
    assert origin.files[0].sha256 == hashlib.sha256(b"x").hexdigest()


@pytest.mark.parametrize("name", ["page", "page.txt", "folder.html", "missing/page.html"])
def test_path_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    """Before any work is done."""
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ValueError, match=r"must end in|is a folder|does not exist"):
        check_page_path(tmp_path / name)


def test_failure_to_write_is_told(tmp_path: Path) -> None:
    """In one line, with what to do next."""
    with pytest.raises(LossbisectError, match="could not be written"):
        write_page(_page(Text("x")), tmp_path / "no" / "page.html")


def test_evil_text_stays_text() -> None:
    """Nothing in the page's texts or data ends its place: there are two script elements, both ours."""
    html = render.page_html(compare_page([evil_pair()], ORIGIN))
    assert len(re.findall(r"<script", html)) == 2
    assert len(re.findall(r"</script", html)) == 2
    assert EVIL.split("\x1b")[0] not in html
