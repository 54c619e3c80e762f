"""The configuration that a trainer prints at its start, as one flat dict of typed values.

Three shapes: Megatron-LM's ``arguments`` block, Megatron Bridge's YAML of the whole container, and Bridge's
``Configuration Summary``. The keys of the first stay as they are (``adam_eps``), those of Bridge are dotted
(``optimizer.adam_eps``).
"""

import ast
import math
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lossbisect.parsers.prefixes import peel
from lossbisect.parsers.runlog import ConfigValue

__all__ = ["Dump", "parse_arguments", "parse_summary", "parse_yaml"]


class Dump(NamedTuple):
    """A parsed dump.

    Attributes:
        values: The configuration, flat.
        n_lines: How many of the lines given were its own.
        is_closed: Whether its end was seen; otherwise more lines might follow.
    """

    values: dict[str, ConfigValue]
    n_lines: int
    is_closed: bool


# Dots fill a key up to 48 characters (29 in 2019); a longer key has none.
_ARGUMENT = re.compile(r"\s*(?P<key>[A-Za-z_]\w*) (?:\.+(?: (?P<value>.*))?|(?<=\w{29} ) ?(?P<bare>.*))", re.ASCII)
_MOST_NOISE = 40


def parse_arguments(lines: Iterable[str]) -> Dump:
    """Megatron-LM's block; the first line is the one that says ``arguments``.

    Lines of other ranks in between are passed over. The block of 2019 has no end mark: there the first line of another
    shape ends it.
    """
    values: dict[str, ConfigValue] = {}
    has_end_mark, count, noise = False, 0, 0
    for count, line in enumerate(lines, start=1):
        if count == 1:
            has_end_mark = "----" in line
            continue
        text = peel(line)[0]
        if "end of arguments" in text:
            return Dump(values, count, is_closed=True)
        match = _ARGUMENT.fullmatch(text.rstrip("\r\n"))
        value = (match["value"] or match["bare"] or "").strip() if match else ""
        if match and (value or text.startswith("  ")):
            values[match["key"]] = _printed(value)
            noise = 0
            continue
        noise += 1
        if noise > (_MOST_NOISE if has_end_mark else 0):
            return Dump(values, count - noise, is_closed=True)
    return Dump(values, count, is_closed=False)


_SECTION = re.compile(r"\[(?P<name>\w+)\](?: Non-default values \(vs .*\))?:")
_FIELD = re.compile(r" {2}(?P<key>[A-Za-z_]\w*): (?P<value>.*)")
_CORE_DEFAULT = re.compile(r" {2}\(Mcore default: .*\)$")


def parse_summary(lines: Iterable[str]) -> Dump:
    """Bridge's ``Configuration Summary``, from that line on to its closing row of ``=``."""
    values: dict[str, ConfigValue] = {}
    section, count, rules, noise = "", 0, 0, 0
    for count, line in enumerate(lines, start=1):
        text = peel(line)[0] if not line.startswith("  ") else line
        if text.startswith("===="):
            rules += 1
            if rules == 2:
                return Dump(values, count, is_closed=True)
        elif match := _SECTION.fullmatch(text.rstrip()):
            section, noise = match["name"], 0
        elif section and (match := _FIELD.fullmatch(text)):
            values[f"{section}.{match['key']}"] = _repr(_CORE_DEFAULT.sub("", match["value"]).strip())
            noise = 0
        elif count > 1:
            noise += 1
            if noise > _MOST_NOISE:
                return Dump(values, count, is_closed=True)
    return Dump(values, count, is_closed=False)


_YAML_KEY = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z_][\w.-]*|\d+):(?: (?P<value>.*))?")
_YAML_ITEM = re.compile(r"(?P<indent> *)- (?P<value>.*)")


