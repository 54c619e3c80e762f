"""The checklist, walked over real logs and made checkouts."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from lossbisect.assist.checklist import Answer, Explanation, explain
from lossbisect.assist.recommend.shortest import recipe_for
from lossbisect.cli import cli
from lossbisect.compare import compare_logs
from lossbisect.compare.config_diff import effective_settings
from lossbisect.parsers import read_log
from lossbisect.parsers.runlog import Checkpoint, ConfigValue, RunLog
from lossbisect.train.inside.provenance import PREFIX
from lossbisect.train.recipes import built_in_names
from tests.assist.support import Made, call, make_experiment
from tests.bisect.support import commit, git, snapshot

pytestmark = pytest.mark.usefixtures("environment")

REAL = Path(__file__).parents[2] / "fixtures" / "real"
MLM, EPS, BRIDGE = (
    REAL / f"{name}.log"
    for name in ("mlm-main-2026-08-1rank", "mlm-main-2026-08-1rank-adam-eps-1e-5", "bridge-main-2026-08-1rank")
)
ORDER = [
    "configuration",
    "environment",
    "submodule",
    "stale checkpoints",
    "PYTHONPATH",
    "schedule",
    "data",
    "seeds",
    "print artefacts",
]


def explained(baseline: RunLog, run: RunLog) -> Explanation:
    """The checklist over two logs alone."""
    settings = (effective_settings(baseline.config), effective_settings(run.config))
    return explain(compare_logs(baseline, run), (baseline, run), None, settings, bisect="lossbisect bisect", why="it")


def answers(explanation: Explanation) -> dict[str, Answer]:
    """What each point came to."""
    return {point.name: point.answer for point in explanation.points}


def test_a_setting_that_moved_the_loss_is_found_first() -> None:
    """Of two real logs that differ by Adam's epsilon, configuration alone is found, and the order is the guide's."""
    done = call("explain", str(EPS), str(MLM))
    assert done.returncode == 1
    assert done.stdout.startswith("FOUND: configuration (")
    assert "adam_eps is 1e-05, in the baseline 1e-08" in done.stdout
    explanation = explained(read_log(MLM), read_log(EPS))
    assert [point.name for point in explanation.points] == ORDER
    assert {name for name, answer in answers(explanation).items() if answer is Answer.FOUND} == {"configuration"}
    assert (
        explanation.why == "First set alike what differs (configuration) and run again. If it is still there, bisect it"
    )
    assert "alike" in done.stdout
    assert "bisect With" not in done.stdout


def test_equal_logs_need_no_bisect() -> None:
    """Where the losses are the same there is nothing to explain, whatever settings differ: exit 0, no command."""
    done = call("explain", str(MLM), str(BRIDGE), "--json")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["bisect"] is None
    assert report["verdict"] == "same"
    assert report["left_for_you"] == []


def _with(log: RunLog, **config: ConfigValue) -> RunLog:
    return replace(log, config={**log.config, **config})


@pytest.mark.parametrize(
    ("change", "point", "words"),
    [
        ({"lr": 0.5}, "schedule", "lr is 0.5"),
        ({"lr_warmup_iters": 10, "lr_decay_iters": 10}, "schedule", "warms up for 10 iterations and decays after 10"),
        ({"seed": 99, "data_seed": 99}, "seeds", "seed is 99"),
        ({"seq_length": 4096}, "data", "seq_length is 4096"),
        ({"log_interval": 5}, "print artefacts", "prints every 5 iterations, the baseline every 1"),
        ({"num_layers": 99}, "configuration", "num_layers is 99"),
    ],
)
def test_each_difference_is_told_at_its_own_point(change: dict[str, ConfigValue], point: str, words: str) -> None:
    """A changed setting of the schedule, data, seeds, print or model is found at that point and at no other."""
    explanation = explained(read_log(MLM), _with(read_log(EPS), adam_eps=1e-08, **change))
    found = {item.name: " ".join(item.told) for item in explanation.points if item.answer is Answer.FOUND}
    assert set(found) == {point}
    assert words in found[point]


def test_a_resume_on_one_side_is_found() -> None:
    """A run that loaded a checkpoint, against a baseline that started anew, is the first thing to know."""
    run = read_log(EPS)
    loaded = replace(run, checkpoints=(Checkpoint(line_no=3, kind="loaded", iteration=500, path="/x/ckpt"),))
    explanation = explained(read_log(MLM), loaded)
    point = next(item for item in explanation.points if item.name == "stale checkpoints")
    assert point.answer is Answer.FOUND
    assert "the run went on from iteration 500 of /x/ckpt" in point.told[0]


def test_a_log_without_its_configuration_leaves_the_point_open() -> None:
    """What can't be told is open, never clear."""
    explanation = explained(read_log(MLM), replace(read_log(EPS), config={}))
    assert answers(explanation)["configuration"] is Answer.OPEN
    assert "The points above that are open" in explanation.person


