"""Read and write a lab's own rates: how often each rule rings on its healthy runs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.root_cause import Case
from rlvitals.errors import UsageError
from rlvitals.rules.rate import FAMILIES, Rate, Rates
from rlvitals.storage import safe_files


def write(path: Path, rates: Mapping[str, Sequence[Rate]]) -> None:
    """Write the rates of each rule, by family. Raises UsageError."""
    rules = {name: [asdict(rate) for rate in rates[name]] for name in sorted(rates)}
    text = json.dumps({"format": 1, "rates": rules}, indent=1)
    try:
        with safe_files.atomic_write(path) as file:
            file.write(f"{text}\n".encode())
    except OSError as error:
        raise UsageError(f"the rates cannot be written: {error}", where=str(path)) from error


def read(path: Path) -> Rates:
    """Read what `rlvitals calibrate ROOT` wrote. Raises UsageError where it is no such file."""
    hint_text = f"rlvitals calibrate ROOT --write {path}"
    counts = [count.name for count in fields(Rate) if count.name != "family"]
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != 1:
            problem = f"the rates have format {content['format']}, this program reads 1"
            raise UsageError(problem, where=str(path), hint=hint_text)
        return {
            str(name): tuple(
                Rate(str(rate["family"]), **{count: _count(rate, count) for count in counts})
                for rate in rates
            )
            for name, rates in content["rates"].items()
        }
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        problem = f"these rates cannot be read: {error!r}"
        raise UsageError(problem, where=str(path), hint=hint_text) from error


def _count(rate: Mapping[str, int], name: str) -> int:
    # Older files lack these two counts.
    return int(rate.get(name, 0) if name in ("frameworks", "tasks") else rate[name])


def attach(diagnosis: Diagnosis, rates: Rates) -> Diagnosis:
    """Return the diagnosis with the lab's own rate in each case; severities stay."""
    family = FAMILIES[diagnosis.trace.profile]
    return replace(
        diagnosis, cases=tuple(_with_rate(case, rates, family) for case in diagnosis.cases)
    )


def _with_rate(case: Case, rates: Rates, family: str) -> Case:
    matching = (rate for rate in rates.get(case.rule.name, ()) if rate.family == family)
    symptoms = tuple(_with_rate(symptom, rates, family) for symptom in case.symptoms)
    return replace(case, symptoms=symptoms, own_rate=next(matching, None))
