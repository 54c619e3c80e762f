"""What a user hands in, as settings: a command, a script, a YAML of arguments, overrides, or a log's dump."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lossbisect.assist.translate.groups import MIXED, precision_of
from lossbisect.assist.translate.rules import bridge_only
from lossbisect.assist.translate.shell import left_open, training_command
from lossbisect.assist.translate.shell_words import statements
from lossbisect.assist.translate.source import Made, Unread, Value
from lossbisect.assist.translate.types import Facts, Way
from lossbisect.assist.translate.values import converted, same
from lossbisect.errors import RecipeError
from lossbisect.parsers.config_dump import parse_arguments, parse_summary, parse_yaml

__all__ = ["Settings", "arguments_of", "overrides_of", "read_settings", "way_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the input says.

    Attributes:
        told: Values by destination of Megatron-LM, or by key of Bridge.
        unknown: Options that Megatron-LM doesn't have, as spelled.
        base: Bridge's settings that the input's own take the place of; None: the recipe's.
        num_processes: How many processes its launcher starts; None: it doesn't say.
    """

    told: dict[str, Value]
    unknown: dict[str, Value] = field(default_factory=dict)
    base: dict[str, Value] | None = None
    num_processes: int | None = None


_ARGUMENTS = re.compile(r"^.*(?:- arguments -|arguments:$).*$", re.MULTILINE)
_SUMMARY = re.compile(r"^.*Configuration Summary \(.*$", re.MULTILINE)
_TREE = re.compile(r"^(?:.*[ \t])?_target_: megatron\.bridge\..*$", re.MULTILINE)
_OVERRIDE = re.compile(r"(?P<sign>\+{0,2}|~)(?P<key>[a-z_]\w*(?:\.\w+)*)=(?P<value>.*)", re.DOTALL)


def way_of(text: str) -> Way:
    """Into whose words an input is to be translated, by whose words it is in.

    Raises:
        RecipeError: It is in neither's.
    """
    if _SUMMARY.search(text) or _TREE.search(text):
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
        "this is neither Megatron-LM's arguments (--num-layers 2) nor Bridge's overrides (model.num_layers=2). "
        "Say whose words it is in: --to bridge or --to mlm."
    )


def read_settings(text: str, way: Way, facts: Facts, *, source: str, given: Mapping[str, str]) -> Settings:
    """The settings that an input tells.

    Args:
        text: Command, script, YAML, overrides, or a log.
        way: Into whose words they are to be translated.
        facts: What the two sides have.
        source: Name of the input, for messages.
        given: Variables of a script that the user sets.

    Raises:
        RecipeError: The input can't be read; the message names the place.
    """
    if way is Way.TO_MLM:
        return _bridge(text, facts, source=source, given=given)
    if match := _ARGUMENTS.search(text):
        return _dumped(text[match.start() :], facts, source)
    if source.endswith((".yaml", ".yml")) or re.match(r"\s*(?:#.*\n\s*)*[\w-]+:\s", text):
        return _yaml(_with(text, given), facts, source)
    return arguments_of(training_command(text, source=source, given=given).words, facts, source=source)


def arguments_of(words: list[str], facts: Facts, *, source: str = "arguments") -> Settings:
    """The settings of a command line; what stands before its program is its launcher's.

    Raises:
        RecipeError: A value is missing, or isn't what the argument takes.
    """
    options = {flag: argument for argument in facts.arguments.values() for flag in argument.options}
    at = _program(words)
    told: dict[str, Value] = {}
    unknown: dict[str, Value] = {}
    index = at
    while index < len(words):
        flag, equals, inline = words[index].partition("=")
        end = index + 1
        while not equals and end < len(words) and not _is_option(words[end]):
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
            told[argument.dest] = _filled(argument.dest, flag, values, facts)
        elif values and values[0].startswith("$"):
            raise RecipeError(f"{source}: after {flag}: {left_open(values[0][1:])}")
        elif values:
            raise RecipeError(f"{source}: {flag} is a switch and takes no value, but {values[0]!r} follows it.")
        else:
            told[argument.dest] = {"true": True, "false": False}.get(str(kind), kind) if isinstance(kind, str) else kind
    return Settings(told=told, unknown=unknown, num_processes=_processes(words[:at]))


