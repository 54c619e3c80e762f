"""Overrides of a Bridge recipe as Megatron-LM's arguments. Pure.

The arguments are translated back before they are handed out: a setting of Bridge's that doesn't come back as it was has
no equivalent.
"""

import ast
from collections.abc import Mapping

from lossbisect.assist.translate.derive import derived
from lossbisect.assist.translate.groups import ATTENTION_BACKEND, GROUPS, MIXED, NoCounterpart
from lossbisect.assist.translate.rules import Rule, bridge_only, read_rules
from lossbisect.assist.translate.source import Made, Unread, Value
from lossbisect.assist.translate.to_bridge import bridge_settings, option
from lossbisect.assist.translate.types import Facts, Fate, Item, Translation, Way
from lossbisect.assist.translate.values import nearest, same

__all__ = ["to_mlm"]


def to_mlm(overrides: Mapping[str, Value], facts: Facts, *, num_processes: int | None = None) -> Translation:
    """The arguments with which Megatron-LM trains as the recipe with these overrides would.

    Args:
        overrides: Values by Bridge's key.
        facts: What the two sides have; its base is what the overrides change.
        num_processes: How many processes train.
    """
    rules = {dest: rule for dest, rule in read_rules().items() if dest in facts.arguments}
    settings: dict[str, Value] = {**facts.base, **overrides}
    if MIXED in overrides and isinstance(overrides[MIXED], Made):
        settings |= _mixed_fields(overrides[MIXED], settings)
    defaults = {dest: argument.default for dest, argument in facts.arguments.items()}
    wanted, refused = _wanted(settings, facts)
    told: dict[str, Value] = {}
    for _ in range(_MOST_ROUNDS):
        # What is told changes what Megatron-LM works out of the rest, such as a kernel that only RoPE has.
        now = derived(told, defaults, num_processes=num_processes)
        more = {
            dest: value
            for dest, value in wanted.items()
            if _is_to_be_told(rules[dest], value, overrides, wanted, defaults)
            if not same(value, now.get(dest)) and _sayable(dest, value, facts)
        }
        if all(dest in told for dest in more):
            break
        told |= more
    back, _ = bridge_settings(derived(told, defaults, num_processes=num_processes), facts)
    carriers: dict[str, list[str]] = {}
    for dest, rule in rules.items():
        for key in rule.to:
            carriers.setdefault(key, []).append(dest)
    items = [
        _fate(
            key,
            value,
            facts,
            told=told,
            back=back,
            carriers=carriers.get(key, []),
            refused=refused,
            waits=_waits_for(carriers.get(key, []), wanted, defaults),
        )
        for key, value in overrides.items()
    ]
    items += [
        Item(name=carrier, value=facts.base[carrier], fate=Fate.TRANSLATED, to=(option(dest, facts),), is_told=False)
        for dest, value in told.items()
        if not any(key in overrides for key in rules[dest].to)
        if (carrier := _carrier(rules[dest], value, facts)) is not None
    ]
    items += [
        Item(
            name=rule.to[0],
            value=None,
            fate=Fate.MISSING,
            note=f"the recipe has 0: {option(dest, facts)} is left out",
            is_told=False,
        )
        for dest, rule in rules.items()
        if rule.is_required and wanted.get(dest) == 0
    ]
    return Translation(
        way=Way.TO_MLM, settings=told, items=tuple(items), recipe=facts.recipe, num_processes=num_processes
    )


_MOST_ROUNDS = 4


def _is_to_be_told(
    rule: Rule,
    value: Value,
    overrides: Mapping[str, Value],
    wanted: Mapping[str, Value],
    defaults: Mapping[str, Value],
) -> bool:
    """Whether an argument that differs counts: an override says it, or it acts and can move the loss."""
    if isinstance(value, Unread) or (rule.is_required and value == 0):
        return False
    if any(key in overrides for key in rule.to):
        return True
    return rule.is_carried and (rule.when is None or _on(wanted, defaults, *rule.when))


def _wanted(settings: Mapping[str, Value], facts: Facts) -> tuple[dict[str, Value], dict[str, str]]:
    """Each argument's value by destination, and by Bridge's key what no argument says."""
    wanted: dict[str, Value] = {}
    refused: dict[str, str] = {}
    for dest, rule in read_rules().items():
        if rule.section != "translated" or dest not in facts.arguments:
            continue
        keys = [key for key in rule.to if key in settings]
        if rule.by in GROUPS:
            try:
                wanted |= {d: v for d, v in GROUPS[rule.by].backward(settings).items() if d in facts.arguments}
            except NoCounterpart as error:
                refused |= dict.fromkeys(rule.to, str(error))
        elif keys:
            value = settings[keys[0]]
            names = {after: before for before, after in rule.values.items()}
            if rule.by == "not":
                value = not value
            elif isinstance(value, Made):
                value = _member_name(value, facts)
            elif isinstance(value, str):
                value = names.get(value, value)
            wanted[dest] = value
    return wanted, refused


