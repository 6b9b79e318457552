"""Reward for thinking that is similar to the reference, by a sentence encoder."""

from rlvitals.trainers.language.rewards import parts
from rlvitals.trainers.language.rewards.reward import Measure, Sample


def score(sample: Sample) -> float | None:
    """Pay the cosine of the two texts' embeddings, if above 0; None without a reference."""
    reference = sample.text("reasoning").strip()
    if not reference or sample.alike is None:
        return None
    thought = parts.inner(sample.completion, "think")
    return sample.alike(thought.rpartition("</table>")[2], reference) if thought else 0.0


MEASURE = Measure(
    name="process_style_reward",
    meaning="the thinking is like the reference's, to a sentence encoder (`process_model`)",
    low=0,
    high=1,
    title="Process Style Rewards",
    score=score,
    needs=(("reasoning",),),
    needs_model=True,
)
