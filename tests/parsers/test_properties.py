"""Logs written from random rows, mistreated as launchers, collectors and killed writers do, and read back."""

import gzip
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lossbisect.errors import LossbisectError
from lossbisect.parsers import RunLog, read_log
from lossbisect.parsers.events import Rows
from lossbisect.parsers.files import open_log
from lossbisect.parsers.needles import find_needles
from lossbisect.parsers.rowscan import ROW_NEEDLES, Layouts, find_rows
from lossbisect.parsers.source import Block, BlockReader, clean

PROFILE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class Row:
    """A row as a trainer would print it, and the values that it prints, by column."""

    iteration: int
    text: str
    values: dict[str, float]


@st.composite
def runs(draw: st.DrawFn) -> list[Row]:
    """Rows of one run in the style of Megatron-LM or Bridge, log interval 1 to 10, from a random iteration on."""
    interval = draw(st.sampled_from([1, 1, 2, 10]))
    start = draw(st.integers(0, 20)) * interval
    count = draw(st.integers(1, 12))
    total = start + count * interval + draw(st.integers(0, 5))
    style = draw(st.sampled_from(["mlm-2019+", "mlm", "bridge"]))
    has_moe, has_norm = draw(st.booleans()), draw(st.booleans())
    loss = st.floats(1e-3, 20.0)
    rows = []
    for index in range(1, count + 1):
        iteration = start + index * interval
        fields = [
            ("consumed samples", f"{iteration * 8:12d}"),
            ("elapsed time per iteration (ms)", f"{draw(st.floats(0.1, 1e5)):.1f}"),
            ("learning rate", f"{draw(st.floats(0, 1e-2)):.6E}"),
            ("global batch size", f"{8:5d}"),
            ("lm loss", f"{draw(loss):.6E}"),
            *([("load_balancing_loss", f"{draw(loss):.6E}")] if has_moe else []),
            ("loss scale", "1.0"),
            *([("grad norm", f"{draw(st.floats(0, 1e3)):.3f}")] if has_norm else []),
            *([("max attention logit", f"{draw(st.floats(0, 90)):.3f}")] if style == "bridge" else []),
            ("number of skipped iterations", f"{0:3d}"),
            ("number of nan iterations", f"{0:3d}"),
        ]
        stamp = datetime(2026, 2, 28, 23, 59, 50) + timedelta(seconds=index)
        head = "" if style == "mlm-2019+" else f" [{stamp:%Y-%m-%d %H:%M:%S}]"
        text = f"{head} iteration {iteration:8d}/{total:8d} |" + "".join(f" {key}: {value} |" for key, value in fields)
        values = {_COLUMNS[key]: float(value) for key, value in fields}
        rows.append(Row(iteration, text, values))
    return rows


_COLUMNS = {
    "consumed samples": "consumed_samples",
    "elapsed time per iteration (ms)": "elapsed_time_per_iteration_ms",
    "learning rate": "learning_rate",
    "global batch size": "global_batch_size",
    "lm loss": "lm_loss",
    "load_balancing_loss": "load_balancing_loss",
    "loss scale": "loss_scale",
    "grad norm": "grad_norm",
    "max attention logit": "max_attention_logit",
    "number of skipped iterations": "number_of_skipped_iterations",
    "number of nan iterations": "number_of_nan_iterations",
}

NOISE = (
    "WARNING:megatron.core.utils:fused_indices_to_multihot has reached end of life.",
    "    forward-backward ...............................: (223.06, 225.81)",
    "(min, max) time across ranks (ms):",
    "time (ms) | forward-compute: 377.02 | backward-compute: 373.05 | optimizer: 10.57",
    "[Rank 0] (after 10 iterations) memory (MB) | allocated: 9554.8 | max allocated: 12003.6 | reserved: 12232.0",
    "Step Time : 4.66s GPU utilization: 598.2MODEL_TFLOP/s/GPU",
    "saving checkpoint at iteration      10 to /opt/ckpt in torch_dist format",
    "Evaluating iter 10/32",
    "iteration 7 of the data loader | took 3.0 s |",
    "Error while fetching metadata; will retry",
    "",
    "\x00\ufffd",
)
PREFIXES = (
    "",
    "[default7]:",
    "[rank3]: ",
    "3: ",
    "  12: ",
    "job_name/0 [default0]:",
    "(Worker pid=12, ip=10.0.0.1) ",
    "2026-06-10T23:09:45.9428001Z ",
    "2026-06-10T23:09:45.942800123Z stdout F ",
    "train.log:",
    "train.log:12:",
)


