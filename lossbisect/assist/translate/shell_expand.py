"""What the shell puts in a word's place: variables, arrays, defaults, whole-number arithmetic. Pure."""

import ast
import re
from collections.abc import Mapping
from contextlib import suppress

from lossbisect.assist.translate.shell_words import Token, Word

__all__ = ["joined", "pieces"]

type Variables = Mapping[str, list[str]]


def pieces(word: Word, variables: Variables) -> list[str]:
    """A word as the words that the shell makes of it: a list for an array, pieces for a variable without quotes."""
    pieces: list[str] = [""]
    is_there = False
    for token in word.tokens:
        values = _filled(token, variables) if token.is_expansion else [token.text]
        if token.is_quoted and token.is_expansion and token.text.endswith(("[*]", "*")):
            values = [" ".join(values)]
        if token.is_expansion and not token.is_quoted and not token.text.startswith("("):
            values = [piece for value in values for piece in value.split()]
        is_there = is_there or any(values) or (token.is_quoted and not _is_list(word))
        if values:
            pieces[-1] += values[0]
            pieces += values[1:]
    return pieces if is_there else []


def _is_list(word: Word) -> bool:
    """Whether a word has a list in it, which in quotes is no word at all if it is empty."""
    return any(token.is_expansion and (token.text == "@" or token.text.endswith("[@]")) for token in word.tokens)


def joined(token: Token, variables: Variables) -> str:
    """A piece of a word as one text: an array's items with blanks between them."""
    return " ".join(_filled(token, variables)) if token.is_expansion else token.text


_DEFAULT = re.compile(r"(?P<name>[A-Za-z_]\w*|[0-9@])(?P<operator>:?[-=])(?P<value>.*)", re.DOTALL)


def _filled(token: Token, variables: Variables) -> list[str]:
    text = token.text
    if text.startswith("(("):
        return [_arithmetic(text[2:-2], variables)]
    if text.startswith("("):
        return [f"${text}"]
    if text in ("@", "*"):
        return variables.get("@", [])
    if text.endswith(("[@]", "[*]")):
        return variables.get(text, variables.get(text[:-3], [f"${text[:-3]}"]))
    if match := _DEFAULT.fullmatch(text):
        values = variables.get(match["name"], [])
        return values if any(values) else [_text(match["value"], variables)]
    return variables.get(text, [f"${text}"])


def _text(text: str, variables: Variables) -> str:
    """The right side of a default: text in which variables stand."""
    plain = text.strip("\"'")
    return re.sub(r"\$\{?(\w+)\}?", lambda match: " ".join(variables.get(match[1], [match[0]])), plain)


_SUM = re.compile(r"[\d\s()+*/-]+", re.ASCII)


def _arithmetic(text: str, variables: Variables) -> str:
    """A sum of whole numbers; as written if it isn't one."""
    filled = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", lambda match: " ".join(variables.get(match[1], [match[0]])), text)
    if _SUM.fullmatch(filled):
        with suppress(SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
            return str(_number(ast.parse(filled.strip(), mode="eval").body))
    return f"$(({text}))"


def _number(node: object) -> int:
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _number(left), _number(right)
            if isinstance(op, ast.Add):
                return one + other
            if isinstance(op, ast.Sub):
                return one - other
            if isinstance(op, ast.Mult):
                return one * other
            if isinstance(op, ast.Div | ast.FloorDiv):
                return one // other
    raise ValueError
