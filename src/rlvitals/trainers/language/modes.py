"""GRPO as in TRL, and PSR, NSR and W-REINFORCE as two overrides of it.

`_calculate_rewards` keeps what it returns, `_generate_and_score_completions` puts each mode's
advantages in the place of GRPO's. trl v1.16: trl/trainer/grpo_trainer.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from trl import GRPOTrainer

from rlvitals import UsageError
from rlvitals.trainers.language import sample_weights
from rlvitals.trainers.language.config import GRPO_MODE, SignalConfig

# TRL's losses that divide by the tokens of the generation batch, all processes: the others divide
# by samples or by a process's own tokens, and include the samples that are left out.
TOKEN_LOSSES = ("dapo", "cispo")


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The results of a generation, over all processes in order."""

    step: int  # optimizer steps done
    signal: sample_weights.Signal | None  # None: GRPO's
    rewards: Mapping[str, Sequence[float]]  # by function; NaN without a reward


class ModesTrainer(GRPOTrainer):
    """Train in one of the modes; `on_batch` is called with each generation on every process.

    `correctness` names the reward function whose reward is compared with the threshold, where the
    total is not. Raises UsageError for settings that do not go together.
    """

    def __init__(
        self,
        *args: Any,
        mode: str = GRPO_MODE,
        signal: SignalConfig | None = None,
        correctness: str = "",
        on_batch: Callable[[BatchResult], None] | None = None,
        **options: Any,
    ) -> None:
        """Build TRL's trainer."""
        self._mode, self._signal = mode, signal or SignalConfig()
        self._on_batch = on_batch
        self._paid: Any = None  # [all samples, functions]: the last generation's rewards
        super().__init__(*args, **options)
        # Which reward is compared with the threshold; None: the total.
        if self._mode == GRPO_MODE or self._signal.threshold_on == "total":
            self._compared = None
        else:
            names = list(self.reward_func_names)
            if correctness not in names:
                raise UsageError(
                    f"{self._mode} compares {correctness!r} with the threshold, "
                    "and nothing pays that",
                    where="rewards.correctness",
                    hint=f"one of {', '.join(names)}, or --threshold-on total",
                )
            self._compared = names.index(correctness)
        only_kept = (
            self._mode in (sample_weights.PSR, sample_weights.NSR)
            and self._signal.normalise == "kept"
        )
        if only_kept and self.loss_type not in TOKEN_LOSSES:
            raise UsageError(
                f"the loss {self.loss_type!r} is no mean over the tokens that are kept",
                where="signal.normalise",
                hint="--normalise all, or --loss-type dapo",
            )

    def _calculate_rewards(self, *args: Any) -> torch.Tensor:
        self._paid = super()._calculate_rewards(*args)
        return self._paid

    def _generate_and_score_completions(self, inputs: list[Any]) -> dict[str, Any]:
        out: dict[str, Any] = super()._generate_and_score_completions(inputs)
        signal = None
        if self._mode != GRPO_MODE:
            compared = (
                sample_weights.total(self._paid, self.reward_weights.to(self._paid.device))
                if self._compared is None
                else self._paid[:, self._compared]
            )
            signal = sample_weights.signal(self._mode, compared, self._signal)
            first = self.accelerator.process_index * len(inputs)
            mine = slice(first, first + len(inputs))  # this process's part of the batch
            out["advantages"] = signal.advantages[mine].to(out["advantages"].device)
            if self._mode != sample_weights.W_REINFORCE and self._signal.normalise == "kept":
                # The tokens of the samples that are learned from, over all processes.
                mask = out["completion_mask"]
                if "tool_mask" in out:
                    mask = mask * out["tool_mask"]
                count = mask[signal.is_learned[mine].to(mask.device)].sum()
                tokens: torch.Tensor = self.accelerator.gather(count).sum()
                out["num_items_in_batch"] = tokens
            logged = self._logs["advantages"]  # of the table of completions: GRPO's are in it
            for _ in range(min(len(signal.advantages), len(logged))):
                logged.pop()
            logged.extend(signal.advantages.tolist())
            metrics = self._metrics["train" if self.model.training else "eval"]
            for name, value in sample_weights.metrics(self._mode, signal).items():
                metrics[name].append(value)
        if self._on_batch is not None and self.model.training:
            columns = self._paid.T.tolist()
            paid = dict(zip(self.reward_func_names, columns, strict=True))
            self._on_batch(BatchResult(self.state.global_step, signal, paid))
        return out
