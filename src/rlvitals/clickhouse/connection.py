"""Connect to ClickHouse: a server over HTTP, or chdb, the engine in this process.

`clickhouse-connect` speaks to both, so that statements, bound values and columns are the same.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from rlvitals.errors import UsageError

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

SERVER_PREFIX, CHDB_PREFIX = "clickhouse://", "chdb:"
DEFAULT_DATABASE = "rlvitals"
READ_ONLY = {"readonly": 2, "final": 1}  # 2: formats may be set; final: a replayed row is one row


def is_url(text: str) -> bool:
    """Return whether a text names a database of ClickHouse."""
    return text.startswith((SERVER_PREFIX, CHDB_PREFIX))


class Connection:
    """A database. One thread at a time."""

    def __init__(self, url: str) -> None:
        """Connect to `clickhouse://user@host:port/database?secure=1` or `chdb:FOLDER`.

        The password is the URL's or that of CLICKHOUSE_PASSWORD. Raises UsageError.
        """
        self.name, self.database, options = _parse_url(url)
        try:
            from clickhouse_connect import get_client  # noqa: PLC0415 - optional
            from clickhouse_connect.driver.exceptions import Error  # noqa: PLC0415 - the same

            if "path" in options:
                import chdb as _chdb  # noqa: F401, PLC0415 - the client imports it late
        except ImportError as error:
            package = "chdb" if error.name == "chdb" else "'rlvitals[clickhouse]'"
            raise UsageError(
                "the packages for ClickHouse are not installed",
                where=self.name,
                hint=f"pip install {package}",
            ) from error
        self._error = Error
        try:
            # One session for each client would refuse a second thread's query.
            self._client: Client = get_client(**options)
        except Error as error:
            raise self._problem(error) from error

    def __enter__(self) -> Self:
        """Return the connection."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def command(self, statement: str, values: Mapping[str, object] | None = None) -> None:
        """Run a statement that answers nothing, with values bound by name. Raises UsageError."""
        try:
            self._client.command(statement, parameters=_copy(values))
        except self._error as error:
            raise self._problem(error) from error

    def query(
        self,
        statement: str,
        values: Mapping[str, object] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query, with values bound by name. Raises UsageError."""
        return self.query_table(statement, values, settings)[1]

    def query_table(
        self,
        statement: str,
        values: Mapping[str, object] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Return the names of the columns and the rows of a query. Raises UsageError."""
        try:
            answer = self._client.query(
                statement, parameters=_copy(values), settings=dict(settings or {})
            )
            return tuple(answer.column_names), list(map(tuple, answer.result_rows))
        except self._error as error:
            raise self._problem(error) from error

    def insert(self, table: str, names: Sequence[str], columns: Sequence[Any]) -> None:
        """Append rows, given as columns, and wait until they are stored. Raises UsageError."""
        try:
            self._client.insert(
                table,
                columns,
                column_names=list(names),
                database=self.database,
                column_oriented=True,
                settings={"async_insert": 0},
            )
        except self._error as error:
            raise self._problem(error) from error

    def create_database(self) -> None:
        """Create the database if it is missing and use it. Raises UsageError."""
        self.command("CREATE DATABASE IF NOT EXISTS {database:Identifier}",
                     {"database": self.database})  # fmt: skip
        self._client.database = self.database

    def use_database(self) -> bool:
        """Use the database; return whether it exists."""
        exists = self.query("SELECT 1 FROM system.databases WHERE name = {name:String}",
                            {"name": self.database})  # fmt: skip
        if exists:
            self._client.database = self.database
        return bool(exists)

    def _problem(self, error: Exception) -> UsageError:
        text = str(error).strip().partition("\n")[0]
        hint = "the help of the command sql lists tables and columns"
        return UsageError(f"ClickHouse: {text}", where=self.name, hint=hint)


def _copy(values: Mapping[str, object] | None) -> dict[str, object] | None:
    return dict(values) if values else None


def _parse_url(url: str) -> tuple[str, str, dict[str, Any]]:
    """Return the URL without its password, the database, and the arguments of the client."""
    if url.startswith(CHDB_PREFIX):
        path = url.removeprefix(CHDB_PREFIX)
        if not path:
            raise UsageError("the folder of chdb is missing", where=url, hint="chdb:runs.chdb")
        options: dict[str, Any] = {"interface": "chdb", "path": str(Path(path).absolute())}
        return url, DEFAULT_DATABASE, options
    try:
        address = urlsplit(url)
        port, query = (
            address.port,
            dict(parse_qsl(address.query, strict_parsing=bool(address.query))),
        )
    except ValueError as error:
        raise UsageError(f"no address of ClickHouse: {error}", where="--to or --index") from None
    database = unquote(address.path.strip("/")) or DEFAULT_DATABASE
    name = f"{SERVER_PREFIX}{address.hostname or ''}{f':{port}' if port else ''}/{database}"
    if not address.hostname or "/" in database or set(query) - {"secure"}:
        hint = "clickhouse://user@host:8123/database?secure=1"
        raise UsageError("no address of ClickHouse", where=name, hint=hint)
    options = {
        "host": address.hostname,
        "secure": query.get("secure", "") in {"1", "true"},
        "username": unquote(address.username or "default"),
        "password": unquote(address.password or "") or os.environ.get("CLICKHOUSE_PASSWORD", ""),
        "autogenerate_session_id": False,
    }
    return name, database, {**options, "port": port} if port else options
