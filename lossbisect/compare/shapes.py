"""Shapes of a difference in the loss, and what each speaks for."""

import math
from itertools import pairwise

from lossbisect.compare.evidence import Evidence, Pair, constant_ratio, signed
from lossbisect.compare.middle import median, spread
from lossbisect.compare.types import Diagnosis
from lossbisect.compare.wording import metric_name, relative_text, value_text

__all__ = ["BREAKS", "COURSES", "PRINTED"]

_MATCH = 0.8
_ROWS_OF_A_LEVEL = 8
_RETURNED = 0.3
"""Share of a level that may be left where curves are said to meet again."""
_UNSHARED = 0.3
_ROWS_FOR_WOBBLE = 16
_WOBBLE_OF_BATCHES = 10.0
"""Changes from row to row so many times as large as noise are the batches'."""
_MOST_IN_A_QUARTER = 0.7
"""A jump lies in one quarter of the rows; what grows does so in each."""
_LATE = 4
"""From this iteration on neither the first gradient nor the first update explains an onset."""


def nan_on_one_side(evidence: Evidence) -> Diagnosis | None:
    """A value is NaN or infinite, or isn't printed, where the other side has a number."""
    for pair in evidence.pairs[evidence.metric]:
        states = [_state(pair.baseline), _state(pair.candidate)]
        if states[0] == states[1] or "finite" not in states:
            continue
        side = "candidate" if states[1] != "finite" else "baseline"
        state = states[1] if side == "candidate" else states[0]
        is_absent = state == "absent"
        name = metric_name(evidence.metric)
        return Diagnosis(
            shape="loss-absent" if is_absent else "nan",
            meaning=f"The {name} is absent from the {side}'s row: printers leave out a NaN, a negative loss, and the "
            "loss of an interval in which every iteration was skipped."
            if is_absent
            else f"The {name} goes {state} in the {side}.",
            evidence=f"Iteration {pair.iteration}: {_shown(pair.baseline)} against {_shown(pair.candidate)}; "
            f"the grad norm there: {_gradient_at(evidence, pair.iteration)}.",
            check_next="The iteration before it: grad norm, loss scale and skipped iterations; a microbatch whose "
            "tokens are all masked (division by 0 in pipeline_parallel/schedules.py, multi_token_prediction.py).",
        )
    return None


def cut_short(evidence: Evidence) -> Diagnosis | None:
    """One side ends before the other, and wasn't meant to."""
    ends = evidence.ends
    if ends is None or ends.cut is None:
        return None
    side = "candidate" if ends.candidate < ends.baseline else "baseline"
    return Diagnosis(
        shape="cut-short",
        meaning=f"The {side} ends early, so nothing is known about the iterations after it.",
        evidence=f"The baseline reaches iteration {ends.baseline}, the candidate {ends.candidate}; {ends.cut}.",
        check_next="The end of that log and of the other ranks' logs; the scheduler's time limit.",
    )


def rows_missing(evidence: Evidence) -> Diagnosis | None:
    """One side lacks rows between its first and its last."""
    if evidence.ends is None or evidence.ends.hole is None:
        return None
    return Diagnosis(
        shape="rows-missing",
        meaning="Rows are missing in the middle of a log: lines were lost, or only a part of it was kept.",
        evidence=f"By its own distance from row to row, {evidence.ends.hole}.",
        check_next="The same lines in the other ranks' logs; a filter such as grep, a full disk, a log server's limit.",
    )


def printing_artefact(evidence: Evidence) -> Diagnosis | None:
    """Only the print differs: a mean of two iterations in the second row, or the last digit."""
    loss = evidence.loss
    if loss.is_identical:
        return None
    if loss.first_difference is None and loss.first_divergent is None and loss.iterations:
        return Diagnosis(
            shape="last-digit",
            meaning="Only the last printed digit differs: a printing artefact, no sign of another training.",
            evidence=f"No row differs by more than its rounding; the largest difference is "
            f"{relative_text(loss.largest_rel or 0)}.",
            check_next="Nothing; TensorBoard holds more digits.",
        )
    return _second_row_mean(evidence)


