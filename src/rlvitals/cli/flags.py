"""Flags made from the settings' schema, and settings made from flags."""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rlvitals import settings
from rlvitals.settings import FREE_SECTIONS, Settings
from rlvitals.storage import toml_files

LIVENESS = ("live", "finished", "now")  # options of [diagnose] that each command has that judges


def add(parser: ArgumentParser, section: str) -> None:
    """Add one flag for each option of a section. No default: a layer below may have a word."""
    for option in settings.options(section):
        if option.key not in LIVENESS:
            add_option(parser, section, option.key)


def add_option(parser: ArgumentParser, section: str, key: str) -> None:
    """Add the flag of one option."""
    option = next(one for one in settings.options(section) if one.key == key)
    if isinstance(option.default, bool):
        parser.add_argument(option.flag, action="store_true", default=None, help=option.doc)
        return
    if isinstance(option.default, tuple):
        metavar = f"{option.item},..."
        parser.add_argument(option.flag, action="append", metavar=metavar, help=option.doc)
        return
    default = f" (default: {option.default})" if option.default else ""
    parser.add_argument(
        option.flag,
        choices=option.choices or None,
        metavar=option.item or None,
        help=f"{option.doc}{default}",
    )


def add_free(parser: ArgumentParser) -> None:
    """Add `--config`, `--map`, `--set`, `--threshold`, `--live`, `--finished` and `--now`."""
    text = "your own settings file, instead of the nearest rlvitals.toml"
    parser.add_argument("--config", metavar="FILE", help=text)
    for section, (doc, flag) in FREE_SECTIONS.items():
        target = {"metrics": "METRIC", "thresholds": "NUMBER"}.get(section, "VALUE")
        name = "RULE.WORD" if section == "thresholds" else "KEY"
        text = doc.replace("`", "").replace('"', "").replace(" = ", "=")
        parser.add_argument(
            flag, action="append", metavar=f"{name}={target}", dest=f"free_{section}", help=text
        )
    for key in LIVENESS:
        add_option(parser, "diagnose", key)


def settings_for(path: Path, args: Namespace) -> Settings:
    """Put the flags over the environment, the settings file and the defaults."""
    said = {section: _said(section, args) for section in settings.FLAG_SECTIONS}
    free = {
        section: settings.from_pairs(section, tuple(getattr(args, f"free_{section}") or ()), flag)
        for section, (_, flag) in FREE_SECTIONS.items()
    }
    named = {toml_files.CONFIG_VARIABLE: args.config} if getattr(args, "config", None) else {}
    return settings.load(path, {**said, **free}, {**os.environ, **named})


def _said(section: str, args: Namespace) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for option in settings.options(section):
        value = getattr(args, option.key, None)
        if isinstance(option.default, tuple) and value is not None:
            value = tuple(name for text in value for name in settings.split(text))
        if value is not None:
            said[option.key] = value
    if section == "diagnose" and (said.get("live") or said.get("finished")):
        # Over a layer below that says the opposite; both flags are refused by who uses them.
        said = {"live": False, "finished": False, **said}
    return settings.check(section, said, "the command line")


def run_folders(parser: ArgumentParser) -> None:
    """Declare the path of run folders of our own."""
    parser.add_argument("path", type=Path, metavar="PATH", help="a run folder, or one with several")
