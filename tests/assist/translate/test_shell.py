"""Shell scripts as people write them."""

import shlex
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.assist.translate.shell import training_command
from lossbisect.errors import RecipeError

GUIDE = r"""#!/bin/bash
# Runs a GPT
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=${NUM_NODES:-2}
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES   # two
)
GPT_MODEL_ARGS=(
    --num-layers 96   # a comment
    --data-path 0.3 '/data/a b' "/data/$GPUS_PER_NODE"
)
LR="6.0e-5"
TRAINING_ARGS="--micro-batch-size 1 \
   --lr $LR"
TRAINING_ARGS+=" --clip-grad 1.0"
GPT_MODEL_ARGS+=(--bf16)
if [ -n "${DEBUG:-}" ]; then
  echo --debug pretrain_gpt.py --no
fi
cat > notes.txt <<END
python pretrain_gpt.py --not-this "one
END
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    "${GPT_MODEL_ARGS[@]}" \
    ${TRAINING_ARGS} \
    --tag "it's \"quoted\" \$5" \
    "$@"
"""


def words(script: str, **given_variables: str) -> list[str]:
    """The training command's words."""
    return training_command(script, source="train.sh", given=given_variables).words


def test_a_script_of_the_usual_kind_is_read() -> None:
    """Arrays, appended strings, defaults, comments, heredocs and quotes come out as the shell would pass them."""
    assert words(GUIDE) == [
        *("torchrun", "--nproc_per_node", "8", "--nnodes", "2", "pretrain_gpt.py"),
        *("--num-layers", "96", "--data-path", "0.3", "/data/a b", "/data/8", "--bf16"),
        *("--micro-batch-size", "1", "--lr", "6.0e-5", "--clip-grad", "1.0", "--tag", 'it\'s "quoted" $5'),
    ]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_script_is_read_as_bash_runs_it(tmp_path: Path) -> None:
    """Bash, with a program that prints its words in torchrun's place, passes the same words."""
    program = tmp_path / "torchrun"
    program.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", GUIDE],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == words(GUIDE)[1:]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("srun -n 16 python -u pretrain_gpt.py --a 1 2>&1 | tee log", ["--a", "1"]),
        ("CUDA_VISIBLE_DEVICES=0 python pretrain_gpt.py --a=1 > out.log &", ["--a=1"]),
        ("cd x && python -m torch.distributed.run pretrain_gpt.py --a 'b c'; echo done", ["--a", "b c"]),
        ("ARGS='--a 1'\nARGS=\"$ARGS --b\"\npython pretrain_gpt.py $ARGS", ["--a", "1", "--b"]),
        ('python pretrain_gpt.py --a ${X:-3} ${NOTHING:-} --b "${Y:-4}"', ["--a", "3", "--b", "4"]),
        ("python pretrain_gpt.py --a $(date +%s)", ["--a", "$(date +%s)"]),
    ],
)
def test_launchers_and_redirections_are_no_arguments(script: str, expected: list[str]) -> None:
    """What follows the program, up to a pipe or a redirection, is what the program gets."""
    found = words(script)
    assert found[found.index("pretrain_gpt.py") + 1 :] == expected


BRANCHES = """
MODE=moe
SIZE=$((2 * 4))
ARGS=(--num-layers 2)
if [ "$MODE" = dense ]; then
    ARGS+=(--swiglu)
elif [[ $MODE == moe ]]; then
    ARGS+=(--num-experts $SIZE)
else
    ARGS+=(--bf16)
fi
[ -n "$MODE" ] && ARGS+=(--lr 1)
[ $SIZE -gt 9 ] && ARGS+=(--never)
case $MODE in
    moe) echo ;;
esac
srun bash -c "python pretrain_gpt.py ${ARGS[*]} --seed 3"
"""


def test_a_branch_on_what_the_script_says_is_taken() -> None:
    """A test of text or numbers that the script sets decides; a shell in a shell is looked into."""
    found = words(BRANCHES)
    assert found[found.index("pretrain_gpt.py") + 1 :] == [
        *("--num-layers", "2", "--num-experts", "8", "--lr", "1", "--seed", "3"),
    ]
    other = words(BRANCHES, MODE="x y")
    assert "--bf16" in other
    assert "--num-experts" not in other


@pytest.mark.parametrize(
    "script",
    [
        "X='--a'\nif [ -f file ]; then X='--b'; fi\npython a.py --x $X",
        "X='--a'\nif [ 1 = 1 ] && grep -q y file; then X='--b'; fi\npython a.py --x $X",
        "X='--a'\ntest -d x || X='--b'\npython a.py --x $X",
        "X='--a'\nfor i in 1 2; do X='--b'; done\npython a.py --x $X",
        "X='--a'\ncase $Y in\n  1) X='--b' ;;\nesac\npython a.py --x $X",
        "X='--a'\nif [ $UNSET = 1 ]; then X='--b'; fi\npython a.py --x $X",
    ],
)
def test_a_branch_on_the_run_is_not_guessed(script: str) -> None:
    """Files, commands, loops, cases and variables from outside leave a variable open."""
    with pytest.raises(RecipeError, match="X is set inside"):
        words(script)
    assert words(script, X="--c")[-1] == "--c"


