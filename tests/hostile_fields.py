"""A recorded run whose files' fields are replaced by values of every wrong type and extreme."""

import copy
import json
import shutil
from itertools import cycle
from pathlib import Path

import xxhash

import rlvitals
from rlvitals.checkpoints.naming import MANIFEST_FILE
from rlvitals.checkpoints.progress_file import PROGRESS_FILE as PROGRESS
from rlvitals.storage.run_folder import EVENTS_FILE, RUN_FILE
from rlvitals.tracking import heartbeat

DEEP = []
for _ in range(300):
    DEEP = [DEEP]
VALUES = {
    "null": None, "true": True, "negative": -1, "10^400": 10**400, "2^63": 2**63, "half": 1.5,
    "infinity": float("inf"), "minus infinity": -float("inf"), "nan": float("nan"),
    "1e308": 1e308, "empty": "", "word": "x", "surrogate": "\ud800", "control": "\x1b]0;x\x07",
    "long": "A" * 70_000, "[]": [], "[1]": [1], "[null]": [None], "[{}]": [{}], "{}": {},
    "object": {"__class__": 1, "": [{"a": None}]}, "surrogate key": {"\ud800": 1},
    "deep": DEEP, "time": "2026-99-99T99:99:99",
}  # fmt: skip
EVENT_LINE = -1  # the last event: the end


def recorded(folder):
    """Record a small run: numbers, an end, a checkpoint and a progress file."""
    run = rlvitals.start(
        folder, name="r", seed=1, settings={"lr": 1e-3, "net": {"sizes": [8, 8]}}, tags=("t",)
    )
    for step in range(40):
        run.log(step, {"rollout/ep_rew_mean": float(step), "train/approx_kl": 0.01})
    run.log_text(1, "text", "words")
    run.log_table(1, "table", {"a": ["b"]})
    run.log_histogram(1, "histogram", [1.0, 2.0])
    run.event("eval", 5, score=1)
    keeper = rlvitals.Checkpoints(run, tell=lambda _: None)
    with keeper.save(40, metrics={"return": 1.0}) as there:
        (there / "weights.bin").write_bytes(b"w" * 100)
    run.finish()
    progress = {
        "status": "running", "step": 40, "total_steps": 100, "latest_checkpoint": "checkpoint-40",
        "start_time": "2026-01-01T00:00:00+00:00", "last_update": "2026-01-01T00:00:10+00:00",
        "attempts": [{"id": "a", "first_step": 0, "last_step": 40, "seconds": 10.0}],
        "chunks": [{"chunk_id": 1, "status": "completed", "requests": 3, "timestamp": "x"}],
        "total_chunks": 2, "requests_done": 3, "total_requests": 6, "eta_seconds": 5.0,
        "error_message": "e",
    }  # fmt: skip
    (folder / PROGRESS).write_text(json.dumps(progress))


def paths(value, place=()):
    """Yield the place of every field of a JSON value, the containers' too."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        yield (*place, key)
        if isinstance(one, dict | list):
            yield from paths(one, (*place, key))


def changed(value, place, wrong):
    """Return a JSON value with another one at a place."""
    made = copy.deepcopy(value)
    inner = made
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = wrong
    return made


class Json:
    """A file that is one JSON document."""

    def __init__(self, name):
        self.name = name

    def load(self, folder):
        return json.loads((folder / self.name).read_text())

    def save(self, folder, said):
        (folder / self.name).write_text(json.dumps(said, indent=1))


class RunFile(Json):
    """`run.json`: whatever guards it against flipped bits is not there."""

    def save(self, folder, said):
        said.pop("checksum", None)
        for copied in folder.glob(".run.json*"):
            copied.unlink()
        super().save(folder, said)


class Lines(Json):
    """A file of JSON lines, of which the last is changed."""

    def load(self, folder):
        return json.loads((folder / self.name).read_text().splitlines()[EVENT_LINE])

    def save(self, folder, said):
        lines = (folder / self.name).read_text().splitlines()
        lines[EVENT_LINE] = json.dumps(said)
        (folder / self.name).write_text("\n".join(lines) + "\n")


class Note(Lines):
    """The events, with one that the recorder notes."""

    def load(self, folder):
        with (folder / self.name).open("a") as file:
            said = {"event": "note", "time": 1.0, "step": 1, "text": "x", "count": 2, "attempt": 1}
            file.write(json.dumps(said) + "\n")
        return super().load(folder)


class Sealed(Json):
    """A checkpoint's manifest, sealed again: its own hash is right."""

    def save(self, folder, said):
        said.pop("seal", None)
        text = json.dumps(said, indent=1, sort_keys=True) + "\n"
        said["seal"] = str(xxhash.xxh3_128(text.encode()).hexdigest())
        (folder / self.name).write_text(json.dumps(said, indent=1, sort_keys=True) + "\n")


