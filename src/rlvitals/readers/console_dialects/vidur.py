"""The lines of the PPO request scheduler: `[PPO:update]`, `[PPO:rollout]`, `[PPO:init]`.

`[PPO:update] step=512 len=128 pi=-0.001 vf=0.02 ent=1.2 kl=0.004 clip=0.1 ev=0.3 gnorm=0.5
lr=3.00e-04 R(mean/std/min/max)=0.1/0.2/-0.3/0.4 Adv_std=1.0 V/Ret=0.1/0.2 mask=1.0 act=[30, 98]`
They get the names of the scheduler's CSV. Source: Archer222arc/Vidurrl,
vidur/scheduler/global_scheduler/ppo_scheduler_modular.py.
"""

import re

from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, number
from rlvitals.startup.fast_dataclass import dataclass

FIELD = re.compile(r"([A-Za-z_][\w./()]{0,60})=(\[[^\]]{0,400}\]|[^\s|]{1,120})")
NAMES = {
    "len": ("rollout_length",),
    "pi": ("pi_loss",),
    "vf": ("vf_loss",),
    "ent": ("entropy",),
    "kl": ("approx_kl",),
    "clip": ("clipfrac",),
    "ev": ("explained_var",),
    "gnorm": ("pg_grad_norm",),
    "lr": ("lr",),
    "R(mean/std/min/max)": ("reward_mean", "reward_std", "reward_min", "reward_max"),
    "Adv_std": ("advantage_std",),
    "V/Ret": ("value_mean", "return_mean"),
    "mask": ("mask_mean",),
    "current_r": ("reward",),
    "last_r": ("reward",),
}


@dataclass(slots=True)
class Scheduler:
    """Keeps nothing: every line says its step."""

    open: bool = False

    def take(self, page: Page) -> None:
        """Read a line of an update, of the rollout's progress, or of the start."""
        kind = page.text.partition("[PPO:")[2].partition("]")[0]
        if kind == "init":
            names = {
                "lr": "lr",
                "gamma": "gamma",
                "lam": "lambda",
                "clip": "clip_ratio",
                "ent": "entropy_coef",
                "vf": "value_coef",
                "epochs": "epochs",
                "roll": "rollout_len",
                "mb": "minibatch_size",
                "gnorm": "max_grad_norm",
            }
            for key, cell in FIELD.findall(page.text):
                name, value = names.get(key), number(cell)
                if name is not None and value is not None:
                    page.shared.settings[name] = (
                        int(value) if name in ("epochs", "rollout_len", "minibatch_size") else value
                    )
        elif kind in {"update", "rollout"}:
            fields = dict(FIELD.findall(page.text.partition("]")[2]))
            step = fields.pop("step", "")
            if step.isdecimal() and len(step) < 16:  # digits of a step
                pairs = [pair for key, cell in fields.items() for pair in _pairs(key, cell)]
                page.add(int(step), pairs, "decisions")


def _pairs(key: str, cell: str) -> list[Pair]:
    """Name the numbers of one field: `a/b` are several, `act=[..]` counts each action."""
    if key == "act":
        counts = [number(part) for part in cell.strip("[]").replace(",", " ").split()]
        return [(f"action_replica_{i}", n) for i, n in enumerate(counts) if n is not None]
    parts = [number(part) for part in cell.split("/")]
    if key == "buf_ptr":
        filled, size = (*parts, None, None)[:2]
        return [("buffer_progress", filled / size)] if filled is not None and size else []
    names = NAMES.get(key, (key,))
    return [(n, p) for n, p in zip(names, parts, strict=False) if p is not None]


DIALECT = Dialect("scheduler", "the PPO request scheduler's lines", ("[PPO:",), Scheduler)