def parse_yaml(lines: Iterable[str]) -> Dump:
    """Bridge's YAML, from its first line (or from a section's name, if the log starts later) to the first line after.

    Objects are written as ``_target_``, ``_call_`` and ``_args_``; one that stands for a plain value (an enum's member,
    a dtype, a function) becomes that value's name.
    """
    root: dict[str, _Node] = {}
    stack: list[tuple[int, dict[str, _Node]]] = [(-1, root)]
    last: tuple[dict[str, _Node], str] | None = None
    count, is_closed = 0, False
    peels = False
    for count, line in enumerate(lines, start=1):
        if count == 1:
            peels = peel(line)[0] != line
        text = (peel(line)[0] if peels else line).rstrip()
        if match := _YAML_KEY.fullmatch(text):
            indent = len(match["indent"])
            while stack[-1][0] >= indent:
                stack.pop()
            parent, key = stack[-1][1], match["key"]
            if match["value"] is None:
                child: dict[str, _Node] = {}
                parent[key] = child
                stack.append((indent, child))
            else:
                parent[key] = _yaml_scalar(match["value"].strip())
            last = (parent, key)
        elif last and (match := _YAML_ITEM.fullmatch(text)):
            indent = len(match["indent"])
            while stack[-1][0] > indent:
                stack.pop()
            _append_item(stack, indent, match["value"])
        elif last and text.startswith("  ") and isinstance(last[0].get(last[1]), str):
            last[0][last[1]] = f"{last[0][last[1]]} {text.strip()}"  # a long string goes on
        else:
            is_closed = True
            count -= 1
            break
    return Dump(dict(_flatten(root, "")), count, is_closed=is_closed)


type _Node = ConfigValue | dict[str, "_Node"]


def _append_item(stack: list[tuple[int, dict[str, _Node]]], indent: int, text: str) -> None:
    """Turn the open mapping of this indentation into a list, or add to it."""
    while stack[-1][0] > indent or (stack[-1][0] == indent and stack[-1][1] and _ITEMS not in stack[-1][1]):
        stack.pop()
    owner = stack[-1][1]
    items = owner.setdefault(_ITEMS, [])
    if isinstance(items, list):
        items.append(_yaml_scalar(text.strip()))


_ITEMS = "\0items"


def _flatten(node: dict[str, _Node], path: str) -> Iterator[tuple[str, ConfigValue]]:
    for key, value in node.items():
        dotted = f"{path}.{key}" if path else key
        if not isinstance(value, dict):
            yield dotted, value
        elif _ITEMS in value:
            items = value[_ITEMS]
            yield dotted, items if isinstance(items, list) else []
        elif value and all(inner.startswith("_") for inner in value):
            # What a plain value is called: an enum's member by its name, a function or a dtype by its path.
            name = value.get("_name_", value.get("_target_"))
            yield dotted, name if isinstance(name, str) else None
        elif not value:
            yield dotted, None
        else:
            yield from _flatten(value, dotted)


_INT = re.compile(r"[-+]?\d{1,18}")
_FLOAT = re.compile(r"[-+]?(?:\d+\.\d*|\.?\d+)(?:[eE][-+]?\d+)?")
_WORDS: dict[str, ConfigValue] = {"None": None, "True": True, "False": False, "inf": float("inf"), "nan": float("nan")}
_YAML_WORDS: dict[str, ConfigValue] = {
    "null": None,
    "~": None,
    "": None,
    "true": True,
    "false": False,
    ".inf": float("inf"),
    "-.inf": float("-inf"),
    ".nan": float("nan"),
    "{}": "{}",
    "[]": [],
}
_ENUM = re.compile(r"<(?:\w+\.)+(\w+): [^<>]*>")
_LONGEST_LITERAL = 20_000


def _scalar(text: str) -> ConfigValue:
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(value := float(text)):  # a hash such as 12e456 isn't a number
        return value
    return text


def _printed(text: str) -> ConfigValue:
    """A value as ``str`` prints it: text has no quotes, so it can look like anything."""
    if text in _WORDS:
        return _WORDS[text]
    if text[:1] in {"[", "("}:
        return _literal(text)
    return _scalar(text)


def _repr(text: str) -> ConfigValue:
    """A value as ``repr`` prints it."""
    if text in _WORDS:
        return _WORDS[text]
    if match := _ENUM.fullmatch(text):
        return match[1]
    return _literal(text) if text[:1] in {"[", "(", "'", '"'} else _scalar(text)


def _yaml_scalar(text: str) -> ConfigValue:
    if text in _YAML_WORDS:
        return _YAML_WORDS[text]
    if text[0] == "'" and text[-1] == "'" and len(text) > 1:
        return text[1:-1].replace("''", "'")
    return _literal(text) if text[0] in {'"', "["} else _scalar(text)


def _literal(text: str) -> ConfigValue:
    """A list or a quoted string; anything else, and whatever doesn't parse, stays text."""
    if len(text) > _LONGEST_LITERAL:
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return _plain(value, text)


def _plain(value: object, text: str) -> ConfigValue:
    if isinstance(value, list | tuple):
        return [_plain(item, repr(item)) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else text
