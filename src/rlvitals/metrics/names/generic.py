"""Plain names that mean the same wherever they are written by hand."""

from rlvitals.metrics.names.name import Name, Table
from rlvitals.metrics.policy import APPROX_KL

NAMES = Table("generic", "plain names", keys={"approx_kl": Name(APPROX_KL, "estimator not known")})
