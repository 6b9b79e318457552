"""The arithmetic of many ranks: requests, bytes, money and shards from measured inputs.

Change an input here and write the page again: `python scripts/write_docs.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from docs_markdown import table

from rlvitals.bucket import mirror_process, run_index
from rlvitals.bucket.uploader import MAX_MERGED_BYTES, MAX_MERGES, MERGE_COUNT
from rlvitals.clickhouse.fill import MAX_BATCH_POINTS
from rlvitals.options import Recording

DAY_S, MONTH_S = 86_400.0, 30 * 86_400.0
# Measured: 8 ranks, 100 metrics, values of pure noise in single precision, 48 uploads.
BLOCK_BYTES, SENT_BYTES = 8.2, 9.1  # of a point: on disk, and sent with the manifests
# Measured by benchmarks/clickhouse.py: chdb, series as trainers log them.
STORED_BYTES, FILL_RATE = 4.3, 1.16e6  # of a point; points a CPU second
# List prices of S3 Standard in US East, in dollars. They are inputs: nothing was bought.
PUT_PRICE, GET_PRICE, GIB_MONTH_PRICE = 5e-6, 4e-7, 0.023
REPLACE_S = 0.1  # assumed: to read, change and replace a shard of the index
SERVER_TB = 2.0  # assumed: of points on a server of ClickHouse
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Case:
    """A load: its ranks, and what each logs."""

    name: str
    ranks: int
    ranks_per_node: int
    runs: int  # live at one time
    metrics: int
    row_s: float  # seconds between two rows of a rank


# What, target, measured, by which benchmark. The machine had two cores, for most rows very busy.
MEASURED = (
    ("10,000 runs listed and filtered", "10 s cold, 1 s warm", "2.9 and 0.6 to 0.8 CPU s",
     "listing.py"),
    ("page of a run of 200 metrics", "1 s", "0.7 CPU s, 0.01 again", "listing.py"),
    ("points through client and engine", "1e8, 300,000 a CPU s", "1e8, 417,000; 2e6, 1,160,000",
     "clickhouse.py"),
    ("bytes a point", "6", "4.3; 8.0 where the engine generates them, with random digits",
     "clickhouse.py"),
    ("points generated in the engine", "1e9",
     "1e9, 450,000 a CPU s; 7.3 B a point in 21 parts, before they are merged", "clickhouse.py"),
    ("pixels of 1e6 points among them", "200 ms",
     ("among 1e9: 108 ms wall, 240 (at best 164) while parts are merged"),
     "clickhouse.py"),
    ("`diagnose --ray`, two workers", "1.6 times as fast, 2,000 runs",
     "1.74 times, 2,000 runs on an idle machine with two cores",
     "ray_runs.py"),
    ("age of a reader's newest row", "20 s: two intervals",
     "median 7.4 s, worst 15.3 s in 120 s on an idle machine", "bucket.py"),
    ("60 runs of a bucket copied, then looked at again", "",
     "121 PUT and LIST with 171 GET, then 3 LIST", "bucket.py"),
)  # fmt: skip

CASES = (
    Case("one machine", 8, 8, 1, 100, 1.0),
    Case("1,024 ranks, one run", 1024, 8, 1, 100, 1.0),
    Case("100,000 ranks, 1,000 runs", 100_000, 8, 1_000, 100, 1.0),
    Case("100,000 ranks, each a run", 100_000, 8, 100_000, 100, 1.0),
)


def page() -> str:
    """Return the page."""
    return "\n\n".join(_parts())


def _parts() -> Iterator[str]:
    every = Recording().mirror_seconds
    yield "# The arithmetic of many ranks"
    yield (
        "What a lab pays for requests and bytes, and how many shards it needs. No machine here has"
        " 100,000 ranks: each number below is computed by `scripts/scale_page.py` from the inputs,"
        " which are measured on small loads, constants of the code, or assumptions, as it says."
    )
    yield "## Inputs"
    yield table(("input", "value", "origin"), _inputs(every))
    yield "## Targets, and what was measured"
    rows = [(what, target, result, f"`{file}`") for what, target, result, file in MEASURED]
    yield table(("what", "target", "measured", "benchmark"), rows)
    yield (
        "moto, fake-gcs-server and Azurite on loopback judge semantics, not speed; ClickHouse is"
        " chdb's engine. Not tried: a cloud's own store, ClickHouse's own server, a network."
    )
    yield "## A day of training in a bucket"
    yield (
        "PUT requests a node and upload: a segment, a manifest, and for each merge of"
        f" {MERGE_COUNT} segments another two and a listing: `2 + 3 / (m - 1)` with"
        f" m = {MERGE_COUNT}, as each level has 1/m of the merges of the one below. A merge reads"
        " its segments: `m / (m - 1)` GET an upload. A heartbeat is a PUT each"
        f" {mirror_process.BEAT_UPLOAD_SECONDS:g} s, and an entry of the index a listing, a GET"
        f" and a PUT each {mirror_process.INDEX_SECONDS:g} s of a node. Merged bytes are sent"
        f" again, up to segments of {MAX_MERGED_BYTES >> 20} MiB; transfer within a region is"
        " taken to be free."
    )
    heads = (
        *("load", "points a day", "PUT a day", "GET a day", "requests, $ a day"),
        *("sent, GiB a day", "kept, GiB a day", "$ a month for each day kept"),
    )
    yield table(heads, [_bucket_row(case, every) for case in CASES])
    yield (
        "Requests do not depend on the number of ranks of a node, nor on what they log; they fall"
        f" with `recording.mirror_seconds` (now {every:g}). A store that takes 3,500 PUT a second"
        f" below one prefix takes {3500 / _puts(every):,.0f} nodes in one run."
    )
    yield "## The index of a bucket"
    shards, period = 16**run_index.SHARD_DIGITS, mirror_process.INDEX_SECONDS
    yield (
        f"It has {shards} shards. Each live node replaces its run's entry each {period:g} s; a"
        f" shard takes one replacement at a time, of {REPLACE_S:g} s. One run lies in one shard:"
        f" `{period:g} / {REPLACE_S:g}` = {period / REPLACE_S:,.0f} nodes at the most, above which"
        " entries are late (the rows are not). All shards take"
        f" {shards * period / REPLACE_S:,.0f} nodes; 100,000 ranks on {100_000 // 8:,} nodes are"
        f" {100_000 / 8 * REPLACE_S / shards / period:.0%} of that. An entry of"
        f" {run_index.MAX_VALUES} last values has some 2 kB: with 100,000 runs a shard has"
        f" {100_000 * 2 / shards:,.0f} kB and all shards 200 MB, which a listing reads. From some"
        " 10,000 runs on, `runs --index clickhouse://...` is the listing to use."
    )
    yield "## 1e12 points in ClickHouse"
    yield table(("quantity", "formula", "value"), _points_rows(1e12))
    yield (
        "A database holds the runs of one root, and a run's points are never spread: shard by"
        " root, a database for each. Not measured: more than 1e9 points in the engine, a server,"
        " a network, replication."
    )


def _inputs(every: float) -> list[tuple[str, ...]]:
    return [
        ("interval of uploads", f"{every:g} s", "`recording.mirror_seconds`"),
        ("bytes a point on disk", f"{BLOCK_BYTES}", "measured: noise, which packs worst"),
        ("bytes a point sent", f"{SENT_BYTES}", "measured: the same, with manifests, unmerged"),
        ("bytes a point in ClickHouse", f"{STORED_BYTES}", "measured with chdb"),
        ("points filled a CPU second", f"{FILL_RATE:,.0f}", "measured with chdb"),
        ("points of an insert", f"{MAX_BATCH_POINTS:,}", "the code"),
        ("a million PUT or LIST, of GET", f"{PUT_PRICE * 1e6:g} $, {GET_PRICE * 1e6:g} $",
         "S3 Standard's list price"),
        ("a GiB for a month", f"{GIB_MONTH_PRICE} $", "S3 Standard's list price"),
        ("a replacement of a shard", f"{REPLACE_S:g} s", "assumed"),
        ("points on a server", f"{SERVER_TB:g} TB", "assumed"),
    ]  # fmt: skip


def _puts(every: float) -> float:
    """Return the PUT and LIST requests of a node in a second."""
    uploads = (2 + 3 / (MERGE_COUNT - 1)) / every
    return uploads + 1 / mirror_process.BEAT_UPLOAD_SECONDS + 2 / mirror_process.INDEX_SECONDS


def _gets(every: float) -> float:
    return MERGE_COUNT / (MERGE_COUNT - 1) / every + 1 / mirror_process.INDEX_SECONDS


def _bucket_row(case: Case, every: float) -> tuple[str, ...]:
    nodes = -(-case.ranks // case.ranks_per_node)
    points = case.ranks * case.metrics / case.row_s * DAY_S
    # Ranks of a node that are runs of their own have an upload each.
    folders = max(nodes, case.runs)
    puts, gets = folders * _puts(every) * DAY_S, folders * _gets(every) * DAY_S
    money = puts * PUT_PRICE + gets * GET_PRICE
    kept = points * BLOCK_BYTES / GIB
    levels = _merge_levels(points / folders * BLOCK_BYTES / (DAY_S / every))
    sent = points * (SENT_BYTES + levels * BLOCK_BYTES) / GIB
    return (
        case.name, f"{points:.3g}", f"{puts:,.0f}", f"{gets:,.0f}", f"{money:,.2f}",
        f"{sent:,.1f}", f"{kept:,.1f}", f"{kept * GIB_MONTH_PRICE:,.2f}",
    )  # fmt: skip


def _merge_levels(segment_bytes: float) -> int:
    """Return how often a byte is sent again until its segment is full."""
    levels = 0
    while segment_bytes * MERGE_COUNT <= MAX_MERGED_BYTES and levels < MAX_MERGES:
        segment_bytes *= MERGE_COUNT
        levels += 1
    return levels


def _points_rows(points: float) -> list[tuple[str, ...]]:
    stored = points * STORED_BYTES / 1e12
    kept = points * BLOCK_BYTES
    money = kept / GIB * GIB_MONTH_PRICE
    rate = 100_000 * 100 / 1.0
    return [
        ("stored", f"1e12 × {STORED_BYTES} B", f"{stored:.1f} TB"),
        ("servers", f"{stored:.1f} TB / {SERVER_TB:g} TB", f"{-(-stored // SERVER_TB):.0f}"),
        ("CPU to fill", f"1e12 / {FILL_RATE:,.0f} a s", f"{points / FILL_RATE / 3600:,.0f} h"),
        ("inserts", f"1e12 / {MAX_BATCH_POINTS:,}", f"{points / MAX_BATCH_POINTS:,.0f}"),
        ("cores that keep up with 100,000 ranks", "1e7 points a s / rate",
         f"{rate / FILL_RATE:.1f}"),
        ("hours until 100,000 ranks have logged 1e12", "1e12 / 1e7 a s",
         f"{points / rate / 3600:.0f}"),
        ("kept in a bucket", f"1e12 × {BLOCK_BYTES} B",
         f"{kept / 1e12:.1f} TB, {money:,.0f} $ a month"),
    ]  # fmt: skip
