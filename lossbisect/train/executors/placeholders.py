"""Words in braces that a user's command or template is filled in with."""

import re
from collections.abc import Mapping

__all__ = ["fill", "unknown_names"]

_NAME = re.compile(r"(?<![${])\{([a-z_]+)\}(?!\})")
"""``{out}``, but no ``${out}`` of the shell."""


def unknown_names(text: str, known: Mapping[str, str] | frozenset[str]) -> list[str]:
    """Names in braces that nothing is known for, each once, in their order."""
    return [name for name in dict.fromkeys(_NAME.findall(text)) if name not in known]


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with every known name in braces replaced; all else, the shell's ``${name}`` included, stays."""
    return _NAME.sub(lambda found: values.get(found[1], found[0]), text)
