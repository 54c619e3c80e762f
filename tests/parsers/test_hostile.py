"""Inputs that aren't logs of ours: a short run of the fuzz target, and other programs' logs."""

from pathlib import Path

from lossbisect.parsers.needles import find_needles
from lossbisect.parsers.scan import NEEDLES
from tests.parsers.fuzz import run
from tests.parsers.other_programs import LINES, count_rows, text


def test_no_input_gives_a_traceback(tmp_path: Path) -> None:
    """Random and mutated bytes give a table or an error of one line; the fuzz target runs many more."""
    n_read, n_refused = run(400, seed=11, folder=tmp_path)
    assert n_read > 50
    assert n_refused > 50


def test_other_programs_give_no_row(tmp_path: Path) -> None:
    """pip, compilers, tracebacks, JSON lines and other trainers' progress hold no row of Megatron's."""
    path = tmp_path / "other.log"
    path.write_text(text(300_000, seed=1))
    assert count_rows(path) == 0


def test_each_line_of_other_programs_gives_no_row(tmp_path: Path) -> None:
    """Not even alone, where no other line tells what it belongs to."""
    path = tmp_path / "other.log"
    for line in LINES:
        path.write_text(line.format(a=1, b=2, c=34, d=1000) + "\n")
        assert count_rows(path) == 0, line


def test_large_and_small_texts_are_searched_alike() -> None:
    """Needles are found at the same places whether a text is searched in one go or in pieces by polars."""
    small = "".join(f"{needle}x é\n" for needle in NEEDLES).encode()
    repeats = (1 << 18) // len(small)
    expected = [
        start + offset
        for start in range(0, repeats * len(small), len(small))
        for offset in find_needles(small, NEEDLES).tolist()
    ]
    assert len(find_needles(small, NEEDLES)) == len(NEEDLES)
    assert find_needles(small * repeats, NEEDLES).tolist() == expected


def test_no_needle_hides_another() -> None:
    """No needle's end is another's start, so that each is found wherever it stands."""
    for one in NEEDLES:
        for other in NEEDLES:
            assert one == other or not any(one.endswith(other[:size]) for size in range(1, len(other))), (one, other)
            assert one == other or other not in one, (one, other)
