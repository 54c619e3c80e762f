"""The words of the one training command in a shell script, with its variables filled in. Pure; nothing is run.

What a reader of the script can tell is told: quotes, comments, continuations, ``$NAME``, ``${NAME:-default}``, arrays,
``$@``, whole-number arithmetic, and a branch whose test is about such. What depends on the run (a loop, another
branch, the output of a command, a variable that the script doesn't set) is never guessed: where it decides which
arguments there are, `RecipeError` names the line.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lossbisect.assist.translate.shell_expand import joined, pieces
from lossbisect.assist.translate.shell_words import Statement, Token, Word, statements
from lossbisect.errors import RecipeError

__all__ = ["Command", "left_open", "training_command"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Attributes:
        words: Its words. A variable that isn't known stands as ``$NAME`` inside a word.
        line_no: Line of its first word.
    """

    words: list[str]
    line_no: int


@dataclass(slots=True)
class _Block:
    """A compound command that is open: whether its present part runs, None for what the script doesn't tell."""

    closing: str
    runs: bool | None = None
    earlier: list[bool | None] = field(default_factory=list)
    is_testing: bool = False


_BLOCKS = {"if": "fi", "for": "done", "while": "done", "until": "done", "select": "done", "case": "esac", "{": "}"}
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<more>\+?)=(?P<value>.*)", re.DOTALL)
_DECLARING = frozenset({"export", "declare", "local", "readonly", "typeset"})
_NAME = re.compile(r"[A-Za-z_]\w*|[@*#0-9]")
_MOST_SOURCED = 5
"""How deep files may read one another."""
_BEFORE_A_COMMAND = frozenset({"then", "else", "do", "{", "exec", "time", "!", "eval", "nohup"})
_OF_A_PROGRAM = re.compile(r"--|\$|[+~]{0,2}[a-z_]\w*\.[\w.]+=")
"""What makes a program one that may train: an option, a variable, an override."""
_OTHER_PROGRAMS = frozenset({"echo", "printf", "cat", "ls", "cp", "pip", "sed", "grep", "[", "[[", "test"})


def training_command(
    text: str,
    *,
    source: str,
    given: Mapping[str, str],
    line_no: int | None = None,
    read: Callable[[str], str | None] = lambda _: None,
) -> Command:
    """The command of a script that trains: the one that names a Python program, or consists of options.

    Args:
        text: The script.
        source: Its name, for messages.
        given: Variables that the user sets; ``@`` for the script's own arguments.
        line_no: Where the command begins, of several; None: there is one.
        read: The text of a file that the script reads with ``source``; None: it isn't there.

    Raises:
        RecipeError: There is no such command or more than one, or what it says depends on the run.
    """
    variables = {name: value.split() if name == "@" else [value] for name, value in given.items()}
    variables |= {f"{name}[@]": _split(value) for name, value in given.items()}
    return _Script(source, given, variables, read).command(text, first_line=1, wanted=line_no)


def _split(value: str) -> list[str]:
    """The words that a user's value has where the script takes it for an array."""
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()


