"""Restarts, windows, missing losses and the second row: what rows mean together."""

from pathlib import Path

import pytest

from lossbisect.parsers import RunLog, read_log

START = "[before the start of training step] datetime: 2026-01-01 00:00:00 "


def row(
    iteration: int,
    loss: str | None = "2.500000E+00",
    *,
    total: int = 100,
    stamp: str = "",
    elapsed: float = 5.0,
    skipped: int = 0,
    extra: str = "",
    grad_norm: str | None = "1.000",
) -> str:
    """A row of Megatron-LM; ``loss`` and ``grad_norm`` None leave the field out."""
    return (
        f"{f' [{stamp}]' if stamp else ''} iteration {iteration:8d}/{total:8d} |"
        f" consumed samples: {iteration * 8:12d} |"
        f" elapsed time per iteration (ms): {elapsed:.1f} | learning rate: 1.000000E-03 | global batch size:     8 |"
        f"{f' lm loss: {loss} |' if loss else ''}{extra} loss scale: 1.0 |"
        f"{f' grad norm: {grad_norm} |' if grad_norm else ''}"
        f" number of skipped iterations: {skipped:3d} | number of nan iterations:   0 |"
    )


@pytest.fixture
def read(tmp_path: Path) -> "Reader":
    """A function from lines to the log that they are."""
    return Reader(tmp_path / "train.log")


class Reader:
    """Writes lines to a file and reads them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, *lines: str) -> RunLog:
        """The log of these lines."""
        self._path.write_text("".join(f"{line}\n" for line in lines))
        return read_log(self._path)


def column(log: RunLog, name: str) -> list[object]:
    """A column's values; NaN as the text ``nan``, so that it compares."""
    return ["nan" if value != value else value for value in log.iterations[name].to_list()]


def kinds(log: RunLog) -> list[str]:
    """The kinds of a log's notes."""
    return [note.kind for note in log.notes]


def test_restart_at_a_start_mark_keeps_both_rows(read: Reader) -> None:
    """Rows printed again after a resume are there twice, told apart by their attempt."""
    log = read(START, row(1), row(2), row(3), START, row(3, "2.600000E+00"), row(4))
    assert column(log, "iteration") == [1, 2, 3, 3, 4]
    assert column(log, "attempt") == [0, 0, 0, 1, 1]
    assert [(a.line_no, a.reason) for a in log.attempts] == [(1, "start mark"), (5, "start mark")]


def test_overlap_of_a_resume_is_noted(read: Reader) -> None:
    """How many rows a resume printed again, and how far their losses are from the first time."""
    log = read(START, row(1), row(2), row(3), START, row(2), row(3, "2.600000E+00"), row(4))
    (note,) = log.notes
    assert (note.kind, note.line_no) == ("resume-overlap", 6)
    assert note.text.startswith(
        "2 rows repeat an iteration of an earlier attempt; the loss differs in 1, by up to 0.04"
    )


def test_resume_without_overlap_is_an_attempt(read: Reader) -> None:
    """A start mark splits even where the iterations simply go on."""
    log = read(START, row(1), row(2), START, row(3))
    assert column(log, "attempt") == [0, 0, 1]


def test_marks_of_one_start_are_one_attempt(read: Reader) -> None:
    """Everything a starting process prints, and what other ranks repeat, is one start."""
    dump = ["------- arguments -------", "  lr ........ 0.1", "---- end of arguments ----"]
    marks = [*dump, "[after megatron is initialized] datetime: 2026-01-01 00:00:00 ", START, START]
    log = read(*marks, row(1), *marks, row(1))
    assert len(log.attempts) == 2


