"""Collect the cells of the tables of an HTML text."""

import re
from html.parser import HTMLParser

from rlvitals.readers.formats.html_tables import HtmlTable


class TableParser(HTMLParser):
    """Collects the cells of tables, and the values of `<progress>`."""

    def __init__(self) -> None:
        """Begin without a table."""
        super().__init__(convert_charrefs=True)
        self.tables: list[HtmlTable] = []
        self._row: list[str] | None = None
        self._cell: list[str] | None = None
        self._is_heading = False
        self._count = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a table, a row or a cell; keep the state of a bar."""
        if tag == "progress":
            attributes = dict(attrs)
            texts = attributes.get("value") or "", attributes.get("max") or ""
            value, total = (
                int(text) if re.fullmatch(r"[0-9]{1,15}", text) else -1 for text in texts
            )
            self.tables.append(
                HtmlTable(progress=(value, total) if min(value, total) >= 0 else None)
            )
        elif tag == "table":
            # A bar precedes its table.
            if not self.tables or self.tables[-1].names or self.tables[-1].rows:
                self.tables.append(HtmlTable())
        elif tag == "thead":
            self._is_heading = True
        elif tag == "tbody":
            self._is_heading = False
        elif tag == "tr":
            self._row = []
        elif tag in {"td", "th"} and self._count < 2**22:
            self._cell = []
            self._count += 1

    def handle_endtag(self, tag: str) -> None:
        """Close a cell or a row."""
        if tag in {"td", "th"} and self._row is not None and self._cell is not None:
            self._row.append("".join(self._cell).strip())
            self._cell = None
        elif tag == "thead":
            self._is_heading = False
        elif tag == "tr" and self._row is not None and self.tables:
            table = self.tables[-1]
            if self._is_heading and not table.names:
                table.names = self._row
            elif self._row and not self._is_heading:
                table.rows.append(self._row)
            self._row = None

    def handle_data(self, data: str) -> None:
        """Take the text of a cell."""
        if self._cell is not None:
            self._cell.append(data)
