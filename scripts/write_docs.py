"""Write the pages of the manual that follow from the code: `write_docs.py [--check]`.

Metrics, frameworks, rules, readers, settings, commands, glossary and environments each have one
source, and that is the code; what is written here is checked in, so that it can be read and
reviewed without building anything. `--check` writes nothing and exits 1 naming stale pages.
"""

import posixpath
import re
import sys
from argparse import Action, ArgumentParser, _SubParsersAction
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from types import ModuleType

from rlvitals import metrics
from rlvitals.cli import COMMANDS
from rlvitals.cli.program import parser
from rlvitals.metrics import environments, glossary
from rlvitals.metrics.metric import Metric
from rlvitals.metrics.names import TABLES
from rlvitals.readers import READERS
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rule import Rule
from rlvitals.rules.standing import OUTCOME_METRICS
from rlvitals.show import explain, listing, rulebook
from rlvitals.show.settings_table import settings_table
from rlvitals.show.wording import number
from rlvitals.trainers import schema
from rlvitals.trainers.language import config as language
from rlvitals.trainers.language import presets as of_models
from rlvitals.trainers.language.rlhf import config as rlhf
from rlvitals.trainers.ppo import presets
from rlvitals.trainers.ppo.config import Config

ROOT = Path(__file__).resolve().parent.parent
WRITTEN = "<!-- Written by scripts/write_docs.py from the code: change it there. -->\n"
SETTINGS = "hyperparameters"  # the family whose members have no prefix
FAMILIES: tuple[ModuleType, ...] = (
    metrics.outcome,
    metrics.reward,
    metrics.policy,
    metrics.exploration,
    metrics.value,
    metrics.optimiser,
    metrics.observation,
    metrics.language,
    metrics.preference,
    metrics.scheduler,
    metrics.throughput,
    metrics.progress,
    metrics.hyperparameters,
)


def main(argv: Sequence[str]) -> int:
    written = pages()
    stale = [path for path, text in written.items() if _content(ROOT / path) != text]
    stale += [path for path in _generated() if path not in written]
    if "--check" in argv:
        for path in stale:
            print(f"{path} is stale: run make docs")
        return 1 if stale else 0
    for path in stale:
        if path not in written:
            (ROOT / path).unlink()
            continue
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(written[path], encoding="utf-8")
        print(path)
    return 0


def pages() -> dict[str, str]:
    """Every generated file by its path from the root; mkdocs.yml for its list of rules."""
    made = dict((*_metrics(), *_frameworks(), *_rules(), *_others()))
    linked = {f"docs/{path}": WRITTEN + "\n" + link(text, path) for path, text in made.items()}
    return linked | {
        "mkdocs.yml": navigation((ROOT / "mkdocs.yml").read_text(encoding="utf-8")),
        "src/rlvitals/trainers/ppo/configs/ppo_warmstart.json": schema.text(Config()),
    }


def _content(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _generated() -> Iterator[str]:
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if path.read_text(encoding="utf-8").startswith(WRITTEN):
            yield path.relative_to(ROOT).as_posix()


# Links: every name in backticks that has a page.


def _family(metric: Metric) -> str:
    return SETTINGS if metric.kind == "setting" else metric.name.split("/")[0]


def _anchor(metric: Metric) -> str:
    return metric.name.split("/")[-1]


def targets() -> dict[str, str]:
    """The page of each rule, metric and setting, from docs/."""
    found = {rule.name: f"rules/{rule.name}.md" for rule in CATALOGUE}
    for metric in metrics.CATALOGUE:
        page = f"metrics/{_family(metric)}.md#{_anchor(metric)}"
        found |= {metric.name: page} | ({f"{metric.name}/...": page} if metric.family else {})
    return found


TARGETS = targets()
NAME = re.compile(r"(?<![\[`])`([^`]+)`(?!`)")  # [`x`] is a link already, ``x`` is another's key


def link(text: str, page: str) -> str:
    """Turn names in backticks into links; not in headings and code."""
    lines, fenced = [], False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        plain = fenced or line.startswith(("#", "    "))
        lines.append(line if plain else NAME.sub(_linked(page), line))
    return "\n".join(lines).rstrip() + "\n"


def _linked(page: str) -> Callable[[re.Match[str]], str]:
    def replace(found: re.Match[str]) -> str:
        target, _, anchor = TARGETS.get(found[1], "").partition("#")
        if not target or (target == page and not anchor):
            return found[0]
        to = posixpath.relpath(target, posixpath.dirname(page)) if target != page else ""
        return f"[{found[0]}]({to}{'#' + anchor if anchor else ''})"

    return replace


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay rows out as a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in lines)


def _cell(text: str) -> str:
    """Keep a bar from ending its cell: renderers differ about one that is escaped within code."""
    return re.sub(r"`+([^`]*\|[^`]*)`+", _code, text).replace("|", "\\|")


