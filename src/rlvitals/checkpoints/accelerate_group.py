"""Collective operations of the processes that accelerate started."""

from typing import TypeVar, cast

Answer = TypeVar("Answer")


def broadcast(answer: Answer, world_size: int) -> Answer:
    """Return the first process's value on every process; all of them must call this."""
    if world_size == 1:
        return answer
    from accelerate.utils import broadcast_object_list  # noqa: PLC0415 - with several processes

    (reply,) = broadcast_object_list([answer], from_process=0)
    return cast("Answer", reply)


def wait_for_all(world_size: int) -> None:
    """Wait until every process has called this."""
    if world_size > 1:
        from accelerate import PartialState  # noqa: PLC0415 - with several processes

        PartialState().wait_for_everyone()