def _member_name(member: Made, facts: Facts) -> Value:
    """The name of an enum's member that is given by its number."""
    found = facts.sources.find_class(*ATTENTION_BACKEND)
    if found is None:
        return member.values.get("_name_")
    module, node = found
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            number = facts.sources.value(statement.value, module)
            if [number] == member.values.get("_args_"):
                return ast.unparse(statement.targets[0])
    return member.values.get("_name_")


def _mixed_fields(mixed: Value, settings: Mapping[str, Value]) -> dict[str, Value]:
    """A mixed precision's fields where they act: in the sections that it overwrites."""
    if not isinstance(mixed, Made):
        return {}
    places = [f"{section}.{name}" for section in ("model", "optimizer", "ddp") for name in mixed.values]
    return {place: mixed.values[place.partition(".")[2]] for place in places if place in settings}


def _carrier(rule: Rule, value: Value, facts: Facts) -> str | None:
    """The key of the recipe's that gives an argument its value."""
    keys = [key for key in rule.to if key in facts.base]
    return next((key for key in keys if same(facts.base[key], value)), keys[0] if keys else None)


def _waits_for(carriers: list[str], wanted: Mapping[str, Value], defaults: Mapping[str, Value]) -> str:
    """The setting without which none of some arguments acts; empty if one acts."""
    rules = [read_rules()[dest] for dest in carriers]
    if any(rule.when is None or _on(wanted, defaults, *rule.when) for rule in rules):
        return ""
    return next((rule.when[0] for rule in rules if rule.when), "")


def _on(wanted: Mapping[str, Value], defaults: Mapping[str, Value], name: str, values: tuple[str, ...]) -> bool:
    value = wanted.get(name, defaults.get(name))
    return str(value) in values if values else value not in (None, False, 0, [])


def _sayable(dest: str, value: Value, facts: Facts) -> bool:
    """Whether an option sets this value: none sets None, and a switch has one side."""
    argument = facts.arguments[dest]
    if isinstance(value, bool):
        return ("true" if value else "false") in argument.options.values()
    does = argument.options.values()
    return value is not None and value != [] and ("store" in does or value in does)


def _fate(
    key: str,
    value: Value,
    facts: Facts,
    *,
    told: Mapping[str, Value],
    back: Mapping[str, Value],
    carriers: list[str],
    refused: Mapping[str, str],
    waits: str,
) -> Item:
    only = bridge_only()
    if key in refused:
        return Item(name=key, value=value, fate=Fate.NO_EQUIVALENT, note=refused[key])
    if carriers:
        names = tuple(option(dest, facts) for dest in carriers if dest in told)
        if key in back and not same(back[key], value):
            if waits:
                return Item(name=key, value=value, fate=Fate.EXECUTION, note=f"takes no effect without {waits}")
            note = f"{' and '.join(option(dest, facts) for dest in carriers)} would make it {back[key]}"
            return Item(name=key, value=value, fate=Fate.NO_EQUIVALENT, note=note)
        return Item(name=key, value=value, fate=Fate.TRANSLATED if names else Fate.DEFAULT, to=names)
    if key.startswith("env_vars."):
        note = "an environment variable: export it before the run"
        return Item(name=key, value=value, fate=Fate.EXECUTION, note=note)
    if key not in facts.base and key.partition(".")[0] not in {k.partition(".")[0] for k in facts.base}:
        return _unknown(key, value, facts)
    if key in only.implied:
        return Item(name=key, value=value, fate=Fate.EXECUTION, note="Bridge works it out from other settings")
    if key in facts.base and same(facts.base[key], value):
        return Item(name=key, value=value, fate=Fate.DEFAULT)
    if key in only.execution or key.partition(".")[0] in only.execution:
        return Item(name=key, value=value, fate=Fate.EXECUTION, note="Megatron-LM has no such switch")
    if key in only.convergence or key.partition(".")[0] in only.convergence:
        return Item(name=key, value=value, fate=Fate.NO_EQUIVALENT, note="no argument of Megatron-LM sets it")
    return _unknown(key, value, facts)


def _unknown(key: str, value: Value, facts: Facts) -> Item:
    close = nearest(key, list(facts.base))
    note = f"{facts.recipe} has no such setting" + (f"; the nearest is {close}" if close else "")
    return Item(name=key, value=value, fate=Fate.UNKNOWN, note=note)
