"""No secret reaches the disk, and nothing else is taken out."""

import hashlib
import json
import random
import shlex
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.recording import redact
from rlvitals.recording.redact import MARK
from rlvitals.recording.secret_kinds import KINDS

LOT = random.Random(7)
ALNUM, HEX, UPPER = string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_uppercase
WEB = ALNUM + "_-"


def drawn(letters, count):
    """A part of a token: drawn here, so that no scanner takes this file for a leak."""
    mixed = "q7X" if {"q", "7"} <= set(letters) else letters[:3]
    return "".join(LOT.choice(letters) for _ in range(count - 3)) + mixed


def hexed(count):
    return "".join(LOT.choice(HEX) for _ in range(count))


def pem(kind):
    return f"-----BEGIN {kind}-----\n{BODY}\n-----END {kind}-----"


BODY = "\n".join(drawn(ALNUM + "+/", 64) for _ in range(12))
# Title, the text that holds it, the part that may not stay.
TOKENS = {
    "AWS access key": "AKIA" + drawn(UPPER, 16),
    "AWS temporary key": "ASIA" + drawn(UPPER, 16),
    "Google API key": "AIza" + drawn(WEB, 35),
    "Google OAuth": "ya29." + drawn(WEB, 60),
    "Google client secret": "GOCSPX-" + drawn(WEB, 28),
    "Azure client secret": "a1B8Q~" + drawn(ALNUM, 34),
    "GitHub": "ghp_" + drawn(ALNUM, 36),
    "GitHub app": "ghs_" + drawn(ALNUM, 36),
    "GitHub fine-grained": "github_pat_" + drawn(ALNUM, 22) + "_" + drawn(ALNUM, 59),
    "GitLab": "glpat-" + drawn(WEB, 20),
    "GitLab runner": "glrt-" + drawn(WEB, 20),
    "Hugging Face": "hf_" + drawn(string.ascii_letters, 34),
    "Hugging Face org": "api_org_" + drawn(string.ascii_letters, 34),
    "W&B": "wandb_v1_" + drawn(WEB, 60),
    "W&B local": "local-" + hexed(40),
    "OpenAI": "sk-" + drawn(ALNUM, 48),
    "OpenAI project": "sk-proj-" + drawn(WEB, 40) + drawn(ALNUM, 60),
    "Anthropic": "sk-ant-api03-" + drawn(WEB, 60) + drawn(ALNUM, 33),
    "DeepSeek": "sk-" + hexed(32),
    "Groq": "gsk_" + drawn(ALNUM, 52),
    "xAI": "xai-" + drawn(ALNUM, 80),
    "Replicate": "r8_" + drawn(ALNUM, 37),
    "Perplexity": "pplx-" + drawn(ALNUM, 48),
    "LangSmith": "lsv2_pt_" + hexed(32) + "_" + hexed(10),
    "NVIDIA": "nvapi-" + drawn(WEB, 64),
    "Kaggle": "KGAT_" + hexed(32),
    "Slack bot": "xoxb-" + "-".join(("123456789012", "1234567890123", drawn(ALNUM, 24))),
    "Slack app": "xapp-1-A012345-" + drawn(ALNUM, 40),
    "Telegram": "123456789:AA" + drawn(WEB, 33),
    "Stripe": "sk_live_" + drawn(ALNUM, 24),
    "Stripe restricted": "rk_test_" + drawn(ALNUM, 24),
    "Stripe webhook": "whsec_" + drawn(ALNUM, 32),
    "JWT": ".".join(("eyJ" + drawn(WEB, 30), "eyJ" + drawn(WEB, 60), drawn(WEB, 43))),
    "Neptune": "eyJhcGlfYWRkcmVzcyI6" + drawn(ALNUM, 120) + "==",
    "npm": "npm_" + drawn(ALNUM, 36),
    "PyPI": "pypi-AgEIcHlwaS5vcmc" + drawn(WEB, 120),
    "Docker": "dckr_pat_" + drawn(WEB, 27),
    "DigitalOcean": "dop_v1_" + hexed(64),
    "SendGrid": "SG." + drawn(WEB, 22) + "." + drawn(WEB, 43),
    "Twilio": "SK" + hexed(32),
    "Mailgun": "key-" + hexed(32),
    "Databricks": "dapi" + hexed(32),
    "Vault": "hvs." + drawn(WEB, 90),
    "Terraform": drawn(ALNUM, 14) + ".atlasv1." + drawn(WEB, 67),
    "Shopify": "shpat_" + hexed(32),
    "Grafana": "glsa_" + drawn(ALNUM, 32) + "_" + hexed(8),
    "New Relic": "NRAK-" + drawn(UPPER, 27),
    "Notion": "ntn_" + drawn(ALNUM, 46),
    "Linear": "lin_api_" + drawn(ALNUM, 40),
    "Tailscale": "tskey-auth-" + drawn(ALNUM, 16) + "-" + drawn(ALNUM, 32),
    "RSA key": pem("RSA PRIVATE KEY"),
    "OpenSSH key": pem("OPENSSH PRIVATE KEY"),
    "PGP key": pem("PGP PRIVATE KEY BLOCK"),
    "cut key": f"-----BEGIN EC PRIVATE KEY-----\n{BODY}",
}
SAID = "hunter2Battery"  # what has no form of its own: it shows by where it stands
AROUND = [
    "--api-key {}",
    "--api-key={}",
    "--token {}",
    '--token="{}"',
    "--hf-token '{}'",
    "--wandb_api_key={}",
    "PASSWORD={}",
    "export DB_PASSWORD={}",
    "PGPASSWORD={} psql",
    "MYSQL_PWD={}",
    "HF_TOKEN={} python train.py",
    "AWS_SECRET_ACCESS_KEY={}",
    "client_secret: {}",
    "password: {}",
    "password = {}",
    '{{"apiKey": "{}"}}',
    "{{'password': '{}'}}",
    r"{{\"token\": \"{}\"}}",
    "https://me:{}@github.com/a/b.git",
    "postgresql://me:{}@db:5432/runs",
    "redis://:{}@cache:6379",
    "mongodb+srv://me:{}@c.mongodb.net/x",
    "Server=db;User Id=me;Password={};",
    "Driver=x;UID=a;PWD={};",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={}==;EndpointSuffix=core.windows.net",
    "https://a.blob.core.windows.net/c?sv=2024&sig={}",
    "https://b.s3.amazonaws.com/x?X-Amz-Signature={}",
    "Authorization: Bearer {}",
    "-H 'Authorization: Basic {}'",
    "authorization: token {}",
    "Cookie: session={}",
    "curl -u me:{} https://x",
    "machine api.wandb.ai login user password {}",
    '+API_KEY = "{}"',
    "+    openai.api_key = '{}'",
    "-os.environ['WANDB_API_KEY'] = '{}'",
    "hub.token={}1234567890",
    "token: {}1234567890",
    "private_key_passphrase={}",
    "secretKey=>'{}'",
    "no such key: --api-key {}",
    "key: password={}",
    "the key: token: 'x' --token {}",
    "https://discord.com/api/webhooks/1234/{}",
    "https://hooks.slack.com/services/T012/B012/{}",
]
KEPT = [
    f"commit {hashlib.sha1(b'a').hexdigest()}",  # noqa: S324 - a git hash
    f"index {hexed(7)}..{hexed(7)} 100644",
    f"run id {hexed(32)}",
    f"sha256:{hexed(64)}",
    "id: 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "checkpoint-50000/model-00001-of-00004.safetensors",
    "runs/ppo-CartPole-v1-seed7/blocks/1-0.rlv",
    "token_count=5",
    "--max_tokens 512",
    "max_tokens=512",
    "max_new_tokens: 2048",
    "num_tokens=1e9",
    "--max-prompt-tokens=1024",
    "tokens_per_second 1234.5",
    "tokenizer=gpt2",
    "--tokenizer Qwen/Qwen3-0.6B",
    "pad_token='<|endoftext|>'",
    "eos_token: </s>",
    "--eos-token '<|im_end|>'",
    "reward_per_token=mean",
    "token_type=bpe",
    "key = jax.random.PRNGKey(0)",
    "keys=obs",
    "--reward-key score",
    "key=lambda x: x",
    "for key in self.keys():",
    "sort_key: name",
    "token = tokenizer.decode(ids)",
    "token = tokens[i]",
    "password = getpass.getpass()",
    "def login(user: str, password: str) -> None:",
    "password=None",
    "HF_TOKEN=$HF_TOKEN",
    "--token ${HF_TOKEN}",
    "token = os.environ['HF_TOKEN']",
    "author: me",
    "https://github.com/a/b.git",
    "git@github.com:a/b.git",
    "s3://bucket/key/of/it",
    "tcp://10.0.0.1:29500",
    "python -u train.py --seed 3 --lr 3e-4",
    "PWD=/home/me/work",
    "passes=3",
    "n_pass: 10",
    "self.attention.key.weight",
    "key_size=64",
    "num_key_value_heads: 8",
    "query_key_value",
    "monkey=banana",
    "sk-learn-based-model-selection",
    "task-1234567890123456789012",
    "AIzawa learned",
    "compass=12",
    "loss at step 1234: 0.5",
    "bearer of news",
    "basic block",
    "secretary problem",
    "cookiecutter==2.6.0",
    "pip install tokenizers==0.21.0 keyring==25.0.0",
    "KeyError: 'reward'",
    "use_auth_token=True",
    "optimizer.zero_grad()",
    "2026-01-02 03:04:05,678 INFO train.py:12",
    "a@b.example",
]


