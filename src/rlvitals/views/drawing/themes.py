"""Light and dark themes with colours safe for colour blindness and print."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rlvitals.startup.fast_dataclass import dataclass

if TYPE_CHECKING:
    from rlvitals.rules.rule import Severity


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a picture."""

    paper: str
    ink: str
    dim: str
    grid: str
    curves: tuple[str, ...]  # Okabe and Ito 2008, "Color Universal Design", adapted to the paper
    named: Mapping[str, str]  # by the names of terminal colours

    def curve(self, index: int) -> str:
        """Return the colour of curve number `index`."""
        return self.curves[index % len(self.curves)]

    def severity(self, severity: "Severity") -> str:
        """Return the colour of a finding."""
        return self.named[severity.name.lower()]


LIGHT = Theme(
    paper="#ffffff",
    ink="#1f2328",
    dim="#636c76",
    grid="#e4e7ea",
    curves=(
        "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6A4C93", "#555555",
    ),
    named={
        "error": "#b3261e", "warning": "#9a6200", "note": "#5b6672", "red": "#b3261e",
        "yellow": "#9a6200", "green": "#1a7f37", "cyan": "#0072B2", "magenta": "#8250a0",
        "dim": "#636c76",
    },
)  # fmt: skip
DARK = Theme(
    paper="#15181d",
    ink="#e8eaed",
    dim="#9aa4af",
    grid="#2b3038",
    curves=(
        "#56B4E9", "#F0914A", "#2EC49A", "#E59CC4", "#F0C24A", "#A9D6F5", "#B79CFF", "#C4C8CE",
    ),
    named={
        "error": "#ff7b72", "warning": "#f0b25a", "note": "#9fb0c3", "red": "#ff7b72",
        "yellow": "#f0b25a", "green": "#56d364", "cyan": "#56B4E9", "magenta": "#d2a8ff",
        "dim": "#9aa4af",
    },
)  # fmt: skip
THEMES: Mapping[str, Theme] = {"light": LIGHT, "dark": DARK}
