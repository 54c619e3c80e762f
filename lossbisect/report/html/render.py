"""A page as one HTML file that needs nothing else: no network, no script but its own, whatever its texts say.

Three things see to that. Texts are escaped where they are put in, by `markupsafe`. Data stands in a JSON block in which
no character can end it. And the page's own Content-Security-Policy lets only the scripts and styles run whose hashes
it names, and nothing be fetched.
"""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from markupsafe import Markup

from lossbisect.report.html.markdown import page_markdown
from lossbisect.report.html.model import (
    Block,
    Bullets,
    Charts,
    Code,
    Facts,
    Inline,
    Link,
    Mark,
    Page,
    Picture,
    Section,
    Shape,
    Step,
    Steps,
    Table,
    Text,
    Tone,
    Trend,
)
from lossbisect.report.json import without_nan

__all__ = ["SITE_POLICY", "Place", "page_html", "readable", "site_asset"]

_SYMBOLS = {Tone.GOOD: "\u2713", Tone.BAD: "\u2717", Tone.UNSURE: "?", Tone.NEUTRAL: "\u2022"}
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_SAFE_LINK = re.compile(r"#[\w-]+|https://[^\s\"'<>]+|/(?:history|triages|bisects|runs)(?:[/?][\w./?&=%+~-]*)?")
_STYLES = ("uPlot.min.css", "page.css")
_SCRIPTS = ("uPlot.iife.min.js", "trend.js", "page.js")
_SITE_SCRIPTS = (*_SCRIPTS, "live.js")
_PAGE = Markup(
    """<!doctype html>
<html lang="en"{live}>
<head>
<meta charset="utf-8">
{policy}<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="lossbisect">
<title>{title}</title>
<link rel="icon" href="data:,">
{style}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
{menu}<header>
<p class="kind">lossbisect {kind}</p>
<h1 class="verdict {tone}"><span class="symbol" aria-hidden="true">{symbol}</span> {verdict}</h1>
<p class="reason">{reason}</p>
<p class="actions"><button type="button" id="copy">Copy as Markdown</button>
<span id="copied" role="status"></span></p>
<nav aria-label="Sections">{links}</nav>
</header>
<main id="main" tabindex="-1">
{sections}
</main>
<script type="application/json" id="data">{data}</script>
{script}
</body>
</html>
"""
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A page's place on a site, whose style and script it shares.

    Attributes:
        menu: Links that every page of the site has; the one that leads to this page's part is marked.
        here: Address of that part.
        live_s: Time after which the page asks whether it has changed, seconds; None: it never does.
    """

    menu: Sequence[Link]
    here: str
    live_s: float | None = None


def page_html(page: Page, place: Place | None = None) -> str:
    """The whole page: a file that needs nothing else, or with a place one of a site's pages.

    A site's page has no policy of its own in it: `SITE_POLICY` has to come with it, as a header.
    """
    charts: list[Mapping[str, object]] = []
    shown = [section for section in page.sections if section.blocks]
    sections = Markup("\n").join(
        _section(section, number, charts, is_live=bool(place and place.live_s)) for number, section in enumerate(shown)
    )
    links = Markup(" ").join(
        Markup('<a href="#section-{}">{}</a>').format(number, readable(section.title))
        for number, section in enumerate(shown)
    )
    return str(
        _PAGE.format(
            live=Markup(' data-live="{:.0f}"').format(place.live_s * 1000) if place and place.live_s else "",
            title=readable(page.title),
            kind=page.kind,
            menu=_menu(place) if place else "",
            tone=page.verdict.tone.value,
            symbol=_SYMBOLS[page.verdict.tone],
            verdict=readable(page.verdict.text),
            reason=readable(page.reason),
            links=links,
            sections=sections,
            data=_json({"markdown": page_markdown(page), "charts": charts}),
            **(_SHARED if place else _own()),
        )
    )


def site_asset(name: str) -> str:
    """What a site's pages share: ``site.css`` or ``site.js``.

    Raises:
        KeyError: There is no such file.
    """
    parts = {"site.css": _STYLES, "site.js": _SITE_SCRIPTS}[name]
    return "".join(_asset(part) for part in parts)


def _own() -> dict[str, Markup]:
    """Style and script within the page, and the policy that lets them alone run."""
    style, script = ("".join(map(_asset, names)) for names in (_STYLES, _SCRIPTS))
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return {
        "policy": Markup('<meta http-equiv="Content-Security-Policy" content="{}">\n').format(policy),
        "style": Markup("<style>{}</style>").format(_ours(style)),
        "script": Markup("<script>{}</script>").format(_ours(script)),
    }


_SHARED = {
    "policy": Markup(""),
    "style": Markup('<link rel="stylesheet" href="/assets/site.css">'),
    "script": Markup('<script src="/assets/site.js"></script>'),
}
SITE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of a site's pages: its own files alone, and no page within another one."""


def _menu(place: Place) -> Markup:
    links = Markup(" ").join(
        Markup('<a href="{}"{}>{}</a>').format(
            link.href, Markup(' aria-current="page"') if link.href == place.here else "", readable(link.text)
        )
        for link in place.menu
    )
    live = Markup('<span id="live" role="status"></span>') if place.live_s else ""
    return Markup('<nav class="menu" aria-label="Site">{} {}</nav>\n').format(links, live)


def readable(text: str) -> str:
    """Text without colours and other commands for a terminal, and without marks that turn the reading direction."""
    text = _ANSI.sub("", text)
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)


