"""Report a model whose outputs are NaN as one error instead of torch's."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import rlvitals


@contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    """Raise VitalsError, naming the folder, where a token can no longer be drawn."""
    try:
        yield
    except RuntimeError as raised:
        # The message of torch.multinomial for probabilities that are NaN or infinite.
        if "probability tensor contains either" not in str(raised):
            raise
        raise rlvitals.VitalsError(
            "the model's outputs are no numbers any more: its weights have grown without end",
            where=str(folder),
            hint="a lower learning rate, in another --output-dir: these weights do not come back",
        ) from raised