def test_a_checkout_answers_its_points_and_names_the_bisect(made: Made) -> None:
    """Planted in the set-up, a stale experiment and a forgotten update are found; nothing is changed by looking."""
    make_experiment(made.root / "nemo_experiments")
    git(made.submodule, "checkout", "--quiet", made.main[0])
    before = snapshot(made.root)
    done = call("explain", "--repo", str(made.root), "--json")
    assert snapshot(made.root) == before
    assert done.returncode == 1
    report = json.loads(done.stdout)
    told = {point["name"]: point for point in report["points"]}
    assert told["submodule"]["answer"] == "found"
    assert told["submodule"]["remedies"] == [f"lossbisect mcore sync --repo {shlex.quote(str(made.root))}"]
    assert told["stale checkpoints"]["answer"] == "found"
    assert told["configuration"]["answer"] == "open"
    words = shlex.split(report["bisect"])
    assert words[:2] == ["lossbisect", "bisect"]
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert options == {
        "--repo": str(made.root),
        "--good": made.main[1][:12],
        "--bad": made.main[2][:12],
        "--recipe": "vanilla-cpu",
    }
    bisect = cli.get_command(None, "bisect")  # type: ignore[arg-type]
    assert bisect is not None
    bisect.make_context("bisect", words[2:])  # the command line takes it


def test_the_range_is_what_the_user_says_or_what_is_ahead(made: Made) -> None:
    """Named ends win; a submodule ahead of what Bridge wants makes the range from there."""
    given = call("explain", "--repo", str(made.root), "--good", made.main[0], "--json")
    assert made.main[0][:12] in json.loads(given.stdout)["bisect"]
    git(made.submodule, "checkout", "--quiet", made.main[3])
    ahead = json.loads(call("explain", "--repo", str(made.root), "--json").stdout)
    assert f"--good {made.main[2][:12]} --bad {made.main[3][:12]}" in ahead["bisect"]
    assert "1 commit" in ahead["why"]
    unknown = call("explain", "--repo", str(made.root), "--good", "nosuch")
    assert unknown.returncode == 2
    assert unknown.stderr.count("\n") == 1


