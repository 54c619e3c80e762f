"""Values on both sides: when two are the same, and how words of a command line become values. Pure."""

import ast
import re
from difflib import get_close_matches

from lossbisect.assist.translate.arguments import Argument
from lossbisect.assist.translate.source import Value
from lossbisect.errors import RecipeError

__all__ = ["converted", "nearest", "printed", "same"]

_LISTS = frozenset({"moe_layer_freq", "linear_attention_freq", "no_rope_freq", "window_attn_skip_freq", "window_size"})
"""Arguments whose word is a Python expression of numbers and lists."""


def same(left: Value, right: Value) -> bool:
    """Whether two settings mean the same: an empty one is None, False or no items; a list of one is its item."""
    left, right = _plain(left), _plain(right)
    return left == right and (isinstance(left, bool) == isinstance(right, bool) or left in (None, False))


def _plain(value: Value) -> Value:
    if isinstance(value, list):
        return _plain(value[0]) if len(value) == 1 else [_plain(item) for item in value] or None
    return None if value is False else value


def converted(argument: Argument, flag: str, words: list[str]) -> Value:
    """What the words after an option are worth.

    Raises:
        RecipeError: There are too few or too many words, or one isn't of the argument's type or choices.
    """
    if not words:
        raise RecipeError(f"{flag}: needs a value. Megatron-LM would stop here too.")
    if len(words) > 1 and not argument.takes_many:
        raise RecipeError(f"{flag}: takes one value, not {len(words)} ({' '.join(words)}). Is a '--' missing?")
    items = [_item(argument, flag, word) for word in words]
    return items if argument.takes_many else items[0]


def _item(argument: Argument, flag: str, word: str) -> Value:
    if argument.choices and word not in argument.choices:
        close = nearest(word, argument.choices)
        hint = f" The nearest is {close}." if close else ""
        raise RecipeError(f"{flag}: {word!r} isn't one of {', '.join(argument.choices)}.{hint}")
    if argument.dest in _LISTS:
        return _expression(word, flag)
    try:
        return int(word) if argument.type == "int" else float(word) if argument.type == "float" else word
    except ValueError:
        kind = "a whole number" if argument.type == "int" else "a number"
        raise RecipeError(f"{flag}: {word!r} isn't {kind}.") from None


def _expression(word: str, flag: str) -> Value:
    try:
        node = ast.parse(word.strip(), mode="eval").body
    except SyntaxError:
        raise RecipeError(f"{flag}: {word!r} isn't a number or a list such as ([0]*1+[1]*3).") from None
    value = _computed(node)
    if value is None:
        raise RecipeError(f"{flag}: {word!r} isn't a number or a list such as ([0]*1+[1]*3).")
    return value


_MOST_ITEMS = 10_000


def _computed(node: ast.expr) -> Value:
    """A number, a list, sums and repetitions of them; None for anything else."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            value = _computed(inner)
            return -value if isinstance(value, int | float) else None
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_computed(item) for item in items]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, other = _computed(left), _computed(right)
            return [*one, *other] if isinstance(one, list) and isinstance(other, list) else None
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            one, other = _computed(left), _computed(right)
            if isinstance(one, int) and isinstance(other, list):
                one, other = other, one
            if isinstance(one, list) and isinstance(other, int) and len(one) * other <= _MOST_ITEMS:
                return one * other
    return None


def nearest(word: str, known: "tuple[str, ...] | list[str]") -> str | None:
    """The known word that looks most like one."""
    close = get_close_matches(word, known, n=1, cutoff=0.5)
    return close[0] if close else None


_DTYPES = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16", "torch.uint8": "fp8"}


def printed(value: Value) -> Value:
    """A value as a dump prints it, in the words of a command line: an enum's member and a dtype by their names."""
    if isinstance(value, list):
        return [printed(item) for item in value]
    if not isinstance(value, str):
        return value
    if value == "{}":
        return []
    if match := re.fullmatch(r"<?[A-Z]\w*\.(\w+)(?::.*>)?", value):
        return match[1]
    return _DTYPES.get(value, value)
