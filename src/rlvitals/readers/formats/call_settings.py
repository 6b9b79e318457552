"""Read settings from the calls in Python source, without executing it.

`GRPOConfig(learning_rate=1e-6, num_generations=8)` has the settings learning_rate and
num_generations. Only literals count: a name or an expression is unknown.
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence

from rlvitals.readers.formats.columns import MAX_SETTING_CHARACTERS
from rlvitals.types import Setting

TRL_TRAINERS = "GRPO|DPO|PPO|RLOO|KTO|ORPO|CPO|BCO|SFT|Reward|PRM|GKD|OnlineDPO|XPO|NashMD"


def of_training(sources: Sequence[str]) -> dict[str, Setting]:
    """Return the settings of the training in the last of `sources`, its algorithm among them.

    `sources` are those of cells, in order. The last call of a trainer's configuration counts, and
    the last environment that is made.
    """
    trainer: dict[str, Setting] = {}
    environment: dict[str, Setting] = {}
    steps: dict[str, Setting] = {}
    for source in sources:
        for call, name in _calls(source):
            literals = _literals(call)
            if match := re.fullmatch(
                rf"(?:Seq2Seq|Unsloth)?TrainingArguments|(?P<trl>{TRL_TRAINERS})(?:v2)?Config"
                # Stable-Baselines3 and its contributions.
                r"|(?P<sb3>(?:Maskable|Recurrent)?PPO|A2C|(?:QR)?DQN|SAC|TD3|DDPG|TQC|TRPO|ARS|CrossQ)",
                name,
            ):
                algorithm = (match["trl"] or match["sb3"] or "").lower()
                trainer = ({"algorithm": algorithm} if algorithm else {}) | literals
                if text := _environment(call.args[1:2]):
                    environment = {"env_id": text}
            elif match := re.fullmatch(rf"({TRL_TRAINERS})(?:v2)?Trainer", name):
                trainer |= {"algorithm": match[1].lower()} | literals
            elif name in {"make", "make_vec", "make_vec_env", "make_atari_env"} and (
                text := _environment(call.args[:1])
            ):
                environment = {"env_id": text}
    for call, name in _calls(sources[-1] if sources else ""):
        if name == "learn" and "total_timesteps" in (literals := _literals(call)):
            steps = {"total_timesteps": literals["total_timesteps"]}
    # Below 1 the number of epochs decides.
    if isinstance(limit := trainer.get("max_steps"), int) and limit < 1:
        del trainer["max_steps"]
    return environment | steps | trainer


def _calls(source: str) -> Iterator[tuple[ast.Call, str]]:
    """Yield each call of a cell, in the order of its lines, with the called name."""
    tree = _parse(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree else []
    for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        match call.func:
            case ast.Name(name) | ast.Attribute(attr=name):
                yield call, name


def _parse(source: str) -> ast.Module | None:
    """Return the syntax tree of a cell without IPython's magics; None where there is none."""
    if len(source) > 2**18:  # a longer cell contains data
        return None
    plain = re.sub(r"^([ \t]*)[!%?].*$", r"\1pass", source, flags=re.MULTILINE)
    try:
        with warnings.catch_warnings():  # of odd escapes in a stranger's strings
            warnings.simplefilter("ignore")
            return ast.parse(plain)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _literals(call: ast.Call) -> dict[str, Setting]:
    pairs = ((keyword.arg, _literal(keyword.value)) for keyword in call.keywords)
    return {name: value for name, value in pairs if name and value is not None}


def _literal(node: ast.expr) -> Setting | None:
    match node:
        case ast.Constant(str(text)):
            return text.encode(errors="replace").decode()[:MAX_SETTING_CHARACTERS]
        case ast.Constant(bool() | int() | float() as value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
            return -value
    return None


def _environment(arguments: Iterable[ast.expr]) -> str:
    """Return an argument that names an environment as registries do; "" for anything else."""
    for argument in arguments:
        value = _literal(argument)
        if isinstance(value, str) and re.fullmatch(r"[\w./:-]{1,80}-v\d{1,3}", value):
            return value
    return ""
