"""Megatron-LM's arguments as overrides of a Bridge recipe. Pure."""

import ast
import re
from collections.abc import Mapping

from lossbisect.assist.translate.derive import derived, is_on
from lossbisect.assist.translate.groups import ATTENTION_BACKEND, GROUPS, MIXED, NoCounterpart, precision_of
from lossbisect.assist.translate.rules import Rule, read_rules
from lossbisect.assist.translate.source import Made, Unread, Value
from lossbisect.assist.translate.types import Facts, Fate, Item, Translation, Way
from lossbisect.assist.translate.values import nearest, same

__all__ = ["bridge_settings", "option", "to_bridge"]

_PRECISION_MODULE = "megatron.bridge.training.mixed_precision"
_PRECISION_CLASS = "MixedPrecisionConfig"


def to_bridge(
    told: Mapping[str, Value],
    facts: Facts,
    *,
    unknown: Mapping[str, Value] | None = None,
    num_processes: int | None = None,
) -> Translation:
    """The overrides that make a Bridge recipe train as Megatron-LM would.

    Every argument told has its `Item`, and so has every default of Megatron-LM that differs from the recipe's: carried
    over if it can move the loss, or left.

    Args:
        told: Values by destination.
        facts: What the two sides have.
        unknown: Options that Megatron-LM's parser doesn't have, as they were spelled.
        num_processes: How many processes train.
    """
    defaults = {dest: argument.default for dest, argument in facts.arguments.items()}
    settings = derived(told, defaults, num_processes=num_processes)
    made, refused = bridge_settings(settings, facts)
    overrides: dict[str, Value] = {}
    items: list[Item] = []
    rules = read_rules()
    for dest in (*(dest for dest in rules if dest in facts.arguments), *(facts.arguments.keys() - rules.keys())):
        rule, is_told = rules.get(dest), dest in told
        if rule is None or rule.section != "translated":
            if is_told:
                items.append(_untranslated(dest, told[dest], rule, facts))
            continue
        keys = {key: made[key] for key in rule.to if key in made} | (
            {MIXED: made[MIXED]} if rule.by in ("mixed", "gradients") and MIXED in made and is_told else {}
        )
        if is_told and dest in refused:
            items.append(Item(name=option(dest, facts), value=told[dest], fate=Fate.NO_EQUIVALENT, note=refused[dest]))
            continue
        differing = {key: value for key, value in keys.items() if not same(value, facts.base.get(key))}
        is_news = is_told and not same(told[dest], defaults[dest])
        if is_news or (is_told and differing):
            overrides |= keys
            items.append(_item(dest, told[dest], Fate.TRANSLATED, tuple(keys) or rule.to, facts))
        elif is_told:
            items.append(_item(dest, told[dest], Fate.DEFAULT, tuple(keys) or rule.to, facts))
        elif differing.keys() - overrides.keys() and _acts(rule, settings) and not _waits(rule, settings):
            is_carried = rule.is_carried
            overrides |= differing if is_carried else {}
            note = "" if is_carried else f"left: Bridge's {next(iter(differing))} stays {_shown(facts, differing)}"
            fate = Fate.TRANSLATED if is_carried else Fate.EXECUTION
            items.append(_item(dest, settings[dest], fate, tuple(differing), facts, note=note, is_told=False))
    items += [_unknown(flag, value, facts) for flag, value in (unknown or {}).items()]
    items += _missing(settings, told, facts)
    return Translation(
        way=Way.TO_BRIDGE, settings=overrides, items=tuple(items), recipe=facts.recipe, num_processes=num_processes
    )


def bridge_settings(settings: Mapping[str, Value], facts: Facts) -> tuple[dict[str, Value], dict[str, str]]:
    """What Bridge's settings have to be, by key; and why not, by destination, for arguments that it can't take."""
    made: dict[str, Value] = {}
    refused: dict[str, str] = {}
    mixed: dict[str, Value] = {}
    for dest, rule in read_rules().items():
        if rule.section != "translated" or dest not in facts.arguments:
            continue
        keys = [key for key in rule.to if key in facts.base]
        if rule.by in GROUPS:
            try:
                made |= {key: value for key, value in GROUPS[rule.by].forward(settings).items() if key in facts.base}
            except NoCounterpart as error:
                refused[dest] = str(error)
        elif not keys:
            refused[dest] = "this Bridge has no such setting; a newer one may"
        elif rule.by == "enum":
            made |= {key: _member(settings.get(dest), facts.base[key], facts) for key in keys}
        elif rule.by == "mixed" and precision_of(settings) is not None:
            mixed[keys[0].partition(".")[2]] = _converted(rule, settings.get(dest))
        else:
            made |= {key: _converted(rule, settings.get(dest), facts.base[key]) for key in keys}
    made[MIXED] = _precision(settings, mixed, facts)
    return made, refused


def _member(value: Value, base: Value, facts: Facts) -> Value:
    """An attention backend as the enum's member: Bridge takes its name for a string, which no comparison finds."""
    found = facts.sources.find_class(*ATTENTION_BACKEND)
    if not isinstance(value, str) or value == base or found is None:
        return value
    numbers = {
        statement.targets[0].id: facts.sources.value(statement.value, found[0])
        for statement in found[1].body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }
    return Made(ATTENTION_BACKEND[1], {"_name_": value, "_call_": True, "_args_": [numbers.get(value)]})


