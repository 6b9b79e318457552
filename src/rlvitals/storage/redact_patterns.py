"""Patterns of keys, tokens and passwords, shared by recording and reading.

Each kind has a literal part, so that a long text is searched only for kinds it can contain.
"""

import re
from functools import lru_cache
from itertools import pairwise

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.startup.lazy_pattern import lazy_pattern


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of secret that is recognised by its form, whatever its name."""

    title: str
    literals: tuple[str, ...]  # every secret of the kind holds one of these
    pattern: re.Pattern[str]


def _kind(title: str, literal: str | tuple[str, ...], pattern: str) -> Kind:
    literals = (literal,) if isinstance(literal, str) else literal
    return Kind(title, literals, lazy_pattern(pattern))


# Sources: the vendors' own pages on secret scanning, and GitHub's list of supported patterns.
SECRET_KINDS = (
    _kind(
        "private key",
        "PRIVATE KEY",
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[\s\S]{0,16000}?-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"|[\sA-Za-z0-9+/=\\]*)",
    ),
    _kind("age key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _kind(
        "AWS access key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    ),
    _kind("Google API key", "AIza", r"AIza[\w-]{35}"),
    _kind("Google OAuth token", "ya29.", r"\bya29\.[\w.-]{20,}"),
    _kind("Google client secret", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
    _kind("Azure client secret", "Q~", r"(?<![\w.~-])[\w.~-]{3}\dQ~[\w.~-]{31,34}"),
    _kind(
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        r"\bgh[pousr]_[A-Za-z0-9]{36,255}",
    ),
    _kind("GitHub fine-grained token", "github_pat_", r"\bgithub_pat_\w{22,}"),
    _kind(
        "GitLab token", "gl", r"\bgl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[\w.-]{20,}"
    ),
    _kind("Hugging Face token", "hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    _kind("Hugging Face organisation token", "api_org_", r"\bapi_org_[A-Za-z0-9]{30,}"),
    _kind("W&B key", "wandb_v", r"\bwandb_v\d_[\w-]{20,}"),
    _kind("W&B key of a local server", "local-", r"\blocal-[0-9a-f]{40}\b"),
    _kind(
        "OpenAI, Anthropic or DeepSeek key",
        "sk-",
        r"\bsk-(?=[\w-]{0,200}\d)(?=[\w-]{0,200}[A-Za-z0-9]{10})[\w-]{20,}",
    ),
    _kind("Groq key", "gsk_", r"\bgsk_[A-Za-z0-9]{20,}"),
    _kind("xAI key", "xai-", r"\bxai-[A-Za-z0-9]{40,}"),
    _kind("Replicate token", "r8_", r"\br8_[A-Za-z0-9]{36,}"),
    _kind("Perplexity key", "pplx-", r"\bpplx-[A-Za-z0-9]{40,}"),
    _kind("LangSmith key", "lsv2_", r"\blsv2_(?:pt|sk)_[0-9a-f]{32}_\w{6,}"),
    _kind("NVIDIA key", "nvapi-", r"\bnvapi-[\w-]{40,}"),
    _kind("RunPod key", "rpa_", r"\brpa_[A-Z0-9]{36,}\w*"),
    _kind("Kaggle token", "KGAT_", r"\bKGAT_[0-9a-f]{32}"),
    _kind("Slack token", "xox", r"\bxox[abceoprs](?:\.\w+)?-[\w-]{10,}"),
    _kind("Slack app token", "xapp-", r"\bxapp-\d-[\w-]{10,}"),
    _kind("Slack webhook", "hooks.slack.com", r"(?<=hooks\.slack\.com/)\w+/T\w+/B\w+/\w+"),
    _kind("Discord webhook", "/api/webhooks/", r"(?<=/api/webhooks/)\d+/[\w-]+"),
    _kind("Discord token", ".", r"\b[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}"),
    _kind("Teams webhook", "webhook.office.com", r"(?<=webhook\.office\.com/)\S+"),
    _kind("Telegram token", ":AA", r"\b\d{8,10}:AA[\w-]{33}"),
    _kind("Stripe key", ("k_live_", "k_test_"), r"\b[srp]k_(?:live|test)_[0-9A-Za-z]{16,}"),
    _kind("Stripe webhook secret", "whsec_", r"\bwhsec_[0-9A-Za-z+/=]{24,}"),
    _kind("JSON web token", "eyJ", r"\beyJ[\w-]{8,}={0,2}\.[\w-]{8,}={0,2}(?:\.[\w-]*)?"),
    _kind("Neptune token", "eyJhcGlf", r"\beyJhcGlf[\w+/=-]{40,}"),
    _kind("npm token", "npm_", r"\bnpm_[A-Za-z0-9]{36}"),
    _kind("PyPI token", "pypi-", r"\bpypi-[\w-]{50,}"),
    _kind("Docker token", "dckr_", r"\bdckr_(?:pat|oat)_[\w-]{20,}"),
    _kind("DigitalOcean token", "_v1_", r"\bdo[opr]_v1_[0-9a-f]{64}"),
    _kind("SendGrid key", "SG.", r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),
    _kind("Twilio key", "SK", r"\bSK[0-9a-f]{32}\b"),
    _kind("Mailgun key", "key-", r"\bkey-[0-9a-z]{32}\b"),
    _kind("Databricks token", "dapi", r"\bdapi[0-9a-f]{32}(?:-\d)?\b"),
    _kind("Vault token", "hv", r"\bhv[sbr]\.[\w-]{24,}"),
    _kind("Terraform token", ".atlasv1.", r"\b\w{14}\.atlasv1\.[\w-]{60,}"),
    _kind("Shopify token", "shp", r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _kind("Grafana token", "gl", r"\bgl(?:sa|c)_[\w+/=]{32,}"),
    _kind("New Relic key", "NRAK-", r"\bNRAK-[A-Z0-9]{27}"),
    _kind("Sentry token", "sntry", r"\bsntry[su]_[\w+/=]{40,}"),
    _kind("Atlassian token", "ATATT3", r"\bATATT3[\w=-]{60,}"),
    _kind("Notion token", "ntn_", r"\bntn_[A-Za-z0-9]{40,}"),
    _kind("Linear key", "lin_api_", r"\blin_api_[A-Za-z0-9]{40}"),
    _kind("Tailscale key", "tskey-", r"\btskey-[a-z]+-[\w-]{16,}"),
    _kind("1Password token", "ops_eyJ", r"\bops_eyJ[\w-]{40,}"),
    _kind("Alibaba key", "LTAI", r"\bLTAI[A-Za-z0-9]{12,26}\b"),
    _kind("Pulumi token", "pul-", r"\bpul-[0-9a-f]{40}\b"),
)

SECRET_PATTERNS = tuple(
    (literal, kind.pattern) for kind in SECRET_KINDS for literal in kind.literals
)

# Words of a name. Of the first, any value is a secret, a number too; of pairs, any text; of the
# weak ones, what does not look like a word of a language model, a number or a piece of a program.
SECRET_WORDS = frozenset(
    {"password", "passwd", "passphrase", "pwd", "secret", "secrets", "credential", "credentials"}
)
CREDENTIAL_WORDS = frozenset(
    {"apikey", "authorization", "bearer", "cookie", "auth", "pw", "otp", "totp", "passcode"}
)
KEY_WORDS = frozenset(
    {"api", "access", "private", "account", "shared", "encryption", "signing", "ssh", "license",
     "master", "service", "app", "subscription", "deploy"}
)  # fmt: skip

# "first_token", "eos_token", "reward_per_token": a language model's, not a password.
TEXT_TOKEN_WORDS = frozenset(
    {"pad", "eos", "bos", "unk", "mask", "sep", "cls", "image", "video", "audio", "stop", "per",
     "first", "last", "next", "new", "start", "begin", "end", "think", "special", "step", "answer",
     "prompt", "tool", "user", "assistant", "system", "eot", "im", "extra", "decoder", "forced"}
)  # fmt: skip
# "db_pass"; "n_pass" and "first_pass" are no passwords.
ACCOUNT_WORDS = frozenset(
    {"user", "db", "database", "admin", "root", "sudo", "smtp", "imap", "mail", "email", "ftp",
     "sftp", "ssh", "proxy", "login", "mysql", "postgres", "pg", "sql", "mongo", "redis", "http",
     "api", "account", "wifi", "rabbitmq", "mqtt", "vnc", "jenkins"}
)  # fmt: skip
# Keys without meaning for their value: the key above or next to them describes it.
NEUTRAL_KEYS = frozenset(
    {"from", "to", "value", "values", "val", "old", "new", "before", "after", "current",
     "previous", "default", "content", "raw", "data", "text", "str", "string"}
)  # fmt: skip
# Values that say nothing: a program's constants and types.
EMPTY_VALUES = frozenset(
    {"", "none", "null", "nil", "true", "false", "yes", "no", "str", "string", "bytes", "int",
     "optional", "any", "basic", "digest", "oauth", "default", "undefined", "..."}
)  # fmt: skip

WORD_PATTERN = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
MIN_RANDOM_LETTERS = 16  # of a value that looks drawn by lot
RANDOM_PIECE = lazy_pattern(rf"[A-Za-z0-9]{{{MIN_RANDOM_LETTERS},}}")
PATH_START = lazy_pattern(r"~?/|[A-Za-z]:[\\/]|\.{1,2}/")  # PWD=/home/me is a place


def _split_words(name: str) -> list[str]:
    return [match[0].lower() for match in WORD_PATTERN.finditer(name)]


def _path(name: str) -> list[str]:
    """Split a name and drop trailing parts without meaning: {"hub_token": {"from": "x"}}."""
    path = name.split("/")
    while len(path) > 1 and (path[-1].lower() in NEUTRAL_KEYS or path[-1].isdigit()):
        path.pop()
    return path


def group_strength(name: str) -> str:
    """Return the strength that a name inherits from its group: {"hf_token": {"lab": "x"}}."""
    group = "/".join(_path(name)[:-1])
    of_group = strength(group) if group else ""
    return {"any": "random", "text": "random", "token": "drawn"}.get(of_group, "")


@lru_cache(maxsize=4096)
def strength(name: str) -> str:
    """Return which values a name makes secret: "any", "text", "token", "random", "drawn" or "".

    "random" values have letters and digits; "drawn" ones also mix cases.
    """
    name_words = _split_words(_path(name)[-1]) or _split_words(name)
    if not SECRET_WORDS.isdisjoint(_split_words(name) if "/" in name else name_words):
        return "any"
    # PGPASSWORD is one word.
    if any(
        name_word.endswith(("password", "passwd", "passphrase", "apikey", "authtoken"))
        for name_word in name_words
    ):
        return "any" if not {"apikey"} & set(name_words) else "text"
    pairs = {(first, second.removesuffix("s")) for first, second in pairwise(name_words)}
    if any(first in KEY_WORDS and second == "key" for first, second in pairs):
        return "text"
    if ("connection", "string") in pairs or not CREDENTIAL_WORDS.isdisjoint(name_words):
        return "text"
    # "hf_token_value" is a token's name.
    while len(name_words) > 1 and name_words[-1] in {"value", "text", "string", "id"}:
        name_words = name_words[:-1]
    *_, previous, last = ("", "", *name_words)
    strength = ""
    if last == "pass" and (len(name_words) == 1 or previous in ACCOUNT_WORDS):
        strength = "text"  # "n_pass" and "first_pass" are counts and kinds
    elif last in {"token", "tokens"} and previous not in TEXT_TOKEN_WORDS:
        strength = "token" if last == "token" else "drawn"
    # "license: mit" is no secret.
    elif last in {"license", "licence"} or name_words == ["sk"] or "key" in name_words:
        strength = "random"
    elif last in {"session", "sid", "sig", "signature", "nonce", "hmac", "salt"}:
        strength = "drawn"
    return strength


def is_random(value: str) -> bool:
    """Return whether a value looks random: long, with letters and digits, no space, no path."""
    if len(value) < MIN_RANDOM_LETTERS or re.search(r"[\s()\[\]{}<>,]", value):
        return False
    if PATH_START.match(value) or value.count("/") > 1:
        return False
    digits = sum(letter.isdigit() for letter in value)
    return digits >= 2 and any(letter.isalpha() for letter in value)  # "v2" has one


def is_drawn(value: str) -> bool:
    """Return whether a value looks like a key: it mixes cases and digits and holds no word."""
    # So long a run of one case is a word.
    return any(
        not re.search(r"[a-z]{7}|[A-Z]{7}", piece)
        and piece.lower() != piece != piece.upper()
        and len(re.findall(r"\d+", piece)) > 1
        for piece in RANDOM_PIECE.findall(value)
    )
