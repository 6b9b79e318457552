"""Sessions of S3's client that share its descriptions of the service.

To parse them is most of a connection's CPU, a quarter of a second, and a session of its own does
so for each client.
"""

from functools import cache
from typing import Any


def s3_session() -> Any:  # noqa: ANN401 - aiobotocore's own
    """Return a session of aiobotocore, whose credentials are read anew. Raises ImportError."""
    from aiobotocore.session import AioSession  # noqa: PLC0415 - optional

    session = AioSession()
    session.register_component("data_loader", _description_loader())
    return session


@cache
def _description_loader() -> Any:  # noqa: ANN401 - botocore's own
    from aiobotocore.session import AioSession  # noqa: PLC0415 - the same

    return AioSession().get_component("data_loader")
