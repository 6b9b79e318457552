"""`rlvitals plot`: the files it makes, the flags of old, what it says where there is nothing."""

import json
from pathlib import Path

import pytest
from small_logs import write

PNG = b"\x89PNG"
QUICK = ("--only", "rewards")  # where it is no matter which pictures are drawn


def trainer_state(folder, mode="nsr", steps=40, runtime=1800.0):
    """What Hugging Face's Trainer leaves, the row of totals last."""
    mode_keys = {"psr": "psr/positive_ratio", "nsr": "nsr/negative_ratio",
           "w_reinforce": "w_reinforce/pos_neg_ratio"}[mode]  # fmt: skip
    rows = [
        {
            "step": step, "loss": 3.2 - 0.03 * step, "grad_norm": 2.0 / step, "epoch": step / steps,
            "learning_rate": 1e-5 * (1 - step / steps), "reward": 0.1 * step, "entropy": 1.0,
            mode_keys: 0.5, f"{mode}/avg_reward": 0.05 * step,
        }
        for step in range(1, steps + 1)
    ]  # fmt: skip
    rows.append({"step": steps, "epoch": 1.0, "train_runtime": runtime, "train_loss": 2.1})
    folder.mkdir(parents=True)
    state = {"global_step": steps, "max_steps": steps, "log_history": rows}
    (folder / "trainer_state.json").write_text(json.dumps(state))
    return folder


@pytest.fixture
def trained(tmp_path):
    return trainer_state(tmp_path / "outputs" / "nsr-run")


def made(folder):
    return {path.name for path in folder.iterdir()}


GUIDE = {
    "training_loss.png", "learning_rate.png", "gradient_norm.png", "rewards.png", "nsr_metrics.png",
    "dashboard.png", "policy.png", "crucial.png", "summary.txt",
}  # fmt: skip


def test_a_trainer_s_folder_gets_the_guide_s_pictures_and_its_summary(trained, call, tmp_path):
    code, out, errors = call("plot", trained)
    folder = tmp_path / "training_plots"
    assert (code, errors) == (0, "")
    assert made(folder) == GUIDE
    assert all(f.read_bytes().startswith(PNG) for f in folder.glob("*.png"))
    summary = (folder / "summary.txt").read_text()
    assert out.endswith(summary)
    assert "  Total steps: 40\n" in summary
    assert "  Final loss: 2, no score" in summary  # not the row of totals'
    assert " (3.17 → 2; std/mean of the last 10: 0.0404)\n" in summary
    assert "  Training time: 0.50 hours (30 min), from its log\n" in summary
    assert "left out, as the log holds nothing for them: value, actions, temperature" in out


@pytest.mark.parametrize("inner", ["", "checkpoint-40"])
def test_the_flags_of_old_take_a_run_or_one_of_its_checkpoints(inner, call, tmp_path):
    run = trainer_state(tmp_path / "run" / inner) if inner else trainer_state(tmp_path / "run")
    flags = ("--checkpoint-dir", run, "--output-dir", tmp_path / "nsr_plots")
    assert call("plot", *flags, *QUICK)[0] == 0
    assert made(tmp_path / "nsr_plots") == {"rewards.png", "summary.txt"}


def test_a_folder_that_holds_checkpoints_alone_is_a_run(call, tmp_path):
    trainer_state(tmp_path / "run" / "checkpoint-20", steps=20)
    trainer_state(tmp_path / "run" / "checkpoint-40")
    flags = ("--checkpoint-dir", tmp_path / "run", "-o", tmp_path / "out")
    assert call("plot", *flags, *QUICK)[0] == 0
    assert "  Total steps: 40\n" in (tmp_path / "out" / "summary.txt").read_text()


