"""Text that a terminal shows and doesn't obey."""

__all__ = ["printable"]


def printable(text: str) -> str:
    """Text without the control characters that a commit's subject or a trainer's line may send to a terminal."""
    return "".join(mark if mark.isprintable() or mark == "\n" else " " for mark in text)
