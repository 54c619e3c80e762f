"""Bridge's overrides: words in Hydra's grammar as settings by key."""

import re

from lossbisect.assist.translate.source import Made, Value
from lossbisect.errors import RecipeError

__all__ = ["hydra_value", "overrides_of"]

_OVERRIDE = re.compile(r"(?P<sign>\+{0,2}|~)(?P<key>[a-z_]\w*(?:\.\w+)*)(?:=(?P<value>.*))?", re.DOTALL)


def overrides_of(words: list[str], *, source: str = "overrides") -> dict[str, Value]:
    """Hydra-style overrides by key; the last word for a key counts.

    Raises:
        RecipeError: A word is no override, or takes a setting away.
    """
    told: dict[str, Value] = {}
    for word in words:
        match = _OVERRIDE.fullmatch(word)
        if match and match["sign"] == "~":
            raise RecipeError(
                f"{source}: {word!r} takes a setting away, for which Megatron-LM has no word. Leave it out, or set a "
                "value."
            )
        if match is None or match["value"] is None:
            raise RecipeError(f"{source}: {word!r} is no override. One looks like model.num_layers=2.")
        told[match["key"]] = hydra_value(match["value"])
    return told


def hydra_value(text: str) -> Value:
    """A value in Hydra's grammar; what is neither number, list, object nor quoted is text."""
    text = re.sub(r"\$\{oc\.env:(\w+)\}", r"${\1}", text.strip())
    words: dict[str, Value] = {"null": None, "true": True, "false": False, "": None}
    if text.lower() in words:
        return words[text.lower()]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        # A backslash stands for itself, except before a quote.
        return re.sub(rf"(\\+)({text[0]}|\Z)", lambda match: match[1][: len(match[1]) // 2] + match[2], text[1:-1])
    if text[0] == "[" and text[-1] == "]":
        return [hydra_value(part) for part in _split(text[1:-1])]
    if text[0] == "{" and text[-1] == "}":
        pairs = [part.partition(":") for part in _split(text[1:-1])]
        values = {key.strip(): hydra_value(value) for key, _, value in pairs}
        target = str(values.pop("_target_", ""))
        if target.startswith("torch."):
            return target.removeprefix("torch.")
        return Made(target.rpartition(".")[2], values)
    if re.fullmatch(r"[-+]?\d+", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def _split(text: str) -> list[str]:
    """At the commas that stand in no bracket and no quotes."""
    parts, depth, quote, start, is_escaped = [], 0, "", 0, False
    for at, char in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif quote:
            is_escaped = char == "\\"
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text.strip() else []
