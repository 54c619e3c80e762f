"""The courses of a difference in the loss, and what each speaks for."""

from itertools import pairwise

from lossbisect.compare.evidence import ROWS_OF_A_LEVEL, Evidence, Pair, constant_ratio, signed
from lossbisect.compare.middle import median, spread
from lossbisect.compare.types import Diagnosis
from lossbisect.compare.wording import relative_text, value_text

__all__ = ["COURSES", "course"]

_RETURNED = 0.3
"""Share of a level that may be left where curves are said to meet again."""
_UNSHARED = 0.3
_CONSTANT = 0.03
"""How constant a change is, as a share of it."""
_CONSTANT_IN_NOISE = 0.1
"""The same where noise explains that it isn't more so."""
_ROWS_FOR_WOBBLE = 16
_WOBBLE_OF_BATCHES = 10.0
"""Changes from row to row so many times as large as noise are the batches'."""
_MOST_IN_A_QUARTER = 0.7
"""A jump lies within a quarter of the rows, wherever that begins; what grows does so in each."""
_LATE = 4
"""From this iteration on neither the first gradient nor the first update explains an onset."""


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
    shift, noise = abs(evidence.loss.shift_rel or 0), evidence.noise.surely_noise_rel
    ratio = constant_ratio(pairs, max(_CONSTANT * shift, min(_CONSTANT_IN_NOISE * shift, noise)))
    quantum = max(pair.quantum for pair in pairs)
    noise_there = noise * abs(median(pair.baseline or 0.0 for pair in pairs))
    allowed = max(0.05 * abs(offset), min(_CONSTANT_IN_NOISE * abs(offset), noise_there)) + quantum
    is_offset = abs(offset) > 3 * quantum and wobble <= allowed
    if ratio is not None and abs(ratio - 1) > 1e-6:
        also = f" A constant amount of {offset:+.6g} fits as well: the loss hardly moves." if is_offset else ""
        return Diagnosis(
            shape="constant-factor",
            meaning="The loss differs by a constant factor: another normalisation of the loss.",
            evidence=f"Every row from iteration {pairs[0].iteration} on is {ratio:.6g} times the baseline's.{also}",
            check_next="calculate_per_token_loss, the number of microbatches, context and data parallel sizes, the "
            "loss mask; pipeline_parallel/schedules.py and the loss function"
            + ("; moe_aux_loss_coeff, which loss is printed." if also else "."),
        )
    if is_offset:
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
    level = median(signed(pair) for pair in after[:ROWS_OF_A_LEVEL])
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
    import polars as pl

    return float(pl.select(pl.corr(pl.lit(pl.Series(ours)), pl.lit(pl.Series(theirs)), method="spearman")).item())


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
    sizes = [abs(signed(pair)) for pair in evidence.finite if first is not None and pair.iteration >= first]
    if len(sizes) < 8 or first is None or onset - first < 3:
        return None
    quarters, eighths = _levels(sizes, 4), _levels(sizes, 8)
    begin, end = quarters[0], quarters[-1]
    if end < 3 * begin or quarters != sorted(quarters):
        return None
    if max(eighths[part + 2] - eighths[part] for part in range(6)) > _MOST_IN_A_QUARTER * (eighths[-1] - eighths[0]):
        return None
    return Diagnosis(
        shape="slow-growth",
        meaning="The difference grows slowly: precision, order of additions, an epsilon or the weight decay.",
        evidence=f"First digits differ at iteration {first}, beyond the noise at {onset}; the median grows from "
        f"{relative_text(begin)} to {relative_text(end)} relative.",
        check_next="weight_decay (start_weight_decay, end_weight_decay), adam_eps, layernorm_epsilon, "
        "gradients_in_fp32, cross_entropy_loss_fusion and other fusions; for kernels CompilerBisector.",
    )


def _levels(sizes: list[float], parts: int) -> list[float]:
    """The median of each of so many equal parts, of at least one row each."""
    return [median(sizes[part * len(sizes) // parts : (part + 1) * len(sizes) // parts]) for part in range(parts)]


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


COURSES = (shifted_spikes, temporary_level, constant_change, other_order, course)
"""Another training."""