@pytest.mark.soak
def test_runs_that_are_compared_share_every_picture(call, tmp_path):
    runs = [trainer_state(tmp_path / mode, mode) for mode in ("psr", "nsr", "w_reinforce")]
    code, out, _ = call(
        "plot", "--compare", "--checkpoints", *runs, "--labels", "PSR", "NSR", "W-REINFORCE",
        "--output-dir", "comparison_plots", "--format", "json,png",
    )  # fmt: skip
    folder = tmp_path / "comparison_plots"
    assert code == 0
    assert made(folder) >= GUIDE
    document = json.loads((folder / "nsr_metrics.json").read_text())
    assert document["runs"] == ["PSR", "NSR", "W-REINFORCE"]
    drawn = [{curve["run"] for curve in panel["curves"]} for panel in document["panels"]]
    assert drawn == [{0}, {1}, {2}, {0, 1, 2}]
    assert [out.count(f"TRAINING SUMMARY:\n  Run: {label}\n") for label in document["runs"]] == [
        1,
        1,
        1,
    ]


def test_without_compare_each_run_has_a_folder(call, tmp_path):
    runs = [trainer_state(tmp_path / mode, mode) for mode in ("psr", "nsr")]
    assert call("plot", *runs, *QUICK)[0] == 0
    folder = tmp_path / "training_plots"
    assert made(folder) == {"psr", "nsr", "summary.txt"}
    assert made(folder / "psr") == {"rewards.png"}


@pytest.mark.parametrize("labels", [["one"], ["one", "two", "three"]])
def test_a_label_too_few_or_too_many_is_wrong_usage(labels, call, tmp_path):
    runs = [trainer_state(tmp_path / mode, mode) for mode in ("psr", "nsr")]
    code, _, errors = call("plot", "--compare", *runs, "--labels", *labels)
    assert code == 2
    count = "1 label" if len(labels) == 1 else f"{len(labels)} labels"
    assert f"{count} for 2 runs" in errors
    assert not (tmp_path / "training_plots").exists()


def test_a_folder_without_a_log_is_an_error_that_says_what_was_looked_for(call, tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, errors = call("plot", "--checkpoint-dir", tmp_path / "empty")
    assert code == 3
    assert "no training log in this folder" in errors
    assert "rlvitals readers" in errors
    assert not (tmp_path / "training_plots").exists()


def test_one_run_that_cannot_be_read_does_not_stop_the_rest(trained, call, tmp_path):
    (tmp_path / "empty").mkdir()
    second_run = trainer_state(tmp_path / "psr", "psr")
    code, out, errors = call(
        "plot", "--compare", trained, tmp_path / "empty", second_run, "--labels", "A", "B", "C",
        *QUICK,
    )  # fmt: skip
    assert code == 3
    assert "no training log" in errors
    assert made(tmp_path / "training_plots") == {"rewards.png", "summary.txt"}
    assert "TRAINING SUMMARY:\n  Run: A\n" in out
    assert "TRAINING SUMMARY:\n  Run: C\n" in out


def test_what_nobody_logged_is_named_as_its_framework_calls_it(trained, call):
    code, out, _ = call("plot", trained, "--only", "value,training_loss")
    assert code == 3
    assert "no value: it shows" in out
    assert "value/loss" in out
    assert "training_loss.png" in out


def test_only_what_is_asked_for_is_drawn(trained, call, tmp_path):
    code, _, _ = call("plot", trained, "--only", "rewards", "--format", "svg")
    assert code == 0
    assert made(tmp_path / "training_plots") == {"rewards.svg", "summary.txt"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--only", "reward"], "did you mean rewards"),
        (["--format", "jpg"], "no picture is written as 'jpg'"),
        (["--dpi", "5"], "20 to 1200"),
        (["--theme", "drak"], "did you mean dark"),
        (["--map", "x=no/such"], "no metric is called"),
    ],
)
def test_wrong_usage_says_what_is_right(flags, said, trained, call):
    code, _, errors = call("plot", trained, *flags)
    assert code == 2
    assert said in errors


def test_without_a_run_it_asks_which(call):
    assert call("plot")[0] == 2