class Heartbeat(Json):
    """A process's file of beats: its first line's words, and the JSON of the second."""

    def load(self, folder):
        first, second, *_ = (folder / self.name).read_text(errors="replace").split("\n")
        return {"line": first.split(), "writer": json.loads(second)}

    def save(self, folder, said):
        line = said["line"]
        words = map(str, line) if isinstance(line, list) else [json.dumps(line)]
        text = f"{' '.join(words)}\n{json.dumps(said['writer'])}\n"
        (folder / self.name).write_bytes(text.encode(errors="replace"))


FILES = {
    "run.json": RunFile(RUN_FILE),
    "end": Lines(EVENTS_FILE),
    "note": Note(EVENTS_FILE),
    "progress": Json(PROGRESS),
    "manifest": Sealed(f"checkpoint-40/{MANIFEST}"),
    "heartbeat": Heartbeat(f"{heartbeat.HEARTBEAT_FOLDER}/1-0.beat"),
}


def fields(folder, file):
    """List the places of a file's fields; of packages, training code and machine facts a few."""
    counts = {}
    places = []
    for place in paths(FILES[file].load(folder)):
        group = place[:1] if place[0] in {"code", "versions"} else place[:2]
        counts[group] = counts.get(group, 0) + 1
        if counts[group] <= 3:
            places.append(place)
    return places


def change(folder, file, place, wrong):
    """Replace one field of one file."""
    form = FILES[file]
    form.save(folder, changed(form.load(folder), place, wrong))


def verbs(folder, beside, out):
    """Return every command that looks at a run, and what it may answer."""
    return {
        "diagnose": (["diagnose", folder], {0, 1, 3, 4}),
        "diagnose --json": (["diagnose", folder, "--json"], {0, 1, 3, 4}),
        "status": (["status", folder], {0, 3}),
        "status --json": (["status", folder, "-v", "--json"], {0, 3}),
        "runs": (["runs", folder.parent], {0, 3}),
        "runs --json": (["runs", folder.parent, "--json", "--rebuild"], {0, 3}),
        "report": (["report", folder, "-o", out / "page.html"], {0, 1, 3, 4}),
        "export": (["export", folder, out / "rows.csv", "--force"], {0, 3}),
        "export jsonl": (["export", folder, out / "rows.jsonl", "--force"], {0, 3}),
        "export run": (["export", folder, out / "run"], {0, 3}),
        "verify": (["verify", folder], {0, 1, 3}),
        "doctor": (["doctor", folder], {0, 1, 3}),
        "checkpoints": (["checkpoints", folder, "--verify"], {0, 1, 3}),
        "checkpoints --json": (["checkpoints", folder, "--json"], {0, 1, 3}),
        "diff": (["diff", folder, beside], {0, 1, 3}),
        "compare": (["compare", folder, beside], {0, 1, 3}),
        "plot": (["plot", folder, "-o", out / "plots"], {0, 1, 3}),
        "follow": (["follow", folder, "--once"], {0, 1, 3, 4}),
        "metrics": (["metrics", folder, "--json"], {0, 3}),
        "bundle": (["bundle", folder, "-o", out / "b.tar", "--force"], {0, 1, 3}),
        "compact": (["compact", folder], {0, 1, 3}),
    }


def fresh(source, target):
    """Copy the recorded run anew."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return Path(target)


def change_all(folder, first):
    """Replace every innermost field of every file, by the values in turn from `first` on."""
    values = cycle(VALUES.values())
    for _ in range(first):
        next(values)
    for form in FILES.values():
        said = form.load(folder)
        for place in list(paths(said)):
            inner = said
            for key in place[:-1]:
                inner = inner[key]
            if place[0] not in {"format", "written_by"} and type(inner[place[-1]]) not in (
                dict,
                list,
            ):
                inner[place[-1]] = next(values)
        form.save(folder, said)
