"""A YAML of settings: Megatron-LM's arguments, or the sections of Bridge's configuration."""

import re
from collections.abc import Iterator, Mapping

from lossbisect.assist.translate.arguments import Argument
from lossbisect.assist.translate.command_line import arguments_of, filled
from lossbisect.assist.translate.source import Made, Value
from lossbisect.assist.translate.types import Facts, Settings
from lossbisect.errors import RecipeError

__all__ = ["arguments_in", "has_bridge_sections", "overrides_in"]

_BRIDGE = re.compile(
    "checkpoint|comm_overlap|dataset|ddp|dist|ft|inprocess_restart|logger|mixed_precision|model|nvrx_straggler|optimizer"
    "|peft|profiling|rerun_state_machine|rng|scheduler|straggler|tensor_inspect|tokenizer|train|validation"
)
_SECTION = re.compile(r"^(?P<name>\w+):[ \t]*(?:#.*)?$", re.MULTILINE)
_TOP = re.compile(r"^(?P<name>[^\s#:][^:\n]*):(?:\s|$)", re.MULTILINE)


def has_bridge_sections(text: str) -> bool:
    """Whether a text is a YAML whose top consists of sections of Bridge's configuration."""
    tops = {match["name"] for match in _TOP.finditer(text)}
    return bool(tops) and tops == set(_SECTION.findall(text)) and all(map(_BRIDGE.fullmatch, tops))


def arguments_in(text: str, given: Mapping[str, str], facts: Facts, source: str) -> Settings:
    """Arguments in a YAML: by option or by destination, at its top or in sections such as ``MODEL_ARGS``.

    Raises:
        RecipeError: It is no YAML, a value isn't what its argument takes, or no key is an argument.
    """
    words: list[str] = []
    told: dict[str, Value] = {}
    unknown: dict[str, Value] = {}
    options = {flag: argument for argument in facts.arguments.values() for flag in argument.options}
    for key, value in _leaves(_tree(text, given, source)):
        if key.startswith("--"):
            words += _words(key, value, options.get(key))
        elif argument := facts.arguments.get(key.replace("-", "_")):
            is_plain = isinstance(value, bool | list) or value is None
            told[argument.dest] = value if is_plain else filled(argument, key, [str(value)], source=source)
        elif key != key.upper():  # in capitals: what the file's own runner reads
            unknown[key] = value
    found = arguments_of(words, facts, source=source)
    told |= found.told
    if not told and not found.unknown:
        raise RecipeError(
            f"{source}: none of its keys is an argument of Megatron-LM. One looks like '--num-layers: 2' or "
            "'num_layers: 2'."
        )
    return Settings(told=told, unknown=unknown | found.unknown)


def overrides_in(text: str, given: Mapping[str, str], source: str) -> dict[str, Value]:
    """Bridge's settings by dotted key, from a YAML of its sections.

    Raises:
        RecipeError: It is no YAML.
    """
    return dict(_dotted(_tree(text, given, source), ""))


def _dotted(tree: Mapping[str, object], before: str) -> "Iterator[tuple[str, Value]]":
    for key, value in tree.items():
        if isinstance(value, dict) and "_target_" not in value:
            yield from _dotted(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", _plain(value)


def _plain(value: object) -> Value:
    if isinstance(value, dict):
        target = str(value.get("_target_", ""))
        if target.startswith("torch."):
            return target.removeprefix("torch.")
        fields = {str(key): _plain(inner) for key, inner in value.items() if key != "_target_"}
        return Made(target.rpartition(".")[2], fields)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value):
        return float(value)  # 1e-4 is text in YAML 1.1, and a number for Bridge
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def _tree(text: str, given: Mapping[str, str], source: str) -> dict[str, object]:
    import yaml

    text = re.sub(r"\$\{(\w+)\}|\$(\w+)", lambda match: given.get(match[1] or match[2], match[0]), text)
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{source}:{mark.line + 1}" if mark else source
        raise RecipeError(f"{where}: not YAML: {getattr(error, 'problem', error)}.") from error
    if not isinstance(tree, dict):
        raise RecipeError(f"{source}: a YAML of arguments is a mapping, such as 'MODEL_ARGS:' with '--num-layers: 2'.")
    return {str(key): value for key, value in tree.items()}


def _leaves(tree: Mapping[str, object]) -> "Iterator[tuple[str, Value]]":
    """Every setting below some sections; those of the environment aren't arguments."""
    for key, value in tree.items():
        if isinstance(value, dict):
            if "env" not in str(key).lower():
                yield from _leaves(value)
        elif value is None or isinstance(value, bool | int | float | str | list):
            yield str(key), value


def _words(flag: str, value: Value, argument: Argument | None) -> list[str]:
    """An option and its words: a text with blanks is one word, unless the argument takes many."""
    if isinstance(value, bool):
        return [flag] if value else []
    if value is None:
        return [flag]
    text = str(value)
    if isinstance(value, list):
        return [flag, *map(str, value)]
    if argument is not None and argument.takes_many:
        inner = text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text
        return [flag, *inner.split()]
    return [flag, text]