def _code(found: re.Match[str]) -> str:
    pattern = escape(found[1]).replace("|", "&#124;<wbr>")
    return f'<code class="pattern">{pattern}</code>'


def _title(module: ModuleType) -> str:
    return module.__name__.rsplit(".", 1)[1]


def _doc(text: str | None) -> str:
    return (text or "").strip()


# Metrics and frameworks.


def _metrics() -> Iterator[tuple[str, str]]:
    rows = []
    for module in FAMILIES:
        members = [m for m in metrics.CATALOGUE if _family(m) == _title(module)]
        yield f"metrics/{_title(module)}.md", _family_page(module, members)
        rows.append(
            (f"[{_title(module)}]({_title(module)}.md)", _doc(module.__doc__), str(len(members)))
        )
    intro = """# Metrics

A metric has one canonical name, whoever logged it. Each page says what the number means, its unit,
where it is healthy and who said so, and what each framework calls it and how it computes it: the
same name often stands for different numbers. `rlvitals explain NAME` prints an entry, by its
canonical name or by any framework's. Framework by framework: [frameworks](../frameworks/index.md).

A healthy range is a guide to the eye. Findings come from [rules](../rules/index.md), which ask
for more than a number out of its range.
"""
    yield "metrics/index.md", f"{intro}\n{table(('family', 'what it is about', 'metrics'), rows)}"


def _family_page(module: ModuleType, members: Sequence[Metric]) -> str:
    name = _title(module)
    head = "Settings" if name == SETTINGS else name.capitalize()
    rows = [(f"[`{_shown(m)}`](#{_anchor(m)})", m.title, m.unit, m.kind) for m in members]
    parts = [f"# {head}", _doc(module.__doc__), table(("name", "title", "unit", "kind"), rows)]
    return "\n\n".join([*parts, *(_metric(m) for m in members)])


def _shown(metric: Metric) -> str:
    return f"{metric.name}/..." if metric.family else metric.name


def _metric(metric: Metric) -> str:
    """The entry that `rlvitals explain` prints, one level down and under an anchor."""
    _, _, body = explain.metric_page(metric).partition("\n")
    body, _, _ = body.partition("\n## Logged as\n")
    rows = [
        (framework.title, *_alias(alias))
        for framework in TABLES
        for alias in explain._aliases(framework, metric)
    ]
    named = ["", table(("framework", "logged as", "how it is measured"), rows)] if rows else []
    return "\n".join([f"## {_shown(metric)} {{ #{_anchor(metric)} }}", body.rstrip(), *named])


def _alias(text: str) -> tuple[str, str]:
    """Tell the keys from how they are measured; keys are marked as not ours."""
    end = text.rindex("`") + 1 if ": " not in text else text.index("`: ") + 1
    return text[:end].replace("`", "``"), text[end:].removeprefix(": ")


def _frameworks() -> Iterator[tuple[str, str]]:
    rows = []
    for framework in TABLES:
        name = framework.framework
        named = [
            *listing.keys(framework),
            *listing.families(framework),
            *((key, name, "setting") for key, name in framework.settings.items()),
        ]
        keys = [(f"`{key}`", f"`{metric}`", how) for key, metric, how in named]
        source = f"\n\nAs computed in {framework.read_from}." if framework.read_from else ""
        listed = table(("key", "metric", "how it is measured"), keys)
        yield f"frameworks/{name}.md", f"# {framework.title}{source}\n\n{listed}"
        rows.append(
            (
                f"[{framework.title}]({name}.md)",
                str(len(framework.keys)),
                str(len(framework.settings)),
            )
        )
    intro = """# Frameworks

What the keys of a log mean, one table for each framework. A log of a reader that is a framework's
own speaks its table; of any other log (TensorBoard, CSV, JSON lines) the table that knows most of
its keys is taken. `rlvitals metrics PATH` shows what was made of a run's keys, and which are not
mapped; `--map my/score=outcome/return` maps one.
"""
    heads = ("framework", "keys", "settings")
    yield "frameworks/index.md", f"{intro}\n{table(heads, rows)}"


# Rules.


def _rules() -> Iterator[tuple[str, str]]:
    for rule in CATALOGUE:
        yield f"rules/{rule.name}.md", _rule(rule)
    lines = [
        "# Rules",
        "",
        f"{len(CATALOGUE)} rules. Each answers with a finding, with clear, or with undecided and",
        "why; [how it decides](../how-it-decides.md) says what becomes of that. Every rule has two",
        "traces of recorded runs, one on which it fires and one on which it does not, and its page",
        "says when it is wrong.",
    ]
    for area, rules in rulebook.by_kind(CATALOGUE).items():
        rows = []
        for rule in rules:
            name, sees, profiles, _ = listing.rule(rule)
            kinds = "any" if profiles == "all" else profiles
            rows.append((f"`{name}`", sees, kinds, _needs(rule)))
        heads = ("rule", "sees", "kinds of training", "needs")
        lines += ["", f"## {area.capitalize()}", "", table(heads, rows)]
    yield "rules/index.md", "\n".join(lines)


