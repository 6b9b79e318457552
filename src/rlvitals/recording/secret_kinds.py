"""What keys, tokens and passwords look like: the one list that recording and reading share.

A kind stands with a literal part of it, so that a long text is searched only for what it can hold.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A secret that shows by itself, whatever it is called."""

    title: str
    literal: str  # every one of its kind holds this
    pattern: re.Pattern[str]


def _kind(title: str, literal: str, pattern: str) -> Kind:
    return Kind(title, literal, re.compile(pattern))


# Sources: the vendors' own pages on secret scanning, and GitHub's list of supported patterns.
KINDS = (
    _kind(
        "private key",
        "PRIVATE KEY",
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[\s\S]{0,16000}?-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"|[\sA-Za-z0-9+/=\\]*)",
    ),
    _kind("age key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _kind("AWS access key", "A", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    _kind("Google API key", "AIza", r"AIza[\w-]{35}"),
    _kind("Google OAuth token", "ya29.", r"\bya29\.[\w.-]{20,}"),
    _kind("Google client secret", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
    _kind("Azure client secret", "Q~", r"(?<![\w.~-])[\w.~-]{3}\dQ~[\w.~-]{31,34}"),
    _kind("GitHub token", "gh", r"\bgh[pousr]_[A-Za-z0-9]{36,255}"),
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
    _kind("Stripe key", "_", r"\b[srp]k_(?:live|test)_[0-9A-Za-z]{16,}"),
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

# Words of a name. Of the first, any value is a secret, a number too; of pairs, any text; of the
# weak ones, what does not look like a word of a language model, a number or a piece of a program.
SECRETS = frozenset(
    {"password", "passwd", "passphrase", "pwd", "secret", "secrets", "credential", "credentials"}
)
ENDS = ("password", "passwd", "passphrase", "apikey", "authtoken")  # PGPASSWORD is one word
PLAIN = frozenset({"apikey", "authorization", "bearer", "cookie", "auth"})
KEYS = frozenset(
    {"api", "access", "private", "account", "shared", "encryption", "signing", "ssh", "license",
     "master", "service", "app", "subscription", "deploy"}
)  # fmt: skip
TOKEN, KEY = "token", "key"
# "first_token", "eos_token", "reward_per_token": a language model's, not a password.
OF_A_TEXT = frozenset(
    {"pad", "eos", "bos", "unk", "mask", "sep", "cls", "image", "video", "audio", "stop", "per",
     "first", "last", "next", "new", "start", "begin", "end", "think", "special", "step", "answer",
     "prompt", "tool", "user", "assistant", "system", "eot", "im", "extra", "decoder", "forced"}
)  # fmt: skip
TRAILING = frozenset({"value", "text", "string", "id"})  # "hf_token_value" is one
# Values that say nothing: a program's constants and types.
EMPTY = frozenset(
    {"", "none", "null", "nil", "true", "false", "yes", "no", "str", "string", "bytes", "int",
     "optional", "any", "basic", "digest", "oauth", "default", "undefined", "..."}
)  # fmt: skip
