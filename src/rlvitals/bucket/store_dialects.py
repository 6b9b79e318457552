"""Conditional writes and the clock of S3, Google Cloud Storage and Azure Blob Storage.

fsspec has one name for "write what does not exist yet", and none for "replace this version".
A version is an ETag, of Google's store a generation, as a listing of the store states it.
"""

import json
import secrets
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

PRECONDITION_CODES = ("PreconditionFailed", "412")


class Conflict(Exception):  # noqa: N818 - it is an answer of the store
    """A conditional write that the store refused: the object exists, or has changed."""


def put_s3(files: Any, path: str, data: bytes, version: str | None) -> str:  # noqa: ANN401
    """Write with `If-None-Match: *`, or with `If-Match`; return the ETag. Raises Conflict."""
    bucket, _, key = path.partition("/")
    condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
    try:
        answer = files.call_s3("put_object", Bucket=bucket, Key=key, Body=data, **condition)
    except OSError as error:
        codes = (*PRECONDITION_CODES, "NoSuchKey") if version else PRECONDITION_CODES
        if _s3_code(error) in codes:
            raise Conflict(path) from None
        raise
    return str(answer["ETag"])


def put_google(files: Any, path: str, data: bytes, version: str | None) -> str:  # noqa: ANN401
    """Write with `ifGenerationMatch`, 0 for a new object; return the generation.

    Raises Conflict. gcsfs itself sends this condition for new objects only.
    """
    bucket, key, _ = files.split_path(path)
    boundary = secrets.token_hex(16)
    about = json.dumps({"name": key}).encode()
    parts = ((b"application/json; charset=UTF-8", about), (b"application/octet-stream", data))
    separator = f"--{boundary}".encode()
    body = b"".join(
        separator + b"\r\nContent-Type: " + kind + b"\r\n\r\n" + content + b"\r\n"
        for kind, content in parts
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


ConditionalPut = Callable[[Any, str, bytes, str | None], str]
CONDITIONAL_PUTS: dict[str, ConditionalPut] = {
    "s3": put_s3, "s3a": put_s3, "gs": put_google, "gcs": put_google,
    "az": put_azure, "abfs": put_azure, "abfss": put_azure,
}  # fmt: skip
DATE_HEADERS: dict[str, Callable[[Any, str], Mapping[str, str]]] = {
    "s3": date_s3, "s3a": date_s3, "gs": date_google, "gcs": date_google,
    "az": date_azure, "abfs": date_azure, "abfss": date_azure,
}  # fmt: skip


def store_time(scheme: str, files: Any, path: str) -> float | None:  # noqa: ANN401
    """Return the time by the store's clock, seconds since the epoch; None where it tells none."""
    ask = DATE_HEADERS.get(scheme)
    text = ask(files, path).get("date") if ask else None
    return parsedate_to_datetime(text).timestamp() if text else None


def _s3_code(error: BaseException) -> str:
    """Return the code of an S3 error below the error that s3fs makes of it; "" without one."""
    response = getattr(error.__cause__, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""
