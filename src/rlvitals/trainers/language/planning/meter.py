"""Count operations and memory of a program on fake tensors, which have no storage."""

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from rlvitals.trainers.language.planning.device import Rates

ATEN = torch.ops.aten
UNWRITTEN_OPERATIONS = frozenset({ATEN.empty, ATEN.empty_like, ATEN.empty_strided, ATEN.new_empty})
LOOKUP_OPERATIONS = frozenset({ATEN.embedding, ATEN.index, ATEN.gather, ATEN.index_select})


class Meter(TorchDispatchMode):
    """Sum up time, FLOPs and memory of the operations under `with`, forward and backward.

    An operation takes `rates.overhead` and, in addition, the longer of its computing and its
    reading and writing. Memory is that of storages that are alive, `bytes_now` and `bytes_peak`.
    """

    def __init__(self, rates: Rates) -> None:
        """Begin with nothing."""
        super().__init__()
        self._rates = rates
        self._alive: dict[int, weakref.ref[Any]] = {}
        self.seconds = self.flops = 0.0
        self.operations = 0
        self.bytes_now = self.bytes_peak = 0

    def track(self, tensors: Iterable[Tensor]) -> int:
        """Count tensors that exist already; returns the bytes that they add."""
        start_bytes = self.bytes_now
        for tensor in tensors:
            self._track(tensor)
        return self.bytes_now - start_bytes

    def _track(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()  # noqa: SLF001 - its address
        if key in self._alive:
            return

        def free(_: object) -> None:
            self.bytes_now -= size
            del self._alive[key]

        self._alive[key] = weakref.ref(storage, free)
        self.bytes_now += size
        self.bytes_peak = max(self.bytes_peak, self.bytes_now)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation, and count it."""
        options = kwargs or {}
        result = func(*args, **options)
        if func.namespace == "prim":  # asks for a property, and computes nothing
            return result
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        for tensor in outputs:
            self._track(tensor)
        self.operations += 1
        self.seconds += self._rates.overhead
        if func.is_view or func.overloadpacket in UNWRITTEN_OPERATIONS:
            return result
        count = flop_registry.get(func.overloadpacket)
        flops = float(count(*args, **options, out_val=result)) if count else 0.0
        # A lookup reads the rows that it returns, not its table.
        read = outputs if func.overloadpacket in LOOKUP_OPERATIONS else tree_leaves((args, options))
        moved = _bytes(read) + _bytes(outputs)
        self.flops += flops
        self.seconds += max(flops / self._rates.flops, moved / self._rates.bandwidth)
        return result


def _bytes(values: Iterable[Any]) -> int:
    return sum(
        value.numel() * value.element_size() for value in values if isinstance(value, Tensor)
    )
