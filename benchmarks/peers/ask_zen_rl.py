"""zen-rl, https://pypi.org/project/zen-rl/, MIT by its description.

Made for Stable-Baselines3's PPO in TensorBoard; its thresholds come from 16 CartPole runs, as it
says. Fed what its reader makes of event files, a dictionary from tag to (step, value): the keys of
`progress.csv` are the tags of the event files, so nothing is renamed. `detect`, then `rank` and
`group` as its command does: causes, without their consequences. It has one severity, a warning
here.
"""

from peers.exchange import WARNING, Alarm, Given, answer, installed
from zen.detect.rules import detect
from zen.vlak import group, rank


def ask(run: Given) -> list[Alarm]:
    """Detect, and drop what has a cause among the rest."""
    keys = dict.fromkeys(key for row in run.rows for key in row)
    metrics = {key: run.column(key) for key in keys}
    issues = group(rank(detect(metrics)))
    return [Alarm(issue["mode"], WARNING, int(issue["step"])) for issue in issues]


if __name__ == "__main__":
    source = "https://pypi.org/project/zen-rl/"
    answer(installed("zen-rl", "MIT", source, ()), ask)
