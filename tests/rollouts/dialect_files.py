"""Rollout files as each framework's own code writes them; the sources are named by commit.

The fields, their order and their types are those of the writer that each function names.
"""

import json
from pathlib import Path

import pandas as pd

CHAT = [
    {"role": "user", "content": "What is 6 x 7?"},
    {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "calc", "arguments": '{"expression": "6*7"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "Error: unknown operator"},
    {"role": "assistant", "content": "It is 42."},
]


def lines(path: Path, *records: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def verl(root):
    """verl 1dda039b9, `RayPPOTrainer._write_generations`, with a tool agent's text."""
    text = (
        'Let me see.\n<tool_call>\n{"name": "calc", "arguments": {"expression": "6*7"}}\n'
        "</tool_call>\nuser\n<tool_response>\nError: unknown operator\n</tool_response>\n"
        "assistant\nIt is 42."
    )
    row = {
        "input": "user\nWhat is 6 x 7?\nassistant\n",
        "output": text,
        "gts": "42",
        "score": 1.0,
        "step": 40,
        "acc": True,
        "format": 0.5,
        "uid": "1f2e_3_0",
    }
    return lines(root / "rollout_data" / "40.jsonl", row)


def node(parent, message, *, sampled=False, **more):
    return {"parent": parent, "message": message, "sampled": sampled, "timestamp": 1.0, **more}


def episode(step=40, **more):
    """verifiers a60a606ec, `Episode.to_record` (None left out), as prime-rl 559b44772 dumps it."""
    call = {"id": "call_1", "name": "calc", "arguments": '{"expression": "6*7"}'}
    nodes = [
        node(None, {"role": "user", "content": CHAT[0]["content"]}),
        node(
            0,
            {"role": "assistant", "content": "Let me see.", "tool_calls": [call]},
            sampled=True,
            token_ids=[1, 2],
            mask=[True, True],
            logprobs=[-0.5, -0.25],
            advantages=[0.75, 0.75],
        ),
        node(1, CHAT[2]),
        node(2, CHAT[3], sampled=True, logprobs=[-0.125], mask=[True]),
    ]
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    trace = {
        "version": 1,
        "id": "t1",
        "task": {"type": "MathTask", "data": {"answer": "42"}, "key": "row-7"},
        "agent": {"config": {}, "name": "agent", "trainable": True},
        "tools": [],
        "nodes": nodes,
        "calls": [
            {"node": 1, "finish_reason": "tool_calls", "usage": usage},
            {"node": 3, "finish_reason": "stop", "usage": {**usage, "completion_tokens": 1}},
        ],
        "rewards": {
            "correct": {"score": 1.0, "weight": 1.0},
            "brief": {"score": 0.5, "weight": 0.2},
        },
        "metrics": {"num_turns": 2.0},
        "info": {},
        "is_completed": True,
        "ok": True,
        "stop_condition": "agent_completed",
        "errors": [],
        "timing": {"start": 100.0, "agent": {"start": 101.0, "end": 110.0}},
    }
    work = {"type": "train", "step": step, "policy": {"start": step - 1, "end": step}}
    return {
        "id": "e1",
        "env": {"id": "agentic+math", "name": "math"},
        "task": {"type": "MathTask", "data": {"answer": "42"}, "key": "row-7"},
        "group": {"id": "g7"},
        "run": {"type": "train", "id": "r", "work": work},
        "ok": True,
        "errors": [],
        "traces": [trace],
        **more,
    }


def prime_rl(root):
    """prime-rl 559b44772, `FileMonitor.log_episodes`: the cohort, and what was trained on."""
    failed = episode(traces=[], ok=False, errors=[{"type": "SandboxError", "message": "gone"}])
    folder = root / "rollouts" / "step_40" / "train"
    lines(folder / "effective" / "traces.jsonl", episode())
    return lines(folder / "all" / "traces.jsonl", episode(), failed)


def verifiers(root):
    """verifiers a60a606ec, legacy `state_to_output`."""
    row = {
        "example_id": 7,
        "prompt": CHAT[:1],
        "completion": CHAT[1:],
        "answer": "42",
        "reward": 1.0,
        "error": {
            "error": "ToolError",
            "message": "calc is down",
            "error_chain_repr": "ToolError('calc is down')",
            "error_chain_str": "ToolError",
        },
        "timing": {"start_time": 1.0, "total": 2.5},
        "is_completed": True,
        "is_truncated": False,
        "stop_condition": "no_tools_called",
        "metrics": {"correct": 1.0, "format": 0.5},
        "tool_defs": None,
        "token_usage": {"input_tokens": 20.0, "output_tokens": 3.0},
        "correct": 1.0,
        "format": 0.5,
    }
    return lines(root / "evals" / "results.jsonl", row)


def skyrl(root):
    """SkyRL a9564572e, `dump_per_dataset_eval_results`."""
    row = {
        "input_prompt": "<|im_start|>user\nWhat is 6 x 7?<|im_end|>\n<|im_start|>assistant\n",
        "output_response": "It is 42.<|im_end|>",
        "score": [0.0, 0.0, 1.0],
        "stop_reason": "stop",
        "env_class": "gsm8k",
        "env_extras": {"reward_spec": {"method": "rule", "ground_truth": "42"}},
        "data_source": "openai/gsm8k",
    }
    folder = root / "dumped_evals" / "global_step_40_evals"
    lines(folder / "aggregated_results.jsonl", {"eval/all/avg_score": 1.0})
    return lines(folder / "openai_gsm8k.jsonl", row)


def tinker(root):
    """tinker-cookbook 9dfcc3a2, `serialize_rollout_summaries`."""
    step = {
        "step_idx": 0,
        "ob_len": 12,
        "ac_len": 3,
        "reward": 1.0,
        "episode_done": True,
        "metrics": {"format": 1.0, "correct": 1.0},
        "logs": {"problem": "What is 6 x 7?", "response": "It is 42.", "reference_answer": "42"},
    }
    row = {
        "schema_version": 1,
        "split": "train",
        "iteration": 40,
        "group_idx": 3,
        "traj_idx": 0,
        "tags": ["math"],
        "sampling_client_step": 39,
        "total_reward": 1.0,
        "final_reward": 0.0,
        "trajectory_metrics": {"by_group": 0.5},
        "steps": [step],
        "final_ob_len": 15,
    }
    return lines(root / "iteration_000040" / "train_rollout_summaries.jsonl", row)


def nemo_rl(root):
    """NeMo RL 7ea279abf, `log_batched_dict_as_jsonl` of `grpo_train` and of `validate`."""
    row = {
        "content": [["What is 6 x 7?", "It is 42."]],
        "rewards": [1.0],
        "input_lengths": [5],
        "token_ids": [[1, 2, 3, 4, 5]],
        "token_loss_mask": [[0, 0, 1, 1, 1]],
        "sample_loss_mask": [1.0],
        "advantages": [[0.75, 0.75, 0.75, 0.75, 0.75]],
        "generation_logprobs": [[0.0, 0.0, -0.5, -0.25, -0.125]],
        "prev_logprobs": [[0.0, 0.0, -0.5, -0.25, -0.25]],
        "idx": 0,
    }
    chat = [CHAT[0], CHAT[3]]
    lines(root / "val_data_step40.jsonl", {"content": [chat], "rewards": [0.0], "idx": 0})
    return lines(root / "train_data_step40.jsonl", row)


def rllm(root):
    """rLLM 9beb6e0f, `EpisodeLogger.log_episode`."""
    step = {
        "observation": None,
        "thought": "",
        "action": None,
        "reward": 0.0,
        "done": False,
        "model_response": "Let me see.",
        "chat_completions": CHAT[:2],
        "timing": {},
    }
    last = {**step, "chat_completions": CHAT, "model_response": "It is 42.", "done": True}
    document = {
        "training_step": 40,
        "epoch": 0,
        "episode_id": "7:0",
        "session_id": None,
        "task": {"question": "What is 6 x 7?", "ground_truth": "42", "data_source": "math"},
        "task_hash": "1a2b3c4d",
        "is_correct": True,
        "termination_reason": "env_done",
        "metrics": {"acc": 1.0},
        "metadata": {},
        "timing": {},
        "trajectories": [
            {
                "name": "solver",
                "uid": "u",
                "reward": 1.0,
                "num_steps": 2,
                "timing": {},
                "steps": [step, last],
            }
        ],
    }
    folder = root / "episodes" / "train_step_40_epoch_0"
    folder.mkdir(parents=True)
    (folder / "batch_summary.json").write_text(json.dumps({"training_step": 40, "epoch": 0}))
    path = folder / "episode_hash1a2b3c4d_id7_0.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def miles(root):
    """miles 31f1ca961, `trajectory_rows` and `save_debug_trajectory_data`."""
    row = {
        "sample_index": 12,
        "group_index": 3,
        "status": "truncated",
        "reward": 1.0,
        "prompt": "What is 6 x 7?",
        "messages": CHAT,
    }
    return lines(root / "trajectory" / "40.jsonl", row)


def atif(root):
    """Harbor 0.25.0: `Trajectory.to_json_dict`, schema 1.8, beside a trial's `result.json`."""
    trial = root / "jobs" / "math__abc"
    steps = [
        {"step_id": 1, "source": "user", "message": "What is 6 x 7?"},
        {
            "step_id": 2,
            "timestamp": "2026-08-20T10:00:00Z",
            "source": "agent",
            "message": "Let me see.",
            "tool_calls": [
                {
                    "tool_call_id": "call_1",
                    "function_name": "calc",
                    "arguments": {"expression": "6*7"},
                }
            ],
            "observation": {
                "results": [{"source_call_id": "call_1", "content": "Error: unknown operator"}]
            },
            "metrics": {"completion_tokens": 2, "logprobs": [-0.5, -0.25]},
        },
        {
            "step_id": 3,
            "timestamp": "2026-08-20T10:00:09Z",
            "source": "agent",
            "message": "It is 42.",
            "metrics": {"completion_tokens": 1, "logprobs": [-0.125]},
        },
    ]
    document = {
        "schema_version": "ATIF-v1.8",
        "session_id": "s",
        "agent": {"name": "terminus-2", "version": "2.0.0"},
        "steps": steps,
        "final_metrics": {"total_steps": 3},
    }
    path = trial / "agent" / "trajectory.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document, indent=2))
    result = {"task_name": "math", "verifier_result": {"rewards": {"reward": 1.0}}}
    (trial / "result.json").write_text(json.dumps(result))
    return path


def trl(root):
    """TRL 1.16, `GRPOTrainer.log`: a frame of the last generation batch."""
    frame = pd.DataFrame(
        {
            "step": [40],
            "prompt": ["What is 6 x 7?"],
            "completion": ["It is 42."],
            "correct": [1.0],
            "brief": [0.5],
            "advantage": [0.75],
        }
    )
    path = root / "completions" / "completions_00040.parquet"
    path.parent.mkdir(parents=True)
    frame.to_parquet(path)
    return path


WRITERS = (verl, prime_rl, verifiers, skyrl, tinker, nemo_rl, rllm, miles, atif, trl)
