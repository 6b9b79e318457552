"""A manifest is read back as it was written."""

from dataclasses import fields

from rlvitals.checkpoints import manifest
from rlvitals.checkpoints.manifest import File, Manifest


def test_every_field_is_read_back(tmp_path):
    written = Manifest(
        step=7, sequence=3, files={"a/weights.bin": File(10, "ab" * 16)}, run_id="r", attempt=2,
        parent=5, created=1.5e9, world_size=4, settings_hash="s", versions={"torch": "2.13.0"},
        code={"train.py": "c8 f8"}, health="healthy", metrics={"return": 1.25}, pinned=True,
        facts={"weights_only": True}, process="host-1-ab",
    )  # fmt: skip
    empty = Manifest(step=0, sequence=0, files={})
    for field in fields(Manifest):
        assert getattr(written, field.name) != getattr(empty, field.name), field.name
    manifest.write(tmp_path, written)
    assert manifest.read(tmp_path) == written