def test_failed_start_is_an_attempt_without_rows(read: Reader) -> None:
    """A start that died before its first row is kept as an attempt, its failure as a note."""
    dump = ["------- arguments -------", "  lr ........ 0.1", "---- end of arguments ----"]
    log = read(*dump, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", *dump, START, row(1))
    assert [a.line_no for a in log.attempts] == [1, 5]
    assert column(log, "attempt") == [1]
    assert kinds(log) == ["attempt-cuda-oom"]
    assert log.failure is None


def test_changed_configuration_is_noted(read: Reader) -> None:
    """The last dump is the configuration; what it changed is in the notes."""
    dump = "------- arguments -------\n  lr ........ {}\n  seed ........ 1\n---- end of arguments ----"
    log = read(dump.format(0.1), START, row(1), dump.format(0.2), START, row(2))
    assert log.config == {"lr": 0.2, "seed": 1}
    assert kinds(log) == ["config-changed"]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (row(2), "iteration fell from 2 to 2"),
        (row(1), "iteration fell from 2 to 1"),
        (row(3, total=50), "total changed from 100 to 50"),
    ],
)
def test_restart_without_mark_is_seen(read: Reader, second: str, reason: str) -> None:
    """In a grep'd log the iterations alone show a restart."""
    log = read(row(1), row(2), second.replace("lm loss: 2.5", "lm loss: 2.7"))
    assert [a.reason for a in log.attempts] == ["start of the file", reason]


def test_clock_that_goes_back_an_hour_is_no_restart(read: Reader) -> None:
    """The end of summer time doesn't split a run; a day does."""
    log = read(row(1, stamp="2026-10-25 02:59:59"), row(2, stamp="2026-10-25 02:00:00"))
    assert len(log.attempts) == 1
    log = read(row(1, stamp="2026-10-25 02:59:59"), row(2, stamp="2026-10-24 02:00:00"))
    assert len(log.attempts) == 2


def test_window_is_what_a_row_averages(read: Reader) -> None:
    """The window is the log interval less skipped iterations; a missing row doesn't widen the next one."""
    log = read(START, row(10, skipped=3), row(20), row(40), row(50, skipped=10, loss=None))
    assert column(log, "window") == [7, 10, 10, 0]


def test_window_of_a_first_row_that_is_printed_alone(read: Reader) -> None:
    """Since core_v0.16.0 the first iteration has a row of its own, which the next row covers again."""
    stamp = "2026-09-01 12:00:00.{:06d}"
    log = read(
        START,
        row(1, stamp=stamp.format(0), elapsed=50.0),
        row(10, stamp=stamp.format(90_000), elapsed=14.0),
        row(20, stamp=stamp.format(190_000), elapsed=10.0),
    )
    assert column(log, "window") == [1, 10, 10]
    assert column(log, "lm_loss") == [2.5, 2.5, 2.5]


def test_window_after_a_resume_off_the_interval(read: Reader) -> None:
    """A row after a resume averages from the resumed iteration on."""
    log = read("Starting training loop at iteration 14", row(20), row(30), row(40))
    assert column(log, "window") == [6, 10, 10]


def test_window_is_unknown_where_nothing_tells(read: Reader) -> None:
    """A single row of a log that starts anywhere has no window."""
    assert column(read(row(40)), "window") == [None]


def test_absent_loss_is_nan_once_it_was_printed(read: Reader) -> None:
    """Megatron leaves a NaN loss out: with nothing skipped, a row without it means NaN."""
    log = read(START, row(1), row(2, loss=None, grad_norm="nan"), row(3, loss=None, grad_norm="nan"))
    assert column(log, "lm_loss") == [2.5, "nan", "nan"]
    assert column(log, "grad_norm") == [1.0, "nan", "nan"]
    assert [(note.kind, note.line_no) for note in log.notes] == [("nan-loss", 3)]


def test_absent_loss_of_a_skipped_iteration_is_missing(read: Reader) -> None:
    """An iteration that was skipped has no loss: null, neither NaN nor 0."""
    log = read(START, row(1, loss=None, skipped=1, grad_norm=None), row(2), row(3, loss=None, skipped=1))
    assert column(log, "lm_loss") == [None, 2.5, None]
    assert column(log, "grad_norm")[0] is None


def test_false_zero_of_a_skipped_iteration_is_missing(read: Reader) -> None:
    """Since core_v0.17.0 an interval in which all was skipped prints a loss of 0, which never was."""
    log = read(START, row(1), row(2, "0.000000E+00", skipped=1), row(3))
    assert column(log, "lm_loss") == [2.5, None, 2.5]


def test_true_zero_stays(read: Reader) -> None:
    """A loss of 0 of an iteration that advanced is a value."""
    log = read(START, row(1), row(2, "0.000000E+00"), row(3))
    assert column(log, "lm_loss") == [2.5, 0.0, 2.5]


