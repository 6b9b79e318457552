"""Conditional writes and the clock of S3, Google Cloud Storage and Azure Blob Storage.

fsspec has one name for "write what does not exist yet", and none for "replace this version".
A version is an ETag, of Google's store a generation, as a listing of the store states it.
"""

import json
import secrets
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from rlvitals.startup.fast_dataclass import dataclass


class Conflict(Exception):  # noqa: N818 - it is an answer of the store
    """A conditional write that the store refused: the object exists, or has changed."""


def put_s3(files: Any, path: str, data: bytes, version: str | None) -> str:  # noqa: ANN401
    """Write with `If-None-Match: *`, or with `If-Match`; return the ETag. Raises Conflict."""
    bucket, _, key = path.partition("/")
    condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
    try:
        answer = files.call_s3("put_object", Bucket=bucket, Key=key, Body=data, **condition)
    except OSError as error:
        is_missing = version is not None and _s3_code(error) == "NoSuchKey"
        if is_missing or _s3_code(error) in {"PreconditionFailed", "412"}:
            raise Conflict(path) from None
        raise
    return str(answer["ETag"])


def put_google(files: Any, path: str, data: bytes, version: str | None) -> str:  # noqa: ANN401
    """Write with `ifGenerationMatch`, 0 for a new object; return the generation.

    Raises Conflict. gcsfs itself sends this condition for new objects only.
    """
    bucket, key, _ = files.split_path(path)
    boundary = secrets.token_hex(16)
    metadata = json.dumps({"name": key}).encode()
    sections = ((b"application/json; charset=UTF-8", metadata), (b"application/octet-stream", data))
    separator = f"--{boundary}".encode()
    body = b"".join(
        separator + b"\r\nContent-Type: " + kind + b"\r\n\r\n" + content + b"\r\n"
        for kind, content in sections
    )
    try:
        answer = files.call(
            "POST",
            files.base.replace("/storage/v1/", "/upload/storage/v1/") + "b/{}/o",
            bucket,
            uploadType="multipart",
            ifGenerationMatch=version or "0",
            headers={"Content-Type": f"multipart/related; boundary={boundary}"},
            data=body + separator + b"--",
            json_out=True,
        )
    except FileExistsError:  # gcsfs's name for code 412
        raise Conflict(path) from None
    return str(answer["generation"])


def put_azure(files: Any, path: str, data: bytes, version: str | None) -> str:  # noqa: ANN401
    """Write with `If-None-Match: *`, or with `If-Match`; return the ETag. Raises Conflict."""
    from azure.core import MatchConditions  # noqa: PLC0415 - optional
    from azure.core.exceptions import ResourceModifiedError  # noqa: PLC0415 - the same

    condition: dict[str, Any] = {"mode": "create"}
    if version is not None:
        condition = {"etag": version, "match_condition": MatchConditions.IfNotModified}
    try:
        answer = files.pipe_file(path, data, **condition)
    except (FileExistsError, ResourceModifiedError):
        raise Conflict(path) from None
    return str(answer["etag"])


def date_s3(files: Any, path: str) -> Mapping[str, str]:  # noqa: ANN401
    """Return the headers of an answer about the bucket."""
    answer = files.call_s3("head_bucket", Bucket=path.partition("/")[0])
    headers: Mapping[str, str] = answer["ResponseMetadata"]["HTTPHeaders"]
    return headers


def date_google(files: Any, path: str) -> Mapping[str, str]:  # noqa: ANN401
    """Return the headers of a listing, which a role that only reads objects may ask for."""
    headers, _ = files.call("GET", "b/{}/o", path.partition("/")[0], maxResults="1")
    return {name.lower(): text for name, text in headers.items()}


def date_azure(files: Any, path: str) -> Mapping[str, str]:  # noqa: ANN401
    """Return the headers of a listing."""
    from fsspec.asyn import sync  # noqa: PLC0415 - optional

    headers: dict[str, str] = {}

    def keep(response: Any) -> None:  # noqa: ANN401
        answered = response.http_response.headers
        headers.update((name.lower(), text) for name, text in answered.items())

    async def ask() -> None:
        container = path.partition("/")[0]
        async with files.service_client.get_container_client(container=container) as client:
            blobs = client.list_blobs(results_per_page=1, raw_response_hook=keep)
            async for _ in blobs:
                break

    sync(files.loop, ask)
    return headers


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a store is asked for what fsspec has no word for."""

    put: Callable[[Any, str, bytes, str | None], str]  # file system, path, data, version
    headers: Callable[[Any, str], Mapping[str, str]]  # of an answer, for its date


def dialect_of(scheme: str) -> Dialect | None:
    """Return the dialect of a URL's scheme; None for a store without conditional replacement."""
    match scheme:
        case "s3" | "s3a":
            return Dialect(put_s3, date_s3)
        case "gs" | "gcs":
            return Dialect(put_google, date_google)
        case "az" | "abfs" | "abfss":
            return Dialect(put_azure, date_azure)
    return None


def store_time(dialect: Dialect, files: Any, path: str) -> float | None:  # noqa: ANN401
    """Return the time by the store's clock, seconds since the epoch; None where it tells none."""
    text = dialect.headers(files, path).get("date")
    return parsedate_to_datetime(text).timestamp() if text else None


def _s3_code(error: BaseException) -> str:
    """Return the code of an S3 error below the error that s3fs makes of it; "" without one."""
    response = getattr(error.__cause__, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""
