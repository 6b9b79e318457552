"""Sample logged items other than numbers evenly within memory limits."""

from dataclasses import field
from typing import Generic, TypeVar

from rlvitals.startup.fast_dataclass import dataclass

Item = TypeVar("Item")


@dataclass(slots=True)
class _TagItems(Generic[Item]):
    """Sampled items of one tag: every `stride`-th of `count`, and their sizes in bytes."""

    items: list[Item] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    count: int = 0
    stride: int = 1


class SampledItems(Generic[Item]):
    """Keeps at most `most` items a tag and `most_bytes` in all.

    Where it gets more, every second item is let go and only every second of the coming ones
    kept. `wants` is asked before an item is made, `add` follows where it said yes.
    """

    def __init__(self, noun: str, max_items: int, max_bytes: int) -> None:
        """Start empty. `what` names the items in notes, as "histograms"."""
        self._what, self._most, self._most_bytes = noun, max_items, max_bytes
        self._tags: dict[str, _TagItems[Item]] = {}
        self._bytes = 0

    def wants(self, tag: str, size: int) -> bool:
        """Count an item of about `size` bytes; tell whether to keep it."""
        of = self._tags.setdefault(tag, _TagItems())
        of.count += 1
        if (of.count - 1) % of.stride or size > self._most_bytes:
            return False
        if len(of.items) >= self._most:
            self._thin(of)
        while self._bytes + size > self._most_bytes:
            longest = max(self._tags.values(), key=lambda tag_items: len(tag_items.items))
            if len(longest.items) < 2:  # nothing left to thin
                return False
            self._thin(longest)
        return (of.count - 1) % of.stride == 0

    def add(self, tag: str, item: Item, size: int) -> None:
        """Keep an item that is wanted."""
        of = self._tags[tag]
        of.items.append(item)
        of.sizes.append(size)
        self._bytes += size

    def _thin(self, of: _TagItems[Item]) -> None:
        self._bytes -= sum(of.sizes[1::2])
        del of.items[1::2], of.sizes[1::2]
        of.stride *= 2

    def notes(self) -> list[str]:
        """Describe dropped items; empty if all were kept."""
        thinned = [(tag, of) for tag, of in self._tags.items() if len(of.items) < of.count]
        if not thinned:
            return []
        tag, of = thinned[0]
        suffix = f" ({len(thinned) - 1} more tags)" if len(thinned) > 1 else ""
        return [f"{tag}: {len(of.items)} of {of.count} {self._what} kept, evenly spread{suffix}"]

    def items(self) -> dict[str, tuple[Item, ...]]:
        """Return what is kept, by tag, in the order of the file."""
        return {tag: tuple(of.items) for tag, of in self._tags.items() if of.items}