def test_infinite_loss_is_printed_in_capitals(read: Reader) -> None:
    """``INF`` is read, and is not NaN."""
    assert column(read(START, row(1, "INF"), row(2, "NAN")), "lm_loss") == [float("inf"), "nan"]


def test_auxiliary_loss_that_comes_and_goes_is_missing(read: Reader) -> None:
    """While the main loss is there, an auxiliary one left out is not NaN: below zero isn't printed either."""
    log = read(START, row(1, extra=" z_loss: 1.000000E+00 |"), row(2), row(3, loss=None))
    assert column(log, "z_loss") == [1.0, None, "nan"]


def test_reinforcement_learning_losses_below_zero_are_missing(read: Reader) -> None:
    """In RL a mean below zero isn't printed, so an absent loss says nothing."""
    log = read(START, row(1, extra=" rl/kl_term: 1.000000E-01 |"), row(2, loss=None))
    assert column(log, "lm_loss") == [2.5, None]


def test_run_that_never_prints_a_loss_has_none(read: Reader) -> None:
    """If the printing rank isn't the last pipeline stage, no row has a loss; that is no NaN."""
    assert column(read(START, row(1, loss=None), row(2, loss=None)), "lm_loss") == [None, None]


def _two_rows(*, second_elapsed: float, between_us: int) -> list[str]:
    return [
        row(1, "1.000000E+01", stamp="2026-09-01 12:00:00.000000", elapsed=300.0),
        row(2, "9.500000E+00", stamp=f"2026-09-01 12:00:00.{between_us:06d}", elapsed=second_elapsed),
        row(3, "8.000000E+00", stamp="2026-09-01 12:00:01.000000", elapsed=100.0),
    ]


def test_second_row_is_mended_by_the_clock(read: Reader) -> None:
    """300 ms, then 100 ms, printed as 200: the stamps show 100, so the row is a mean and is worked back."""
    log = read(START, *_two_rows(second_elapsed=200.0, between_us=100_200))
    assert column(log, "lm_loss") == [10.0, 9.0, 8.0]
    assert column(log, "elapsed_time_per_iteration_ms") == [300.0, 100.0, 100.0]
    assert column(log, "window") == [1, 1, 1]
    assert kinds(log) == ["row-2-mean"]


def test_second_row_of_a_mended_version_is_left(read: Reader) -> None:
    """The same microseconds, but the stamps agree with the row's own time: nothing to mend, nothing to say."""
    log = read(START, *_two_rows(second_elapsed=100.0, between_us=100_200))
    assert column(log, "lm_loss") == [10.0, 9.5, 8.0]
    assert kinds(log) == []


def test_second_row_is_mended_by_the_version_where_the_clock_is_silent(read: Reader) -> None:
    """Equal times tell nothing; a release known to carry the first row over does."""
    lines = _two_rows(second_elapsed=300.0, between_us=300_100)
    log = read("> Megatron-Core version .......... 0.18.1", START, *lines)
    assert column(log, "lm_loss") == [10.0, 9.0, 8.0]
    assert kinds(log) == ["row-2-mean"]


def test_undecided_second_row_is_left_and_noted(read: Reader) -> None:
    """Neither clock nor version tells: the row stays as printed, and a note says so."""
    lines = _two_rows(second_elapsed=300.0, between_us=300_100)
    log = read("> Megatron-Core version .......... 0.20.0+2a75ac12c5", START, *lines)
    assert column(log, "lm_loss") == [10.0, 9.5, 8.0]
    assert kinds(log) == ["row-2-undecided"]


def test_clock_against_version_is_undecided(read: Reader) -> None:
    """A save between the rows can make the stamps look like the row's own time; a known release contradicts."""
    lines = _two_rows(second_elapsed=200.0, between_us=200_100)
    log = read("> Megatron-Core version .......... 0.17.0", START, *lines)
    assert column(log, "lm_loss") == [10.0, 9.5, 8.0]
    assert kinds(log) == ["row-2-undecided"]


def test_old_version_is_never_mended(read: Reader) -> None:
    """A release before 0.16 resets after every row, whatever the times look like."""
    lines = _two_rows(second_elapsed=200.0, between_us=100_200)
    log = read("> Megatron-Core version .......... 0.15.3", START, *lines)
    assert column(log, "lm_loss") == [10.0, 9.5, 8.0]
    assert kinds(log) == []


