"""Bridge's settings as users write them: overrides, a command, a YAML of sections, or a log's dump."""

import re
from collections.abc import Callable, Mapping

from lossbisect.assist.translate.command_line import processes_of, program_at
from lossbisect.assist.translate.groups import MIXED, precision_of
from lossbisect.assist.translate.hydra import overrides_of
from lossbisect.assist.translate.rules import bridge_only, newer_defaults, read_rules, runner_options
from lossbisect.assist.translate.sections import has_bridge_sections, overrides_in
from lossbisect.assist.translate.shell_expand import pieces
from lossbisect.assist.translate.shell_words import statements
from lossbisect.assist.translate.source import Made, Unread, Value
from lossbisect.assist.translate.types import Facts, Fate, Item, Settings
from lossbisect.assist.translate.values import printed, same
from lossbisect.errors import RecipeError
from lossbisect.parsers.config_dump import parse_summary, parse_yaml

__all__ = ["bridge_of", "is_bridge_dump"]

_SUMMARY = re.compile(r"^.*Configuration Summary \(.*$", re.MULTILINE)
_TREE = re.compile(r"^(?:.*[ \t])?_target_: megatron\.bridge\..*$", re.MULTILINE)
_ALONE = re.compile(
    r"[+~]{0,2}[a-z_][\w.]*=(?:'(?:\\'|[^'])*'|\"(?:\\\"|[^\"])*\"|[^\s'\"]*|(?!.*\s[a-z_][\w.]*=)[\[{].*[\]}])"
)
"""A line of a file that is one override."""
_RUNNER = "run_recipe.py"
_INSTEAD = "translate the configuration that its log dumps"


def is_bridge_dump(text: str) -> bool:
    """Whether a text holds a dump of Bridge's configuration."""
    return bool(_SUMMARY.search(text) or _TREE.search(text))


def bridge_of(
    text: str, facts: Facts, *, source: str, given: Mapping[str, str], command: Callable[[], list[str]]
) -> Settings:
    """The settings that an input of Bridge's tells.

    Args:
        text: The input.
        facts: What the two sides have.
        source: Name of the input, for messages.
        given: Variables that the user sets.
        command: The words of the one command that trains, if the input is a script.

    Raises:
        RecipeError: The input can't be read, or a value isn't what its setting takes.
    """
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
    if has_bridge_sections(text):
        return Settings(told=_checked(overrides_in(text, given, source), facts, source))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if all(map(_ALONE.fullmatch, lines)):  # in Hydra's quotes, not the shell's
        return _command(lines, facts, source)
    if ".py" in text or re.search(r"\s-m\s", text):
        return _command(command(), facts, source)
    variables = {name: [value] for name, value in given.items()}
    words = [word for statement in statements(text, source) for word in statement.words]
    return _command([piece for word in words for piece in pieces(word, variables)], facts, source)


def _command(words: list[str], facts: Facts, source: str) -> Settings:
    """The overrides after a program, its runner's own options among them."""
    at = program_at(words)
    at = 0 if at == len(words) and not any(word.endswith(".py") or word == "-m" for word in words) else at
    program = words[at - 1].rpartition("/")[2] if at else _RUNNER
    told: dict[str, Value] = {}
    besides: list[Item] = []
    index = at
    while index < len(words):
        flag, equals, value = words[index].partition("=")
        index += 1
        if not flag.startswith("-"):
            told |= overrides_of([words[index - 1]], source=source)
            continue
        has_value = index < len(words) and not words[index].startswith("-") and "=" not in words[index]
        if not equals and has_value:
            value = words[index]
            index += 1
        if key := runner_options().get(flag):
            told |= overrides_of([f"{key}={value}"], source=source)
        else:
            besides += _of_runner(flag, value, facts)
    if program != _RUNNER and not any(item.name == "--recipe" for item in besides):
        note = f"it may train another recipe than {facts.recipe}, which the overrides were read against: {_INSTEAD}"
        besides.append(Item(name=program, value=None, fate=Fate.NO_EQUIVALENT, note=note))
    if "dataset.seq_length" in told:  # as the runner does
        told["model.seq_length"] = told["dataset.seq_length"]
    return Settings(told=_checked(told, facts, source), num_processes=processes_of(words[:at]), besides=tuple(besides))


_OF_NO_MATTER = frozenset({"--dry-run", "--dry_run", "--dump-env", "--dump_env"})
_USUAL = {"--mode": "pretrain", "--dataset": "mock", "--step-func": "gpt_step", "--step_func": "gpt_step"}


def _of_runner(flag: str, value: str, facts: Facts) -> list[Item]:
    """What becomes of an option of Bridge's runner that is no setting."""
    if flag in _OF_NO_MATTER or value == _USUAL.get(flag, facts.recipe if flag == "--recipe" else None):
        return []
    if flag in ("--recipe", "--model"):
        note = f"the overrides were read against {facts.recipe}: {_INSTEAD}"
    elif flag == "--deterministic":
        note = "write it out: model.deterministic_mode=true model.cross_entropy_loss_fusion=false"
    elif flag in _USUAL:
        note = f"it changes what the recipe trains on, or how: {_INSTEAD}"
    else:
        note = f"Bridge's {_RUNNER} has no such option"
        return [Item(name=flag, value=value or True, fate=Fate.UNKNOWN, note=note)]
    return [Item(name=flag, value=value or True, fate=Fate.NO_EQUIVALENT, note=note)]


def _checked(told: dict[str, Value], facts: Facts, source: str) -> dict[str, Value]:
    """Settings whose values are of their arguments' types.

    Raises:
        RecipeError: One isn't, or stands for a variable that isn't known.
    """
    carriers = {key: rule.dest for rule in read_rules().values() if rule.by in ("", "not") for key in rule.to}
    for key, value in told.items():
        argument = facts.arguments.get(carriers.get(key, ""))
        if argument is None or value is None or isinstance(value, list | Made) or argument.takes_many:
            continue
        kind = {"int": "a whole number", "float": "a number", "bool": "true or false"}.get(argument.type)
        if isinstance(value, str) and "$" in value and (kind or argument.choices):
            name = value.partition("$")[2].strip("{}")
            raise RecipeError(f"{source}: {key}: the input doesn't say what {value} is. Say it: --set {name}=VALUE.")
        if argument.type == "bool" and value in (0, 1):
            told[key] = bool(value)
        elif kind and (isinstance(value, str) or isinstance(value, bool) != (argument.type == "bool")):
            raise RecipeError(f"{source}: {key}: {value!r} isn't {kind}.")
    return told


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
    """A dump's settings that differ from a base, but for those that Bridge works out from others.

    One that the base doesn't have is told unless it is off, or as Bridge's newer releases leave it.
    """
    told: dict[str, Value] = {}
    implied, newer = bridge_only().implied, newer_defaults()
    mixed: dict[str, Value] = {}
    for key, value in values.items():
        is_torch = isinstance(value, str) and value.startswith("torch.")
        made: Value = str(value).rpartition(".")[2] if is_torch else printed(value)  # type: ignore[arg-type]
        section, _, name = key.partition(".")
        if section == "mixed_precision" and name:
            mixed[name] = made
        elif key in base and key not in implied and not _is_base(base[key], made):
            told[key] = made
        elif key in base or key in implied or (name or key).startswith("_"):
            continue
        elif made not in (None, False, 0, [], "", newer.get(key)):
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
