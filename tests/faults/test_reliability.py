"""The probabilities of an outcome's shape beside what became of published curves."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

import reliability


def test_bins_of_probabilities_that_are_right_lie_on_the_diagonal():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet((0.5, 0.5, 0.5), size=3000)
    labels = np.array([rng.choice(3, p=each) for each in probabilities])
    result = reliability.measure(probabilities, labels, [str(n) for n in range(3000)])
    assert [each["curves"] for each in result["bins"]] == [600] * 5
    for each in result["bins"]:
        assert each["low"] - 0.02 <= each["said"] <= each["high"] + 0.02
        assert each["low"] <= each["right"] <= each["high"]
    assert result["skill"] > 0.3
    wrong = reliability.measure(probabilities, (labels + 1) % 3, [str(n) for n in range(3000)])
    assert wrong["skill"] < 0


def test_the_page_states_the_numbers_that_were_counted():
    result = json.loads(reliability.RESULT.read_text())
    assert sum(each["curves"] for each in result["bins"]) == result["curves"]
    assert result["skill"] == pytest.approx(1 - result["brier"] / result["base"], abs=2e-3)
    page = (reliability.ROOT / "docs" / "how-good-is-it.md").read_text()
    for each in result["bins"]:
        row = "| {said:.2f} | {right:.2f} [{low:.2f}, {high:.2f}] | {curves} |".format(**each)
        assert row in page
    assert f"{result['curves']} classic curves of {result['repositories']} repositories" in page
