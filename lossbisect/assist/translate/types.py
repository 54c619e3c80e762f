"""What a translation is made of."""

from dataclasses import dataclass, field
from enum import StrEnum

from lossbisect.assist.translate.arguments import Argument
from lossbisect.assist.translate.source import Sources, Value

__all__ = ["Facts", "Fate", "Item", "Settings", "Translation", "Way"]


class Way(StrEnum):
    """From whose words into whose."""

    TO_BRIDGE = "to-bridge"
    TO_MLM = "to-mlm"


class Fate(StrEnum):
    """What becomes of one argument."""

    TRANSLATED = "translated"
    DEFAULT = "default on both sides"
    EXECUTION = "execution only"
    NO_EQUIVALENT = "changes the loss, no equivalent"
    UNKNOWN = "unknown"
    MISSING = "not told, and without a default"
    """Of no argument that is told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What the two trainers at hand have.

    Attributes:
        sources: Where it was read.
        arguments: Megatron-LM's, by destination.
        base: Bridge's settings by dotted key, as the recipe leaves them.
        recipe: Name of that recipe.
    """

    sources: Sources = field(repr=False)
    arguments: dict[str, Argument] = field(repr=False)
    base: dict[str, Value] = field(repr=False)
    recipe: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One argument and its fate.

    Attributes:
        name: As the input spells it, or as Megatron-LM does for one that wasn't told.
        value: What it is set to.
        fate: Its class.
        to: The names that carry it on the other side.
        note: What is lost, what stands in the way, or what comes nearest.
        is_told: The input told it; otherwise a default of its trainer's.
    """

    name: str
    value: Value
    fate: Fate
    to: tuple[str, ...] = ()
    note: str = ""
    is_told: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Translation:
    """A finished translation.

    Attributes:
        way: Into whose words.
        settings: Bridge's overrides by key, or Megatron-LM's arguments by destination.
        items: The fate of every argument told, and of each default that differs.
        recipe: Bridge's recipe that the overrides change, or that they were read against.
        num_processes: How many processes the input starts; None: it doesn't say.
    """

    way: Way
    settings: dict[str, Value]
    items: tuple[Item, ...]
    recipe: str
    num_processes: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the input says.

    Attributes:
        told: Values by destination of Megatron-LM, or by key of Bridge.
        unknown: Options that Megatron-LM doesn't have, as spelled.
        base: Bridge's settings that the input's own take the place of; None: the recipe's.
        num_processes: How many processes its launcher starts; None: it doesn't say.
        besides: Fates of the launcher's words that choose or change what is trained.
    """

    told: dict[str, Value]
    unknown: dict[str, Value] = field(default_factory=dict)
    base: dict[str, Value] | None = None
    num_processes: int | None = None
    besides: tuple[Item, ...] = ()
