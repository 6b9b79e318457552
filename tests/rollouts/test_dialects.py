"""Every dialect: files as the framework writes them, read to the same conversation."""

import json
import pickle

import dialect_files
import pytest
from dialect_files import CHAT, episode, lines

from rlvitals.errors import UnreadableLog
from rlvitals.rollouts import rollout_index
from rlvitals.rollouts.chat_messages import is_failure
from rlvitals.rollouts.dialects import ROLLOUT_DIALECTS
from rlvitals.rollouts.sample import RewardPart

NAMES = {dialect_files.prime_rl: "episodes", dialect_files.nemo_rl: "nemo-rl"}


def read_one(path):
    rollouts = rollout_index.read(path)
    return rollouts.read_sample(0)


@pytest.mark.parametrize("write", dialect_files.WRITERS, ids=lambda write: write.__name__)
def test_what_every_framework_records(tmp_path, write):
    path = write(tmp_path)
    dialect = rollout_index.claim(path)
    assert dialect.name == NAMES.get(write, write.__name__)
    sample = read_one(path)
    assert "What is 6 x 7?" in sample.prompt
    assert "It is 42." in sample.turns[-1].text
    assert "It is 42." not in sample.prompt
    assert sample.reward == pytest.approx({"prime_rl": 1.1, "trl": 1.5}.get(write.__name__, 1.0))
    assert sample.step == {"verifiers": None, "atif": None}.get(write.__name__, 40)


TOOLS = (
    dialect_files.verl,
    dialect_files.prime_rl,
    dialect_files.verifiers,
    dialect_files.rllm,
    dialect_files.miles,
    dialect_files.atif,
)


@pytest.mark.parametrize("write", TOOLS, ids=lambda write: write.__name__)
def test_calls_of_tools_and_their_results(tmp_path, write):
    (call,) = read_one(write(tmp_path)).tool_calls
    assert call.name == "calc"
    assert "6*7" in call.arguments
    assert call.result == "Error: unknown operator"
    assert call.failed


def test_a_folder_of_every_framework(tmp_path):
    for write in dialect_files.WRITERS:
        write(tmp_path / write.__name__)
    files = rollout_index.find(tmp_path)
    assert {d.name for d in files.values()} == {d.name for d in ROLLOUT_DIALECTS} - {"recorder"}
    # prime-rl's trained part lies in its cohort already, SkyRL's means are no rollouts.
    names = [path.name for path in files]
    assert "aggregated_results.jsonl" not in names
    assert not any("effective" in path.parts for path in files)
    assert len(rollout_index.read(tmp_path)) == 12


def test_what_verl_records(tmp_path):
    sample = read_one(dialect_files.verl(tmp_path))
    assert (sample.group, sample.answer, sample.split) == ("1f2e", "42", "train")
    assert sample.parts == {"acc": RewardPart(1.0), "format": RewardPart(0.5)}
    path = tmp_path / "val_generations" / "40.jsonl"
    lines(path, {"input": "a", "output": "b", "gts": None, "score": 0.0, "step": 40, "reward": 0.0})
    assert read_one(path).split == "eval"


def test_what_prime_rl_records(tmp_path):
    path = dialect_files.prime_rl(tmp_path)
    sample, failed = (rollout_index.read(path).read_sample(n) for n in (0, 1))
    assert sample.parts == {"correct": RewardPart(1.0, 1.0), "brief": RewardPart(0.5, 0.2)}
    assert (sample.group, sample.task, sample.answer) == ("g7", "math", "42")
    assert (sample.policy_version, sample.token_count, sample.seconds) == (39, 3, 10.0)
    assert sample.tokens.sampler_log_probs == (-0.5, -0.25, -0.125)
    assert sample.advantage == 0.75
    assert sample.stop_reason == "agent_completed"
    assert (failed.turns, failed.reward, failed.error) == ((), None, "SandboxError: gone")


def test_a_truncated_reply_a_second_branch_and_rewards_that_did_not_run(tmp_path):
    record = episode()
    trace = record["traces"][0]
    trace["calls"][-1]["finish_reason"] = "length"
    trace["rewards"] = {"correct": None}
    trace["nodes"].append(dialect_files.node(0, {"role": "assistant", "content": "Other."}))
    sample = read_one(lines(tmp_path / "traces.jsonl", record))
    assert [turn.text for turn in sample.turns] == ["Other."]
    assert (sample.stop_reason, sample.reward, sample.parts) == ("length", None, {})