MANGLERS: tuple[Callable[[bytes, int], bytes], ...] = (
    lambda data, at: data[:at] + bytes([at % 256]) + data[at + 1 :],
    lambda data, at: data[:at] + data[at + 3 :],
    lambda data, at: data[:at] + data[max(0, at - 40) : at] + data[at:],
    lambda data, at: data[:at] + b"\r" + data[at:],
    lambda data, at: data[:at] + b"\x1b[31" + data[at:],
)


def read(data: bytes) -> RunLog:
    """Read bytes as a log file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.log"
        path.write_bytes(data)
        return read_log(path)


def assert_rows(log: RunLog, rows: list[Row]) -> None:
    """The log holds these rows, whole, in this order, and no other."""
    assert log.iterations["iteration"].to_list() == [row.iteration for row in rows]
    assert log.iterations["is_complete"].all()
    for found, row in zip(log.iterations.iter_rows(named=True), rows, strict=True):
        assert {name: found[name] for name in row.values} == row.values
        extra = {name for name in found if found[name] is not None} - row.values.keys()
        assert extra <= {"iteration", "attempt", "window", "is_complete", "line_no"}


@PROFILE
@given(rows=runs(), prefix=st.sampled_from(PREFIXES), data=st.data())
def test_prefixes_noise_and_colours_change_nothing(rows: list[Row], prefix: str, data: st.DataObject) -> None:
    """Whatever stands before a row or between two, the rows come back to the last digit, with their line numbers."""
    lines, numbers = [], []
    is_coloured = data.draw(st.booleans())
    for row in rows:
        lines += data.draw(st.lists(st.sampled_from(NOISE), max_size=3))
        numbers.append(len(lines) + 1)
        lines.append(f"\x1b[36m{prefix}\x1b[0m{row.text}" if is_coloured else prefix + row.text)
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    content = end.join([*lines, ""]).encode()
    log = read(gzip.compress(content) if data.draw(st.booleans()) else content)
    assert_rows(log, rows)
    assert log.iterations["line_no"].to_list() == numbers
    assert len(log.attempts) == 1


@PROFILE
@given(rows=runs(), data=st.data())
def test_glued_rows_are_parted(rows: list[Row], data: st.DataObject) -> None:
    """Rows and other ranks' lines that lost the line end between them are told apart."""
    glue = st.sampled_from(
        ["", "\n", "Number of parameters in billions:  6.98\n\n", "\r", "done with setup ...", NOISE[4]]
    )
    text = ""
    for row in rows:
        text += row.text + data.draw(glue)
    assert_rows(read((text + "\n").encode()), rows)


@PROFILE
@given(rows=runs(), data=st.data())
def test_rows_that_two_ranks_print_come_once(rows: list[Row], data: st.DataObject) -> None:
    """The same rows under two labels, one a little late, are one curve in one attempt."""
    late = data.draw(st.integers(0, 3))
    lines: list[tuple[int, int, str]] = []
    for index, row in enumerate(rows):
        lines.append((index, 0, f"[default0]:{row.text}"))
        lines.append((index + late, 1, f"[default7]:{row.text}"))
    log = read("".join(f"{text}\n" for _, _, text in sorted(lines)).encode())
    assert_rows(log, rows)
    assert len(log.attempts) == 1
    assert [note.kind for note in log.notes] == ["duplicate-rows"]