class _Script:
    """What is known of a script's variables while its commands are gone through."""

    def __init__(
        self,
        source: str,
        given: Mapping[str, str],
        variables: dict[str, list[str]],
        read: Callable[[str], str | None],
    ) -> None:
        self.source, self.given, self.variables, self.read = source, given, variables, read
        self.conditional: dict[str, int] = {}
        self.unread: list[str] = []
        self.depth = 0
        self.blocks: list[_Block] = []

    def command(self, text: str, *, first_line: int, wanted: int | None = None) -> Command:
        """The command that trains; of several, the one at a line."""
        found = self.commands(text, first_line=first_line)
        chosen = [command for command in found if wanted in (None, command.line_no)]
        if found and not chosen:
            lines = ", ".join(str(command.line_no) for command in found)
            raise RecipeError(f"{self.source}:{wanted}: no command that trains begins here; one does at line {lines}.")
        return self._only(chosen or self._options_alone())

    def commands(self, text: str, *, first_line: int) -> list[Command]:
        """Every command that trains, in the order of the text."""
        found: list[Command] = []
        last: bool | None = True
        for statement in statements(text, self.source):
            line_no = first_line + statement.line_no - 1
            words = self._in_blocks(statement)
            runs = self._runs()
            if statement.after in ("&&", "||"):
                wanted = last if statement.after == "&&" else (None if last is None else not last)
                runs = False if wanted is False else None if wanted is None else runs
            last = True
            if not words or runs is False:
                continue
            if words[0].literal in ("[", "[[", "test"):
                last = self._test(words)
                continue
            if words[0].literal in ("source", ".") and len(words) > 1:
                self._source(words[1], is_sure=runs is True, line_no=line_no)
                continue
            rest = self._assign(words, is_sure=runs is True, line_no=line_no)
            if rest and (made := self._training(rest, line_no)):
                found.append(made)
        return found

    def _source(self, word: Word, *, is_sure: bool, line_no: int) -> None:
        """Go through another file as the shell does at this place; one that isn't there is remembered."""
        name = " ".join(pieces(word, self.variables))
        text = self.read(name) if self.depth < _MOST_SOURCED else None
        if text is None:
            self.unread.append(f"line {line_no} reads {name}")
            return
        before = dict(self.variables)
        inner = _Script(name, self.given, self.variables, self.read)
        inner.conditional, inner.unread, inner.depth = self.conditional, self.unread, self.depth + 1
        inner.commands(text, first_line=1)
        if not is_sure:
            changed = {name for name, value in self.variables.items() if before.get(name) != value}
            self.conditional |= dict.fromkeys(changed - self.given.keys(), line_no)

    def _only(self, found: list[Command]) -> Command:
        if not found:
            raise RecipeError(
                f"{self.source}: no command that trains: none names a Python program with options, and none starts "
                "with '--'."
            )
        if all(command.words[0].startswith("--") for command in found):  # options alone, perhaps one on each line
            return Command([word for command in found for word in command.words], found[0].line_no)
        if len(found) > 1:
            lines = ", ".join(str(command.line_no) for command in found)
            raise RecipeError(
                f"{self.source}: commands that train stand at lines {lines}. Name one: --line {found[0].line_no}."
            )
        return found[0]

    def _options_alone(self) -> list[Command]:
        """For a file that only sets a variable to options, for another script to read: those."""
        holders = {
            name: [word for value in values for word in value.split()]
            for name, values in self.variables.items()
            if values and values[0].lstrip().startswith("--") and name not in self.conditional
        }
        return [Command(next(iter(holders.values())), 1)] if len(holders) == 1 else []

    def _in_blocks(self, statement: Statement) -> list[Word]:
        """Open and close blocks; what is left of the statement."""
        words = statement.words
        while words:
            first = words[0].literal or ""
            top = self.blocks[-1] if self.blocks else None
            if top and top.is_testing and first != "then":
                top.runs = None  # a second command decides too
            if first.endswith("()") or first == "function":
                return []
            if first in _BLOCKS:
                self.blocks.append(_Block(_BLOCKS[first], runs=True if first == "{" else None))
                if first == "if":
                    self.blocks[-1].runs, self.blocks[-1].is_testing = self._test(words[1:]), True
                    return []
                if first != "{":
                    return []
            elif top and first == top.closing:
                self.blocks.pop()
            elif top and first == "elif":
                top.earlier.append(top.runs)
                top.runs = self._otherwise(top, self._test(words[1:]))
                top.is_testing = True
                return []
            elif top and first == "else":
                top.earlier.append(top.runs)
                top.runs = self._otherwise(top, outcome=True)
            elif top and first == "then":
                top.is_testing = False
            elif first not in _BEFORE_A_COMMAND:
                return words
            words = words[1:]
        return words

    @staticmethod
    def _otherwise(block: _Block, outcome: bool | None) -> bool | None:
        if True in block.earlier:
            return False
        return None if None in block.earlier else outcome

    def _runs(self) -> bool | None:
        """Whether what stands here runs: None where the script doesn't tell."""
        told = [block.runs for block in self.blocks]
        return False if False in told else None if None in told else True

    def _test(self, words: list[Word]) -> bool | None:
        """What a test comes to; None if the script doesn't tell."""
        is_negated = bool(words) and words[0].literal == "!"
        words = words[is_negated:]
        if len(words) < 3 or words[0].literal not in ("[", "[["):
            return None
        if words[-1].literal not in ("]", "]]") or any(not self._is_known(word) for word in words):
            return None
        values = [" ".join(pieces(word, self.variables)) for word in words[1:-1]]
        if values[0] == "!" and len(values) > 1:
            is_negated, values = not is_negated, values[1:]
        outcome = _outcome(values)
        return None if outcome is None else outcome != is_negated

    def _is_known(self, word: Word) -> bool:
        for token in word.tokens:
            if token.is_expansion and not token.text.startswith("(("):
                name = _name(token.text)
                if name in self.conditional or not (name in self.variables or re.search(r":?-", token.text)):
                    return False
        return True

    def _assign(self, words: list[Word], *, is_sure: bool, line_no: int) -> list[Word]:
        """Carry out the assignments at a command's start, and return the rest of it."""
        is_declaring = words[0].literal in _DECLARING
        index = int(is_declaring)
        while index < len(words):
            word = words[index]
            head = word.tokens[0].text if word.tokens and not word.tokens[0].is_quoted else ""
            match = _ASSIGNMENT.fullmatch(head)
            if match:
                self._set(match["name"], word, match["value"], is_more=bool(match["more"]))
                if is_sure:
                    self.conditional.pop(match["name"], None)
                elif match["name"] not in self.given:
                    self.conditional[match["name"]] = line_no
            elif not is_declaring:
                break
            index += 1
        return words[index:]

    def _set(self, name: str, word: Word, value: str, *, is_more: bool) -> None:
        if name in self.given:
            return
        before = self.variables.get(name, []) if is_more else []
        if word.items is not None:
            self.variables[name] = [*before, *(piece for item in word.items for piece in self._item(item))]
        else:
            tokens = [Token(value, is_quoted=True), *word.tokens[1:]]
            self.variables[name] = ["".join(before) + "".join(joined(token, self.variables) for token in tokens)]

    def _item(self, item: Word) -> list[str]:
        return pieces(item, self.variables)

    def _training(self, words: list[Word], line_no: int) -> Command | None:
        """The command, if it trains: looked at with its variables filled in, for its program may be in one."""
        filled = [piece for word in words for piece in pieces(word, self.variables)]
        if not filled or filled[0] in _OTHER_PROGRAMS or "pytest" in (word.rpartition("/")[2] for word in filled):
            return None
        shell = next((at for at, word in enumerate(filled[:-1]) if word in ("-c", "-lc") and at), None)
        if shell is not None and filled[shell - 1].rpartition("/")[2] in ("bash", "sh"):
            inner = _Script(self.source, self.given, self.variables, self.read)
            inner.conditional = self.conditional
            try:
                made = inner.command(filled[shell + 1], first_line=line_no)
            except RecipeError:
                return None
            return Command([*filled[: shell - 1], *made.words], line_no)
        if not filled[0].startswith("--"):
            programs = [at for at, word in enumerate(filled) if word.endswith(".py") or word == "-m"]
            if not programs or not any(map(_OF_A_PROGRAM.match, filled[programs[0] + 1 :])):
                return None
        return Command(self._checked(words, line_no), line_no)

    def _checked(self, words: list[Word], line_no: int) -> list[str]:
        """A command's words, refused if the script leaves open which arguments there are."""
        found: list[str] = []
        is_program_seen = (words[0].literal or "").startswith("--")
        for word in words:
            names = [_name(token.text) for token in word.tokens if token.is_expansion]
            if is_program_seen:
                for name in names:
                    if name in self.conditional:
                        raise RecipeError(
                            f"{self.source}:{self.conditional[name]}: ${name} is set inside an 'if' or a loop, so the "
                            f"script alone doesn't tell what line {line_no} runs. Say it: --set {name}='...'."
                        )
                whole = [token.text for token in word.tokens if token.is_expansion or token.text]
                is_value = bool(found) and found[-1].startswith("--")  # it may be the value of the option before it
                is_open = len(whole) == 1 and names and names[0] not in self.variables and not is_value
                if is_open and whole[0] not in ("@", "*") and ":-" not in whole[0]:
                    hint = f" It may be set by what {self.unread[0]}, which isn't there." if self.unread else ""
                    raise RecipeError(f"{self.source}:{line_no}: {left_open(names[0])}{hint}")
            filled = pieces(word, self.variables)
            found += filled
            is_program_seen = is_program_seen or any(piece.endswith(".py") for piece in filled)
        return found