def test_a_bare_trace_a_line(tmp_path):
    """As verifiers' own trainers wrote before episodes."""
    sample = read_one(lines(tmp_path / "traces.jsonl", episode()["traces"][0]))
    assert sample.task == "MathTask"
    assert sample.split == "eval"


def test_what_verifiers_records(tmp_path):
    sample = read_one(dialect_files.verifiers(tmp_path))
    assert sample.error == "ToolError: calc is down"
    assert (sample.split, sample.group, sample.seconds) == ("eval", "7", 2.5)
    assert sample.stop_reason == "no_tools_called"


def test_what_skyrl_records(tmp_path):
    sample = read_one(dialect_files.skyrl(tmp_path))
    assert (sample.split, sample.task, sample.answer) == ("eval", "openai/gsm8k", "42")
    assert (sample.stop_reason, sample.token_count) == ("stop", 3)


def test_what_tinker_records(tmp_path):
    sample = read_one(dialect_files.tinker(tmp_path))
    assert (sample.group, sample.task, sample.policy_version) == ("3", "math", 39)
    assert sample.parts.keys() == {"format", "correct", "by_group"}
    assert (sample.answer, sample.token_count) == ("42", 3)


def test_what_nemo_rl_records(tmp_path):
    path = dialect_files.nemo_rl(tmp_path)
    sample = read_one(path)
    assert sample.tokens.sampler_log_probs == (-0.5, -0.25, -0.125)
    assert sample.tokens.trainer_log_probs == (-0.5, -0.25, -0.25)
    assert (sample.advantage, sample.token_count) == (0.75, 3)
    validation = read_one(path.with_name("val_data_step40.jsonl"))
    assert (validation.split, validation.prompt) == ("eval", "What is 6 x 7?")


def test_what_rllm_records(tmp_path):
    sample = read_one(dialect_files.rllm(tmp_path))
    assert (sample.group, sample.task, sample.answer) == ("1a2b3c4d/solver", "math", "42")
    assert (sample.stop_reason, sample.error) == ("stop", "")
    assert sample.parts.keys() == {"acc", "is_correct"}


def test_rllm_s_steps_that_do_not_repeat_each_other(tmp_path):
    path = dialect_files.rllm(tmp_path)
    document = json.loads(path.read_text())
    document["trajectories"][0]["steps"][1]["chat_completions"] = CHAT[3:]
    path.write_text(json.dumps(document))
    assert [turn.text for turn in read_one(path).turns] == ["Let me see.", "It is 42."]


def test_what_miles_records(tmp_path):
    sample = read_one(dialect_files.miles(tmp_path))
    assert (sample.group, sample.stop_reason, sample.error) == ("3", "length", "")


def test_what_atif_records(tmp_path):
    path = dialect_files.atif(tmp_path)
    sample = read_one(path)
    assert (sample.task, sample.seconds, sample.token_count) == ("math", 9.0, 3)
    assert sample.tokens.sampler_log_probs == (-0.5, -0.25, -0.125)
    (path.parent.parent / "result.json").unlink()
    assert read_one(path).reward is None


def test_what_trl_records(tmp_path):
    sample = read_one(dialect_files.trl(tmp_path))
    assert sample.parts == {"correct": RewardPart(1.0), "brief": RewardPart(0.5)}
    assert sample.advantage == 0.75


def test_nothing_pickled_is_loaded(tmp_path):
    """SkyRL's training batches, miles' and slime's dumps."""
    (tmp_path / "40.jsonl").write_bytes(pickle.dumps({"input": "a"}))
    (tmp_path / "0.pt").write_bytes(pickle.dumps({"samples": []}))
    assert rollout_index.find(tmp_path) == {}
    with pytest.raises(UnreadableLog, match="no rollouts are here"):
        rollout_index.read(tmp_path)


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ("Error: division by zero", True),
        ('{"error": "no such file"}', True),
        ("Traceback (most recent call last):", True),
        ("timeout after 30 s", True),
        ("Tool error: bad arguments", True),
        ("42", False),
        ("The error rate is 3 %", False),
        ("Failover is set up", False),
        ("", False),
    ],
)
def test_how_a_failed_call_reads(result, failed):
    assert is_failure(result) is failed