@PROFILE
@given(rows=runs(), data=st.data())
def test_cut_log_gives_no_false_value(rows: list[Row], data: st.DataObject) -> None:
    """Of a log cut anywhere, at either end, every value that comes back was printed, and whole rows come back whole."""
    content = "".join(f"{row.text}\n" for row in rows).encode()
    start = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(start, len(content)))
    try:
        log = read(content[start:stop])
    except LossbisectError:
        log = None
    spans, offset = [], 0
    for row in rows:
        spans.append((offset, offset + len(row.text)))
        offset += len(row.text) + 1
    whole = [row.iteration for row, (a, b) in zip(rows, spans, strict=True) if start <= a and b <= stop]
    found = log.iterations if log else None
    assert not whole or found is not None
    if found is None:
        return
    by_iteration = {row.iteration: row for row in rows}
    complete = found.filter("is_complete")["iteration"].to_list()
    assert set(whole) <= set(complete)
    for values in found.iter_rows(named=True):
        row = by_iteration[values["iteration"]]
        for name, value in values.items():
            if name in row.values and value is not None:
                assert value == row.values[name]


@PROFILE
@given(rows=runs(), width=st.integers(60, 140))
def test_wrapped_rows_are_joined_or_marked(rows: list[Row], width: int) -> None:
    """Rows that a terminal broke at a column come back with printed values only."""
    text = "\n".join(row.text[at : at + width] for row in rows for at in range(0, len(row.text), width))
    try:
        log = read((text + "\n").encode())
    except LossbisectError:
        return
    by_iteration = {row.iteration: row for row in rows}
    for values in log.iterations.iter_rows(named=True):
        row = by_iteration[values["iteration"]]
        for name, value in values.items():
            if name in row.values and value is not None:
                assert value == row.values[name]


@PROFILE
@given(rows=runs(), block_bytes=st.integers(1, 400), noise=st.lists(st.sampled_from(NOISE), max_size=4))
def test_block_size_does_not_matter(rows: list[Row], block_bytes: int, noise: list[str]) -> None:
    """A log reads alike whether it is taken in one block or in many small ones."""
    from lossbisect.parsers.megatron import read_megatron

    dump = ["------------------------ arguments ------------------------"]
    dump += [f"  key_{n} ................ {n}" for n in range(9)]
    dump += ["-------------------- end of arguments ---------------------"]
    lines = [*dump, *noise, *(row.text for row in rows), *noise]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.log"
        path.write_text("\n".join(lines))
        whole = read_log(path)
        with open_log([path]) as stream:
            pieces = read_megatron(BlockReader(stream, path, block_bytes), path)
    assert pieces is not None
    assert pieces.iterations.equals(whole.iterations)
    assert (pieces.config, pieces.attempts, pieces.notes) == (whole.config, whole.attempts, whole.notes)
    assert pieces.config["key_8"] == 8


@PROFILE
@given(first=runs(), second=runs(), prefix=st.sampled_from(PREFIXES), data=st.data())
def test_quick_way_equals_slow_way(first: list[Row], second: list[Row], prefix: str, data: st.DataObject) -> None:
    """Rows taken as columns are the rows read one by one: same values, order, lines and labels."""
    rows = data.draw(st.permutations([*first, *second]))
    lines = [f"{prefix}{row.text}" for row in rows]
    for _ in range(data.draw(st.integers(0, 4))):
        lines.insert(data.draw(st.integers(0, len(lines))), data.draw(st.sampled_from(NOISE)))
    content = "\n".join(lines).encode()
    for mangler in data.draw(st.lists(st.sampled_from(MANGLERS), max_size=3)):
        content = mangler(content, data.draw(st.integers(0, len(content) - 1)))
    block = Block(clean(content), line_no=5, is_last=True)
    hits = find_needles(block.data, ROW_NEEDLES)
    quick, slow = (find_rows(block, hits, Layouts(), is_quick=is_quick) for is_quick in (True, False))
    assert quick[1] == slow[1]
    one_by_one = [
        [_plain(run.rows.part(at, at + 1)) for run in way[0] for at in range(len(run.rows))] for way in (quick, slow)
    ]
    assert one_by_one[0] == one_by_one[1]


