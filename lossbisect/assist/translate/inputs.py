"""What a user hands in, as settings: a command, a script, a YAML of arguments, overrides, or a log's dump."""

import re
from collections.abc import Callable, Mapping

from lossbisect.assist.translate.command_line import arguments_of
from lossbisect.assist.translate.overrides import bridge_of, is_bridge_dump
from lossbisect.assist.translate.rules import computed_names, read_rules
from lossbisect.assist.translate.sections import arguments_in, has_bridge_sections
from lossbisect.assist.translate.shell import training_command
from lossbisect.assist.translate.source import Value
from lossbisect.assist.translate.types import Facts, Settings, Way
from lossbisect.assist.translate.values import printed, same
from lossbisect.errors import RecipeError
from lossbisect.parsers.config_dump import parse_arguments

__all__ = ["read_settings", "way_of"]

_ARGUMENTS = re.compile(r"^.*(?:- arguments -|arguments:$).*$", re.MULTILINE)


def way_of(text: str, source: str = "arguments") -> Way:
    """Into whose words an input is to be translated, by whose words it is in.

    Raises:
        RecipeError: It is in neither's.
    """
    if is_bridge_dump(text) or has_bridge_sections(text):
        return Way.TO_MLM
    if _ARGUMENTS.search(text) or (
        re.search(r"(?:^|\s|['\"(])--[a-z][\w-]+", text) and not re.search(r"\s[a-z_]+\.\w+=", text)
    ):
        return Way.TO_BRIDGE
    if re.search(r"(?:^|\s)[+~]{0,2}[a-z_]+\.\w+=", text) or re.search(r"(?:^|\s)mixed_precision=", text):
        return Way.TO_MLM
    if re.search(r"^[\w-]+:", text, re.MULTILINE):
        return Way.TO_BRIDGE
    raise RecipeError(
        f"{source}: this is neither Megatron-LM's arguments (--num-layers 2) nor Bridge's overrides "
        "(model.num_layers=2). Say whose words it is in: --to bridge or --to mlm."
    )


def read_settings(
    text: str,
    way: Way,
    facts: Facts,
    *,
    source: str,
    given: Mapping[str, str],
    line_no: int | None = None,
    read: Callable[[str], str | None] = lambda _: None,
) -> Settings:
    """The settings that an input tells.

    Args:
        text: Command, script, YAML, overrides, or a log.
        way: Into whose words they are to be translated.
        facts: What the two sides have.
        source: Name of the input, for messages.
        given: Variables of a script that the user sets.
        line_no: Line of a script's command, of several that train.
        read: The text of a file that a script reads; None: it isn't there.

    Raises:
        RecipeError: The input can't be read; the message names the place.
    """

    def command() -> list[str]:
        return training_command(text, source=source, given=given, line_no=line_no, read=read).words

    if way is Way.TO_MLM:
        return bridge_of(text, facts, source=source, given=given, command=command)
    if match := _ARGUMENTS.search(text):
        return _dumped(text[match.start() :], facts, source)
    if source.endswith((".yaml", ".yml")) or re.match(r"\s*(?:#.*\n\s*)*[\w-]+:\s", text):
        return arguments_in(text, given, facts, source)
    settings = arguments_of(command(), facts, source=source)
    if not settings.told and not settings.unknown:
        raise RecipeError(f"{source}: no argument of Megatron-LM in it. One looks like --num-layers 2.")
    return settings


def _dumped(text: str, facts: Facts, source: str) -> Settings:
    """The block that Megatron-LM prints at its start: every argument, as it trains with it."""
    values = parse_arguments(text.splitlines()).values
    if not values:
        raise RecipeError(f"{source}: the block of arguments is empty.")
    told: dict[str, Value] = {}
    for dest, argument in facts.arguments.items():
        if dest not in values:
            continue
        value: Value = printed(values[dest])  # type: ignore[arg-type]
        if argument.takes_many and not isinstance(value, list) and value is not None:
            value = [value]
        if not same(value, argument.default) and value is not None:
            told[dest] = value
    processes = values.get("world_size")
    return Settings(
        told=told, unknown=_newer(values, facts), num_processes=processes if isinstance(processes, int) else None
    )


def _newer(values: Mapping[str, object], facts: Facts) -> dict[str, Value]:
    """Arguments of a dump that the parser at hand doesn't have, unless they are off or can't move the loss."""
    found: dict[str, Value] = {}
    for dest in values.keys() - facts.arguments.keys() - computed_names():
        rule, value = read_rules().get(dest), printed(values[dest])  # type: ignore[arg-type]
        is_off = value in (None, False, 0, [], "") or (rule is not None and value == rule.default)
        is_safe = dest.startswith(("_", "export_")) or (rule is not None and rule.section == "execution")
        if not is_off and not is_safe:
            found[dest] = value
    return dict(sorted(found.items()))
