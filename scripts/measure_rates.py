"""Count how often each rule rings on healthy runs, and write `src/rlvitals/rules/rates.py`.

    python scripts/measure_rates.py FOLDER... [--print]

Each FOLDER holds one folder per run as `scripts/record_*.py` leave them: a `settings.json` whose
`fault` is "none" or null says that the run is healthy. Others are left out: which rules should
name a fault is not told there.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals import sources
from rlvitals.diagnosis import diagnose
from rlvitals.measuring import judged, rates_module, tally
from rlvitals.metrics.assemble import Given, trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlvitals.measuring import Judged

TARGET = Path(__file__).resolve().parent.parent / "src/rlvitals/rules/rates.py"
# What a log of these recordings does not hold, and a person would say.
TOLD = ("env_id", "algorithm", "target_kl", "n_steps", "n_envs", "n_epochs", "max_grad_norm")
TOLD += ("mode", "entropy_min")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="folders of recorded runs")
    parser.add_argument("--print", action="store_true", help="print it, write nothing")
    args = parser.parse_args()
    text = rates_module(tally(found for folder in args.folders for found in healthy(folder)))
    if args.print:
        print(text)
    else:
        TARGET.write_text(text, encoding="utf-8")
    return 0


def healthy(folder: Path) -> Iterator[Judged]:
    """Judge every healthy run under a folder."""
    for settings in sorted(folder.glob("*/settings.json")):
        said = json.loads(settings.read_text(encoding="utf-8"))
        if said.get("fault") not in (None, "", "none"):
            continue
        (run,) = sources.find(settings.parent)
        given = Given(settings={key: said[key] for key in TOLD if said.get(key) is not None})
        yield judged(diagnose(trace(sources.read(run), given, name=run.name)), healthy=True)


if __name__ == "__main__":
    sys.exit(main())
