"""rlvitals itself, asked as everyone else: the run's folder, its defaults, no name of the run.

Every finding counts that is a warning or worse, causes and symptoms alike. Its step is the first
at which it could have been said.
"""

from peers.exchange import ERROR, WARNING, Alarm, Given, Tool, answer

import rlvitals
from rlvitals import Severity


def ask(run: Given) -> list[Alarm]:
    """Diagnose the run's folder."""
    found = rlvitals.diagnose(run.folder).findings
    return [
        Alarm(rule.name, ERROR if finding.severity is Severity.ERROR else WARNING, finding.known)
        for rule, finding in found
        if finding.severity >= Severity.WARNING
    ]


if __name__ == "__main__":
    answer(Tool("rlvitals", rlvitals.__version__, "Apache-2.0", "this repository", ()), ask)
