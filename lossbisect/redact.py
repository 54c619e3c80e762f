"""Tokens, keys and passwords out of everything that is stored or reported.

One rule for text, words of a command line and variables: what has the shape of a known secret is masked wherever it
stands, and a value is masked where its name says that it's secret. Numbers are never touched. A trainer may also print
a secret of no known shape under any name; so the console's lines are searched for the very values that the
environment holds under such names.

Standard library only: the trainer's process uses it too.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

__all__ = ["MASK", "is_secret_name", "line_redactor", "redact", "redact_folder", "redact_variables", "redact_words"]

MASK = "[redacted]"

_SHAPES = re.compile(
    r"""(?<![A-Za-z0-9])(?:
      hf_[A-Za-z0-9]{16,}                                # Hugging Face
    | gh[opsur]_[A-Za-z0-9]{20,} | github_pat_\w{20,}    # GitHub
    | glpat-[\w-]{16,}                                   # GitLab
    | (?:AKIA|ASIA)[0-9A-Z]{16}                          # Amazon
    | sk-[\w-]{20,} | nvapi-[\w-]{20,} | xox[abeprs]-[\w-]{10,} | AIza[\w-]{35} | pypi-[\w-]{20,} | wandb_v1_\w{20,}
    | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+                 # JSON web token
    )""",
    re.VERBOSE,
)
_URL = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://)[^\s/:@'\"]*:[^\s/'\"]+(?P<after>@)", re.IGNORECASE)
_HEADER = re.compile(
    r"(?P<before>\bauthorization['\"]?\s*[:=]\s*['\"]?(?:[a-z]+\s+)?|\bbearer\s+)[\w.~+/=-]{8,}", re.IGNORECASE
)
_WANDB = re.compile(r"(?P<before>\bkey['\"]?\s*[:=]\s*['\"]?)[0-9a-f]{40}\b", re.IGNORECASE)
"""Weights & Biases' older keys look like a commit; only their name tells."""
_PEM_BEGIN = r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----"
_PEM_END = r"-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----"
_PEM_BODY = re.compile(rb"\s*(?:[A-Za-z0-9+/=]+|[A-Za-z-]+: .*)\s*")
_PEM = re.compile(f"{_PEM_BEGIN}.*?(?:{_PEM_END}|\\Z)", re.DOTALL)
_NAMED = re.compile(
    r"""(?P<before>(?<![\w.-])(?:--)?(?P<name>[A-Za-z_][\w.-]*?)["']?(?:\s*[:=]\s*|\s*\.{3,}\s*)["']?)
        (?P<value>[^\s"',;]{6,})""",
    re.VERBOSE,
)
"""``NAME=value``, ``"name": "value"`` and Megatron-LM's ``name ........ value``."""
_OPTION = re.compile(r"(?P<before>(?<![\w.-])--(?P<name>[A-Za-z][\w.-]*)\s+[\"']?)(?P<value>[^\s\"',;-][^\s\"',;]{5,})")
"""``--name value``."""
_HINT = re.compile(
    r"hf_|gh[opsur]_|github_pat|glpat|AKIA|ASIA|sk-|nvapi|xox|AIza|pypi-|wandb_v1|eyJ|://|"
    r"(?i:bearer|authorization|token|secret|passw|passphrase|credential|key)"
)
"""Nothing that is masked lacks one of these; most lines of a log have none, and cost one search."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?")
_PLAIN = frozenset({"none", "null", "true", "false", "disabled", "enabled", "required", "default", "missing"})
_ROW = re.compile(rb"\biteration\s+\d+\s*/\s*\d+\s*\|")
_WORD = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")
_SECRET_ENDS = (
    "token", "secret", "password", "passwd", "passphrase", "credential", "credentials", "apikey", "accesskey",
    "secretkey", "privatekey",
)  # fmt: skip
_KEY_KINDS = frozenset(
    {"api", "access", "secret", "private", "signing", "ssh", "encryption", "auth", "wandb", "deploy"}
)
_SHORTEST_VALUE = 8
_TEXTS = frozenset({".log", ".out", ".err", ".txt", ".sh", ".sbatch", ".yaml", ".yml"})


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds a secret, to judge by its words: HF_TOKEN does, TOKENIZERS_PARALLELISM not.

    Any KEY counts.
    """
    words = [word.lower() for word in _WORD.split(name) if word]
    return any(word.endswith(_SECRET_ENDS) or word == "key" for word in words)


def _is_secret_in_text(name: str) -> bool:
    """The same for a name in a log, stricter: logs are full of keys and tokens that are none."""
    words = [word.lower() for word in _WORD.split(name) if word]
    if not words:
        return False
    if words[-1].endswith(_SECRET_ENDS):
        return True
    is_variable = name.isupper() and len(words) > 1
    return (is_variable and is_secret_name(name)) or (
        words[-1] == "key" and (len(words) > 1 and words[-2] in _KEY_KINDS)
    )


