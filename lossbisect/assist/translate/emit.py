"""A translation as text: overrides or arguments, a command, or a file that runs by itself. Pure."""

import re
import shlex
from collections.abc import Mapping
from enum import StrEnum

from lossbisect.assist.translate.groups import ATTENTION_BACKEND
from lossbisect.assist.translate.source import Made, Unread, Value
from lossbisect.assist.translate.types import Facts, Translation, Way

__all__ = ["Form", "emit", "hydra", "words_of"]

_PRECISION = "megatron.bridge.training.mixed_precision"
_MODULES = {ATTENTION_BACKEND[1]: ATTENTION_BACKEND[0]}
_PLAIN = re.compile(r"[A-Za-z_./][\w./-]*")
_RESERVED = frozenset({"null", "true", "false", "inf", "nan"})


class Form(StrEnum):
    """What is written."""

    OVERRIDES = "overrides"
    COMMAND = "command"
    RECIPE = "recipe"


def emit(translation: Translation, facts: Facts, form: Form) -> str:
    """The translation's text, without a line end."""
    if translation.way is Way.TO_BRIDGE:
        overrides = [f"{key}={hydra(value)}" for key, value in translation.settings.items()]
        if form is Form.OVERRIDES:
            return "\n".join(overrides)
        return (
            _bridge_file(overrides, translation.recipe)
            if form is Form.RECIPE
            else _command(
                f"{_launcher(translation)} scripts/training/run_recipe.py --recipe {translation.recipe}",
                [shlex.quote(override) for override in overrides],
            )
        )
    lines = [" ".join(map(_quoted, words)) for words in words_of(translation.settings, facts)]
    if form is Form.OVERRIDES:
        return "\n".join(lines)
    if form is Form.COMMAND:
        return _command(f"{_launcher(translation)} pretrain_gpt.py", lines)
    return "\n".join([
        "#!/usr/bin/env bash",
        f"# Bridge's {translation.recipe} with overrides for Megatron-LM, written by 'lossbisect translate'.",
        "ARGUMENTS=(", *(f"    {line}" for line in lines), ")",
        f'exec {_launcher(translation)} pretrain_gpt.py "${{ARGUMENTS[@]}}" "$@"',
    ])  # fmt: skip


def _quoted(word: str) -> str:
    """A word for the shell, in which a variable stays one."""
    if not _VARIABLE.search(word):
        return shlex.quote(word)
    escaped = re.sub(r'(["\\`]|\$(?=\())', r"\\\1", word)
    return f'"{escaped}"'


def _launcher(translation: Translation) -> str:
    return f"torchrun --nproc_per_node={translation.num_processes or 1}"


def _command(head: str, words: list[str]) -> str:
    return " \\\n    ".join([head, *words])


def _bridge_file(overrides: list[str], recipe: str) -> str:
    lines = "\n".join(f"    {override!r}," for override in overrides)
    return f'''"""Megatron-LM's settings as a recipe of Megatron Bridge, written by 'lossbisect translate'.

    torchrun --nproc_per_node=1 THIS_FILE [KEY=VALUE ...]
"""

import sys

from megatron.bridge.recipes.gpt.vanilla_gpt import {recipe}
from megatron.bridge.training.config import ConfigContainer
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.pretrain import pretrain
from megatron.bridge.training.utils.omegaconf_utils import process_config_with_overrides

OVERRIDES = [
{lines}
]


def translated_pretrain_config() -> ConfigContainer:
    """Bridge's {recipe}, changed to train as Megatron-LM does."""
    return process_config_with_overrides({recipe}(), cli_overrides=OVERRIDES)


if __name__ == "__main__":
    pretrain(process_config_with_overrides(translated_pretrain_config(), cli_overrides=sys.argv[1:]), forward_step)'''


def hydra(value: Value) -> str:
    """A value in Hydra's grammar."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case list():
            return f"[{','.join(map(hydra, value))}]"
        case Made(name=name, values=values):
            fields = ",".join(f"{key}:{_field(key, inner)}" for key, inner in values.items() if key != "_name_")
            return f"{{_target_:{_MODULES.get(name, _PRECISION)}.{name},{fields}}}"
        case Unread(text=text):
            return _text(text)
    return _text(value)


def _field(name: str, value: Value) -> str:
    if name.endswith("dtype") and isinstance(value, str):
        return f"{{_target_:torch.{ {'half': 'float16'}.get(value, value) },_call_:false}}".replace(" ", "")
    return hydra(value)


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    text = _VARIABLE.sub(r"${oc.env:\1}", text)
    return f"'{_BEFORE_QUOTE.sub(_escaped, text)}'"


_BEFORE_QUOTE = re.compile(r"(\\*)('|\Z)")
"""Hydra takes a backslash for itself, except before a quote."""


_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\b\}?")
"""A variable that the script leaves to the environment: OmegaConf takes it from there by another spelling."""


def _escaped(match: re.Match[str]) -> str:
    return match[1] * 2 + ("\\'" if match[2] else "")


def words_of(settings: Mapping[str, Value], facts: Facts) -> list[list[str]]:
    """Megatron-LM's options, each with its values."""
    words = []
    for dest, value in settings.items():
        options = facts.arguments[dest].options
        if isinstance(value, bool) and "store" not in options.values():
            kind = "true" if value else "false"
            words.append([next(flag for flag, does in options.items() if does == kind)])
            continue
        flag = next(flag for flag, does in options.items() if does == "store" or does == value)
        if options[flag] != "store":
            words.append([flag])
        elif isinstance(value, list) and facts.arguments[dest].takes_many:
            words.append([flag, *map(_word, value)])
        else:
            words.append([flag, _word(value)])
    return words


def _word(value: Value) -> str:
    return value.text if isinstance(value, Unread) else str(value)
