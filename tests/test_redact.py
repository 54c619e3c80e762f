"""Secrets go, numbers and rows stay."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossbisect.redact import MASK, is_secret_name, line_redactor, redact, redact_folder, redact_variables, redact_words

HEX = "0123456789abcdef0123456789abcdef01234567"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAx\n+abc/def==\n-----END RSA PRIVATE KEY-----"
PLANTED = {
    "hf": "hf_AbCdEfGhIjKlMnOpQrStUv",
    "github": "ghp_" + "A1b2" * 9,
    "github fine-grained": "github_pat_11ABCDEFG0_" + "x1Y2" * 10,
    "gitlab": "glpat-AbCdEfGh1234_-IjKl",
    "amazon": "AKIAIOSFODNN7EXAMPLE",
    "nvidia": "nvapi-" + "aB3_" * 8,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4",
}
LINES = (
    "INFO:huggingface_hub:logged in with {}",
    "curl -H 'Authorization: Bearer {}' https://example.com",
    "{{'key': '{}', 'layers': 4}}",
    "[rank3]: token={}",
    "  hf_token ......................................... {}",
)
ROW = (
    " [2026-08-29 00:11:57.912421] iteration        3/      10 | consumed samples:           24 | elapsed time per "
    "iteration (ms): 107.3 | learning rate: {lr:.6E} | global batch size:     8 | lm loss: {loss:.6E} | "
    "loss scale: 1.0 | grad norm: {norm:.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
BRIDGE_ROW = (
    "Step Time : 1.07s GPU utilization: 12.3MODEL_TFLOP/s/GPU\n iteration        3/      10 | consumed samples:  "
    "24 | lm loss: {loss:.6E} | mtp_1 loss: {norm:.6E} | load_balancing_loss: {lr:.6E} |"
)
CONFIG = (
    "  eod_mask_loss ................................... False",
    "  tokenizer_type .................................. NullTokenizer",
    "  calculate_per_token_loss ........................ True",
    "  seed ............................................ 1234",
    "  tokens_per_second: 12345.678",
    "pad_token_id: 151643",
    "eos_token: <|endoftext|>",
    "attention key projection: 8x16",
    f"HEAD is now at {HEX}",
    "Missing key(s) in state_dict: decoder.layers.0.weight",
    "loss per token: 10.3772401",
    '{"tag": "lm loss", "iteration": 3, "value": 10.377240180969238}',
)


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("line", LINES)
def test_known_shapes_go_wherever_they_stand(kind: str, line: str) -> None:
    """A planted token of each kind is masked in each sort of line, and what stands around it is left."""
    text = line.format(PLANTED[kind])
    assert PLANTED[kind] not in redact(text)
    assert redact(text).startswith(text.split(PLANTED[kind])[0][:10])
    assert MASK in redact(text)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"wandb.login(key='{HEX}')", HEX),
        (f"  wandb_key ....... {HEX}", HEX),
        ("export MY_SIGNING_KEY=qwertyuiop", "qwertyuiop"),
        ("args: db_password=correct-horse", "correct-horse"),
        ('{"client_secret": "s3cr3ts3cr3t"}', "s3cr3ts3cr3t"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"),
        ("python train.py --api-key abcdef123456 --lr 1", "abcdef123456"),
        ("Cloning https://me:p%40ssw0rd@example.com/x.git", "p%40ssw0rd"),
        ("amqp://user:pa:ss@host/", "pa:ss"),
        (PEM, "MIIEow"),
    ],
)
def test_named_values_go(text: str, secret: str) -> None:
    """A value whose name, header, URL or frame says that it's secret is masked."""
    assert secret not in redact(text)
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("line", CONFIG)
def test_what_only_looks_like_a_secret_stays(line: str) -> None:
    """Settings, special tokens, commits, keys of a state and numbers are left as they are."""
    assert redact(line) == line
    assert line_redactor({})(line.encode()) == line.encode()


number = st.floats(min_value=1e-30, max_value=1e30)


@given(
    loss=number, lr=number, norm=number, row=st.sampled_from([ROW, BRIDGE_ROW]),
    secret=st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=20),
    name=st.sampled_from(["PASSWORD", "API_KEY", "TOKEN"]),
)  # fmt: skip
def test_every_row_passes_unchanged(loss: float, lr: float, norm: float, row: str, secret: str, name: str) -> None:
    """No value of the environment, however short or common, alters a training row."""
    text = row.format(loss=loss, lr=lr, norm=norm) + "\n"
    redacted = line_redactor(
        {name: secret, "A_TOKEN": "iteration", "B_TOKEN": "lm loss: 1", "C_TOKEN": "consumed samples"}
    )
    row_line = text.splitlines(keepends=True)[-1].encode()
    assert redacted(row_line) == row_line
    assert redact(row_line.decode()) == row_line.decode()