def _plain(row: Rows) -> str:
    """A single row as text, in which NaN is NaN."""
    values = [float(value[0]) for value in row.values]
    fixed = [row.iterations[0], row.totals[0], row.stamps[0], row.label, row.line_nos[0], row.is_complete]
    return repr([row.columns, values, *fixed])


def _printed(losses: list[float], times: list[float], *, carries: bool) -> str:
    """A log as Megatron-LM prints it since core_v0.16.0; ``carries``: the first row's sums stay in the second."""
    clock = datetime(2026, 9, 1, 12, 0, 0)
    text = "[before the start of training step] datetime: 2026-09-01 12:00:00.000000 \n"
    for index, (loss, time) in enumerate(zip(losses, times, strict=True)):
        clock += timedelta(milliseconds=time + 0.05)
        if carries and index == 1:
            loss, time = (losses[0] + losses[1]) / 2, (times[0] + times[1]) / 2
        text += (
            f" [{clock:%Y-%m-%d %H:%M:%S.%f}] iteration {index + 1:8d}/{len(losses):8d} | consumed samples: {8:12d} |"
            f" elapsed time per iteration (ms): {time:.1f} | learning rate: 1.000000E-03 | global batch size:     8 |"
            f" lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: 1.000 | number of skipped iterations:   0 |"
            f" number of nan iterations:   0 |\n"
        )
    return text


@PROFILE
@given(
    losses=st.lists(st.floats(1.0, 12.0), min_size=3, max_size=6),
    times=st.lists(st.floats(20.0, 5000.0), min_size=6, max_size=6),
    carries=st.booleans(),
)
@example(losses=[10.0, 9.0, 8.0], times=[331.9, 242.3, 286.6, 1.0, 1.0, 1.0], carries=True)
@example(losses=[10.0, 9.0, 8.0], times=[681.3, 973.7, 527.3, 1.0, 1.0, 1.0], carries=True)
def test_second_row_is_mended_only_where_it_is_a_mean(losses: list[float], times: list[float], carries: bool) -> None:
    """The second row comes back as iteration 2's own loss, or as printed with a note; never mended without a cause."""
    log = read(_printed(losses, times[: len(losses)], carries=carries).encode())
    printed = (losses[0] + losses[1]) / 2 if carries else losses[1]
    second = log.iterations["lm_loss"][1]
    kinds = [note.kind for note in log.notes]
    assert log.iterations["lm_loss"][0] == float(f"{losses[0]:.6E}")
    assert log.iterations["lm_loss"][2] == float(f"{losses[2]:.6E}")
    if kinds == ["row-2-mean"]:
        assert carries
        assert math.isclose(second, losses[1], abs_tol=3e-5)
    else:
        assert second == float(f"{printed:.6E}")
        assert kinds == (["row-2-undecided"] if carries or kinds else [])
    if abs(times[0] - times[1]) > 5.0:
        assert kinds == (["row-2-mean"] if carries else [])


@settings(PROFILE, max_examples=150)
@given(data=st.data(), seed=st.sampled_from(["logs", "real"]))
def test_no_bytes_give_a_traceback(data: st.DataObject, seed: str) -> None:
    """Damaged logs and junk give a table or an error of ours, never anything else."""
    folder = Path(__file__).parents[2] / "fixtures" / seed
    path = data.draw(st.sampled_from(sorted(folder.glob("*.log"))))
    content = path.read_bytes()[-6000:]
    for mangler in data.draw(st.lists(st.sampled_from(MANGLERS), min_size=1, max_size=4)):
        content = mangler(content, data.draw(st.integers(0, max(0, len(content) - 1))))
    try:
        read(content)
    except LossbisectError as error:
        assert "\n" not in str(error)


@settings(PROFILE, max_examples=100)
@given(content=st.binary(max_size=300))
def test_junk_is_refused_in_one_line(content: bytes) -> None:
    """Random bytes are refused with a message of one line that names the file."""
    try:
        log = read(content)
    except LossbisectError as error:
        assert "run.log" in str(error)
        assert "\n" not in str(error)
    else:
        assert log.iterations.height == 0
