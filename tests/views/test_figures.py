"""What pictures show, as numbers: the goldens are what is drawn, with a tolerance for rounding."""

import json

import numpy as np
import pytest
from drawn import HERE, MADE, RECORDED, RUNS, SPREAD, series, subject
from loading import MEASURED

from rlvitals.diagnosis.engine import diagnose
from rlvitals.types import Lifecycle, Measured, Profile, Trace
from rlvitals.views.drawing import files
from rlvitals.views.drawing.curves import curves, scale
from rlvitals.views.figures import FIGURES
from rlvitals.views.figures.figure import Kind, Line, Panel, Subject
from rlvitals.views.figures.panels import picture

BY_NAME = {figure.name: figure for figure in FIGURES}
COLUMNS = 10  # of pixels in a golden: every curve by its extremes
GOLDEN = HERE / "golden" / "pictures"


def drawn(name, *subjects):
    return picture(BY_NAME[name], subjects)


def panel(picture, title):
    return next(panel for panel in picture.panels if panel.title == title)


def made(drawing, **more):
    measured = {name: Measured("test", "test", name) for name in drawing}
    trace = Trace(drawing, measured, **more)
    return Subject(more.get("name", "run"), diagnose(trace, rates=MEASURED))


@pytest.mark.parametrize("name", [*RECORDED, *RUNS, *MADE])
def test_what_is_drawn_is_what_it_was(name, request):
    pictures = [drawing for figure in FIGURES if (drawing := picture(figure, [subject(name)]))]
    text = "\n".join(files.numbers(drawing, COLUMNS) for drawing in pictures)
    path = GOLDEN / f"{name}.jsons"
    if request.config.getoption("--update-golden"):
        path.write_text(text + "\n")
    same(list(documents(text)), list(documents(path.read_text())))


def documents(text):
    decoder, offset = json.JSONDecoder(), 0
    while offset < len(text.rstrip()):
        document, offset = decoder.raw_decode(text, offset)
        yield document
        offset += 1


def same(document, golden):
    assert type(document) is type(golden)
    if isinstance(document, dict):
        assert document.keys() == golden.keys()
        for key in document:
            same(document[key], golden[key])
    elif isinstance(document, list):
        assert len(document) == len(golden)
        for actual, expected in zip(document, golden, strict=True):
            same(actual, expected)
    else:
        assert document == (
            pytest.approx(golden, rel=1e-5) if isinstance(document, float) else golden
        )


def test_each_run_has_the_pictures_that_its_log_has_numbers_for():
    every = (*RECORDED, *RUNS, *MADE)
    names = {n: {f.name for f in FIGURES if picture(f, [subject(n)])} for n in every}
    language = {"nsr_metrics", "lengths"}
    assert names["cluster"] == set(BY_NAME) - {*language, "distributions", "domain", "ranks"}
    assert names[SPREAD] == {"dashboard", "crucial", "rewards", "distributions"}
    assert names["domain"] == {"dashboard", "crucial", "rewards", "domain"}
    assert "lengths" in names["rlhf-kl-explodes"]
    guides = {"training_loss", "learning_rate", "gradient_norm", "rewards", "nsr_metrics"}
    assert guides <= names["nsr-healthy"]
    assert {"policy", "value", "actions"} <= names["scheduler-collapsed"]
    assert "nsr_metrics" not in names["sft-healthy"]
    assert set().union(*names.values()) == set(BY_NAME) - {"ranks"}


def test_a_spike_of_one_point_in_a_million_is_drawn():
    values = np.random.default_rng(1).normal(1.0, 0.1, 1_000_000)
    values[777_777] = 55.5
    line = Line("loss", "optimiser/loss", series(values, step=1))
    (curve,) = curves(Panel("Loss", lines=(line,)), 100, 0, 1_000_000)
    assert len(curve.values) <= 4 * 100
    assert curve.steps[curve.values == 55.5].tolist() == [777_778]
    assert curve.smooth is not None
    assert curve.smooth[1].max() < 5  # an overlay, beside the curve and never instead of it


def test_a_smooth_or_short_curve_has_no_average_over_it():
    smooth = series(np.linspace(0, 1, 1000))
    short = series(np.random.default_rng(0).normal(size=39))
    for curve in (smooth, short):
        panel = Panel("x", lines=(Line("x", "optimiser/loss", curve),))
        assert curves(panel, 100, 0, 10_000)[0].smooth is None


