"""The media types that scripts log. Tables and histograms are recorded, pictures only noted."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np

from rlvitals.errors import quantity


class Table:
    """Rows under named columns; also of a data frame, as TRL logs its completions."""

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        data: Any = None,
        rows: Sequence[Sequence[Any]] | None = None,
        dataframe: Any = None,
        **_: object,
    ) -> None:
        """Take rows, or a data frame."""
        frame = data if hasattr(data, "itertuples") else dataframe
        if frame is not None:
            self.columns = [str(name) for name in frame.columns]
            self.data = [list(row) for row in frame.itertuples(index=False, name=None)]
            return
        cells = data if data is not None else rows
        self.data = [list(row) for row in cells] if cells is not None else []
        width = len(self.data[0]) if self.data else 3
        self.columns = list(columns) if columns is not None else _default(width)

    def add_data(self, *cells: object) -> None:
        """Add a row. Raises ValueError for another number of cells than there are columns."""
        if len(cells) != len(self.columns):
            raise ValueError(
                f"{quantity(len(cells), 'cell')} for {quantity(len(self.columns), 'column')}"
            )
        self.data.append(list(cells))

    add_row = add_data

    def add_column(self, name: str, data: Sequence[Any], **_: object) -> None:
        """Add a column as long as the others."""
        self.data = self.data or [[] for _ in data]
        self.columns = [*self.columns, name] if any(self.data) else [name]
        for row, cell in zip(self.data, data, strict=True):
            row.append(cell)

    def get_column(self, name: str, **_: object) -> list[Any]:
        """Return the cells of a column."""
        index = self.columns.index(name)
        return [row[index] for row in self.data]

    def get_dataframe(self) -> Any:
        """Return a data frame; needs pandas."""
        import pandas as pd  # noqa: PLC0415 - optional

        return pd.DataFrame(self.data, columns=self.columns)

    def as_columns(self) -> dict[str, list[Any]]:
        """Return the cells by column; media in them as the name of their kind."""
        names = [str(name) for name in self.columns]
        return {
            name: [
                f"<{type(row[i]).__name__}>" if _is_object(row[i]) else row[i] for row in self.data
            ]
            for i, name in enumerate(names)
        }


def _default(width: int) -> list[str]:
    # W&B's own defaults, for tables of three columns.
    return ["Input", "Output", "Expected"] if width == 3 else [f"c{i}" for i in range(width)]


class Histogram:
    """A distribution: of values, or as numpy's `(counts, edges)`."""

    def __init__(
        self,
        sequence: Any = None,
        np_histogram: tuple[Any, Any] | None = None,
        num_bins: int = 64,
    ) -> None:
        """Count `sequence` in `num_bins` bins, or take what is counted."""
        if np_histogram is None:
            if hasattr(sequence, "detach"):
                sequence = sequence.detach().cpu().numpy()
            values = np.asarray(sequence, dtype=np.float64).ravel()
            np_histogram = np.histogram(values[np.isfinite(values)], bins=num_bins)
        self.histogram, self.bins = (np.asarray(column).tolist() for column in np_histogram)


class Medium:
    """A media type that a run folder does not store: its kind is noted, once."""

    def __init__(self, *_: object, **__: object) -> None:
        """Take anything, keep nothing."""


class Image(Medium):
    """`wandb.Image`."""


class Video(Medium):
    """`wandb.Video`."""


class Audio(Medium):
    """`wandb.Audio`."""


class Html(Medium):
    """`wandb.Html`."""


class Object3D(Medium):
    """`wandb.Object3D`."""


class Molecule(Medium):
    """`wandb.Molecule`."""


class Plotly(Medium):
    """`wandb.Plotly`."""


class Graph(Medium):
    """`wandb.Graph`."""


class Classes(Medium):
    """`wandb.Classes`."""


class JoinedTable(Medium):
    """`wandb.JoinedTable`."""


class Chart(Medium):
    """The result of `wandb.plot...`."""


class Artifact:
    """Files under a name: the names are recorded, the files stay where they are."""

    def __init__(
        self,
        name: str,
        type: str,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **_: object,
    ) -> None:
        """Name an artifact."""
        self.name, self.type = name, type
        self.description, self.metadata = description, dict(metadata or {})
        self.files: list[str] = []

    def add_file(self, local_path: str, name: str | None = None, **_: object) -> None:
        """Name a file of it."""
        self.files.append(name or str(local_path))

    def add_dir(self, local_path: str, name: str | None = None, **_: object) -> None:
        """Name a folder of it."""
        self.files.append(f"{name or local_path}/")

    def add_reference(self, uri: str, name: str | None = None, **_: object) -> None:
        """Name an address of it."""
        self.files.append(name or str(uri))

    def add(self, obj: object, name: str) -> None:
        """Name an object of it."""
        self.files.append(f"{name} ({type(obj).__name__})")

    @contextmanager
    def new_file(
        self, name: str, mode: str = "x", encoding: str | None = None
    ) -> Iterator[IO[Any]]:
        """Name a file of it; what is written to the file is not kept."""
        self.files.append(name)
        is_binary = "b" in mode
        with TemporaryFile("wb" if is_binary else "w", encoding=encoding) as file:
            yield file

    def wait(self, *_: object) -> "Artifact":
        """Return at once: nothing is sent."""
        return self


class _Plot:
    """`wandb.plot`: charts that are drawn in W&B's pages; their tables are not kept."""

    def __getattr__(self, name: str) -> Any:
        """Return a maker of a chart."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Chart


plot = _Plot()


def _is_object(value: object) -> bool:
    """Return whether a cell is a medium, ours or W&B's own, which is noted by its name."""
    return isinstance(value, Medium) or type(value).__module__.partition(".")[0] == "wandb"
