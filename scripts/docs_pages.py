"""Generate single pages: readers, settings, commands, decisions, glossary, environments."""

from argparse import Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

from docs_markdown import doc, table

from rlvitals.cli import COMMAND_GROUPS, COMMANDS
from rlvitals.cli.program import parser
from rlvitals.metrics import environments, glossary
from rlvitals.readers import READERS
from rlvitals.rollouts.dialects import ROLLOUT_DIALECTS
from rlvitals.trainers import schema
from rlvitals.trainers.language import config as language
from rlvitals.trainers.language import presets as of_models
from rlvitals.trainers.language.rlhf import config as rlhf
from rlvitals.trainers.ppo import presets
from rlvitals.trainers.ppo.config import Config
from rlvitals.views.phrases import number
from rlvitals.views.settings_table import settings_table

ROOT = Path(__file__).resolve().parent.parent


def single_pages() -> Iterator[tuple[str, str]]:
    """The path of each, from docs/, and what stands there."""
    yield "readers.md", _readers()
    yield "settings.md", _settings()
    yield "commands.md", _commands()
    yield "glossary.md", _glossary()
    yield "environments.md", _environments()
    yield "decisions/index.md", _decisions()
    yield "trainers/ppo-settings.md", _ppo_settings()
    tiny = f"{LANGUAGE_PRESETS}\n{of_models.table()}"
    settings = f"{LANGUAGE_SETTINGS}\n{schema.table(language.Config)}\n{tiny}"
    yield "trainers/language-settings.md", settings
    yield "trainers/rlhf-settings.md", f"{RLHF_SETTINGS}\n{schema.table(rlhf.Config)}"


def _ppo_settings() -> str:
    return f"{PPO_SETTINGS}\n{schema.table(Config)}\n{PPO_PRESETS}\n{presets.table()}"


PPO_PRESETS = """## Presets

The defaults above are the cluster's. Any other environment starts from a preset over them:
`--env ID --help` shows it, the first lines of the log say it, a file (`--config`) is above it and a
flag above both. What these come to: [benchmarks](../benchmarks.md). Environments other than the
cluster have no scheduler to begin from: the warm start is left out, and the log says so once.
"""

PPO_SETTINGS = """# Settings of `rlvitals train ppo`

One JSON file with these sections (`--config FILE`), and a flag for each key, which is above the
file. The defaults, as a file: `rlvitals train ppo --write-config FILE`. A key that is not here is
refused by name. Other spellings of flags: `--total-requests` and `--ppo-requests` are
`--total-steps`, `--num-replicas` is `--replicas`, `--pretrained-actor-path` is
`--external-pretrain`, `--skip-bc-training` is `--skip-warmstart`. A flag of `true` or `false` may
stand alone: `--wandb`.
"""


LANGUAGE_PRESETS = """## Presets

The defaults above are for models of billions of weights. The two that are made here start from a
preset over them; a file is above it and a flag above both. What the language model comes to:
[benchmarks](../benchmarks.md). The one that sees learns the form of an answer in a hundred steps,
and to read charts not at all: what counts as right of its answers is their form.
"""

LANGUAGE_SETTINGS = """# Settings of the language trainers

Of `rlvitals train grpo`, `psr`, `nsr` and `w-reinforce`: each is a flag, and a key of its section
in the JSON file that `--config` reads. A tiny model starts from a preset, which `--help` shows. How
the modes differ stands in [Train a language model](../how-to/train-a-language-model.md).
"""

RLHF_SETTINGS = """# Settings of `rlvitals train rlhf`

One JSON file with these sections (`--config FILE`), and a flag for each key, which is above the
file. These are the defaults for a large model; the tiny one, which is trained where no other is
named, starts from a preset that `rlvitals train rlhf --help` shows. `lora_dropout` and
`rewards.correctness` do nothing here: [RLHF](rlhf.md) says why. Other spellings of flags:
`--model-name`, `--learning-rate`, `--init-kl-coef`, `--save-total-limit`.
"""


def _decisions() -> str:
    lines = ["# Decisions", "", "Choices that a successor would question, a page each.", ""]
    for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- {path.name[:4].lstrip('0')}: [{title}]({path.name})")
    return "\n".join(lines)


def _readers() -> str:
    rows = [(r.name, r.title, r.looks_for.replace("*", "\\*"), f"`{r.example}`") for r in READERS]
    return f"""# What it reads

Point at a file, at a run's folder, or at a folder of many runs
([where each tool's log lies](how-to/read-your-logs.md)). The first of these readers that claims a
file reads it; files that belong to one run are read together and counted once.

{table(("reader", "reads", "looks for", "such as"), rows)}

Every reader reads a growing file as a prefix of the finished one, keeps NaN and infinity as data,
refuses damaged rows one by one, and says in the notes how many and why. A file that gzip or zstd
packed is read as if it were not. Of Weights & Biases the `.wandb` file that lies in the run's
folder is read, synced or not: no account is needed. A database holds many runs: `mlflow.db` is all
of them, `mlflow.db/EXPERIMENT/RUN` is one.

## Saved rollouts

What a framework saves of its samples is listed by [`rlvitals samples`](how-to/look-at-rollouts.md)
and judged together with the run that it lies beside, or alone where no log does.

{table(("dialect", "reads", "looks for", "such as"), _rollout_rows())}

{READER_DOC.rstrip()}
"""