def test_what_is_no_number_leaves_a_gap_and_is_counted():
    text = files.numbers(drawn("gradient_norm", subject("hostile")), 1000)
    (curve,) = json.loads(text)["panels"][0]["curves"]
    assert curve["no_numbers"] == {"nan": 1, "above": 1, "below": 1}
    index = curve["steps"].index(1010)
    assert curve["values"][index : index + 4] == [None, None, None, 400.0]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1, 2, 3, 2, 1] * 20, "linear"),
        ([1.0] * 99 + [1000.0], "log"),
        ([1.0, 1e-9] * 50 + [1e4], "asinh"),
        ([0.1, -0.1] * 50 + [1000.0], "asinh"),
        ([0.0] * 100, "linear"),
        ([np.nan] * 10, "linear"),
        ([1e308, -1e308] * 50, "linear"),
    ],
)
def test_the_scale_is_linear_unless_a_spike_would_flatten_the_rest(values, wanted):
    panel = Panel("x", lines=(Line("x", "x", series(values)),))
    assert scale(panel, curves(panel, 500, 0, 10 * len(values)))[0] == wanted


def test_a_finding_is_marked_on_its_own_curve_from_its_onset_on():
    run = subject("cluster-lr-x100")
    finding = next(f for r, f in run.found.findings if r.name == "kl-above-target")
    kl, entropy = (panel(drawn("policy", run), title) for title in ("KL per update", "Entropy"))
    marks = {mark.label: mark for mark in kl.marks}
    assert marks["kl-above-target"].began == finding.began
    assert marks["kl-above-target"].ended == finding.ended
    assert kl.marks[0].severity == max(mark.severity for mark in kl.marks)
    assert not entropy.marks


def test_kl_stands_beside_the_target_that_the_run_has_set():
    kl = panel(drawn("policy", subject("cluster")), "KL per update")
    assert [(limit.value, limit.label) for limit in kl.limits] == [(0.03, "target_kl 0.03")]


def test_a_target_that_one_of_two_runs_has_set_is_not_drawn_for_both():
    first, two = map(subject, RECORDED)
    assert panel(drawn("policy", first, two), "KL per update").limits == ()
    assert len(panel(drawn("policy", first, first), "KL per update").limits) == 1


def test_the_shares_of_the_replicas_sum_to_one_and_show_the_collapse():
    (drawing,) = drawn("actions", subject("scheduler-collapsed")).panels
    assert drawing.kind is Kind.SHARES
    table = np.stack([line.series.values for line in drawing.lines])
    np.testing.assert_allclose(table.sum(axis=0), 1.0)
    assert table[:, -1].max() > 0.95
    assert [line.label for line in drawing.lines] == [f"replica {n}" for n in range(4)]


def test_actions_are_counted_by_rollouts_too_and_in_the_order_of_their_numbers():
    counts = {f"policy/action_count/{n}": series([n + 1.0] * 8) for n in (10, 9, 2)}
    (drawing,) = drawn("actions", made(counts, profile=Profile.SCHEDULER_PPO)).panels
    assert [line.label for line in drawing.lines] == ["replica 2", "replica 9", "replica 10"]
    assert [line.series.values[0] for line in drawing.lines] == [3 / 24, 10 / 24, 11 / 24]


def test_pulses_are_shaded_where_they_are_on():
    drawing = drawn("temperature", subject("cluster"))
    switch = subject("cluster").trace["exploration/is_pulsing"]
    on = np.zeros(len(switch), dtype=bool)
    for chart in panel(drawing, "Temperature").stretches:
        on |= (switch.steps >= chart.began) & (switch.steps < chart.ended)
    assert on[:-1].tolist() == (switch.values[:-1] > 0.5).tolist()
    lags = "Temperature against latency, by lag"
    assert [chart.title for chart in drawing.panels] == ["Temperature", "Latency", "Pressure", lags]


def test_the_dashboard_has_the_seven_and_says_what_is_not_logged():
    drawing = drawn("dashboard", subject("cluster"))
    charts = [chart.title for chart in drawing.panels if chart.kind is not Kind.WORDS]
    assert charts == [
        "Success rate", "Return", "Entropy", "KL", "Value loss", "Steps per second",
        "Updates per second",
    ]  # fmt: skip
    assert panel(drawing, "Success rate").absent == "not logged"
    assert all(chart.lines for chart in drawing.panels if chart.title in charts[1:])
    paragraphs = [text.text for chart in drawing.panels for text in chart.words]
    assert "LEARNING" in paragraphs
    assert any("imbalance-unresolved" in text for text in paragraphs)


def test_the_share_of_right_answers_is_a_language_model_s_success():
    (line,) = panel(drawn("dashboard", subject("nsr-healthy")), "Success rate").lines
    assert line.metric == "reward/component/correct"


