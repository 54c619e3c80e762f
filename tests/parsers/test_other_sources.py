"""Golden files, exported histories, event files and our own exports, all through `read_log`."""

import json
import math
from pathlib import Path

import polars as pl
import pytest

from lossbisect.errors import ParseError, UnknownFormatError
from lossbisect.parsers import LossKind, RunLog, read_log
from lossbisect.report.log import write

FIXTURE = Path(__file__).parents[2] / "fixtures" / "logs" / "12-mlm-core07-mixtral-moe.log"


def read(folder: Path, name: str, content: str | object) -> RunLog:
    """The log that a file of this text, or of this JSON, is."""
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_log(path)


def losses(log: RunLog) -> list[tuple[int, float | None]]:
    """Iteration and loss of each row."""
    return log.iterations.select("iteration", "lm_loss").rows()


@pytest.mark.parametrize(
    ("golden", "expected", "quantum"),
    [
        ({"start_step": 0, "end_step": 3, "step_interval": 1, "values": [10.5, 10.4]}, [(1, 10.5), (2, 10.4)], True),
        ({"start_step": 0, "end_step": 9, "step_interval": 5, "values": [10.5, 10.4]}, [(1, 10.5), (6, 10.4)], True),
        ({"start_step": 1, "step_interval": 1, "values": {"1": 10.5, "2": "nan"}}, [(1, 10.5)], True),
        (
            {"start_step": 1, "step_interval": 1, "value_precision": "full", "values": {"1": 10.51634}},
            [(1, 10.51634)],
            False,
        ),
    ],
)
def test_golden_values_of_every_age(
    tmp_path: Path, golden: object, expected: list[tuple[int, float]], quantum: bool
) -> None:
    """Lists count from 0, mappings from 1; a hole is missing; without a mark five decimals are all there is."""
    log = read(tmp_path, "golden_values_dev.json", {"lm loss": golden})
    assert log.dialect == "megatron-lm-golden"
    assert losses(log) == expected
    assert (log.loss_quantum_rel > 0) is quantum
    assert log.loss_kind is LossKind.PER_ITERATION


@pytest.mark.parametrize("wrap", [False, True])
def test_bridge_golden_counts_from_0(tmp_path: Path, wrap: bool) -> None:
    """Keys are the iteration less one; memory values beside them are no iterations."""
    golden = {"0": {"lm loss": 10.5, "GPU utilization": 400.0}, "1": {"lm loss": 10.4}, "alloc": 3.0}
    log = read(tmp_path, "golden.json", {"current": golden, "baseline": {}} if wrap else golden)
    assert losses(log) == [(1, 10.5), (2, 10.4)]
    assert log.iterations["throughput_per_gpu_tflops"].to_list() == [400.0, None]


def test_torchtitan(tmp_path: Path) -> None:
    """Lines of an iteration and a loss, with a heading or without; anything else isn't one."""
    assert losses(read(tmp_path, "a.txt", "1 10.5\n2 10.25\n")) == [(1, 10.5), (2, 10.25)]
    assert losses(read(tmp_path, "b.txt", "step loss\n1 10.5\n2 nan\n3 9.5\n"))[2] == (3, 9.5)
    with pytest.raises(UnknownFormatError):
        read(tmp_path, "c.txt", "1 10.5\n2 10.25\nhello\n")


@pytest.mark.parametrize(
    ("name", "content", "dialect"),
    [
        ("w.csv", "Step,run-7 - lm loss,run-7 - grad-norm\n1,10.5,0.5\n2,10.4,\n", "wandb"),
        ("w.csv", '"_step","lm loss","_timestamp","note"\n1,10.5,99,x\n2,10.4,99,y\n', "wandb"),
        ("w.json", [{"_step": 1, "lm loss": 10.5, "_runtime": 3}, {"_step": 2, "lm loss": 10.4}], "wandb"),
        ("w.ndjson", '{"_step": 1, "lm loss": 10.5}\n{"_step": 2, "lm loss": 10.4}\n{"_st', "wandb"),
        ("m.csv", "run_id,key,value,step,timestamp\na,lm loss,10.5,1,9\na,lm loss,10.4,2,9\n", "mlflow"),
        (
            "m.json",
            {"metrics": [{"key": "lm loss", "value": 10.5, "step": 1}, {"key": "lm loss", "value": 10.4, "step": 2}]},
            "mlflow",
        ),
    ],
)
def test_exported_histories(tmp_path: Path, name: str, content: str | object, dialect: str) -> None:
    """W&B's table has a row an iteration, MLflow's a row a value."""
    log = read(tmp_path, name, content)
    assert log.dialect == dialect
    assert losses(log) == [(1, 10.5), (2, 10.4)]


