"""Draw what the terminal shows as an SVG: `capture.py PATH OUT.svg [PARTS]`.

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


def main(path: str, out: Path, most: int | None = None) -> None:
    parts = run("diagnose", path).rstrip().split("\n\n")
    shown = parts[:most]
    console = Console(file=StringIO(), record=True, width=WIDTH, force_terminal=True)
    console.print(Text.assemble(("$ ", "bold"), f"rlvitals diagnose {path}"))
    console.print(Text.from_ansi("\n\n".join(shown)))
    if len(shown) < len(parts):
        console.print(Text("\n... and more", "dim"))
    svg = console.export_svg(title="rlvitals", unique_id="capture")
    svg = FONT_FACE.sub("", svg).replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")
    svg = "\n".join(line.rstrip() for line in svg.splitlines())
    out.write_text(svg + "\n", encoding="utf-8")
    print(f"{out}: {len(shown)} of {len(parts)} parts")


def run(*argv: str) -> str:
    env = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    env.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "rlvitals", *argv]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)  # noqa: S603 - our own program
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