def test_nsr_metrics_has_four_panels_in_one_run_and_in_several():
    single = drawn("nsr_metrics", subject("nsr-healthy"))
    assert [bool(chart.lines) for chart in single.panels] == [False, True, False, True]
    assert single.panels[0].absent == "not logged: PSR logs it"
    together = drawn("nsr_metrics", subject("nsr-healthy"), subject("grpo-paid-by-length"))
    assert len(together.panels) == 4
    assert {line.run for line in together.panels[3].lines} == {0, 1}


def test_of_several_runs_each_part_of_the_reward_has_a_panel():
    drawing = drawn("reward_breakdown", subject("cluster"), subject("cluster-lr-x100"))
    assert "The whole reward" in [chart.title for chart in drawing.panels]
    assert all({line.run for line in chart.lines} == {0, 1} for chart in drawing.panels)
    assert drawing.about == "2 runs"


def test_parts_that_are_never_paid_are_left_out():
    titles = {line.label for line in drawn("reward_breakdown", subject("cluster")).panels[0].lines}
    assert "load balance penalty" in titles
    assert "asymmetric penalty" not in titles


def test_speeds_that_are_not_logged_come_from_the_times_of_the_rows():
    updates = panel(drawn("throughput", subject("cluster")), "Updates per second")
    iterations = subject("cluster").trace["progress/iteration"]
    seconds = iterations.times[-1] - iterations.times[0]
    mean = (iterations.values[-1] - iterations.values[0]) / seconds
    assert np.mean(updates.lines[0].series.values) == pytest.approx(mean, rel=0.2)


def test_where_a_run_was_resumed_is_marked():
    run = made({"optimiser/loss": series(range(50))}, lifecycle=Lifecycle(seams=(250,)))
    assert drawn("training_loss", run).seams == (250,)


def test_the_unit_of_the_x_axis_is_the_run_s_own():
    assert drawn("policy", subject("cluster")).x_label == "environment steps"
    mixed = drawn("training_loss", subject("cluster"), subject("nsr-healthy"))
    assert mixed.x_label == "each run's own steps: environment steps, steps"


def test_without_a_loss_as_a_whole_its_parts_are_drawn():
    drawing = drawn("training_loss", subject("scheduler-collapsed"))
    assert [chart.title for chart in drawing.panels] == ["Policy loss", "Value loss"]


def test_nothing_logged_is_no_picture():
    run = made({"progress/epoch": series(range(5))})
    assert [figure.name for figure in FIGURES if picture(figure, [run])] == []


def test_a_language_model_s_dashboard_has_its_optimiser_and_the_samples_it_keeps():
    charts = {chart.title: chart for chart in drawn("dashboard", subject("nsr-healthy")).panels}
    expected = {
        "Training loss": "optimiser/loss", "Learning rate": "optimiser/learning_rate",
        "Gradient norm": "optimiser/grad_norm", "Samples kept": "language/negative_share",
    }  # fmt: skip
    assert {title: charts[title].lines[0].metric for title in expected} == expected
    assert "Value loss" not in charts  # it has no critic
    cluster_titles = {chart.title for chart in drawn("dashboard", subject("cluster")).panels}
    assert not cluster_titles & set(expected)


def test_a_drift_of_prompts_and_a_spread_that_grows_are_seen_in_the_lengths():
    drawing = made(
        {
            "language/query_length_mean": series(np.linspace(40, 90, 60)),
            "language/length_mean": series(np.full(60, 50.0)),
            "language/length_std": series(np.geomspace(5, 500, 60)),
        },
        profile=Profile.RLHF_PPO,
    )
    prompts, spread = (
        panel(drawn("lengths", drawing), title).lines[0].series.values
        for title in ("Prompt length", "Spread of lengths")
    )
    assert (prompts[0], prompts[-1]) == (40, 90)
    assert spread[-1] == pytest.approx(100 * spread[0])


def test_the_best_shares_are_drawn_where_the_speeds_are_known():
    (drawing,) = drawn("actions", subject("cluster")).panels
    assert [limit.label for limit in drawing.limits] == [
        "replica 0: best 44%", "replica 1: best 22%", "replica 2: best 22%",
    ]  # fmt: skip
    assert [limit.value for limit in drawing.limits] == pytest.approx([4 / 9, 6 / 9, 8 / 9])
    assert drawing.said.text == "7% of the last choices belong elsewhere"
    (unknown,) = drawn("actions", subject("scheduler-collapsed")).panels
    assert unknown.limits == ()


def test_the_lags_say_that_nobody_can_tell():
    drawing = panel(drawn("temperature", subject("cluster")), "Temperature against latency, by lag")
    (bars,) = drawing.across
    assert bars.x.tolist() == list(range(-20, 21))
    assert drawing.said.text.startswith("cannot tell: the strongest, +0.43 at once")
    strongest = np.abs(bars.values).max()
    assert strongest < drawing.limits[0].value == -drawing.limits[1].value
