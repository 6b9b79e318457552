"""Numbers that their file does not name: one array, or a table without a row of names."""

from rlvitals.metrics.catalogue import outcome
from rlvitals.metrics.frameworks.key import Name, Table

NAMES = Table(
    "unnamed",
    "numbers without a name",
    keys={"values": Name(outcome.RETURN, "the only numbers of the file: taken for the return")},
    sources=("numpy", "headerless-csv"),
    loose=True,
    yields=True,
    read_from="numpy: lib/_npyio_impl.py (save, savetxt): neither writes a name",
)