def test_a_value_of_the_environment_goes_under_any_name() -> None:
    """What the environment calls a password is masked in a console even where nothing there tells."""
    redacted = line_redactor({"DB_PASSWORD": "correcthorse", "HOME": "/root", "SHORT_TOKEN": "abc"})
    assert redacted(b"dialling db as joe correcthorse now\r\n") == b"dialling db as joe [redacted] now\r\n"
    assert redacted(b"abc /root \xff\n") == b"abc /root \xff\n"


def test_a_key_block_goes_line_by_line() -> None:
    """Every line of a PEM block is dropped; rows and other ranks' lines in between stay."""
    redacted = line_redactor({})
    row = ROW.format(loss=1.0, lr=1.0, norm=1.0).encode() + b"\n"
    body = PEM.encode().splitlines(keepends=True)
    lines = [b"before\n", body[0], row, body[1], b"rank 1 says hello there\n", body[2], body[3] + b"\n", b"after\n"]
    told = [redacted(line) for line in lines]
    assert b"MIIE" not in b"".join(told)
    assert b"+abc" not in b"".join(told)
    assert [told[index] for index in (0, 2, 4, 7)] == [lines[index] for index in (0, 2, 4, 7)]


def test_words_and_variables() -> None:
    """A command line and an environment keep their form; only the secret values are masked."""
    words = (
        "train",
        "--wandb-key",
        HEX,
        "--tokenizer-type",
        "Null",
        "a.api_key=zz",
        "--eod-token",
        "5",
        "--key",
    )
    assert redact_words(words) == (
        "train", "--wandb-key", MASK, "--tokenizer-type", "Null", f"a.api_key={MASK}", "--eod-token", "5", "--key",
    )  # fmt: skip
    variables = {
        "CI_JOB_TOKEN": "12345",
        "TOKENIZERS_PARALLELISM": "false",
        "X": PLANTED["hf"],
        "MYSECRET": "",
        "N": "1",
    }
    assert redact_variables(variables) == {
        "CI_JOB_TOKEN": MASK, "TOKENIZERS_PARALLELISM": "false", "X": MASK, "MYSECRET": "", "N": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [("HF_TOKEN", True), ("AWS_SECRET_ACCESS_KEY", True), ("wandbApiKey", True), ("DB_PASSWORD_2", True), ("KEY", True),
     ("TOKENIZERS_PARALLELISM", False), ("KEYBOARD", False), ("NUM_TOKENS", False), ("PATH", False)],
)  # fmt: skip
def test_names_that_tell(name: str, *, is_secret: bool) -> None:
    """A variable's words decide, not the letters that it happens to contain."""
    assert is_secret_name(name) is is_secret


def test_a_folder_is_cleaned_of_what_others_wrote(tmp_path: Path) -> None:
    """Job scripts and logs lose their secrets and keep their mode; values and files without any stay untouched."""
    token = PLANTED["github"]
    (tmp_path / "slurm").mkdir()
    script, console, plain, values = (
        tmp_path / name for name in ("slurm/job.sh", "console.log", "plain.log", "scalars.ndjson")
    )
    script.write_text(f"export GH_TOKEN={token}\npython train.py\n")
    script.chmod(0o755)
    console.write_text("my word is correct-horse\n iteration        1/      10 | lm loss: 1.000000E+01 |\n")
    plain.write_text("nothing here\n")
    values.write_text('{"tag": "lm loss", "iteration": 1, "value": 10.0}\n')
    before = [path.stat() for path in (plain, values)]
    redact_folder(tmp_path, {"A_PASSWORD": "correct-horse"})
    assert script.read_text() == f"export GH_TOKEN={MASK}\npython train.py\n"
    assert script.stat().st_mode & 0o777 == 0o755
    assert console.read_text() == f"my word is {MASK}\n iteration        1/      10 | lm loss: 1.000000E+01 |\n"
    assert [path.stat() for path in (plain, values)] == before
    assert len(list(tmp_path.rglob("*"))) == 5
