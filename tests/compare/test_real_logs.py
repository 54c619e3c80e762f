"""The real logs, and what is known to be right about them (``fixtures/real/README.md``)."""

from pathlib import Path

import pytest

from lossbisect.compare import compare_logs
from lossbisect.compare.types import Judgement, Verdict
from lossbisect.parsers import read_log
from lossbisect.parsers.runlog import RunLog

REAL = Path(__file__).parents[2] / "fixtures" / "real"
BRIDGE = "bridge-main-2026-08-1rank"
MEGATRON = "mlm-main-2026-08-1rank"


@pytest.fixture(scope="module")
def logs() -> dict[str, RunLog]:
    """Each real log by its name without extension."""
    found = {path.stem: read_log(path) for path in sorted(REAL.glob("*.log"))}
    assert BRIDGE in found
    return found


def fields(judgement: Judgement, kind: str) -> list[str]:
    """Names of the settings that differ, of one kind."""
    return [item.field for item in judgement.comparison.config if item.kind == kind]


@pytest.mark.parametrize("pair", [(BRIDGE, MEGATRON), (MEGATRON, BRIDGE)])
def test_matched_pair_of_the_two_code_bases_is_the_same(logs: dict[str, RunLog], pair: tuple[str, str]) -> None:
    """Iterations 1 and 2 agree, the second one as it was repaired, and the rest within 1.1e-5 relative."""
    judgement = compare_logs(*(logs[name] for name in pair))
    difference = judgement.comparison.difference
    assert judgement.verdict is Verdict.SAME
    assert (difference.iterations, difference.largest_at) == (10, 10)
    assert difference.largest_rel == pytest.approx(1.04e-5, rel=0.01)
    frame = judgement.comparison.curves.frame
    assert frame["baseline"].head(2).to_list() == pytest.approx(frame["candidate"].head(2).to_list(), abs=1e-9)
    assert judgement.comparison.witnesses["grad_norm"].is_identical


def test_matched_pair_shares_every_setting_but_one(logs: dict[str, RunLog]) -> None:
    """Bridge's recipe trains with the scheduler's weight decay of 0.033, not with the optimizer's 0.1: true news."""
    judgement = compare_logs(logs[BRIDGE], logs[MEGATRON])
    assert fields(judgement, "convergence") == ["weight_decay"]
    assert (judgement.comparison.config[0].baseline, judgement.comparison.config[0].candidate) == (0.033, 0.1)
    assert judgement.comparison.noise.source == "float32 rounding"


def test_weight_decay_explains_what_is_left_between_the_two(logs: dict[str, RunLog]) -> None:
    """Megatron-LM with a weight decay of 0.033 prints Bridge's losses but for the last digit."""
    printed = [10.37740, 10.37346, 10.32276, 10.33152, 10.21770, 10.24061, 10.11074, 10.22170, 10.08074, 9.955762]
    bridge = logs[BRIDGE].iterations["lm_loss"].to_list()
    assert max(abs(one / other - 1) for one, other in zip(printed, bridge, strict=True)) < 1e-6


@pytest.mark.parametrize(("baseline", "others"), [(BRIDGE, ["weight_decay"]), (MEGATRON, [])])
def test_adam_epsilon_is_found_and_named(logs: dict[str, RunLog], baseline: str, others: list[str]) -> None:
    """Diverged from iteration 3 on, to 1.2e-2 relative, and the configuration says why."""
    judgement = compare_logs(logs[baseline], logs[f"{MEGATRON}-adam-eps-1e-5"])
    assert judgement.verdict is Verdict.DIVERGED
    assert judgement.reason.startswith(
        "lm loss diverges from iteration 3 (iterations 1 and 2 equal), growing to 1.2e-2 relative at iteration 10; "
        "adam_eps differs: 1e-08 vs 1e-05"
    )
    assert fields(judgement, "convergence") == ["adam_eps", *others]


@pytest.mark.parametrize("baseline", [BRIDGE, MEGATRON])
def test_tensor_parallel_ranks_warn_of_their_initial_weights(logs: dict[str, RunLog], baseline: str) -> None:
    """Two ranks differ at iteration 1, and tensor parallelism is named before anything the optimizer does."""
    judgement = compare_logs(logs[baseline], logs["mlm-main-2026-08-tp2"])
    assert judgement.verdict is Verdict.DIVERGED
    assert judgement.comparison.difference.first_divergent == 1
    first = judgement.comparison.config[0]
    assert (first.field, first.baseline, first.candidate, first.kind) == (
        "tensor_model_parallel_size",
        1,
        2,
        "execution",
    )
    assert "tensor_model_parallel_size differs: 1 vs 2 (initial weights" in judgement.reason


def test_crash_after_the_last_iteration_leaves_the_rows_usable(logs: dict[str, RunLog]) -> None:
    """All ten iterations are compared with a run without dropout, and the failure is a note."""
    judgement = compare_logs(logs[BRIDGE], logs[f"{BRIDGE}-dropout-crash-after-last-iteration"])
    assert judgement.verdict is Verdict.DIVERGED
    assert judgement.comparison.difference.iterations == 10
    assert fields(judgement, "convergence") == ["hidden_dropout", "attention_dropout"]
    assert any("candidate: failed after iteration 10" in note for note in judgement.comparison.notes)


def test_every_real_log_is_the_same_as_itself(logs: dict[str, RunLog]) -> None:
    """Also to the last digit."""
    for log in logs.values():
        assert compare_logs(log, log, tolerance=0).verdict is Verdict.SAME


@pytest.mark.parametrize(
    ("baseline", "candidate", "shape", "cause"),
    [
        (MEGATRON, f"{MEGATRON}-adam-eps-1e-5", "gradient-or-optimizer", "adam_eps"),
        (BRIDGE, f"{MEGATRON}-adam-eps-1e-5", "gradient-or-optimizer", "adam_eps"),
        (MEGATRON, "mlm-main-2026-08-tp2", "differs-at-1", "tensor_model_parallel_size"),
        (BRIDGE, "mlm-main-2026-08-tp2", "differs-at-1", "tensor_model_parallel_size"),
        (BRIDGE, f"{BRIDGE}-dropout-crash-after-last-iteration", "not-comparable", "hidden_dropout"),
        (MEGATRON, f"{BRIDGE}-dropout-crash-after-last-iteration", "not-comparable", "hidden_dropout"),
    ],
)
def test_every_break_is_named_with_its_cause(
    logs: dict[str, RunLog], baseline: str, candidate: str, shape: str, cause: str
) -> None:
    """By the shape of its curve and by the settings."""
    judgement = compare_logs(logs[baseline], logs[candidate])
    assert shape in [item.shape for item in judgement.comparison.diagnoses]
    assert judgement.comparison.config[0].field == cause