def left_open(name: str) -> str:
    """What to say about a variable, or a command's output, that may hold arguments."""
    if name.startswith("("):
        return f"the script alone doesn't tell what ${name} gives, which may be arguments. Put them in its place."
    return (
        f"the script doesn't set ${name}, which may hold arguments. Say it: --set {name}='...', with nothing between "
        "the quotes if it is empty."
    )


def _name(expansion: str) -> str:
    match = _NAME.match(expansion)
    return match[0] if match else expansion


_NUMBERS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})


def _outcome(values: list[str]) -> bool | None:
    """What a test of text or of whole numbers comes to; None for another one, such as whether a file is there."""
    match values:
        case ["-z", text]:
            return not text
        case ["-n", text] | [text]:
            return bool(text)
        case [left, "=" | "==", right] if not set("*?[") & set(right):
            return left == right
        case [left, "!=", right] if not set("*?[") & set(right):
            return left != right
        case [left, operator, right] if operator in _NUMBERS and all(map(_is_whole, (left, right))):
            one, other = int(left), int(right)
            return {
                "-eq": one == other,
                "-ne": one != other,
                "-lt": one < other,
                "-le": one <= other,
                "-gt": one > other,
                "-ge": one >= other,
            }[operator]
    return None


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"-?\d{1,15}", text) is not None