def test_the_settings_file_says_how_pictures_are_made(trained, call, tmp_path):
    text = '[plot]\ntheme = "dark"\nformat = ["svg"]\n'
    (trained / "rlvitals.toml").write_text(text)
    assert call("plot", trained, "--only", "rewards")[0] == 0
    assert "#15181d" in (tmp_path / "training_plots" / "rewards.svg").read_text()


def test_a_label_leads_nowhere_else(call, tmp_path):
    runs = [write(tmp_path / name) for name in ("a", "b")]
    call("plot", *runs, "--labels", "../../up", "..", "--only", "rewards")
    folder = tmp_path / "training_plots"
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["_.._up", "run"]


def test_a_metric_of_one_s_own_is_drawn_under_the_name_that_it_is_given(healthy, call, tmp_path):
    code, _, _ = call(
        "plot", healthy, "--map", "my/score=outcome/success_rate", "--only", "dashboard",
        "--format", "json",
    )  # fmt: skip
    document = json.loads((tmp_path / "training_plots" / "dashboard.json").read_text())
    assert code == 0
    assert document["panels"][0]["curves"][0]["metric"] == "outcome/success_rate"


def test_a_folder_that_cannot_be_made_is_said(trained, call, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, errors = call("plot", trained, "-o", tmp_path / "file" / "out")
    assert code == 2
    assert "no pictures can be written there" in errors


def test_the_manual_shows_what_is_printed(call, tmp_path):
    trainer_state(tmp_path / "outputs" / "nsr-run")
    _, out, _ = call("plot", "outputs/nsr-run", "--only", "training_loss")
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "plot-a-run.md").read_text()
    example = page.partition("$ rlvitals plot outputs/nsr-run --only training_loss\n")[2]
    assert out.startswith(example.partition("```")[0])


def test_the_crucial_view_is_one_picture_and_one_page(trained, call, tmp_path):
    code, out, errors = call("plot", trained, "--view", "crucial")
    folder = tmp_path / "training_plots"
    assert (code, errors) == (0, "")
    assert made(folder) == {"crucial.png", "crucial.txt"}
    page = (folder / "crucial.txt").read_text()
    assert out.endswith(page)
    assert "+ Reward " in page
    assert "    reward: goes up; by " in page
    code, _, errors = call("plot", trained, "--view", "crucial", "--only", "policy")
    assert (code, "a view has its own pictures" in errors) == (2, True)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("there", "asked"),
    [
        ("qwen-large-train-v2-2025", "qwen-large-train-v2-grpo-2025"),
        ("qwen-large-train-v2-grpo-2025", "qwen-large-train-v2-2025"),
    ],
)
def test_grpo_s_folder_is_found_under_both_of_its_names(there, asked, call, tmp_path):
    trainer_state(tmp_path / there)
    assert call("plot", "--checkpoint-dir", tmp_path / asked, "--only", "rewards")[0] == 0
    code, out, _ = call("plot", "--compare", "--checkpoints", asked, "--labels", "GRPO")
    assert code == 0
    assert "TRAINING SUMMARY:\n  Run: GRPO\n" in out
    for name in ("qwen-large-train-v2-psr-2025", "qwen-large-train-v2-grpo-7", "missing"):
        code, _, errors = call("plot", tmp_path / name)
        assert code == 3
        assert "this path does not exist" in errors


def test_a_measure_of_one_s_own_is_drawn(call, tmp_path):
    write(tmp_path / "run")
    code, _, _ = call(
        "plot", "run", "--map", "my/score=outcome/domain/distance_to_goal", "--only", "domain",
        "--format", "json",
    )  # fmt: skip
    assert code == 0
    drawn = json.loads((tmp_path / "training_plots" / "domain.json").read_text())
    (panel,) = drawn["panels"]
    assert panel["title"] == "Distance to goal"
    assert panel["curves"][0]["metric"] == "outcome/domain/distance_to_goal"
    assert call("plot", "run", "--only", "domain")[0] == 3