def _json(value: object) -> Markup:
    """JSON that nothing within it can end: no ``<``, ``>`` or ``&`` is left in it."""
    text = json.dumps(_readable(without_nan(value)), allow_nan=False, separators=(",", ":"))
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return _ours(text)


def _readable(value: object) -> object:
    """The same values with readable texts, since the page's script shows them."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, list):
        is_figures = not value or isinstance(value[0], int | float | None)
        return value if is_figures else [_readable(item) for item in value]
    return value


def _ours(text: str) -> Markup:
    """Text that is put in as it is: the package's own files, and JSON made safe."""
    return Markup(text)  # noqa: S704


@cache
def _asset(name: str) -> str:
    text = resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
    assert "</" not in text, f"{name} could end its own element"
    return text


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _section(section: Section, number: int, charts: list[Mapping[str, object]], *, is_live: bool) -> Markup:
    first = len(charts)
    blocks = Markup("\n").join(_block(block, charts) for block in section.blocks)
    digest = Markup("")
    if is_live:  # the page replaces only sections whose digest has changed
        whole = f"{section.title}{blocks}{json.dumps(charts[first:], default=str)}"
        digest = Markup(' data-digest="{:08x}"').format(zlib.crc32(whole.encode("utf-8", "replace")))
    return Markup(
        '<section id="section-{0}"{3} aria-labelledby="title-{0}"><h2 id="title-{0}">{1}</h2>\n{2}</section>'
    ).format(number, readable(section.title), blocks, digest)


def _block(block: Block, charts: list[Mapping[str, object]]) -> Markup:
    match block:
        case Text(text):
            return Markup("<p>{}</p>").format(_inline(text))
        case Bullets(items):
            return _wrapped("ul", Markup("").join(Markup("<li>{}</li>").format(_inline(item)) for item in items))
        case Facts(rows):
            return _wrapped(
                "dl",
                Markup("").join(
                    Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(readable(label), _inline(value))
                    for label, value in rows
                ),
            )
        case Table():
            return _table(block)
        case Steps():
            return _steps(block)
        case Code(text):
            return Markup('<pre class="code" tabindex="0">{}</pre>').format(readable(text))
        case Charts(data) | Trend(data):
            charts.append(data)
            return Markup(
                '<div class="{}" data-chart="{}"><noscript><p>The curves need JavaScript; the figures below '
                "don't.</p></noscript></div>"
            ).format("charts" if isinstance(block, Charts) else "trend", len(charts) - 1)
        case Picture():
            return _picture(block)


def _wrapped(tag: str, inner: Markup) -> Markup:
    return Markup("<{0}>{1}</{0}>").format(tag, inner)


def _inline(inline: Inline) -> Markup:
    match inline:
        case Link(text, href) if _SAFE_LINK.fullmatch(href):
            return Markup('<a href="{}" rel="noreferrer">{}</a>').format(href, readable(text))
        case Mark(text, tone):
            return Markup('<span class="mark {}"><span aria-hidden="true">{}</span> {}</span>').format(
                tone.value, _SYMBOLS[tone], readable(text)
            )
        case Link(text, _) | str(text):
            return Markup("{}").format(readable(text))