def _is_plain(value: str) -> bool:
    """A value that is no secret whatever its name: a number, a switch, a special token, or one already masked."""
    return value.lower() in _PLAIN or value.startswith(("<", "[")) or _NUMBER.fullmatch(value) is not None


def _mask_named(match: re.Match[str]) -> str:
    value = match["value"]
    if _is_secret_in_text(match["name"]):
        return match[0] if _is_plain(value) else match["before"] + MASK
    return match["before"] + _NAMED.sub(_mask_named, value)  # what looks like a value may be the next name


def redact(text: str) -> str:
    """The text with every secret in it masked; the same text if there is none.

    A mask stands in the secret's place, so that a reader sees that there was one.
    """
    if _HINT.search(text) is None:
        return text
    text = _PEM.sub(MASK, text)
    text = _URL.sub(rf"\g<before>{MASK}\g<after>", text)
    text = _HEADER.sub(rf"\g<before>{MASK}", text)
    text = _SHAPES.sub(MASK, text)
    text = _WANDB.sub(rf"\g<before>{MASK}", text)
    return _NAMED.sub(_mask_named, _OPTION.sub(_mask_named, text))


def redact_words(words: Iterable[str]) -> tuple[str, ...]:
    """A command line's words, each redacted; the word after an option such as ``--wandb-key`` too."""
    redacted: list[str] = []
    is_value = False
    for word in words:
        name, equals, value = word.partition("=")
        is_option = name.startswith("-")
        if is_value and not is_option and not _is_plain(word):
            redacted.append(MASK)
        elif equals and is_secret_name(name) and not _is_plain(value):
            redacted.append(f"{name}={MASK}")
        else:
            redacted.append(redact(word))
        is_value = is_option and not equals and is_secret_name(name)
    return tuple(redacted)


def redact_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Environment variables with secret values masked: by their name, or by their shape."""
    return {
        name: MASK if is_secret_name(name) and value and value.lower() not in _PLAIN else redact(value)
        for name, value in variables.items()
    }


def line_redactor(environment: Mapping[str, str]) -> Callable[[bytes], bytes]:
    """A function that masks secrets in a console's lines, one after the other; it remembers an open PEM block.

    A training row is searched for known shapes only, so that no value of the environment can meet a number in it.

    Args:
        environment: The trainer's variables; long values of those whose name is secret are masked wherever they stand.
    """
    values = sorted(
        {value for name, value in environment.items() if is_secret_name(name) and _is_telling(value)},
        key=len, reverse=True,
    )  # fmt: skip
    known = re.compile(b"|".join(re.escape(value.encode("utf-8", "surrogateescape")) for value in values))
    begin, end, mask = re.compile(_PEM_BEGIN.encode()), re.compile(_PEM_END.encode()), MASK.encode()
    is_in_block = False

    def redacted(line: bytes) -> bytes:
        nonlocal is_in_block
        if _ROW.search(line):
            return _redact_shapes(line)
        if is_in_block and end.search(line):
            is_in_block = False
            return end.split(line)[-1]
        if is_in_block and _PEM_BODY.fullmatch(line):  # another rank's lines may stand in between
            return b""
        if values:
            line = known.sub(mask, line)
        is_in_block = is_in_block or (begin.search(line) is not None and end.search(line) is None)
        ending = line[len(line.rstrip(b"\r\n")) :]
        text = line.decode("utf-8", "surrogateescape")
        changed = redact(text)
        if changed == text:
            return line
        changed_line = changed.encode("utf-8", "surrogateescape")
        return changed_line if changed_line.endswith(ending) else changed_line + ending

    return redacted


def redact_folder(folder: Path, environment: Mapping[str, str]) -> None:
    """Mask secrets in the text files of a run's folder that something else than us may have written.

    A file that has none stays as it is; values, which are numbers, aren't looked at.
    """
    for path in folder.rglob("*"):
        if path.suffix in _TEXTS and path.is_file() and not path.is_symlink():
            with suppress(FileNotFoundError):  # a process that is ending may tidy up
                _redact_file(path, environment)


def _redact_file(path: Path, environment: Mapping[str, str]) -> None:
    redacted = line_redactor(environment)
    with path.open("rb") as lines:
        if all(redacted(line) == line for line in lines):
            return
    redacted, clean = line_redactor(environment), path.with_name(f"{path.name}.redacted")
    with path.open("rb") as lines, clean.open("wb") as file:
        file.writelines(map(redacted, lines))
    clean.chmod(path.stat().st_mode)
    clean.replace(path)


def _redact_shapes(line: bytes) -> bytes:
    text = line.decode("utf-8", "surrogateescape")
    changed = _SHAPES.sub(MASK, text)
    return line if changed == text else changed.encode("utf-8", "surrogateescape")


def _is_telling(value: str) -> bool:
    """Long enough, and neither a number nor a path, so that it stands in a log for nothing but itself."""
    return len(value) >= _SHORTEST_VALUE and not _is_plain(value) and not value.startswith(("/", "~", "./"))
