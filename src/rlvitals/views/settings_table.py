"""Write the options as tables for the manual, from their schema."""

from dataclasses import fields
from inspect import cleandoc

from rlvitals import settings
from rlvitals.options import Mute


def settings_table() -> str:
    """Return every section of `rlvitals.toml` as Markdown."""
    lines: list[str] = []
    for section, schema in settings.SECTIONS.items():
        doc_text = cleandoc(schema.__doc__ or "")
        lines += [f"## `[{section}]`", "", doc_text, ""]
        flags = section in settings.FLAG_SECTIONS
        heads = ["option", "meaning", "default", *(["flag"] if flags else []), "variable"]
        lines += [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
        for option in settings.options(section):
            choices = f" ({', '.join(option.choices)})" if option.choices else ""
            value = option.default
            text = ",".join(value) if isinstance(value, tuple) else str(value)
            default = f"`{text}`" if value else ""
            flag = f"`{option.flag}` | " if flags else ""
            lines.append(
                f"| `{option.key}` | {option.doc}{choices} | {default} | {flag}"
                f"`{option.variable}` |"
            )
        lines.append("")
    for section, (doc, flag) in settings.FREE_SECTIONS.items():
        variable = f"`{settings.ENV_PREFIX}{section.upper()}`"
        lines += [f"## `[{section}]`", "", f"{doc[0].upper()}{doc[1:]}.", ""]
        pair = "RULE.WORD=NUMBER" if section == "thresholds" else "KEY=VALUE"
        lines += [f"On the command line `{flag} {pair}`, in the environment {variable}.", ""]
    return "\n".join([*lines, *_mute_section()]).rstrip()


def _mute_section() -> list[str]:
    """Return the section of mutes, which may occur several times."""
    rows = [
        f"| `{f.name}` | {f.metadata['doc']} | {f.metadata['item']} |"
        for f in fields(Mute)
        if f.metadata
    ]
    doc_text = cleandoc(Mute.__doc__ or "")
    head = [
        f"## `[[{settings.MUTED_SECTION}]]`",
        "",
        doc_text,
        "`rule` and `reason` are required.",
        "",
    ]
    return [*head, "| key | meaning | value |", "|---|---|---|", *rows, ""]
