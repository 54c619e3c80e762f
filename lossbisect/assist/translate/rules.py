"""The table of what becomes of each argument, read from ``rules.toml``."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["BridgeOnly", "Rule", "bridge_only", "computed_names", "newer_defaults", "read_rules", "runner_options"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """What becomes of one argument; the head of ``rules.toml`` tells the fields.

    Attributes:
        dest: Megatron-LM's destination.
        section: ``translated``, ``execution`` or ``convergence``.
        to: Bridge's keys.
        by: ``""`` for the value as it is, ``not``, ``mixed``, or a group of arguments that go together.
        when: Destination, and the values that make this one act; None: always.
        values: Bridge's word for a word of Megatron-LM.
        is_required: Megatron-LM has no default for it.
        is_carried: A default that differs is carried over.
        note: What is lost, or what the argument does.
        mlm: Where Megatron-LM declares it.
        bridge: Class and field that take it.
        default: The default of an argument that is newer than the parser at hand; None: it is off.
    """

    dest: str
    section: str
    to: tuple[str, ...] = ()
    by: str = ""
    when: tuple[str, tuple[str, ...]] | None = None
    values: dict[str, str]
    is_required: bool = False
    is_carried: bool = True
    note: str = ""
    mlm: str
    bridge: str = ""
    default: object = None


@dataclass(frozen=True, slots=True)
class BridgeOnly:
    """Bridge's settings that no argument reaches, by kind."""

    convergence: frozenset[str]
    execution: frozenset[str]
    implied: frozenset[str]


@cache
def read_rules() -> dict[str, Rule]:
    """Every rule by destination, in the order of the file."""
    table = _table()
    return {
        dest: _rule(dest, section, row)
        for section in ("translated", "execution", "convergence")
        for dest, row in table[section].items()
    }


@cache
def bridge_only() -> BridgeOnly:
    """The settings of Bridge that no rule names."""
    table = _table()["bridge"]
    return BridgeOnly(*(frozenset(table[kind]) for kind in ("convergence", "execution", "implied")))


@cache
def runner_options() -> dict[str, str]:
    """Options of Bridge's ``run_recipe.py`` that stand for a setting, and its key."""
    return {str(flag): str(key) for flag, key in _table()["runner"].items()}


@cache
def computed_names() -> frozenset[str]:
    """What Megatron-LM's dump tells beside its arguments: worked out from them, or from its other parsers."""
    told: object = _table()["dump"]["computed"]
    return frozenset(told) if isinstance(told, list) else frozenset()


@cache
def newer_defaults() -> dict[str, object]:
    """Defaults of Bridge's settings that are newer than the table's Bridge, or no plain value, by key."""
    told = _table()["dump"]["bridge"]
    newer = {key: rule.default for rule in read_rules().values() for key in rule.to if rule.default is not None}
    return newer | (told if isinstance(told, dict) else {})


@cache
def _table() -> dict[str, dict[str, dict[str, object]]]:
    return tomllib.loads(files("lossbisect.assist.translate").joinpath("rules.toml").read_text("utf-8"))


def _rule(dest: str, section: str, row: dict[str, object]) -> Rule:
    to = row.get("to", ())
    values = row.get("values", {})
    when = str(row.get("when", ""))
    name, _, words = when.partition("=")
    return Rule(
        dest=dest,
        section=section,
        to=(to,) if isinstance(to, str) else tuple(to) if isinstance(to, list) else (),
        by=str(row.get("by", "")),
        when=(name, tuple(words.split(",")) if words else ()) if when else None,
        values={str(key): str(value) for key, value in values.items()} if isinstance(values, dict) else {},
        is_required=row.get("required") is True,
        is_carried=row.get("carry") is not False,
        note=str(row.get("loses") or row.get("why") or ""),
        mlm=str(row["mlm"]),
        bridge=str(row.get("bridge", "")),
        default=row.get("default"),
    )