@pytest.mark.parametrize("title", TOKENS)
@pytest.mark.parametrize("around", ["{}", "x = '{}'", "--say {} --more", "see {}, it is"])
def test_a_token_is_taken_out_wherever_it_stands(title, around):
    token = TOKENS[title]
    said = redact.text(around.format(token))
    if title == "cut key":  # where a key without an end ends nobody can say
        assert token not in said
        assert said.startswith(around.format(MARK)[:10])
    else:
        assert said == around.format(MARK)


def test_tokens_of_every_kind_in_the_list_are_tried():
    every = "\n".join([*TOKENS.values(), *(line.format(SAID) for line in AROUND)])
    tried = {kind.title for kind in KINDS if kind.pattern.search(every)}
    assert len(TOKENS) >= 25
    # These are known by their prefix alone.
    assert {kind.title for kind in KINDS} - tried <= {
        "age key",
        "RunPod key",
        "Discord token",
        "Teams webhook",
        "Sentry token",
        "Atlassian token",
        "1Password token",
        "Alibaba key",
        "Pulumi token",
    }


@pytest.mark.parametrize("line", AROUND)
def test_what_has_no_form_is_told_by_where_it_stands(line):
    said = redact.text(line.format(SAID))
    assert SAID not in said
    assert MARK in said
    assert line.startswith(said.split(MARK)[0].replace("{", "{{")[:6])


