"""An S3 server of this process: the bucket `runs` at a URL that is the test's own."""

import logging

import pytest

from rlvitals.bucket.object_store import ObjectStore


@pytest.fixture(scope="session")
def endpoint():
    pytest.importorskip("s3fs", reason="s3fs is not installed: no client of S3")
    server_module = pytest.importorskip("moto.server", reason="moto is not installed: no server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def cloud(endpoint, monkeypatch, tmp_path):
    """Return the root of the runs; credentials and the cache are the test's own."""
    import s3fs

    for name, text in {
        "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1", "NO_PROXY": "127.0.0.1",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, text)
    monkeypatch.chdir(tmp_path)
    files = s3fs.S3FileSystem(endpoint_url=endpoint, skip_instance_cache=True)
    if not files.exists("runs"):
        files.mkdir("runs")
    return f"s3://runs/{tmp_path.name}"


@pytest.fixture(params=["s3", "memory"])
def store(request, tmp_path):
    """Return the place of a run: with both conditions, and without If-Match."""
    if request.param == "s3":
        return ObjectStore(f"{request.getfixturevalue('cloud')}/x")
    return ObjectStore(f"memory://{tmp_path.name}/x")