def _filled(dest: str, flag: str, values: list[str], facts: Facts) -> Value:
    argument = facts.arguments[dest]
    open_ones = [value for value in values if "$" in value]
    if open_ones and (argument.type in ("int", "float") or argument.choices):
        name = open_ones[0].partition("$")[2].strip("{}")
        if name.startswith("("):
            raise RecipeError(f"{flag}: the script alone doesn't tell what ${name} gives. Put the value in its place.")
        raise RecipeError(f"{flag}: the script doesn't say what {open_ones[0]} is. Say it: --set {name}=VALUE.")
    return converted(argument, flag, values)


def _is_option(word: str) -> bool:
    return word.startswith("--") or bool(re.fullmatch(r"-[a-zA-Z]\w*", word))


def _program(words: list[str]) -> int:
    """Where a command's own options begin: after its Python program, or at once."""
    if words and words[0].startswith("--"):
        return 0
    for index, word in enumerate(words):
        if word.endswith(".py"):
            return index + 1
    modules = [index for index, word in enumerate(words) if word == "-m"]
    return modules[-1] + 2 if modules else len(words)


_PER_NODE = re.compile(r"--(?:nproc[_-]per[_-]node|ntasks-per-node)")


def _processes(launcher: list[str]) -> int | None:
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


_DTYPES = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16", "torch.uint8": "fp8"}


def _dumped(text: str, facts: Facts, source: str) -> Settings:
    """The block that Megatron-LM prints at its start: every argument, as it trains with it."""
    values = parse_arguments(text.splitlines()).values
    if not values:
        raise RecipeError(f"{source}: the block of arguments is empty.")
    told: dict[str, Value] = {}
    for dest, argument in facts.arguments.items():
        if dest not in values:
            continue
        value: Value = _printed(values[dest])  # type: ignore[arg-type]
        if argument.takes_many and not isinstance(value, list) and value is not None:
            value = [value]
        if not same(value, argument.default) and value is not None:
            told[dest] = value
    processes = values.get("world_size")
    return Settings(told=told, num_processes=processes if isinstance(processes, int) else None)


def _printed(value: Value) -> Value:
    if isinstance(value, list):
        return [_printed(item) for item in value]
    if not isinstance(value, str):
        return value
    if value == "{}":
        return []
    if match := re.fullmatch(r"<?[A-Z]\w*\.(\w+)(?::.*>)?", value):
        return match[1]
    return _DTYPES.get(value, value)


def _with(text: str, given: Mapping[str, str]) -> str:
    """A text with the user's variables filled in."""
    return re.sub(r"\$\{(\w+)\}|\$(\w+)", lambda match: given.get(match[1] or match[2], match[0]), text)


def _yaml(text: str, facts: Facts, source: str) -> Settings:
    """Arguments in a YAML: by option or by destination, at its top or in sections such as ``MODEL_ARGS``."""
    import yaml

    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{source}:{mark.line + 1}" if mark else source
        raise RecipeError(f"{where}: not YAML: {getattr(error, 'problem', error)}.") from error
    if not isinstance(tree, dict):
        raise RecipeError(f"{source}: a YAML of arguments is a mapping, such as 'MODEL_ARGS:' with '--num-layers: 2'.")
    words: list[str] = []
    told: dict[str, Value] = {}
    unknown: dict[str, Value] = {}
    for key, value in _leaves(tree):
        if key.startswith("--"):
            words += _words(key, value)
        elif key.replace("-", "_") in facts.arguments:
            dest = key.replace("-", "_")
            told[dest] = (
                value if isinstance(value, bool | list) or value is None else _filled(dest, key, [str(value)], facts)
            )
        elif key != key.upper():  # in capitals: what the file's own runner reads
            unknown[key] = value
    found = arguments_of(words, facts, source=source)
    return Settings(told=told | found.told, unknown=unknown | found.unknown)


def _leaves(tree: Mapping[str, object]) -> "list[tuple[str, Value]]":
    """Every setting below some sections; those of the environment aren't arguments."""
    leaves: list[tuple[str, Value]] = []
    for key, value in tree.items():
        if isinstance(value, dict):
            leaves += [] if "env" in str(key).lower() else _leaves(value)
        elif value is None or isinstance(value, bool | int | float | str | list):
            leaves.append((str(key), value))
    return leaves


def _words(flag: str, value: Value) -> list[str]:
    if isinstance(value, bool):
        return [flag] if value else []
    if value is None:
        return [flag]
    items = value if isinstance(value, list) else str(value).split() if str(value) else [""]
    return [flag, *map(str, items)]