def test_bridge_is_never_mended(read: Reader) -> None:
    """Bridge has its own printer without the defect."""
    lines = _two_rows(second_elapsed=200.0, between_us=100_200)
    log = read("Starting training loop at iteration 0", *lines)
    assert log.dialect == "megatron-bridge"
    assert column(log, "lm_loss") == [10.0, 9.5, 8.0]


def test_second_row_after_a_skipped_first_is_its_own(read: Reader) -> None:
    """With the first iteration skipped the mean holds one value; only counters and times are worked back."""
    lines = _two_rows(second_elapsed=200.0, between_us=100_200)
    lines[0] = row(1, None, stamp="2026-09-01 12:00:00.000000", elapsed=300.0, skipped=1)
    lines[1] = lines[1].replace("skipped iterations:   0", "skipped iterations:   1")
    log = read(START, *lines)
    assert column(log, "lm_loss") == [None, 9.5, 8.0]
    assert column(log, "number_of_skipped_iterations") == [1, 0, 0]


def test_skipped_second_row_repeats_no_loss(read: Reader) -> None:
    """With the second iteration skipped the row prints the first one's loss; the second has none."""
    lines = _two_rows(second_elapsed=200.0, between_us=100_200)
    lines[1] = lines[1].replace("skipped iterations:   0", "skipped iterations:   1")
    log = read(START, *lines)
    assert column(log, "lm_loss") == [10.0, None, 8.0]


def test_each_restart_has_a_second_row(read: Reader) -> None:
    """The second row of every process start is mended, not only the file's."""
    first = _two_rows(second_elapsed=200.0, between_us=100_200)
    again = [line.replace("2026-09-01", "2026-09-02") for line in first]
    log = read(START, *first, START, *again)
    assert column(log, "lm_loss") == [10.0, 9.0, 8.0, 10.0, 9.0, 8.0]
    assert kinds(log) == ["row-2-mean", "row-2-mean"]


def test_evaluations_keep_split_and_set(read: Reader) -> None:
    """Every form of an evaluation line since 2019 gives its split, its set's name and its losses, no perplexity."""
    log = read(
        row(1000),
        " validation loss at iteration 1000 on validation set | lm loss value: 1.000000E+00 | lm loss PPL: 2.7E+00 | ",
        " validation loss at iteration 1000 on test set | lm loss value: 2.000000E+00 | lm loss PPL: 7.3E+00 |",
        " validation-math loss at iteration 1000 on validation set | lm loss value: 3.0E+00 | lm loss PPL: 2E+01 |",
        " validation-0 loss at iteration 1000 on test set | lm loss value: 4.000000E+00 | lm loss PPL: 5E+01 | ",
        " validation loss at the end of training for test data | LM loss: 5.000000E+00 | LM PPL: 1.5E+02",
        " validation results at iteration 1000 | lm_loss value: 6.000000E+00 | lm_loss_ppl value: 4.0E+02 | ",
        " validation loss at iteration 1000 on 9-sample draw from test set | lm loss value: nan | lm loss PPL: nan | ",
        "[default0]: validation loss at iteration 1100 | lm loss value: 7.0000",
    )
    rows = log.validation.select("iteration", "split", "metric", "value_nats").rows()
    assert [row for row in rows if row[3] == row[3]] == [
        (1000, "validation", "lm_loss", 1.0),
        (1000, "test", "lm_loss", 2.0),
        (1000, "validation-math", "lm_loss", 3.0),
        (1000, "test-0", "lm_loss", 4.0),
        (1000, "test", "lm_loss", 5.0),
        (1000, "validation", "lm_loss", 6.0),
        (1100, "validation", "lm_loss", None),
    ]
    assert [row[1] for row in rows if row[3] != row[3]] == ["test"]
    assert column(log, "iteration") == [1000]


def test_evaluation_printed_by_two_ranks_comes_once(read: Reader) -> None:
    """The same evaluation under two labels is one row."""
    line = " validation loss at iteration 1 on validation set | lm loss value: {} | lm loss PPL: 2.7E+00 | "
    log = read(row(1), *(f"[default{rank}]:{line.format(value)}" for value in ("1.0E+00", "nan") for rank in (0, 7)))
    assert log.validation.height == 2