def test_megatron_lm_alone_is_walked_back(made: Made) -> None:
    """A checkout that pins nothing can't say what was good: no commit is made up, the bisect looks for one itself."""
    report = json.loads(call("explain", "--repo", str(made.server), "--json").stdout)
    head = git(made.server, "rev-parse", "HEAD")
    assert report["bisect"].split()[-5:] == [str(made.server), "--bad", head[:12], "--recipe", "vanilla-cpu"]
    assert "--good COMMIT spares" in report["why"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Nothing to explain"),
        ([str(MLM)], "Give both logs"),
        (["--repo", "/nowhere"], "no such folder"),
    ],
)
def test_too_little_is_one_line(arguments: list[str], words: str) -> None:
    """Neither logs nor a checkout, one log of two, and a checkout that isn't there end with one line and exit 2."""
    done = call("explain", *arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


@pytest.mark.parametrize(
    ("settings", "recipe"),
    [
        ({}, "vanilla-cpu"),
        ({"num_experts": 8}, "moe-cpu"),
        ({"num_experts": 8, "moe_router_score_function": "sigmoid"}, "moe-sigmoid-cpu"),
        ({"num_experts": 8, "mtp_num_layers": 1}, "mtp-cpu"),
        ({"multi_latent_attention": True}, "mla-cpu"),
        ({"hidden_dropout": 0.1}, "dropout-cpu"),
        ({"tensor_model_parallel_size": 2, "sequence_parallel": True}, "sp2-cpu"),
        ({"num_query_groups": 2, "num_attention_heads": 8}, "gqa-cpu"),
        ({"position_embedding_type": "rope"}, "llama-cpu"),
        ({"use_distributed_optimizer": True}, "sharded-cpu"),
    ],
)
def test_the_recipe_reaches_the_runs_code(settings: dict[str, ConfigValue], recipe: str) -> None:
    """The bisect is proposed with the built-in recipe that uses the same parts of Megatron-Core."""
    assert recipe_for(settings) == recipe
    assert recipe in built_in_names()


def test_a_commit_of_the_user_is_told(made: Made) -> None:
    """A submodule on a commit of one's own is found at the point 'submodule'."""
    commit(made.submodule, "Mine", {"megatron/core/mine.py": ""})
    report = json.loads(call("explain", "--repo", str(made.root), "--json").stdout)
    point = next(item for item in report["points"] if item["name"] == "submodule")
    assert "neither the main nor the dev pin" in " ".join(point["told"])


def _logged(folder: Path, log: Path, **said: object) -> Path:
    """A copy of a log that says what it ran, as runs of lossbisect do."""
    line = {
        "megatron_core_file": "/trees/mcore/megatron/core/__init__.py",
        "megatron_core_version": "0.20.0",
        "mcore_commit": "a" * 40,
        "is_clean": True,
        "megatron_bridge_file": None,
        "python": "3.12.1",
        "torch": "2.13.0",
        "lane": "cpu",
        **said,
    }
    copy = folder / f"{len(list(folder.iterdir()))}.log"
    copy.write_text(f"{PREFIX}{json.dumps(line)}\n{log.read_text(encoding='utf-8')}", encoding="utf-8")
    return copy


def test_logs_that_say_what_they_ran_give_the_range(made: Made, tmp_path: Path) -> None:
    """Two runs of lossbisect at two commits name the range themselves, and how their environments differ."""
    baseline = _logged(tmp_path, MLM, mcore_commit=made.main[0])
    run = _logged(tmp_path, EPS, mcore_commit=made.main[3], torch="2.15.0", variables={"NVTE_FUSED_ATTN": "0"})
    report = json.loads(call("explain", str(run), str(baseline), "--repo", str(made.root), "--json").stdout)
    told = {point["name"]: " ".join(point["told"]) for point in report["points"]}
    assert "torch is 2.15.0, in the baseline 2.13.0" in told["environment"]
    assert "the variable NVTE_FUSED_ATTN is 0, in the baseline not there" in told["environment"]
    assert f"the baseline ran {made.main[0][:10]}, the run {made.main[3][:10]}" in told["submodule"]
    assert f"--good {made.main[0][:12]} --bad {made.main[3][:12]}" in report["bisect"]


def test_one_commit_on_both_sides_is_no_range(made: Made, tmp_path: Path) -> None:
    """Where both logs say that they ran the same commit, no bisect of it is proposed."""
    logs = [str(_logged(tmp_path, log, mcore_commit=made.main[1])) for log in (EPS, MLM)]
    report = json.loads(call("explain", *logs, "--repo", str(made.root), "--json").stdout)
    assert report["bisect"] is None
    assert "the same commit of Megatron-Core" in report["why"]


def test_a_side_with_changed_files_or_another_package_is_found(tmp_path: Path) -> None:
    """A run of a changed tree is no commit's, and a run that imported an installed package isn't the checkout's."""
    baseline = _logged(tmp_path, MLM)
    run = _logged(tmp_path, EPS, is_clean=False)
    installed = _logged(tmp_path, EPS, mcore_commit=None, is_clean=None, megatron_core_file="/site-packages/x.py")
    for log, name, words in ((run, "submodule", "changed files"), (installed, "PYTHONPATH", "/site-packages/x.py")):
        report = json.loads(call("explain", str(log), str(baseline), "--json").stdout)
        point = next(item for item in report["points"] if item["name"] == name)
        assert point["answer"] == "found"
        assert words in " ".join(point["told"])
