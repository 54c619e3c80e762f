"""Megatron-LM's command line as settings."""

import re

from lossbisect.assist.translate.arguments import Argument
from lossbisect.assist.translate.shell import left_open
from lossbisect.assist.translate.source import Value
from lossbisect.assist.translate.types import Facts, Settings
from lossbisect.assist.translate.values import converted
from lossbisect.errors import RecipeError

__all__ = ["arguments_of", "filled", "is_option", "processes_of", "program_at"]


def arguments_of(words: list[str], facts: Facts, *, source: str = "arguments") -> Settings:
    """The settings of a command line; what stands before its program is its launcher's.

    Raises:
        RecipeError: A value is missing, or isn't what the argument takes.
    """
    options = {flag: argument for argument in facts.arguments.values() for flag in argument.options}
    at = program_at(words)
    told: dict[str, Value] = {}
    unknown: dict[str, Value] = {}
    index = at
    while index < len(words):
        flag, equals, inline = words[index].partition("=")
        end = index + 1
        while not equals and end < len(words) and not is_option(words[end]):
            end += 1
        values = [inline] if equals else words[index + 1 : end]
        index = end
        if not flag.startswith("-"):
            raise RecipeError(f"{source}: {flag!r} stands where an option should. Is a '--' or a quote missing?")
        argument = options.get(flag)
        if argument is None:
            unknown[flag] = " ".join(values) if values else True
            continue
        kind = argument.options[flag]
        if kind == "store":
            told[argument.dest] = filled(argument, flag, values, source=source)
        elif values and values[0].startswith("$"):
            raise RecipeError(f"{source}: after {flag}: {left_open(values[0][1:])}")
        elif values:
            raise RecipeError(f"{source}: {flag} is a switch and takes no value, but {values[0]!r} follows it.")
        else:
            told[argument.dest] = {"true": True, "false": False}.get(str(kind), kind) if isinstance(kind, str) else kind
    return Settings(told=told, unknown=unknown, num_processes=processes_of(words[:at]))


def filled(argument: Argument, flag: str, values: list[str], *, source: str = "arguments") -> Value:
    """What the words after an option are worth.

    Raises:
        RecipeError: One isn't what the argument takes, or the script doesn't say what its variable is.
    """
    flag = flag if source == "arguments" else f"{source}: {flag}"
    open_ones = [value for value in values if "$" in value]
    if open_ones and (argument.type in ("int", "float") or argument.choices):
        name = open_ones[0].partition("$")[2].strip("{}")
        if name.startswith("("):
            raise RecipeError(f"{flag}: the script alone doesn't tell what ${name} gives. Put the value in its place.")
        raise RecipeError(f"{flag}: the script doesn't say what {open_ones[0]} is. Say it: --set {name}=VALUE.")
    return converted(argument, flag, values)


def is_option(word: str) -> bool:
    """Whether a word of a command line is the name of an option."""
    return word.startswith("--") or bool(re.fullmatch(r"-[a-zA-Z]\w*", word))


def program_at(words: list[str]) -> int:
    """Where a command's own options begin: after its Python program, or at once."""
    if words and words[0].startswith("--"):
        return 0
    for index, word in enumerate(words):
        if word.endswith(".py"):
            return index + 1
    modules = [index for index, word in enumerate(words) if word == "-m"]
    return modules[-1] + 2 if modules else len(words)


_PER_NODE = re.compile(r"--(?:nproc[_-]per[_-]node|ntasks-per-node)")


def processes_of(launcher: list[str]) -> int | None:
    """How many processes a launcher starts; None: it doesn't say, or not in figures."""
    told: dict[str, str] = {}
    for word, following in zip(launcher, [*launcher[1:], ""], strict=False):
        flag, equals, value = word.partition("=")
        if flag.startswith("-"):
            told[flag] = value if equals else following
    per_node = next((value for flag, value in told.items() if _PER_NODE.fullmatch(flag)), None)
    nodes = told.get("--nnodes") or told.get("--nodes") or told.get("-N") or "1"
    total = told.get("--ntasks") or told.get("-n") or told.get("-np")
    try:
        return int(per_node) * int(nodes) if per_node is not None else int(total) if total is not None else None
    except ValueError:
        return None