def _needs(rule: Rule) -> str:
    if rule.needs_any == OUTCOME_METRICS:
        return "the run's [outcome](../how-it-decides.md#outcome-first)"
    one_of = " or ".join(f"`{metric.name}`" for metric in rule.needs_any)
    return " and ".join(
        [*(f"`{metric.name}`" for metric in rule.needs), *([one_of] if one_of else [])]
    )


def _rule(rule: Rule) -> str:
    """The page that `rlvitals explain` prints, and the rule at work on its trace."""
    page = explain.rule_page(rule).replace(f"# rule {rule.name}", f"# {rule.name}", 1)
    example = (ROOT / "tests" / "traces" / rule.name / "fires.txt").read_text(encoding="utf-8")
    recipe = (ROOT / "tests" / "traces" / rule.name / "trace.toml").read_text(encoding="utf-8")
    fires, _, _ = recipe.partition("[quiet]")
    hand = "; one of its series was changed by hand" if "[fires.injected]" in fires else ""
    lines = [
        page,
        "",
        "## At work",
        f"On `tests/traces/{rule.name}/`, cut from a recorded run{hand}:",
        "",
        "```text",
        example.rstrip(),
        "```",
    ]
    return "\n".join(lines)


def navigation(text: str) -> str:
    """Put the rules and the frameworks into mkdocs.yml's navigation, between their marks."""
    rules = []
    for area, found in rulebook.by_kind(CATALOGUE).items():
        rules.append(f"- {area.capitalize()}:")
        rules += [f"    - {rule.name}: rules/{rule.name}.md" for rule in found]
    frameworks = [f'- "{t.title}": frameworks/{t.framework}.md' for t in TABLES]
    return _between(_between(text, "rules", rules), "frameworks", frameworks)


def _between(text: str, name: str, lines: Sequence[str]) -> str:
    start, end = f"# {name}: written by scripts/write_docs.py", f"# end of {name}"
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    return before + f"\n{' ' * 6}".join([start, *lines, end]) + after


# What is one page each.


def _others() -> Iterator[tuple[str, str]]:
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

{READER_DOC.rstrip()}
"""


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

Command line over environment (`RLVITALS_*`) over the nearest `rlvitals.toml` over default. The
nearest file is the first one found from the run's folder upward, else the one in the working
folder. An unknown name is an error that names the nearest known one.

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
    top = parser(COMMANDS)
    subs = next(a for a in top._actions if isinstance(a, _SubParsersAction))
    parts = [
        "# Commands",
        "`rlvitals COMMAND --help` says the same. See also [exit codes](exit-codes.md).",
    ]
    parts += [_command(command.name, subs.choices[command.name]) for command in COMMANDS]
    return "\n\n".join(parts)


def _command(name: str, sub: ArgumentParser) -> str:
    first, _, rest = _doc(sub.description).partition("\n")
    rows = [_argument(a) for a in sub._actions if a.dest != "help"]
    parts = [f"## rlvitals {name}", first]
    if rest.strip():
        parts.append(f"```text\n{rest.strip()}\n```")
    if rows:
        parts.append(table(("argument", "meaning"), rows))
    return "\n\n".join(parts)


def _argument(action: Action) -> tuple[str, str]:
    value = str(action.metavar or ("" if action.nargs == 0 else action.dest.upper()))
    shown = " ".join(part for part in (", ".join(action.option_strings), value) if part)
    count = {"?": " (may be left out)", "+": " (one or more)"}.get(str(action.nargs), "")
    choices = f": {', '.join(map(str, action.choices))}" if action.choices else ""
    return f"`{shown}`", f"{action.help or ''}{count}{choices}"


def _glossary() -> str:
    parts = ["# Glossary", "`rlvitals explain TERM` prints an entry."]
    for term in sorted(glossary.TERMS, key=lambda t: t.name.lower()):
        also = f"\n\nAlso: {', '.join(term.also)}." if term.also else ""
        see = ", ".join(f"`{name}`" for name in term.see_also)
        parts.append(f"## {term.name}\n\n{term.meaning}{also}" + (f"\n\nSee {see}." if see else ""))
    return "\n\n".join(parts)


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
    _, _, wrappers = _doc(environments.__doc__).partition("\n\n")
    return f"""# Environments

What is known of {len(rows)} standard environments decides what counts as learning (a share of the
way from random to solved), as converged, and as an impossible return. Where a run's environment
is not logged, say it: `--set env_id=CartPole-v1`.

{wrappers}

{table((*heads, "source"), rows)}

## Sources

{listed}
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
