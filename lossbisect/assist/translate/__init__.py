"""Megatron-LM's arguments as Bridge's overrides, and back.

The table of rules (``rules.toml``) says what becomes of each argument; both sides' arguments and defaults are read from
their sources at hand.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from lossbisect.assist.translate.facts import read_facts
from lossbisect.assist.translate.inputs import read_settings, way_of
from lossbisect.assist.translate.to_bridge import to_bridge
from lossbisect.assist.translate.to_mlm import to_mlm
from lossbisect.assist.translate.types import Facts, Fate, Item, Translation, Way

__all__ = ["Facts", "Fate", "Item", "Translation", "Way", "read_facts", "refusal", "translate"]


def translate(
    text: str,
    *,
    source: str = "arguments",
    way: Way | None = None,
    repo: Path | None = None,
    given: Mapping[str, str] | None = None,
    num_processes: int | None = None,
    line_no: int | None = None,
    folder: Path | None = None,
) -> tuple[Translation, Facts]:
    """Translate an input, and say what was read to do it.

    Args:
        text: Command, shell script, YAML of arguments, overrides, or a log with a dump of its configuration.
        source: Name of the input, for messages.
        way: Into whose words; None: the other side's than the input's.
        repo: Bridge checkout whose sources tell both sides' arguments; None: the installed packages.
        given: Variables of a script that the user sets.
        num_processes: How many processes train; None: what the input's launcher says.
        line_no: Where the command begins, for a script with several that train.
        folder: Where the script lies, for the files that it reads with ``source``; None: they aren't read.

    Raises:
        RecipeError: The input can't be read, or one of the trainers isn't there.
    """
    way = way or way_of(text, source)
    facts = read_facts(repo)
    settings = read_settings(
        text, way, facts, source=source, given=given or {}, line_no=line_no, read=partial(_beside, folder)
    )
    processes = num_processes or settings.num_processes
    if way is Way.TO_BRIDGE:
        return to_bridge(settings.told, facts, unknown=settings.unknown, num_processes=processes), facts
    known = replace(facts, base=settings.base) if settings.base is not None else facts
    translation = to_mlm(settings.told, known, num_processes=processes)
    return replace(translation, items=(*settings.besides, *translation.items)), facts


_OWN_FOLDER = re.compile(r"\$\(.*(?:dirname|BASH_SOURCE|pwd).*\)/(?P<rest>[^$]+)", re.DOTALL)
"""How scripts name the folder they lie in."""


def _beside(folder: Path | None, name: str) -> str | None:
    """The text of a file by the name that a script in a folder gives it; None: it isn't there."""
    if folder is None:
        return None
    own = _OWN_FOLDER.fullmatch(name)
    try:
        return (folder / (own["rest"] if own else name)).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def refusal(translation: Translation) -> str | None:
    """Why a translation can't stand for its input, in one line; None: it can."""
    lost = [item for item in translation.items if item.fate in (Fate.NO_EQUIVALENT, Fate.UNKNOWN)]
    if not lost:
        return None
    first = lost[0]
    more = f", and {len(lost) - 1} more, told above" if len(lost) > 1 else ""
    return (
        f"{first.name} can't be translated: {first.note or first.fate}{more}. Change it, or leave what can't be "
        "translated out with --allow-lossy: the losses are then not comparable."
    )