def _bridge(text: str, facts: Facts, *, source: str, given: Mapping[str, str]) -> Settings:
    if match := _TREE.search(text):
        values = parse_yaml(_tree(text, match.start())).values
        _need_model(values, source)
        return Settings(told=_known(values, facts.base))
    if match := _SUMMARY.search(text):
        values = parse_summary(text[match.start() :].splitlines()).values
        _need_model(values, source)
        base = _core_defaults(facts)
        # The summary doesn't tell the mixed precision, only what it made of the model.
        base[MIXED] = precision_of({name: values.get(f"model.{name}") is True for name in ("bf16", "fp16")})
        return Settings(told=_known(values, base), base=base)
    if ".py" in text:
        words = training_command(text, source=source, given=given).words
        at = _program(words)
        return Settings(told=overrides_of(words[at:], source=source), num_processes=_processes(words[:at]))
    words = [word.literal or "" for statement in statements(text, source) for word in statement.words]
    return Settings(told=overrides_of(words, source=source))


def _is_base(base: Value, made: Value) -> bool:
    """Whether a dumped value is the base's, which may be a function that the dump names in full."""
    return str(made).endswith(base.text) if isinstance(base, Unread) else same(base, made)


def _tree(text: str, at: int) -> list[str]:
    """The lines of a YAML of which a place is known, and those after."""
    before = text[:at].splitlines()
    start = len(before)
    while start and re.fullmatch(r"\s*(?:- .*|[a-z_]\w*:(?: .*)?)", before[start - 1]):
        start -= 1
    return [*before[start:], *text[at:].splitlines()]


def _need_model(values: Mapping[str, object], source: str) -> None:
    if "model.num_layers" not in values:
        raise RecipeError(f"{source}: the dump of Bridge's configuration doesn't tell the model (model.num_layers).")


def _known(values: Mapping[str, object], base: Mapping[str, Value]) -> dict[str, Value]:
    """A dump's settings that differ from a base, but for those that Bridge works out from others."""
    told: dict[str, Value] = {}
    implied = bridge_only().implied
    mixed: dict[str, Value] = {}
    for key, value in values.items():
        is_torch = isinstance(value, str) and value.startswith("torch.")
        made: Value = str(value).rpartition(".")[2] if is_torch else _printed(value)  # type: ignore[arg-type]
        section, _, name = key.partition(".")
        if section == "mixed_precision" and name:
            mixed[name] = made
        elif key in base and key not in implied and not _is_base(base[key], made):
            told[key] = made
    if mixed:
        told["mixed_precision"] = Made("MixedPrecisionConfig", {k: v for k, v in mixed.items() if k[0] != "_"})
    return told


_CORE = {
    "model": ("megatron.core.transformer.transformer_config", "TransformerConfig"),
    "optimizer": ("megatron.core.optimizer.optimizer_config", "OptimizerConfig"),
    "ddp": ("megatron.core.distributed.distributed_data_parallel_config", "DistributedDataParallelConfig"),
}


def _core_defaults(facts: Facts) -> dict[str, Value]:
    """The recipe's settings, with Megatron-Core's defaults where Bridge's summary leaves those out."""
    base = dict(facts.base)
    for section, place in _CORE.items():
        for name, item in facts.sources.fields(*place).items():
            if f"{section}.{name}" in base and not isinstance(item.default, Unread):
                base[f"{section}.{name}"] = item.default
    return base


def overrides_of(words: list[str], *, source: str = "overrides") -> dict[str, Value]:
    """Hydra-style overrides by key; words of the launcher such as ``--recipe NAME`` are passed over.

    Raises:
        RecipeError: A word is no override, or takes a setting away.
    """
    told: dict[str, Value] = {}
    skip = False
    for word in words:
        if skip or word.startswith("--"):
            skip = word.startswith("--") and "=" not in word
            continue
        match = _OVERRIDE.fullmatch(word)
        if match is None or match["sign"] == "~":
            raise RecipeError(f"{source}: {word!r} is no override. One looks like model.num_layers=2.")
        told[match["key"]] = hydra_value(match["value"])
    return told


def hydra_value(text: str) -> Value:
    """A value in Hydra's grammar; what is neither number, list, object nor quoted is text."""
    text = text.strip()
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
