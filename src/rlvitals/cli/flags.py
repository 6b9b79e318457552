"""Add flags from the settings' schema, and build settings from parsed flags."""

import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvitals import settings
from rlvitals.errors import UsageError
from rlvitals.settings import FREE_SECTIONS, Settings
from rlvitals.storage import toml_files

if TYPE_CHECKING:  # it loads numpy
    from rlvitals.alerts.routes import Route

LIVENESS_OPTIONS = (
    "live",
    "finished",
    "now",
)  # [diagnose] options of each judging command


def add(parser: ArgumentParser, section: str) -> None:
    """Add one flag for each option of a section, without default: lower layers may set it."""
    for option in settings.options(section):
        if option.key not in LIVENESS_OPTIONS:
            add_option(parser, section, option.key)


def add_option(parser: ArgumentParser, section: str, key: str) -> None:
    """Add the flag of one option."""
    option = next(candidate for candidate in settings.options(section) if candidate.key == key)
    if isinstance(option.default, bool):
        parser.add_argument(option.flag, action="store_true", default=None, help=option.doc)
        return
    if isinstance(option.default, tuple):
        metavar = f"{option.item},..."
        parser.add_argument(option.flag, action="append", metavar=metavar, help=option.doc)
        return
    default = f" (default: {option.default})" if option.default else ""
    many = len(option.choices) > 6  # a usage line has room for so many
    choices = f": {', '.join(option.choices)}" if many else ""
    parser.add_argument(
        option.flag,
        choices=option.choices or None,
        metavar=option.item or ("KIND" if many else None),
        help=f"{option.doc}{choices}{default}",
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
    for key in LIVENESS_OPTIONS:
        add_option(parser, "diagnose", key)


def add_paths(parser: ArgumentParser, content: str) -> None:
    """Add the paths to read: any number, the working folder where there is none."""
    parser.add_argument(
        "paths", nargs="*", type=Path, default=[Path()], metavar="PATH",
        help=f"{content} (default: the working folder)",
    )  # fmt: skip


def settings_for(path: Path, args: Namespace) -> Settings:
    """Merge flags, environment, settings file and defaults; earlier ones take precedence."""
    flag_values = {}
    for section in settings.FLAG_SECTIONS:
        values: dict[str, Any] = {}
        for option in settings.options(section):
            value = getattr(args, option.key, None)
            if isinstance(option.default, tuple) and value is not None:
                value = tuple(name for text in value for name in settings.split(text))
            if value is not None:
                values[option.key] = value
        if section == "diagnose" and (values.get("live") or values.get("finished")):
            # Overrides a lower layer with the opposite value; commands refuse both flags together.
            values = {"live": False, "finished": False, **values}
        flag_values[section] = settings.check(section, values, "the command line")
    free = {
        section: settings.from_pairs(section, tuple(getattr(args, f"free_{section}") or ()), flag)
        for section, (_, flag) in FREE_SECTIONS.items()
    }
    config_variable = (
        {toml_files.CONFIG_VARIABLE: args.config} if getattr(args, "config", None) else {}
    )
    return settings.load(path, {**flag_values, **free}, {**os.environ, **config_variable})


def add_ray(parser: ArgumentParser) -> None:
    """Add `--ray`."""
    parser.add_argument(
        "--ray", nargs="?", const="", metavar="ADDRESS",
        help="read the runs on a Ray cluster: HOST:PORT, auto; alone, on RAY_ADDRESS or here",
    )  # fmt: skip


def upload_variables(url: str | None) -> dict[str, str]:
    """Return the variables that let a program upload what it records. Raises UsageError.

    `url` is that of `--mirror`; without one there are none.
    """
    if not url:
        return {}
    if not is_url(url):
        raise UsageError(f"no URL: {url}", where="--mirror", hint="s3://bucket/runs/my_run")
    return {"RLVITALS_RECORDING_MIRROR": url}


def local_folder(text: str) -> Path:
    """Return the folder to record into. Raises UsageError for a URL."""
    if is_url(text):
        hint = f"--mirror {text} uploads the folder while it is recorded"
        raise UsageError("a run is recorded into a folder of this machine", where=text, hint=hint)
    return Path(text)


def is_url(text: str) -> bool:
    """Return whether a text has the form of a URL."""
    return re.match(r"\w+://.", text) is not None


def add_alerts(parser: ArgumentParser) -> None:
    """Add `--alerts`, `--alert` and `--alert-when`."""
    parser.add_argument(
        "--alerts", action="store_true", help="send the alerts of your own alerts.toml"
    )
    parser.add_argument(
        "--alert", action="append", metavar="CHANNEL[=URL]",
        help="send alerts there: desktop, ntfy=URL, slack=URL, discord=URL, teams=URL, webhook=URL",
    )  # fmt: skip
    parser.add_argument(
        "--alert-when", action="append", metavar="CONDITION",
        help="when --alert sends: error, warning, silent, a verdict, a rule, a limit such as "
        "'outcome/return < 100 after 1M' (default: error, failed, silent)",
    )  # fmt: skip


def alert_routes(args: Namespace) -> "tuple[Route, ...]":
    """Return the routes of `--alerts` and `--alert`. Raises UsageError."""
    if not (args.alerts or args.alert):
        if args.alert_when:
            raise UsageError(
                "--alert-when needs a channel", where="--alert-when", hint="--alert desktop"
            )
        return ()
    from rlvitals.alerts import routes

    file_routes: tuple[Route, ...] = ()
    if args.alerts:
        file = routes.path(os.environ)
        if file is None:
            raise UsageError("there is no home folder", where="--alerts", hint="--alert desktop")
        file_routes = routes.read(file, os.environ)
    conditions = args.alert_when or ()
    flag_routes = (routes.from_flag(text, conditions, os.environ) for text in args.alert or ())
    return (*file_routes, *flag_routes)


def add_index(parser: ArgumentParser) -> None:
    """Add `--index`."""
    parser.add_argument(
        "--index", default="", metavar="URL",
        help="ask ClickHouse, which `rlvitals index ROOT --to URL` fills, and no folder: "
        "clickhouse://user@host:port/database, chdb:FOLDER",
    )  # fmt: skip


def add_run_path(parser: ArgumentParser) -> None:
    """Declare the path of one or several native run folders."""
    parser.add_argument("path", type=Path, metavar="PATH", help="a run folder, or one with several")


def seconds(text: str) -> float:
    """Return a duration of the command line in seconds: 90s, 30m, 1h, 1d."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    units = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
    if match is None or match[2] not in units or not float(match[1]):
        raise ArgumentTypeError(f"{text!r} is not a time: 90s, 30m, 1h, 1d")
    return float(match[1]) * units[match[2]]