def _rollout_rows() -> list[tuple[str, ...]]:
    return [
        (d.name, d.title, ", ".join(d.files).replace("*", "\\*"), f"`{d.example}`")
        for d in ROLLOUT_DIALECTS
    ]


READER_DOC = """## One run or many

Files of one run are put together: TensorBoard files of one folder, `train/` and `eval/` beside
each other, `tensorboard/` beside `metrics/`, what the process printed beside either, monitors
`0.monitor.csv` and `1.monitor.csv` of parallel environments, checkpoints' `trainer_state.json`
(the newest). Sibling folders, and the trials of a tuner, are runs of their own. What is logged
twice is judged once, from the fullest, and a note says where from. Files of settings
(`config.yaml`, `args.json`, `.hydra/`, ...) are read with the run that they lie beside.
"""


def _settings() -> str:
    return f"""# Settings

Command line over environment (`RLVITALS_*`) over the nearest `rlvitals.toml` over your own,
`~/.config/rlvitals/rlvitals.toml`, over default. The nearest file is the first one found from the
run's folder upward, else the one in the working folder; `--config FILE` or `RLVITALS_CONFIG` names
another instead. A file that lies with a run cannot set what acts:
[keep secrets out of a run](how-to/keep-secrets-out.md#settings-files-that-came-with-a-run).
An unknown name is an error that names the nearest known one.

```toml
[diagnose]
fail_on = "error"

[metrics]
"my/score" = "outcome/return"

[settings]
target_kl = 0.02

[thresholds]
kl-spike.factor = 12

[[muted]]
rule = "clip-fraction-high"
run = "sweep-*"
reason = "the sweep tries clip ranges that are too small"
until = 2030-12-31
```

`rlvitals explain RULE` lists the numbers that a rule judges by. Mutes and baselines at work:
[fail a CI run on new findings](how-to/fail-a-ci-run.md).

{settings_table()}
"""


def _commands() -> str:
    # Not argparse's own layout: it changes with the version of Python and the width.
    top = parser(COMMAND_GROUPS)
    subs = next(a for a in top._actions if isinstance(a, _SubParsersAction))
    sections = [
        "# Commands",
        "`rlvitals COMMAND --help` says the same. See also [exit codes](exit-codes.md).",
    ]
    sections += [_command(command.name, subs.choices[command.name]) for command in COMMANDS]
    return "\n\n".join(sections)


def _command(name: str, sub: ArgumentParser) -> str:
    first, _, description = doc(sub.description).partition("\n")
    rows = [_argument(a) for a in sub._actions if a.dest != "help"]
    sections = [f"## rlvitals {name}", first]
    if description.strip():
        sections.append(f"```text\n{description.strip()}\n```")
    if rows:
        sections.append(table(("argument", "meaning"), rows))
    return "\n\n".join(sections)


def _argument(action: Action) -> tuple[str, str]:
    value = str(action.metavar or ("" if action.nargs == 0 else action.dest.upper()))
    usage = " ".join(item for item in (", ".join(action.option_strings), value) if item)
    count = {"?": " (may be left out)", "+": " (one or more)"}.get(str(action.nargs), "")
    choices = f": {', '.join(map(str, action.choices))}" if action.choices else ""
    return f"`{usage}`", f"{action.help or ''}{count}{choices}"


def _glossary() -> str:
    sections = ["# Glossary", "`rlvitals explain TERM` prints an entry."]
    for term in sorted(glossary.TERMS, key=lambda t: t.name.lower()):
        also = f"\n\nAlso: {', '.join(term.also)}." if term.also else ""
        see = ", ".join(f"`{name}`" for name in term.see_also)
        sections.append(
            f"## {term.name}\n\n{term.meaning}{also}" + (f"\n\nSee {see}." if see else "")
        )
    return "\n\n".join(sections)


def _environments() -> str:
    heads = (
        "environment",
        "random",
        "solved",
        "lowest",
        "highest",
        "best known",
        "steps",
        "actions",
    )
    rows, sources = [], []
    for env in environments.ENVIRONMENTS:
        if env.source and env.source not in sources:
            sources.append(env.source)
        note = str(sources.index(env.source) + 1) if env.source else ""
        actions = "" if env.actions is None else str(env.actions)
        actions = actions if env.action_dim is None else f"{env.action_dim} continuous"
        facts = (env.random_return, env.solved_return, env.min_return, env.max_return,
                 env.best_return, env.horizon)  # fmt: skip
        cells = ("" if fact is None else number(fact) for fact in facts)
        rows.append((f"{env.name}", *cells, actions, note))
    listed = "\n".join(f"{i}. {source}." for i, source in enumerate(sources, 1))
    _, _, wrappers = doc(environments.__doc__).partition("\n\n")
    return f"""# Environments

What is known of {len(rows)} standard environments decides what counts as learning (a share of the
way from random to solved), as converged, and as an impossible return. Where a run's environment
is not logged, say it: `--set env_id=CartPole-v1`.

{wrappers}

{table((*heads, "source"), rows)}

## Sources

{listed}
"""
