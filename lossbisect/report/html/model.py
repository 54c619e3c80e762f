"""What a page is made of: sections of plain blocks. A block knows nothing of HTML or Markdown, and escapes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "Block",
    "Bullets",
    "Charts",
    "Code",
    "Facts",
    "Inline",
    "Link",
    "Mark",
    "Page",
    "Picture",
    "Section",
    "Shape",
    "Step",
    "Steps",
    "Table",
    "Text",
    "Tone",
    "Trend",
    "plain",
]


class Tone(StrEnum):
    """What a word or a mark says, apart from its text."""

    GOOD = "good"
    BAD = "bad"
    UNSURE = "unsure"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Link:
    """Text that leads somewhere: to an ``https:`` address, an ``#anchor`` of the page, or a ``/path`` of its site."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A word with a tone, such as a verdict."""

    text: str
    tone: Tone


type Inline = str | Link | Mark
"""What may stand in a line."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: Inline


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    items: Sequence[Inline]


@dataclass(frozen=True, slots=True)
class Facts:
    """Labels with their values."""

    rows: Sequence[tuple[str, Inline]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table.

    Attributes:
        head: Column heads.
        rows: As many cells each.
        numeric: Columns of figures.
        marked: Rows to bring out.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Inline]]
    numeric: frozenset[int] = frozenset()
    marked: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Code:
    """Text to be copied as it is, such as a command."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One run of a bisection.

    Attributes:
        name: Its anchor, such as ``run-3``.
        cells: Number, commit, why, verdict, time, reason.
        details: What opens with a click: commands, the end of the log. Empty: nothing to open.
    """

    name: str
    cells: Sequence[Inline]
    details: str


@dataclass(frozen=True, slots=True)
class Steps:
    """The runs of a bisection, each with its log a click away.

    Attributes:
        head: What the cells are.
        steps: The runs in order.
    """

    head: Sequence[str]
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Charts:
    """Curves that can be zoomed and switched; the data is `lossbisect.report.html.charts`'s."""

    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Trend:
    """One number a record over the records, such as the last loss over commits; the data is a page module's."""

    data: Mapping[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A rectangle or a mark of a picture, in units of the picture.

    Attributes:
        kind: ``bar``, ``good``, ``bad``, ``other``, ``skip``, ``text`` or ``end`` (text that ends at its place).
        x: Left edge, or the mark's middle.
        y: Top edge, or the mark's middle.
        width: Width of a bar.
        height: Height of a bar, or size of a mark.
        text: What it says.
        href: Where it leads: an anchor of the page.
    """

    kind: str
    x: float
    y: float
    width: float = 0.0
    height: float = 0.0
    text: str = ""
    href: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """A still drawing.

    Attributes:
        width: In units.
        height: In units.
        shapes: Drawn in order.
        says: What it shows, for those who can't see it.
    """

    width: float
    height: float
    shapes: Sequence[Shape]
    says: str


type Block = Text | Bullets | Facts | Table | Code | Steps | Charts | Trend | Picture


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A heading with its blocks. One without blocks isn't shown."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One page.

    Attributes:
        kind: Which command made it, such as ``compare``.
        title: The window's title.
        verdict: The answer in a word or two.
        reason: The answer in a sentence.
        sections: The rest, the most telling first.
    """

    kind: str
    title: str
    verdict: Mark
    reason: str
    sections: Sequence[Section]


def plain(inline: Inline) -> str:
    """The text alone."""
    return inline if isinstance(inline, str) else inline.text
