"""Read the tables of an HTML text, row by row; a row that is cut short is left out."""

from dataclasses import field

from rlvitals.startup.fast_dataclass import dataclass


@dataclass(slots=True)
class HtmlTable:
    """A table: the names of its columns and the texts of its rows."""

    names: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    progress: tuple[int, int] | None = None  # of the bar before it: value and maximum


def tables(html: str) -> list[HtmlTable]:
    """Return the tables of a text, and a bar without one as a table without rows."""
    if "<table" not in html and "<progress" not in html:
        return []  # pages of figures are long
    # Most programs read no notebook, and Python's parser takes 4 ms to load.
    from rlvitals.readers.formats.html_table_parser import TableParser  # noqa: PLC0415

    parser = TableParser()
    parser.feed(html)
    return parser.tables
