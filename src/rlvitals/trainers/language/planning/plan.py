"""The estimate of an update: memory by part and phase, time by phase, assumptions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rlvitals.trainers.language.planning.device import Rates
from rlvitals.trainers.language.planning.passes import Pass


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of an update: all of its passes."""

    name: str
    seconds: float
    flops: float
    memory: int  # bytes at its peak, weights included


@dataclass(frozen=True, slots=True)
class Plan:
    """The estimate of a training, before it starts."""

    model: str
    parameters: int
    trainable: int
    adapters: str  # "rank 8 on q_proj, v_proj"; empty without
    parts: Mapping[str, int]  # bytes by what they are for
    phases: Sequence[Phase]
    rates: Rates
    assumptions: Sequence[str]
    warnings: Sequence[str] = ()

    @property
    def memory(self) -> int:
        """Bytes at the highest peak."""
        return max(phase.memory for phase in self.phases)

    @property
    def seconds(self) -> float:
        """Seconds of an update."""
        return sum(phase.seconds for phase in self.phases)

    def document(self) -> dict[str, Any]:
        """Return it as strict JSON has it."""
        return {
            "format": 1, **asdict(self),
            "memory": self.memory, "seconds_per_update": self.seconds,
        }  # fmt: skip


def phase(name: str, trace: Pass, resident: int) -> Phase:
    """Return a phase of passes, with `resident` bytes during all of it."""
    return Phase(name, trace.seconds, trace.flops, resident + trace.peak)
