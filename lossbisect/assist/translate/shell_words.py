"""A shell script cut into commands and words, by the shell's rules for quotes, comments and continuations. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lossbisect.errors import RecipeError

__all__ = ["Statement", "Token", "Word", "statements"]

_NAME = re.compile(r"[A-Za-z_]\w*|[@*#0-9]")


@dataclass(slots=True)
class Token:
    """A piece of a word: text as it stands, or something to fill in."""

    text: str
    is_quoted: bool
    is_expansion: bool = False


@dataclass(slots=True)
class Word:
    """Pieces that stand together."""

    tokens: list[Token] = field(default_factory=list)
    items: "list[Word] | None" = None
    """For an array's value: its words."""

    @property
    def literal(self) -> str | None:
        """The word, if nothing in it is to be filled in."""
        return None if any(t.is_expansion for t in self.tokens) else "".join(t.text for t in self.tokens)


@dataclass(slots=True)
class Statement:
    """A command, the line it begins at, and what stands between it and the one before."""

    words: list[Word]
    line_no: int
    after: str


def statements(text: str, source: str) -> Iterator[Statement]:
    """The script's commands, cut at line ends, ``;``, ``&`` and ``|``."""
    reader = _Reader(text.replace("\r\n", "\n"), source)
    while not reader.is_at_end:
        statement = reader.statement()
        if statement.words:
            yield statement


class _Reader:
    """Goes through a script from left to right."""

    def __init__(self, text: str, source: str) -> None:
        self.text, self.source, self.at = text, source, 0
        self._heredocs: list[str] = []
        self._depth = 0
        self._operator = ""

    @property
    def is_at_end(self) -> bool:
        return self.at >= len(self.text)

    @property
    def line_no(self) -> int:
        return self.text.count("\n", 0, self.at) + 1

    def statement(self) -> Statement:
        words: list[Word] = []
        ended, after = "", self._operator
        self._blanks()
        line_no = self.line_no
        while not self.is_at_end:
            char = self.text[self.at]
            if char in "\n;&|":
                ended = (
                    self.text[self.at : self.at + 2] if self.text[self.at + 1 : self.at + 2] == char != "\n" else char
                )
                self.at += len(ended)
                if char == "\n":
                    self._skip_heredocs()
                break
            if char in "<>":
                self._redirection()
            elif char == "(":
                self.at += 1
                if words and self.text.startswith(")", self.at):  # a function begins
                    self.at += 1
                    words = [Word([Token(f"{words[-1].literal}()", is_quoted=False)])]
                else:
                    self._depth += 1
            elif char == ")":
                self.at += 1
                if self._depth == 0:
                    words.clear()  # the pattern of a case
                self._depth = max(0, self._depth - 1)
            else:
                words.append(self._word())
                last = words[-1].literal
                if last is not None and last.isdigit() and self.text[self.at : self.at + 1] in ("<", ">"):
                    words.pop()  # the number of a redirected stream
            self._blanks()
        if words or ended not in ("\n", ""):
            self._operator = ended
        return Statement(words, line_no, after)

    def _blanks(self) -> None:
        """Past blanks, continued lines and a comment."""
        while not self.is_at_end:
            if self.text[self.at] in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def _redirection(self) -> None:
        is_heredoc = self.text.startswith("<<", self.at) and not self.text.startswith("<<<", self.at)
        while not self.is_at_end and self.text[self.at] in "<>&-":
            self.at += 1
        self._blanks()
        if not self.is_at_end and self.text[self.at] not in "\n;|":
            word = self._word()
            if is_heredoc:
                self._heredocs.append(word.literal or "")

    def _skip_heredocs(self) -> None:
        for end in self._heredocs:
            match = re.compile(rf"^\t*{re.escape(end)}$", re.MULTILINE).search(self.text, self.at)
            self.at = match.end() if match else len(self.text)
        self._heredocs.clear()

    def _word(self) -> Word:
        word = Word()
        while not self.is_at_end:
            char = self.text[self.at]
            if char in " \t\n;&|<>)":
                break
            if char == "(":
                head = word.literal or ""
                if not head.endswith("="):
                    break
                self.at += 1
                word.items = self._array()
            elif char == "'":
                end = self._find("'", self.at + 1, "a single quote")
                word.tokens.append(Token(self.text[self.at + 1 : end], is_quoted=True))
                self.at = end + 1
            elif char == '"':
                self.at += 1
                self._double_quoted(word)
            elif char == "\\":
                if self.text.startswith("\\\n", self.at):
                    self.at += 2
                    continue
                word.tokens.append(Token(self.text[self.at + 1 : self.at + 2], is_quoted=True))
                self.at += 2
            elif char == "$" and self._expansion(word, is_quoted=False):
                continue
            elif char == "`":
                end = self._find("`", self.at + 1, "a backquote")
                word.tokens.append(Token(f"({self.text[self.at + 1 : end]})", is_quoted=False, is_expansion=True))
                self.at = end + 1
            else:
                start = self.at
                self.at += 1
                while not self.is_at_end and self.text[self.at] not in " \t\n;&|<>()'\"\\$`":
                    self.at += 1
                word.tokens.append(Token(self.text[start : self.at], is_quoted=False))
        return word

    def _array(self) -> list[Word]:
        items: list[Word] = []
        while True:
            self._blanks()
            if self.is_at_end:
                raise RecipeError(f"{self.source}:{self.line_no}: an array has no closing ')'.")
            if self.text[self.at] == ")":
                self.at += 1
                return items
            if self.text[self.at] == "\n":
                self.at += 1
                continue
            if (char := self.text[self.at]) in ";&|<>(":
                raise RecipeError(
                    f"{self.source}:{self.line_no}: an array has a '{char}' outside quotes, so its items aren't known. "
                    "Put quotes around it."
                )
            items.append(self._word())

    def _double_quoted(self, word: Word) -> None:
        start = self.at
        word.tokens.append(Token("", is_quoted=True))
        while True:
            if self.is_at_end:
                line_no = self.text.count("\n", 0, start) + 1
                raise RecipeError(f"{self.source}:{line_no}: a double quote isn't closed.")
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                following = self.text[self.at + 1]
                word.tokens.append(Token("" if following == "\n" else following, is_quoted=True))
                self.at += 2
            elif char == "$" and self._expansion(word, is_quoted=True):
                continue
            else:
                word.tokens.append(Token(char, is_quoted=True))
                self.at += 1

    def _expansion(self, word: Word, *, is_quoted: bool) -> bool:
        """Read what stands after a ``$``; False if the dollar is only a dollar."""
        rest = self.text[self.at + 1 : self.at + 2]
        if rest == "{":
            end = self._closing("{", "}")
            text = self.text[self.at + 2 : end]
        elif rest == "(":
            end = self._closing("(", ")")
            text = self.text[self.at + 1 : end + 1]
        elif match := _NAME.match(self.text, self.at + 1):
            text, end = match[0], match.end() - 1
        else:
            return False
        word.tokens.append(Token(text, is_quoted=is_quoted, is_expansion=True))
        self.at = end + 1
        return True

    def _closing(self, opening: str, closing: str) -> int:
        depth = 0
        for at in range(self.at + 1, len(self.text)):
            depth += (self.text[at] == opening) - (self.text[at] == closing)
            if depth == 0:
                return at
        raise RecipeError(f"{self.source}:{self.line_no}: '${opening}' has no closing '{closing}'.")

    def _find(self, mark: str, start: int, what: str) -> int:
        end = self.text.find(mark, start)
        if end < 0:
            raise RecipeError(f"{self.source}:{self.line_no}: {what} isn't closed.")
        return end