def _second_row_mean(evidence: Evidence) -> Diagnosis | None:
    pairs = evidence.finite
    apart = [row for row, pair in enumerate(pairs) if _apart(evidence, pair)]
    if len(apart) != 1 or apart == [0]:
        return None
    pair, before = pairs[apart[0]], pairs[apart[0] - 1]
    for mean, own, prior in (
        (pair.candidate, pair.baseline, before.baseline),
        (pair.baseline, pair.candidate, before.candidate),
    ):
        assert mean is not None and own is not None and prior is not None
        if abs(2 * mean - prior - own) <= 3 * pair.quantum + 1e-6 * abs(own):
            return Diagnosis(
                shape="row-2-mean",
                meaning="One row is the mean of two iterations on one side: a printing artefact of Megatron-LM.",
                evidence=f"Iteration {pair.iteration} prints {value_text(mean)}, the mean of {value_text(prior)} "
                f"and {value_text(own)}; all other rows agree.",
                check_next="Nothing: core_v0.16 to core_v0.19 don't reset the sums after a process's first row.",
            )
    return None


def shifted_rows(evidence: Evidence) -> Diagnosis | None:
    """The candidate's curve is the baseline's, one or two iterations earlier or later."""
    pairs = evidence.finite
    if len(pairs) < 6 or _share_equal(evidence, pairs, 0) > 0.5:
        return None
    for lag in (1, -1, 2, -2):
        if _share_equal(evidence, pairs, lag) >= _MATCH:
            return Diagnosis(
                shape="row-shift",
                meaning=f"The candidate's rows are the baseline's, {abs(lag)} {'later' if lag > 0 else 'earlier'}: the "
                "values or the samples are shifted.",
                evidence=f"{_share_equal(evidence, pairs, lag):.0%} of the rows agree once they are shifted by "
                f"{abs(lag)}, {_share_equal(evidence, pairs, 0):.0%} as they are.",
                check_next="consumed_train_samples at the start and after a resume, and a tool that counts from 0.",
            )
    return None


def constant_change(evidence: Evidence) -> Diagnosis | None:
    """All rows differ by one factor or one amount."""
    began = evidence.began
    if began is None or len(evidence.finite) < 5:
        return None
    pairs = [pair for pair in evidence.finite if pair.iteration >= began]
    if len(pairs) < 0.8 * len(evidence.finite) or len(pairs) < 5:
        return None
    deltas = [(pair.candidate or 0.0) - (pair.baseline or 0.0) for pair in pairs]
    offset, wobble = median(deltas), spread(deltas)
    ratio = constant_ratio(pairs, 0.03 * abs(evidence.loss.shift_rel or 0))
    if ratio is not None and abs(ratio - 1) > 1e-6:
        return Diagnosis(
            shape="constant-factor",
            meaning="The loss differs by a constant factor: another normalisation of the loss.",
            evidence=f"Every row from iteration {pairs[0].iteration} on is {ratio:.6g} times the baseline's.",
            check_next="calculate_per_token_loss, the number of microbatches, context and data parallel sizes, the "
            "loss mask; pipeline_parallel/schedules.py and the loss function.",
        )
    quantum = max(pair.quantum for pair in pairs)
    if abs(offset) > 3 * quantum and wobble <= 0.05 * abs(offset) + quantum:
        return Diagnosis(
            shape="constant-offset",
            meaning="The loss differs by a constant amount: an auxiliary loss is added to it on one side.",
            evidence=f"Every row from iteration {pairs[0].iteration} on lies {offset:+.6g} off, give or take "
            f"{wobble:.1g}.",
            check_next="moe_aux_loss_coeff, moe_z_loss_coeff, mtp_loss_scaling_factor, and which loss is printed.",
        )
    return None