def _precision(settings: Mapping[str, Value], told: dict[str, Value], facts: Facts) -> Value:
    """The name of a mixed precision, or its fields where one differs from the named one's."""
    name = precision_of(settings)
    if name is None:
        return None
    preset = facts.sources.call(_PRECISION_MODULE, name)
    if not isinstance(preset, Made):
        return name
    told["grad_reduce_in_fp32"] = bool(settings.get("accumulate_allreduce_grads_in_fp32"))
    if is_on(told, "fp8_param_gather"):
        told["fp8_param"] = True
    differing = {key: value for key, value in told.items() if key in preset.values}
    differing = {
        key: value for key, value in differing.items() if _matters(key, told, has_loss_scale=name == "fp16_mixed")
    }
    if all(same(preset.values[key], value) for key, value in differing.items()):
        return name
    defaults = facts.sources.fields(_PRECISION_MODULE, _PRECISION_CLASS)
    fields = preset.values | differing
    return Made(_PRECISION_CLASS, {k: v for k, v in fields.items() if not same(defaults[k].default, v)})


_LOSS_SCALE = frozenset({"loss_scale", "initial_loss_scale", "min_loss_scale", "loss_scale_window", "hysteresis"})


def _matters(field: str, told: Mapping[str, Value], *, has_loss_scale: bool) -> bool:
    """Whether a field of the mixed precision acts: those of few bits or of a loss scale only where there are such."""
    if field.startswith(("fp8_", "fp4_")):
        return is_on(told, field[:3])
    if field.startswith(("first_last", "num_layers_at", "reuse_grad_buf")):
        return is_on(told, "fp8") or is_on(told, "fp4")
    return has_loss_scale or field not in _LOSS_SCALE


def _converted(rule: Rule, value: Value, base: Value = None) -> Value:
    if rule.by == "not":
        return not value
    if isinstance(value, list) and len(value) == 1 and not isinstance(base, list):
        return value[0]  # as Megatron-LM itself does with a list of one
    return rule.values.get(value, value) if isinstance(value, str) else value


def _acts(rule: Rule, settings: Mapping[str, Value]) -> bool:
    return rule.when is None or is_on(settings, *rule.when)


def _waits(rule: Rule, settings: Mapping[str, Value]) -> bool:
    """Whether this is no setting until it is told: the parser has None, or another argument's rule says it."""
    if rule.dest == "train_iters" and is_on(settings, "train_samples"):
        return False
    if rule.by in GROUPS and GROUPS[rule.by].is_spelling:
        return True
    return settings.get(rule.dest) is None and (rule.is_required or rule.dest == "global_batch_size")


_NEEDED = ("num_layers", "hidden_size", "num_attention_heads", "seq_length", "micro_batch_size", "lr", "tokenizer_type")


def _missing(settings: Mapping[str, Value], told: Mapping[str, Value], facts: Facts) -> list[Item]:
    """What Megatron-LM has no default for and wasn't told: Bridge's stays."""
    names = [name for name in _NEEDED if settings.get(name) is None and name in facts.arguments]
    if settings.get("train_iters") is None and settings.get("train_samples") is None:
        names.append("train_iters")
    items = []
    for name in names:
        key = read_rules()[name].to[0]
        note = f"Bridge's {key} stays {facts.base.get(key)}"
        items.append(_item(name, None, Fate.MISSING, (key,), facts, note=note, is_told=False))
    if settings.get("global_batch_size") is None and "micro_batch_size" in told:
        note = (
            "not told: Megatron-LM multiplies the micro batch size by the data-parallel ranks, Bridge's recipe has "
            f"{facts.base.get('train.global_batch_size')}; give it, or --num-processes"
        )
        items.append(_item("global_batch_size", None, Fate.NO_EQUIVALENT, (), facts, note=note, is_told=False))
    return items


def _untranslated(dest: str, value: Value, rule: Rule | None, facts: Facts) -> Item:
    argument = facts.arguments[dest]
    if rule is None:
        note = "newer than lossbisect's table"
        return _item(dest, value, Fate.UNKNOWN, (), facts, note=note)
    is_default = same(value, argument.default)
    if rule.section == "convergence" and not is_default:
        return _item(dest, value, Fate.NO_EQUIVALENT, (), facts, note=rule.note)
    return _item(dest, value, Fate.DEFAULT if is_default else Fate.EXECUTION, (), facts, note=rule.note)


def _unknown(flag: str, value: Value, facts: Facts) -> Item:
    rule = read_rules().get(flag)
    if rule is not None:  # of a dump: by destination
        note = "the Megatron-LM at hand doesn't have it yet; name the checkout of the run: --repo PATH"
        return Item(name=flag, value=value, fate=Fate.UNKNOWN, note=note)
    flags = [name for argument in facts.arguments.values() for name in argument.options]
    close = nearest(flag, flags)
    note = "Megatron-LM's parser has no such option" + (f"; the nearest is {close}" if close else "")
    return Item(name=flag, value=value, fate=Fate.UNKNOWN, note=note)


def _item(
    dest: str, value: Value, fate: Fate, to: tuple[str, ...], facts: Facts, *, note: str = "", is_told: bool = True
) -> Item:
    if is_told and not note and "$" in str(value):
        is_open = re.search(r"\$(?!\{?[A-Za-z_])", str(value))  # a command's output, a script's own argument
        note = "the script doesn't say what stands for the $: put it in" if is_open else "from the environment"
    name = option(dest, facts) if is_told else dest
    return Item(name=name, value=value, fate=fate, to=to, note=note, is_told=is_told)


def option(dest: str, facts: Facts) -> str:
    """The option that a user writes for a destination."""
    return next(iter(facts.arguments[dest].options))


def _shown(facts: Facts, keys: Mapping[str, Value]) -> str:
    value = facts.base.get(next(iter(keys)))
    return value.text if isinstance(value, Unread) else str(value)