_WIDE = 5
"""Columns from which on a table's rows are set as blocks on a narrow screen, each cell with its column's name."""


def _table(table: Table) -> Markup:
    is_wide = len(table.head) >= _WIDE
    names = [Markup(' data-name="{}"').format(readable(cell)) if is_wide else Markup("") for cell in table.head]
    head = Markup("").join(
        Markup('<th scope="col"{}>{}</th>').format(_numeric(column, table), readable(cell))
        for column, cell in enumerate(table.head)
    )
    rows = Markup("\n").join(
        Markup("<tr{}>{}</tr>").format(
            Markup(' class="marked"') if number in table.marked else "",
            Markup("").join(
                Markup("<td{}{}>{}</td>").format(_numeric(column, table), names[column], _inline(cell))
                for column, cell in enumerate(row)
            ),
        )
        for number, row in enumerate(table.rows)
    )
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table{}><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(Markup(' class="wide"') if is_wide else "", head, rows)


def _numeric(column: int, table: Table) -> Markup:
    return Markup(' class="number"') if column in table.numeric else Markup("")


def _steps(steps: Steps) -> Markup:
    head = Markup("").join(Markup("<span>{}</span>").format(readable(cell)) for cell in steps.head)
    rows = Markup("\n").join(_step(step) for step in steps.steps)
    return Markup('<p class="step head" aria-hidden="true">{}</p><ol class="steps">{}</ol>').format(head, rows)


def _step(step: Step) -> Markup:
    cells = Markup("").join(Markup("<span>{}</span>").format(_inline(cell)) for cell in step.cells)
    if not step.details:
        return Markup('<li id="{}"><p class="step">{}</p></li>').format(step.name, cells)
    return Markup(
        '<li id="{}"><details><summary class="step">{}</summary><pre tabindex="0">{}</pre></details></li>'
    ).format(step.name, cells, readable(step.details))


def _picture(picture: Picture) -> Markup:
    shapes = Markup("\n").join(_shape(shape) for shape in picture.shapes)
    return Markup(
        '<div class="scroll picture" tabindex="0" role="region" aria-label="Picture"><svg viewBox="0 0 {:g} {:g}" '
        'width="{:g}" role="img"><title>{}</title>{}</svg></div>'
    ).format(picture.width, picture.height, picture.width, readable(picture.says), shapes)


def _shape(shape: Shape) -> Markup:
    drawn = _drawn(shape)
    if not shape.href:
        return drawn
    return Markup('<a href="{}"><title>{}</title>{}</a>').format(shape.href, readable(shape.text), drawn)


def _drawn(shape: Shape) -> Markup:
    x, y, half = shape.x, shape.y, shape.height / 2
    match shape.kind:
        case "bar":
            return Markup('<rect class="bar" x="{:.4g}" y="{:.6g}" width="{:.4g}" height="{:.4g}" rx="2"/>').format(
                x, y, shape.width, shape.height
            )
        case "good":
            return Markup('<circle class="good" cx="{:.4g}" cy="{:.6g}" r="{:.3g}"/>').format(x, y, half)
        case "bad":
            lines = f"M{x - half:.4g} {y - half:.6g}L{x + half:.4g} {y + half:.6g}"
            lines += f"M{x - half:.4g} {y + half:.6g}L{x + half:.4g} {y - half:.6g}"
            return Markup('<path class="bad" d="{}"/>').format(lines)
        case "other":
            lines = f"M{x - half:.4g} {y:.6g}L{x:.4g} {y - half:.6g}L{x + half:.4g} {y:.6g}L{x:.4g} {y + half:.6g}Z"
            return Markup('<path class="other" d="{}"/>').format(lines)
        case "skip":
            return Markup('<circle class="skip" cx="{:.4g}" cy="{:.6g}" r="{:.3g}"/>').format(x, y, half)
        case _:
            return Markup('<text class="{}" x="{:.4g}" y="{:.6g}">{}</text>').format(
                shape.kind, x, y, readable(shape.text)
            )