@pytest.mark.parametrize("line", KEPT)
def test_what_is_no_secret_stays(line):
    assert redact.text(line) == line


@pytest.mark.parametrize(
    "words",
    [
        ["train.py", "--api-key", SAID],
        ["train.py", f"--token={SAID}"],
        ["x", "--password", "1234"],
        ["x", f"password={SAID}"],
        ["x", f"wandb.api_key={SAID}"],
        ["x", f"hub.token={SAID}"],
        ["x", "--db-url", f"postgres://u:{SAID}@h/d"],
        ["x", "--hf_token", f"-{SAID}"],
    ],
)
def test_a_command_line_is_read_word_by_word(words):
    kept = redact.command(words)
    assert SAID not in shlex.join(kept)
    assert "1234" not in shlex.join(kept)
    assert len(kept) == len(words)
    assert kept[0] == words[0]


def test_an_ordinary_command_line_stays():
    words = ("train.py", "--seed", "3", "--max-tokens", "512", "lr=3e-4", "--name", "a b", "--flag")
    assert redact.command(words) == words


def test_settings_are_gone_through_to_the_bottom():
    settings = {
        "lr": 3e-4,
        "hub": {"token": SAID, "user": "me", "deep": [{"api_key": SAID}, (TOKENS["GitHub"], 5)]},
        "secrets": {"mine": SAID, "number": 12345},
        "password": 1234,
        "api_keys": [SAID, SAID],
        "url": f"https://me:{SAID}@host/x",
        "max_tokens": 512,
        "pad_token": "<pad>",
        "use_auth_token": True,
        "token": None,
        "cmd": b"--token " + SAID.encode(),
    }
    kept = redact.mapping(settings)
    written = json.dumps(kept)
    assert SAID not in written
    assert "12345" not in written
    assert TOKENS["GitHub"] not in written
    assert kept["hub"]["user"] == "me"
    assert kept["hub"]["deep"][1] == (MARK, 5)
    assert kept["url"] == f"https://me:{MARK}@host/x"
    same = ("lr", "max_tokens", "pad_token", "use_auth_token", "token")
    assert {k: kept[k] for k in same} == {k: settings[k] for k in same}
    assert settings["hub"]["token"] == SAID  # the caller's own is as it was


def test_settings_without_end_come_back():
    settings = {}
    settings["self"] = settings
    assert MARK in json.dumps(redact.mapping(settings))


@given(st.text(alphabet=ALNUM + " =:-\"'/@.,\n\\{}[]&?", max_size=200))
def test_twice_is_once(said):
    once = redact.text(said)
    assert redact.text(once) == once


@given(st.sampled_from(AROUND), st.text(alphabet=ALNUM + "!#%^*+~.", min_size=8, max_size=40))
def test_whatever_a_password_holds(line, drawn_part):
    secret = f"q7Z{drawn_part}9wK"  # neither a number nor a word
    assert secret not in redact.text(line.format(secret))


def test_a_long_text_without_spaces_takes_no_time():
    for said in ("a" * 300_000, "key" * 100_000, "a=" * 100_000, "x/" * 100_000, "-" * 200_000):
        redact.text(said)


def test_a_home_is_nobody_s(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    redact._homes.cache_clear()
    said = f"{tmp_path}/me/data {tmp_path}/member/x --out={tmp_path}/me"
    assert redact.homeless(said) == f"~/data {tmp_path}/member/x --out=~"
    redact._homes.cache_clear()
