"""A page as Markdown, to be pasted into an issue."""

from collections.abc import Iterable

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
    Steps,
    Table,
    Text,
    Trend,
)

__all__ = ["page_markdown"]

_SPECIAL = ("\\", "`", "*", "_", "<", ">", "[", "]", "|", "~")


def page_markdown(page: Page) -> str:
    """The page without its pictures; text of logs and commits shows as it is, and an ``@name`` in it rings nobody."""
    parts = [f"# {_escaped(page.verdict.text)}: {_escaped(page.reason)}"]
    for section in page.sections:
        blocks = [text for block in section.blocks if (text := _block(block))]
        if blocks:
            parts += [f"## {_escaped(section.title)}", *blocks]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Text(text):
            return _inline(text)
        case Bullets(items):
            return "\n".join(f"- {_inline(item)}" for item in items)
        case Facts(rows):
            return "\n".join(f"- **{_escaped(label)}:** {_inline(value)}" for label, value in rows)
        case Table(head=head, rows=rows):
            return _table(head, rows)
        case Steps(head, steps):
            return _table(head, (step.cells for step in steps))
        case Code(text):
            return _fenced(text)
        case Charts() | Trend() | Picture():
            return ""


def _table(head: Iterable[str], rows: Iterable[Iterable[Inline]]) -> str:
    heads = [_escaped(cell) for cell in head]
    lines = [heads, ["---"] * len(heads), *([_inline(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _inline(inline: Inline) -> str:
    match inline:
        case Link(text, href) if href.startswith("https://"):
            return f"[{_escaped(text)}]({href})"
        case Mark(text, _):
            return f"**{_escaped(text)}**" if text else ""
        case Link(text, _) | str(text):
            return _escaped(text)


def _escaped(text: str) -> str:
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    for mark in _SPECIAL:
        text = text.replace(mark, f"\\{mark}")
    return text.replace("@", "@\u200b").replace("#", "#\u200b")


def _fenced(text: str) -> str:
    """A block that no backtick within it can end."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
