"""Draw terminal output as an SVG: `capture.py PATH OUT.svg [PARTS]`.

The picture in the README is the real output of `rlvitals diagnose PATH`: the command is run with
colours forced, and rich draws what came out, cut after the first PARTS of its parts (a blank line
ends a part). `make docs` draws it anew.
"""

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 92  # columns
# Nothing is fetched from another host: rich's own template asks for a web font.
FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main(path: str, out: Path, max_sections: int | None = None) -> None:
    sections = run("diagnose", path).rstrip().split("\n\n")
    shown_sections = sections[:max_sections]
    console = Console(file=StringIO(), record=True, width=WIDTH, force_terminal=True)
    console.print(Text.assemble(("$ ", "bold"), f"rlvitals diagnose {path}"))
    console.print(Text.from_ansi("\n\n".join(shown_sections)))
    if len(shown_sections) < len(sections):
        console.print(Text("\n... and more", "dim"))
    svg = console.export_svg(title="rlvitals", unique_id="capture")
    svg = FONT_FACE.sub("", svg).replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")
    svg = "\n".join(line.rstrip() for line in svg.splitlines())
    out.write_text(svg + "\n", encoding="utf-8")
    print(f"{out}: {len(shown_sections)} of {len(sections)} parts")


def run(*argv: str) -> str:
    env = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    env.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "rlvitals", *argv]
    process = subprocess.run(command, capture_output=True, text=True, env=env, check=False)  # noqa: S603 - our own program
    assert process.returncode in {0, 1}, process.stderr
    return process.stdout


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
