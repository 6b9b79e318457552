"""Numbers that their file does not name: a single array, or a table without a first row of names."""

from rlvitals.metrics import outcome
from rlvitals.metrics.names.name import Name, Table

NAMES = Table(
    "unnamed",
    "numbers without a name",
    keys={"values": Name(outcome.RETURN, "the only numbers of the file: taken for the return")},
    sources=("numpy", "headerless-csv"),
    loose=True,
    yields=True,
)
