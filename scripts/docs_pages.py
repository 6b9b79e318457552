"""Generate single pages: readers, settings, commands, decisions, glossary, environments."""

from argparse import Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

import scale_page
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
    yield "scale.md", scale_page.page()
    yield "decisions/index.md", _decisions()
    yield "trainers/ppo-settings.md", _ppo_settings()
    tiny = f"{LANGUAGE_PRESETS}\n{of_models.table()}"
    settings = f"{LANGUAGE_SETTINGS}\n{schema.table(language.Config)}\n{tiny}"
    yield "trainers/language-settings.md", settings
    yield "trainers/rlhf-settings.md", f"{RLHF_SETTINGS}\n{schema.table(rlhf.Config)}"


def _ppo_settings() -> str:
    return f"{PPO_SETTINGS}\n{schema.table(Config)}\n{PPO_PRESETS}\n{presets.table()}"


PPO_PRESETS = """## Presets

The table above has the defaults for the cluster. Other environments start from a preset, which
`--env ID --help` and the first lines of the log show. A file (`--config`) takes precedence over the
preset, and a flag over both. See the [results](../benchmarks.md). Other environments have no
scheduler to clone: the warm start is skipped, and the log says so once.
"""

PPO_SETTINGS = """# Settings of `rlvitals train ppo`

Every setting is a flag and a key of a JSON file with these sections (`--config FILE`). Flags take
precedence over the file. `rlvitals train ppo --write-config FILE` writes the defaults. An unknown
key is an error. Other spellings of flags: `--total-requests` and `--ppo-requests` are
`--total-steps`, `--num-replicas` is `--replicas`, `--pretrained-actor-path` is
`--external-pretrain`, `--skip-bc-training` is `--skip-warmstart`. A flag of `true` or `false` may
stand alone: `--wandb`.
"""


LANGUAGE_PRESETS = """## Presets

The table above has the defaults for models with billions of weights. The two tiny models start from
a preset. A file takes precedence over the preset, and a flag over both. See the
[results](results.md).
"""

LANGUAGE_SETTINGS = """# Settings of the language trainers

The settings of `rlvitals train grpo`, `psr`, `nsr` and `w-reinforce` are flags, and keys of the
sections in the JSON file that `--config` reads. A tiny model starts from a preset, which `--help`
shows. [Train a language model](../how-to/train-a-language-model.md#choose-a-mode) explains the
modes.
"""

RLHF_SETTINGS = """# Settings of `rlvitals train rlhf`

Every setting is a flag and a key of a JSON file with these sections (`--config FILE`). Flags take
precedence over the file. The table has the defaults for a large model. The tiny model, which is the
default model, starts from a preset that `rlvitals train rlhf --help` shows. `lora_dropout` and
`rewards.correctness` have no effect: see [RLHF](rlhf.md). Other spellings of flags:
`--model-name`, `--learning-rate`, `--init-kl-coef`, `--save-total-limit`.
"""


def _decisions() -> str:
    lines = ["# Decisions", "", "Design decisions with their reasons, one page each.", ""]
    for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- {path.name[:4].lstrip('0')}: [{title}]({path.name})")
    return "\n".join(lines)


def _readers() -> str:
    rows = [(r.name, r.title, r.looks_for.replace("*", "\\*"), f"`{r.example}`") for r in READERS]
    return f"""# What it reads

Pass a file, a run's folder, or a folder of many runs
([the log of each tool](how-to/read-your-logs.md)). The first reader that recognises a file reads
it. Files of one run are read together.

{table(("reader", "reads", "looks for", "such as"), rows)}

Every reader reads a growing file up to its last complete row, keeps NaN and infinity, and skips
damaged rows; the notes give their number and the reason. Files compressed by gzip or zstd are read
directly. For Weights & Biases, the local `.wandb` file is read, synced or not; no account is
needed. A database contains many runs: `mlflow.db` is all, `mlflow.db/EXPERIMENT/RUN` is one.

## Saved rollouts

[`rlvitals samples`](how-to/look-at-rollouts.md) lists the rollouts that a framework saves. They are
judged with the run in whose folder they are, or alone if there is no log.

{table(("dialect", "reads", "looks for", "such as"), _rollout_rows())}

{READER_DOC.rstrip()}
"""


def _rollout_rows() -> list[tuple[str, ...]]:
    return [
        (d.name, d.title, ", ".join(d.files).replace("*", "\\*"), f"`{d.example}`")
        for d in ROLLOUT_DIALECTS
    ]


READER_DOC = """## One run or many

Files of one run are merged: TensorBoard files of one folder, sibling folders `train/` and `eval/`
or `tensorboard/` and `metrics/`, console output in the same folder, `0.monitor.csv` and
`1.monitor.csv` of parallel environments, and the newest `trainer_state.json` of the checkpoints.
Other sibling folders, and the trials of a tuner, are separate runs. A metric that is logged twice
is taken from the log with the most points, and a note names it. Files of settings (`config.yaml`,
`args.json`, `.hydra/`, ...) are read with the run in the same folder.
"""


def _settings() -> str:
    return f"""# Settings

A setting is taken from the first of these sources that has it: the command line, the environment
(`RLVITALS_*`), the nearest `rlvitals.toml`, your own `~/.config/rlvitals/rlvitals.toml`, the
default.

The nearest file is the first one from the run's folder upward, else the one in the working folder.
`--config FILE` or `RLVITALS_CONFIG` selects another one. A file that comes with a run cannot set
[everything](how-to/keep-secrets-out.md#settings-files-that-came-with-a-run). An unknown name is an
error that suggests the nearest one.

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

`rlvitals explain RULE` lists the thresholds of a rule. [Fail a CI run on new
findings](how-to/fail-a-ci-run.md) shows the use of mutes and baselines.

{settings_table()}
"""


def _commands() -> str:
    # Not argparse's own layout: it changes with the version of Python and the width.
    top = parser(COMMAND_GROUPS)
    subs = next(a for a in top._actions if isinstance(a, _SubParsersAction))
    sections = [
        "# Commands",
        "`rlvitals COMMAND --help` prints the same texts. See also [exit codes](exit-codes.md).",
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
    count = {"?": " (optional)", "+": " (one or more)"}.get(str(action.nargs), "")
    choices = f": {', '.join(map(str, action.choices or ()))}"
    choices = choices if action.choices and choices not in str(action.help) else ""
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

The returns of {len(rows)} standard environments determine what counts as learning (a share of the
distance from random to solved), as converged, and as an impossible return. If a run's environment
is not logged, pass it: `--set env_id=CartPole-v1`.

{wrappers}

{table((*heads, "source"), rows)}

## Sources

{listed}
"""