def temporary_level(evidence: Evidence) -> Diagnosis | None:
    """The curves part, stay apart for a while, and meet again."""
    began = evidence.began
    if began is None:
        return None
    after = [pair for pair in evidence.finite if pair.iteration >= began]
    if not after:
        return None
    level = median(signed(pair) for pair in after[:_ROWS_OF_A_LEVEL])
    around = [median(signed(pair) for pair in after[max(0, row - 2) : row + 3]) for row in range(len(after))]
    last = max((row for row, size in enumerate(around) if size * level > 0 and abs(size) > abs(level) / 2), default=-1)
    if last < 2 or len(after) - last - 1 < max(5, len(after) // 10):
        return None
    during, since = (median(signed(pair) for pair in part) for part in (after[: last + 1], after[last + 1 :]))
    if abs(since) > _RETURNED * abs(during):
        return None
    return Diagnosis(
        shape="temporary-level",
        meaning="The curves part and meet again: other samples for a while, up to an epoch's or a blend's end, or a "
        "state that is rebuilt.",
        evidence=f"They differ from iteration {began} to {after[last].iteration} and agree from then on.",
        check_next="The data order at a resume (consumed samples, shuffling by epoch), and where epochs end.",
    )


def shifted_spikes(evidence: Evidence) -> Diagnosis | None:
    """Both sides spike, an iteration apart."""
    if evidence.onset is None and not evidence.loss.spikes and evidence.loss.first_doubtful is None:
        return None
    pairs = evidence.finite
    ours = _spikes([(pair.iteration, pair.baseline or 0.0) for pair in pairs])
    theirs = _spikes([(pair.iteration, pair.candidate or 0.0) for pair in pairs])
    if not ours or not theirs or ours & theirs:
        return None
    for lag in (1, -1):
        common = sorted(ours & {spike - lag for spike in theirs})
        if len(common) * 2 > len(ours):
            return Diagnosis(
                shape="shifted-spikes",
                meaning="Both sides spike, an iteration apart: the same samples, one iteration later on one side.",
                evidence=f"Spikes of the baseline at {', '.join(map(str, sorted(ours)[:4]))}, of the candidate at "
                f"{', '.join(map(str, sorted(theirs)[:4]))}.",
                check_next="consumed_train_samples, skipped iterations, and an iteration counted from 0.",
            )
    return None


def other_order(evidence: Evidence) -> Diagnosis | None:
    """Both sides wobble from row to row by their batches, and not by the same ones."""
    shared = _shared_wobble(evidence)
    if shared is None or shared > _UNSHARED or _at_resume(evidence) is not None:
        return None
    return Diagnosis(
        shape="other-data-order",
        meaning="The two sides don't see the same batches: other data, or the same in another order.",
        evidence=f"From iteration {_parted(evidence)} on their changes from row to row have a correlation of "
        f"{shared:.2f}; with the same batches it is near 1, whatever else differs.",
        check_next="seed, data_path, split, data_seed, the blend's weights and its cached index, dataloader_type, "
        "data parallel size with it; the first batch's tokens; datasets/ and data_samplers.py.",
    )


def _parted(evidence: Evidence) -> int | None:
    """Where the curves part: of the loss or, if it moves before, of the grad norm."""
    gradient = evidence.differences.get("grad_norm")
    return min(
        (first for first in (evidence.began, gradient.first_divergent if gradient else None) if first is not None),
        default=None,
    )


def _at_resume(evidence: Evidence) -> int | None:
    """The restart at which the curves part, a row of noise more or less; None if they part elsewhere."""
    parted = [first for first in (evidence.onset, evidence.began, _parted(evidence)) if first is not None]
    return next((resume for resume in evidence.resumes if any(0 <= first - resume <= 1 for first in parted)), None)


def _shared_wobble(evidence: Evidence) -> float | None:
    """Correlation of the two sides' changes from row to row since the onset; None where they say nothing."""
    parted = _parted(evidence)
    if parted is None:
        return None
    pairs = [pair for pair in evidence.finite if pair.iteration >= parted]
    if len(pairs) < _ROWS_FOR_WOBBLE:
        return None
    sides = [[getattr(pair, side) or 0.0 for pair in pairs] for side in ("baseline", "candidate")]
    ours, theirs = ([later - earlier for earlier, later in pairwise(values)] for values in sides)
    limit = _WOBBLE_OF_BATCHES * max(evidence.noise.surely_noise_rel * abs(median(sides[0])), pairs[0].quantum)
    if min(spread(ours), spread(theirs)) <= limit:
        return None
    from statistics import correlation

    return correlation(ours, theirs, method="ranked")


def course(evidence: Evidence) -> Diagnosis | None:
    """Where the difference begins and how it goes on."""
    onset, pairs = evidence.began, evidence.finite
    if onset is None or not pairs:
        return None
    if (resume := _at_resume(evidence)) is not None:
        shared = _shared_wobble(evidence)
        return Diagnosis(
            shape="jump-at-resume",
            meaning="The curves part exactly at a resume: something isn't restored from the checkpoint.",
            evidence=f"They agree up to iteration {resume - 1}; a restart prints iteration {resume} first"
            + ("" if shared is None or shared > _UNSHARED else f"; from there on they see other batches ({shared:.2f})")
            + ".",
            check_next="The optimizer's state and parameter groups, the scheduler, random states, consumed samples; "
            "optimizer/distrib_optimizer.py and dist_checkpointing.",
        )
    if onset == pairs[0].iteration:
        return _at_once(pairs[0])
    if onset < _LATE and pairs[0].iteration == 1:
        return _first_updates(evidence, onset)
    return _growth(evidence, onset) or _late_jump(evidence, onset)


def _at_once(first: Pair) -> Diagnosis | None:
    if first.iteration != 1:
        return None
    return Diagnosis(
        shape="differs-at-1",
        meaning="The first loss differs: initial weights, order of samples, forward pass, or padding of the "
        "vocabulary. The optimizer hasn't done anything yet.",
        evidence=f"Iteration 1: {value_text(first.baseline)} against {value_text(first.candidate)}.",
        check_next="seed, init_method_std, tensor and pipeline parallel sizes (they draw other weights), "
        "padded_vocab_size, the first batch's tokens; then one forward pass layer by layer with msprobe or TTrace.",
    )


def _first_updates(evidence: Evidence, onset: int) -> Diagnosis:
    rates = [pair.baseline for pair in evidence.columns.get("learning_rate", ()) if pair.baseline is not None]
    gradient = evidence.differences.get("grad_norm")
    before = gradient.first_divergent if gradient is not None else None
    clue = (
        f"the grad norm differs from iteration {before} on, before the loss"
        if before is not None and before < onset
        else f"the grad norm is equal before iteration {onset}, which speaks for the optimizer"
        if gradient is not None
        else "there is no grad norm to tell gradient from optimizer"
    )
    zero = "; the learning rate starts at 0, so the first update changes nothing" if rates[:1] == [0.0] else ""
    return Diagnosis(
        shape="gradient-or-optimizer",
        meaning="Initial weights and forward pass agree; the gradient or the optimizer's update differs.",
        evidence=f"Equal up to iteration {onset - 1}, different from {onset} on; {clue}{zero}.",
        check_next="adam_eps, adam_beta1, adam_beta2, weight_decay, clip_grad, lr; then the backward pass, "
        "distributed/finalize_model_grads.py and optimizer/ of Megatron-Core.",
    )


def _growth(evidence: Evidence, onset: int) -> Diagnosis | None:
    """The difference was there long before it was beyond the noise, and keeps growing."""
    first = evidence.loss.first_difference
    sizes = [_relative(pair) for pair in evidence.finite if first is not None and pair.iteration >= first]
    if len(sizes) < 8 or first is None or onset - first < 3:
        return None
    quarter = len(sizes) // 4
    begin, *between, end = (median(sizes[part * quarter : (part + 1) * quarter]) for part in range(4))
    gains = [later - earlier for earlier, later in pairwise((begin, *between, end))]
    if end < 3 * begin or min(gains) < 0 or max(gains) > _MOST_IN_A_QUARTER * (end - begin):
        return None
    return Diagnosis(
        shape="slow-growth",
        meaning="The difference grows slowly: precision, order of additions, an epsilon or the weight decay.",
        evidence=f"First digits differ at iteration {first}, beyond the noise at {onset}; the median grows from "
        f"{relative_text(begin)} to {relative_text(end)} relative.",
        check_next="weight_decay (start_weight_decay, end_weight_decay), adam_eps, layernorm_epsilon, "
        "gradients_in_fp32, cross_entropy_loss_fusion and other fusions; for kernels CompilerBisector.",
    )


def _late_jump(evidence: Evidence, onset: int) -> Diagnosis:
    clues = []
    warmup = evidence.settings.get("lr_warmup_iters")
    if isinstance(warmup, int | float) and warmup and abs(onset - warmup) <= 2:
        clues.append(f"the warm-up ends at iteration {warmup:g}")
    skipped = [pair for pair in evidence.columns.get("number_of_skipped_iterations", ()) if pair[1] != pair[2]]
    if skipped and skipped[0].iteration <= onset + 1:
        clues.append(f"other iterations are skipped, first at {skipped[0].iteration}")
    scale = evidence.differences.get("loss_scale")
    if scale is not None and scale.first_divergent is not None and scale.first_divergent <= onset + 1:
        clues.append(f"the loss scale differs from iteration {scale.first_divergent} on")
    return Diagnosis(
        shape="late-jump",
        meaning="Equal for a while, then a jump: a schedule, the end of the warm-up, a batch ramp, a skipped "
        "iteration, or a batch that only one side stumbles over.",
        evidence=f"They agree up to iteration {onset - 1}" + (f"; {'; '.join(clues)}" if clues else "") + ".",
        check_next="What changes at that iteration: learning rate, batch size, loss scale, skipped iterations, data "
        "blend; that batch alone, twice.",
    )


def _state(value: float | None) -> str:
    if value is None:
        return "absent"
    return "finite" if math.isfinite(value) else "NaN" if math.isnan(value) else "infinite"


def _shown(value: float | None) -> str:
    return "none" if value is None else value_text(value)


def _gradient_at(evidence: Evidence, iteration: int) -> str:
    pair = next((pair for pair in evidence.pairs.get("grad_norm", ()) if pair.iteration == iteration), None)
    return "not logged" if pair is None else f"{_shown(pair.baseline)} against {_shown(pair.candidate)}"


def _relative(pair: Pair) -> float:
    ours, theirs = pair.baseline or 0.0, pair.candidate or 0.0
    return abs(theirs - ours) / max(abs(ours), abs(theirs), 1e-30)


def _apart(evidence: Evidence, pair: Pair) -> bool:
    """Whether two values differ beyond what is surely noise."""
    ours, theirs = pair.baseline or 0.0, pair.candidate or 0.0
    limit = evidence.noise.surely_noise_rel * max(abs(ours), abs(theirs)) + pair.quantum
    return abs(theirs - ours) > limit


def _share_equal(evidence: Evidence, pairs: list[Pair], lag: int) -> float:
    """Share of rows whose candidate equals the baseline `lag` rows earlier."""
    rows = [
        Pair(pairs[row].iteration, pairs[row - lag].baseline, pairs[row].candidate, pairs[row].quantum)
        for row in range(len(pairs))
        if 0 <= row - lag < len(pairs)
    ]
    return sum(not _apart(evidence, pair) for pair in rows) / len(rows)


def _spikes(rows: list[tuple[int, float]]) -> set[int]:
    """Iterations whose value stands out from the three on either side by 5 % and by ten times their spread."""
    found = set()
    for row, (iteration, value) in enumerate(rows):
        if not any(value > 1.04 * other for _, other in rows[max(0, row - 1) : row] + rows[row + 1 : row + 2]):
            continue
        around = [other for _, other in rows[max(0, row - 3) : row] + rows[row + 1 : row + 4]]
        if len(around) >= 3:
            middle = median(around)
            if value - middle > max(0.05 * abs(middle), 10 * spread(around)):
                found.add(iteration)
    return found


BREAKS = (nan_on_one_side, cut_short, rows_missing)
"""A side without a value."""
PRINTED = (printing_artefact, shifted_rows)
"""No other training, but another print."""
COURSES = (shifted_spikes, temporary_level, constant_change, other_order, course)
"""Another training."""
