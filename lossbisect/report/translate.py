"""A translation's table of fates, as text and JSON."""

import json
from collections import Counter
from collections.abc import Iterable

from lossbisect.assist.translate.source import Made, Unread, Value
from lossbisect.assist.translate.types import Fate, Item, Translation
from lossbisect.report.json import SCHEMA_VERSION, without_nan
from lossbisect.report.plain import printable

__all__ = ["translation_json", "translation_text"]

_HEADS = {
    Fate.NO_EQUIVALENT: "No equivalent, and it changes the loss",
    Fate.UNKNOWN: "Unknown",
    Fate.EXECUTION: "Execution only, safe to drop; what is lost",
    Fate.TRANSLATED: "Translated",
    Fate.DEFAULT: "Default on both sides",
}


def translation_text(translation: Translation, *, is_long: bool = False) -> str:
    """The fates by class: those to look at one by one, the others counted.

    Args:
        translation: What to tell.
        is_long: List each translated argument and each default, too.
    """
    told = [item for item in translation.items if item.is_told]
    counts = Counter(item.fate for item in told)
    lines = [", ".join(f"{counts[fate]} {fate}" for fate in _HEADS if counts[fate]) or "nothing told"]
    for fate, head in _HEADS.items():
        items = [item for item in told if item.fate is fate]
        if items and (is_long or fate not in (Fate.TRANSLATED, Fate.DEFAULT) or any(item.note for item in items)):
            lines += [f"{head}:", *_rows(item for item in items if is_long or item.note)]
    rest = [item for item in translation.items if not item.is_told]
    groups = {
        "Defaults that differ, carried over": [item for item in rest if item.fate is Fate.TRANSLATED],
        "Defaults that differ, left because they change no loss": [i for i in rest if i.fate is Fate.EXECUTION],
        "Not told, and without a default": [item for item in rest if item.fate is Fate.MISSING],
        "Missing, and it changes the loss": [item for item in rest if item.fate is Fate.NO_EQUIVALENT],
    }
    for head, items in groups.items():
        if items:
            lines += [f"{head}:", *_rows(items)]
    return printable("\n".join(lines))


def _rows(items: Iterable[Item]) -> list[str]:
    rows = [(_told(item), item.note or ", ".join(item.to)) for item in items]
    width = min(max((len(left) for left, _ in rows), default=0), 48)
    return [f"  {left:{width}}  {right}".rstrip() for left, right in rows]


def _told(item: Item) -> str:
    """An argument as a user writes it, or a default as ``name = value``."""
    is_switch = item.name.startswith("--") and isinstance(item.value, bool)
    if item.value is None or is_switch:
        return item.name
    return f"{item.name}{' ' if item.name.startswith('--') else ' = '}{_shown(item.value)}"


def _shown(value: Value) -> str:
    if isinstance(value, list):
        return " ".join(map(_shown, value))
    return value.text if isinstance(value, Unread) else value.name if isinstance(value, Made) else str(value)


def translation_json(translation: Translation, text: str) -> str:
    """One object, indented, without a final newline: the fates, the settings and the text that was asked for."""
    report = {
        "schema_version": SCHEMA_VERSION,
        "way": translation.way.value,
        "recipe": translation.recipe,
        "num_processes": translation.num_processes,
        "settings": {name: _plain(value) for name, value in translation.settings.items()},
        "items": [
            {
                "name": item.name,
                "value": _plain(item.value),
                "fate": item.fate.value,
                "to": list(item.to),
                "note": item.note,
                "is_told": item.is_told,
            }
            for item in translation.items
        ],
        "text": text,
    }
    return json.dumps(without_nan(report), indent=2, allow_nan=False, ensure_ascii=False)


def _plain(value: Value) -> object:
    if isinstance(value, Made):
        return {name: _plain(inner) for name, inner in value.values.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.text if isinstance(value, Unread) else value