def test_mlflow_store(tmp_path: Path) -> None:
    """A run's folder has a file a metric and a file a parameter; validation goes into its own table."""
    (tmp_path / "metrics" / "val").mkdir(parents=True)
    (tmp_path / "params").mkdir()
    (tmp_path / "metrics" / "lm loss").write_text("99 10.5 1\n99 nan 2\n")
    (tmp_path / "metrics" / "val" / "lm loss").write_text("99 11.5 2\n")
    (tmp_path / "params" / "lr").write_text("0.1")
    log = read_log(tmp_path)
    assert log.iterations["lm_loss"][0] == 10.5
    assert math.isnan(log.iterations["lm_loss"][1])
    assert log.validation.select("iteration", "split", "metric", "value_nats").rows() == [
        (2, "validation", "lm_loss", 11.5)
    ]
    assert log.config == {"lr": "0.1"}


def test_event_files(tmp_path: Path) -> None:
    """A folder of event files is one run: twins are left out, and of an iteration written twice the later wins."""
    writer_of = pytest.importorskip("tensorboard.summary.writer.event_file_writer").EventFileWriter
    proto = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    summary = pytest.importorskip("tensorboard.compat.proto.summary_pb2")

    def write_events(name: str, values: list[tuple[str, int, float]]) -> None:
        writer = writer_of(str(tmp_path / "unused"), filename_suffix=name)
        for tag, step, value in values:
            item = summary.Summary(value=[summary.Summary.Value(tag=tag, simple_value=value)])
            writer.add_event(proto.Event(step=step, summary=item, wall_time=1.0))
        writer.close()
        (made,) = (tmp_path / "unused").glob("*")
        made.rename(tmp_path / f"events.out.tfevents.{name}")

    write_events("1", [("lm loss", 1, 10.5), ("lm loss", 2, 10.25), ("lm loss vs samples", 8, 10.5)])
    write_events("2", [("lm loss", 2, 9.5), ("lm loss", 3, float("nan")), ("lm loss validation", 3, 11.0)])
    log = read_log(tmp_path)
    assert log.dialect == "tensorboard"
    assert losses(log)[:2] == [(1, 10.5), (2, 9.5)]
    assert math.isnan(log.iterations["lm_loss"][2])
    assert "lm_loss_vs_samples" not in log.iterations.columns
    assert log.validation["value_nats"].to_list() == [11.0]
    cut = tmp_path / "events.out.tfevents.3"
    cut.write_bytes((tmp_path / "events.out.tfevents.1").read_bytes()[:-5])
    assert losses(read_log(cut)) == [(1, 10.5), (2, 10.25)]


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "ndjson"])
def test_own_export_comes_back(tmp_path: Path, ending: str) -> None:
    """What is written reads as the same rows, NaN and missing values told apart."""
    log = read_log(FIXTURE)
    frame = log.iterations.with_columns(z_loss=pl.Series([float("nan"), None, float("inf"), 1e-300]))
    path = tmp_path / f"out.{ending}"
    write(frame, path)
    again = read_log(path)
    assert again.iterations.equals(frame)
    assert again.iterations.schema == frame.schema
    assert (again.loss_kind, again.loss_quantum_rel) == (log.loss_kind, log.loss_quantum_rel)


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "ndjson"])
def test_export_of_several_logs_is_no_run(tmp_path: Path, ending: str) -> None:
    """The rows of several logs in one file are refused, as together they would tell another run."""
    frame = read_log(FIXTURE).iterations.select(pl.lit("a.log").alias("log"), pl.all())
    path = tmp_path / f"out.{ending}"
    write(frame, path)
    with pytest.raises(ParseError, match="holds several logs"):
        read_log(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", {"lm loss": {"start_step": 1, "values": {"1": "x"}}}),
        ("a.json", {"lm loss": {"start_step": 1, "values": {"1.5": 1.0}}}),
        ("a.json", {"lm loss": {"start_step": 1, "values": {}}}),
        ("a.json", [{"_step": "x", "lm loss": 1.0}]),
        ("a.csv", "iteration,attempt,window,is_complete\n,0,1,true\n"),
        ("a.csv", "log,iteration,attempt,window,is_complete\nx,1,0,1,true\n"),
        ("a.parquet", "PAR1 and no more"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, name: str, content: str | object) -> None:
    """One line that starts with the file."""
    with pytest.raises(ParseError, match=name) as raised:
        read(tmp_path, name, content)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "content", [{}, [], [1], {"a": 1}, [{"step": 1, "loss": 2.0}], "{", '{"msg": "x"}\n{"msg": "y"}\n']
)
def test_other_json_is_unknown(tmp_path: Path, content: str | object) -> None:
    """JSON of another program is refused, not guessed at."""
    with pytest.raises(UnknownFormatError):
        read(tmp_path, "x.json", content)


def test_parts_are_one_log(tmp_path: Path) -> None:
    """Rotated parts go on where the one before ends, even in mid-line; zstd is unpacked."""
    zstandard = pytest.importorskip("zstandard")
    data = FIXTURE.read_bytes()
    first, second = tmp_path / "a.log", tmp_path / "b.log.zst"
    first.write_bytes(data[:700])
    second.write_bytes(zstandard.ZstdCompressor().compress(data[700:]))
    assert read_log(first, second).iterations.equals(read_log(FIXTURE).iterations)