def test_options_alone_are_a_command() -> None:
    """Options may stand on one line, or one on each."""
    assert words("--num-layers 2\n--bf16 # half\n--lr 1") == ["--num-layers", "2", "--bf16", "--lr", "1"]


def test_the_users_value_of_a_variable_wins() -> None:
    """What the user sets stands in place of what the script sets, and for its own arguments."""
    script = 'N=2\npython pretrain_gpt.py --num-layers $N "$@"'
    assert words(script, **{"N": "4", "@": "--bf16 --lr 1"})[2:] == ["--num-layers", "4", "--bf16", "--lr", "1"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("python a.py $MORE --x 1", "train.sh:1: the script doesn't set $MORE"),
        ("python a.py --x 1 $(cat more) --y", "train.sh:1: the script alone doesn't tell what $(cat more) gives"),
        ('python a.py "${MORE[@]}" --x 1', "train.sh:1: the script doesn't set $MORE"),
        ("if true; then\nX=1\nfi\npython a.py --x $X", "train.sh:2: $X is set inside an 'if' or a loop"),
        ("python a.py --x 1\npython b.py --x 2", "lines 1, 2"),
        ("echo hello", "no command that trains"),
        ("python a.py --x 'one", "train.sh:1: a single quote isn't closed"),
        ('A=1\npython a.py --x "one', "train.sh:2: a double quote isn't closed"),
        ("A=(1 2", "an array has no closing"),
        ("A=(1\n2|3)", "train.sh:2: an array has a '|' outside quotes"),
        ("A=((1))", "train.sh:1: an array has a '(' outside quotes"),
        ("python a.py --x ${A", "has no closing"),
    ],
)
def test_what_a_script_leaves_open_is_one_clear_line(script: str, message: str) -> None:
    """Nothing is guessed: the line and the way out are told."""
    with pytest.raises(RecipeError) as raised:
        words(script)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@settings(deadline=None)
@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12), max_size=6))
def test_quoted_words_come_back(values: list[str]) -> None:
    """Whatever `shlex` quotes is read as it was."""
    script = shlex.join(["python", "a.py", "--x", *values])
    assert words(script) == ["python", "a.py", "--x", *values]


@settings(deadline=None)
@given(st.text(st.sampled_from("ab $\"'\\(){}[]#\n;|&<>=@+-`:*"), max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the reader fail in another way than by its own error, or run on without end."""
    with suppress(RecipeError):
        assert training_command(text, source="x", given={}).words


SOURCED = {"conf.sh": "MODEL=(--num-layers 2)\nN=4\n", "loop.sh": "source loop.sh\nN=5\n"}


@pytest.mark.parametrize("word", ["source", "."])
def test_a_sourced_file_is_read_where_the_script_reads_it(word: str) -> None:
    """Its variables are known from there on; a later assignment still wins, and a file that reads itself ends."""
    script = f'N=1\n{word} conf.sh\n{word} loop.sh\npython a.py "${{MODEL[@]}}" --x $N'
    command = training_command(script, source="train.sh", given={}, read=SOURCED.get)
    assert command.words[2:] == ["--num-layers", "2", "--x", "5"]


def test_a_file_read_under_a_condition_leaves_its_variables_open() -> None:
    """What it sets depends on the run."""
    script = "N=1\nif [ -f conf.sh ]; then\nsource conf.sh\nfi\npython a.py --x $N"
    with pytest.raises(RecipeError, match=r"train\.sh:3: \$N is set inside"):
        training_command(script, source="train.sh", given={}, read=SOURCED.get)


def test_a_sourced_file_that_is_missing_is_told() -> None:
    """The error about a variable says which file may set it."""
    with pytest.raises(RecipeError, match=r"line 1 reads gone\.sh, which isn't there"):
        words("source gone.sh\npython a.py $MORE --x 1")


def test_of_several_commands_one_is_chosen_by_its_line() -> None:
    """A line where none begins is refused, with those where one does."""
    script = "python a.py --x 1\npython b.py --x 2"
    chosen = training_command(script, source="x", given={}, line_no=2)
    assert chosen.words == ["python", "b.py", "--x", "2"]
    with pytest.raises(RecipeError, match=r"x:3: no command that trains begins here; one does at line 1, 2"):
        training_command(script, source="x", given={}, line_no=3)


def test_a_test_suite_is_no_training() -> None:
    """Pytest's command is passed over, by module or by name."""
    script = "python -m pytest tests/a.py --tb short\ncoverage run -m pytest a.py -v --x\npython a.py --x 1"
    assert words(script) == ["python", "a.py", "--x", "1"]
