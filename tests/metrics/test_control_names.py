"""Control frameworks: what their keys mean, which table a log gets, which kind of run it is."""

import numpy as np
import pytest

from rlvitals.diagnosis import load
from rlvitals.errors import UsageError
from rlvitals.metrics import canonicalize
from rlvitals.metrics.frameworks import TABLES, lookup
from rlvitals.types import Log, Profile, Series

TABLE = {table.framework: table for table in TABLES}

CLEANRL = """
charts/episodic_return charts/episodic_length charts/learning_rate charts/SPS losses/value_loss
losses/policy_loss losses/entropy losses/old_approx_kl losses/approx_kl losses/clipfrac
losses/explained_variance
"""
CLEANRL_DQN = "charts/episodic_return charts/episodic_length charts/SPS losses/td_loss"
CLEANRL_SAC = """
charts/episodic_return charts/episodic_length charts/SPS losses/qf1_values losses/qf2_values
losses/qf1_loss losses/qf2_loss losses/qf_loss losses/actor_loss losses/alpha losses/alpha_loss
"""
# As written by the releases that the tables name: what is left out is told apart below.
LOGS = {
    "cleanrl ppo": (CLEANRL, "cleanrl", Profile.CONTROL_PPO),
    "cleanrl ppg": (
        f"{CLEANRL} losses/aux/kl_loss losses/aux/aux_value_loss losses/aux/real_value_loss",
        "cleanrl",
        Profile.CONTROL_PPO,
    ),
    "cleanrl dqn": (f"{CLEANRL_DQN} losses/q_values", "cleanrl", Profile.OFF_POLICY),
    "cleanrl c51": (
        "charts/episodic_return charts/episodic_length charts/SPS losses/loss losses/q_values",
        "cleanrl",
        Profile.OFF_POLICY,
    ),
    "cleanrl sac": (CLEANRL_SAC, "cleanrl", Profile.OFF_POLICY),
    "cleanrl ddpg": (
        f"{CLEANRL_DQN} losses/qf1_values losses/qf1_loss losses/actor_loss",
        "cleanrl",
        Profile.OFF_POLICY,
    ),
    "rsl_rl 5": (
        """
        Train/mean_reward Train/mean_episode_length Loss/value Loss/surrogate Loss/entropy
        Loss/learning_rate Policy/mean_std Perf/total_fps Perf/collection_time Perf/learning_time
        Episode_Reward/track_lin_vel_xy_exp Episode_Termination/base_contact
        Curriculum/terrain_levels
        """,
        "rsl-rl",
        Profile.CONTROL_PPO,
    ),
    "rsl_rl 1": (
        """
        Train/mean_reward Loss/value_function Loss/surrogate Policy/mean_noise_std
        Episode/rew_tracking_lin_vel Episode/terrain_level
        """,
        "rsl-rl",
        Profile.CONTROL_PPO,
    ),
    "rl_games ppo": (
        """
        rewards/step episode_lengths/step losses/a_loss losses/c_loss losses/entropy
        losses/bounds_loss info/last_lr info/e_clip info/kl info/epochs performance/step_time
        performance/step_inference_time performance/rl_update_time
        performance/step_inference_fps performance/step_inference_rl_update_fps
        """,
        "rl-games",
        Profile.CONTROL_PPO,
    ),
    "rl_games sac": (
        """
        rewards/step episode_lengths/step losses/a_loss losses/c1_loss losses/c2_loss
        losses/entropy losses/alpha_loss info/alpha info/epochs
        """,
        "rl-games-sac",
        Profile.OFF_POLICY,
    ),
    "skrl ppo": (
        """
        Reward+/+Total+reward+(mean) Reward+/+Total+reward+(min) Reward+/+Total+reward+(max)
        Reward+/+Instantaneous+reward+(mean) Episode+/+Total+timesteps+(mean) Loss+/+Policy+loss
        Loss+/+Value+loss Loss+/+Entropy+loss Policy+/+Standard+deviation
        Learning+/+Learning+rate Stats+/+Algorithm+update+time+(ms)
        """,
        "skrl",
        Profile.ON_POLICY,
    ),
    "skrl sac": (
        """
        Reward+/+Total+reward+(mean) Loss+/+Policy+loss Loss+/+Critic+loss Loss+/+Entropy+loss
        Q-network+/+Q1+(mean) Q-network+/+Q1+(max) Q-network+/+Q2+(mean)
        Coefficient+/+Entropy+coefficient Target+/+Target+(mean)
        """,
        "skrl-off-policy",
        Profile.OFF_POLICY,
    ),
    "skrl dqn": (
        "Reward+/+Total+reward+(mean) Loss+/+Q-network+loss Exploration+/+Exploration+epsilon",
        "skrl-off-policy",
        Profile.OFF_POLICY,
    ),
    "mlagents ppo": (
        """
        Environment/Cumulative+Reward Environment/Episode+Length Policy/Entropy
        Policy/Learning+Rate Policy/Epsilon Policy/Beta Policy/Extrinsic+Value+Estimate
        Policy/Curiosity+Reward Losses/Policy+Loss Losses/Value+Loss
        Losses/Curiosity+Forward+Loss Environment/Lesson+Number/gravity
        """,
        "mlagents",
        Profile.CONTROL_PPO,
    ),
    "mlagents sac": (
        """
        Environment/Cumulative+Reward Policy/Entropy Policy/Learning+Rate Losses/Policy+Loss
        Losses/Value+Loss Losses/Q1+Loss Losses/Q2+Loss Policy/Continuous+Entropy+Coeff
        Policy/Extrinsic+Value
        """,
        "mlagents-sac",
        Profile.OFF_POLICY,
    ),
    "tianshou 2 ppo": (
        """
        training/returns_stat/mean test/returns_stat/mean test/lens_stat/mean update/loss/mean
        update/actor_loss/mean update/vf_loss/mean update/ent_loss/mean
        """,
        "tianshou",
        Profile.ON_POLICY,
    ),
    "tianshou 1 ppo": (
        "train/returns_stat/mean test/returns_stat/mean update/clip_loss/mean update/vf_loss/mean",
        "tianshou",
        Profile.ON_POLICY,
    ),
    "tianshou 0.5 ppo": (
        "train/reward train/length test/reward update/loss/clip update/loss/vf update/loss/ent",
        "tianshou",
        Profile.ON_POLICY,
    ),
    "tianshou sac": (
        "training/returns_stat/mean update/actor_loss update/critic1_loss update/critic2_loss",
        "tianshou-off-policy",
        Profile.OFF_POLICY,
    ),
    "tianshou 0.5 sac": (
        "train/reward test/reward update/loss/actor update/loss/critic1 update/loss/critic2",
        "tianshou-off-policy",
        Profile.OFF_POLICY,
    ),
    "tianshou dqn": (
        "training/returns_stat/mean test/returns_stat/mean update/loss",
        "tianshou-off-policy",
        Profile.OFF_POLICY,
    ),
    "tianshou without an update": (
        "training/returns_stat/mean test/returns_stat/mean",
        "tianshou",
        Profile.UNKNOWN,
    ),
    "dreamer 3": (
        """
        episode/score episode/length train/loss/policy train/loss/value train/loss/dyn
        train/ent/action train/rand/action train/opt/grad_norm train/opt/loss fps/policy
        """,
        "dreamerv3",
        Profile.OFF_POLICY,
    ),
    "dreamer 3 of 2023": (
        """
        episode/score train/actor_opt_loss train/policy_entropy_mean train/model_opt_grad_norm
        train/dyn_loss_mean train/extr_critic_critic_opt_loss
        """,
        "dreamerv3",
        Profile.OFF_POLICY,
    ),
    "acme loop": (
        """
        actor_episodes actor_steps episode_return episode_length steps_per_second
        env_reset_duration_sec select_action_duration_sec env_step_duration_sec episode_duration
        learner_steps learner_walltime
        """,
        "acme",
        Profile.UNKNOWN,
    ),
    "acme ppo": (
        "loss_total loss_policy_pg loss_policy_entropy loss_critic norm_grad learner_steps",
        "acme",
        Profile.ON_POLICY,
    ),
    "acme sac": (
        "critic_loss actor_loss alpha_loss alpha rewards_mean rewards_std learner_steps",
        "acme-off-policy",
        Profile.OFF_POLICY,
    ),
    "acme dqn": (
        "steps_per_second total_loss learner_steps learner_walltime actor_steps",
        "acme-off-policy",
        Profile.OFF_POLICY,
    ),
}


def keys_of(text):
    return [word.replace("+", " ") for word in text.split()]


def log_of(keys, settings=None, source="tensorboard"):
    steps = np.arange(1, 31)
    series = Series(steps, 1.7e9 + steps, np.linspace(0.1, 0.2, 30))
    return Log(source, dict.fromkeys(keys, series), settings or {})


@pytest.mark.parametrize("case", LOGS)
def test_a_log_gets_its_framework_and_its_kind(case):
    text, framework, kind = LOGS[case]
    keys = keys_of(text)
    assert lookup.choose("tensorboard", keys, TABLES).framework == framework
    trace = canonicalize.trace([log_of(keys)])
    assert trace.profile is kind
    assert trace.unmapped == ()
    assert trace.step_unit == TABLE[framework].step_unit != ""


def test_acme_does_not_take_a_log_written_by_hand():
    keys = ["episode_return", "episode_length", "loss", "policy_loss", "entropy", "learning_rate"]
    assert lookup.choose("jsonl", keys, TABLES).framework == "generic"
    assert canonicalize.trace([log_of(keys)])["exploration/entropy"].values[0] > 0


# framework, key, canonical name, scale, estimator, words that its measure must hold
MEANINGS = [
    ("cleanrl", "losses/old_approx_kl", "policy/kl_signed", 1, "k1", "last minibatch"),
    ("cleanrl", "losses/approx_kl", "policy/approx_kl", 1, "k3", "last minibatch"),
    ("cleanrl", "losses/clipfrac", "policy/clip_fraction", 1, "", "mean over all epochs"),
    ("cleanrl", "losses/value_loss", "value/loss", 1, "", "half the squared error"),
    ("cleanrl", "losses/entropy", "exploration/entropy", 1, "", "positive"),
    ("cleanrl", "charts/episodic_return", "outcome/return", 1, "", "each episode"),
    ("cleanrl", "charts/episodic_return-player1", "outcome/agent_return/player1", 1, "", "each"),
    ("cleanrl", "losses/qf1_values", "value/q_mean", 1, "", "first critic"),
    ("cleanrl", "losses/qf2_values", "value/critic_q/qf2", 1, "", "own actions"),
    ("cleanrl", "losses/actor_loss", "policy/actor_loss", 1, "", ""),
    ("skrl", "Loss / Policy loss", "policy/loss", 1, "", "clipped surrogate"),
    ("skrl-off-policy", "Loss / Policy loss", "policy/actor_loss", 1, "", "gradient steps"),
    ("skrl", "Loss / Entropy loss", "exploration/entropy_bonus", -1, "", "times entropy_loss"),
    ("skrl-off-policy", "Loss / Entropy loss", "exploration/entropy_coef_loss", 1, "", ""),
    ("skrl", "Loss / Value loss", "value/loss", 1, "", "times value_loss_scale"),
    ("skrl", "Reward / Total reward (mean)", "outcome/return", 1, "", "since the last write"),
    ("skrl", "Reward / Instantaneous reward (mean)", "reward/mean", 1, "", "all environments"),
    ("rsl-rl", "Loss/value_function", "value/loss", 1, "", "clipped if use_clipped_value_loss"),
    ("rsl-rl", "Loss/surrogate", "policy/loss", 1, "", "all epochs"),
    ("rsl-rl", "Loss/learning_rate", "optimiser/learning_rate", 1, "", "adaptive"),
    ("rsl-rl", "Loss/behavior", "optimiser/loss", 1, "", "distillation"),
    ("rsl-rl", "Perf/collection time", "throughput/phase_time/collection", 1, "", "seconds"),
    ("rsl-rl", "Episode_Reward/feet_air_time", "reward/component/feet_air_time", 1, "", "second"),
    ("rl-games", "info/kl", "policy/approx_kl", 1, "exact", "the pass before; discrete: k2"),
    ("rl-games", "losses/c_loss", "value/loss", 1, "", "not halved"),
    ("rl-games", "losses/a_loss", "policy/loss", 1, "", "clipped surrogate"),
    ("rl-games-sac", "losses/a_loss", "policy/actor_loss", 1, "", ""),
    ("rl-games", "rewards1/step", "reward/component/1", 1, "", "one value head"),
    ("rl-games", "rewards0/frame", "outcome/return", 1, "", "before shaping"),
    ("rl-games", "rewards1/frame", "reward/component/1", 1, "", "one value head"),
    ("rl-games", "episode_lengths/frame", "outcome/episode_length", 1, "", "last 100 episodes"),
    ("mlagents", "Losses/Policy Loss", "policy/loss_magnitude", 1, "", "absolute value"),
    ("mlagents-sac", "Losses/Policy Loss", "policy/actor_loss", 1, "", ""),
    ("mlagents", "Policy/Beta", "exploration/entropy_coef", 1, "", "decays"),
    ("mlagents", "Policy/Epsilon", "policy/clip_range", 1, "", "decays"),
    ("mlagents", "Self-play/ELO", "outcome/elo", 1, "", ""),
    ("tianshou", "update/ent_loss/mean", "exploration/entropy", 1, "", "positive in spite"),
    ("tianshou", "update/kl/mean", "policy/approx_kl", 1, "exact", "NPG, TRPO"),
    ("tianshou", "test/reward", "outcome/eval_return", 1, "", "test episodes"),
    ("tianshou", "update/loss/actor", "policy/loss", 1, "", "moving average"),
    ("tianshou-off-policy", "update/loss/actor", "policy/actor_loss", 1, "", ""),
    ("dreamerv3", "train/loss/policy", "policy/loss", 1, "", "imagined"),
    ("dreamerv3", "train/loss/value", "optimiser/loss_part/value", 1, "", "cross-entropy"),
    ("dreamerv3", "train/rand/action", "exploration/entropy_share", 1, "", ""),
    ("acme", "loss_policy_entropy", "exploration/entropy", -1, "", "sign flipped"),
    ("acme", "learner/Entropy", "exploration/entropy", -1, "", "sign flipped"),
    ("acme", "evaluator/EpisodeReturn", "outcome/eval_return", 1, "", ""),
    ("acme-off-policy", "steps_per_second", "throughput/updates_per_second", 1, "", ""),
    ("acme", "steps_per_second", "throughput/steps_per_second", 1, "", ""),
]


@pytest.mark.parametrize("row", MEANINGS, ids=lambda row: f"{row[0]} {row[1]}")
def test_what_a_key_means(row):
    framework, key, canonical, scale, estimator, words = row
    found, name = lookup.find(TABLE[framework], key)
    assert (found, name.scale, name.estimator) == (canonical, scale, estimator)
    assert words in name.how


# The same numbers against another axis, or what means something else than it says.
LEFT_OUT = [
    ("cleanrl", "eval/episodic_return"),  # its step is the number of the evaluation episode
    ("rl-games", "rewards/iter"),
    ("rl-games", "rewards/time"),
    ("rl-games", "shaped_rewards/step"),
    ("rl-games", "scores/mean"),
    ("rsl-rl", "Train/mean_reward/time"),
    ("tianshou", "training/lens_stat/mean"),  # only of the steps still in the buffer
    ("tianshou", "info/best_reward"),
    ("dreamerv3", "train/ret"),  # normalised
]


@pytest.mark.parametrize(("framework", "key"), LEFT_OUT)
def test_what_is_left_out(framework, key):
    assert lookup.find(TABLE[framework], key) is None
    assert lookup.find(TABLE["generic"], key) is None


def test_rewards_on_three_axes_are_one_return():
    long, short = np.arange(1000, 31000, 1000), np.arange(1, 31)
    value = np.linspace(0.0, 1.0, 30)
    times = 1.7e9 + np.arange(30.0)
    series = {
        "rewards/step": Series(long, times, value),
        "rewards/iter": Series(short, times, value),
        "rewards/time": Series(short * 7, times, value),
        "losses/a_loss": Series(long, times, value),
        "losses/c_loss": Series(long, times, value),
        "info/kl": Series(long, times, value),
        "info/epochs": Series(long, times, value),
    }
    trace = canonicalize.trace([Log("tensorboard", series)])
    assert trace["outcome/return"].steps.tolist() == long.tolist()
    assert trace.unmapped == ("rewards/iter", "rewards/time")
    assert trace.notes == ()
    assert trace.step_unit == "frames"


def test_updates_are_placed_at_environment_steps():
    """300 gradient steps in 2000 environment steps: a loss belongs to the steps of its time."""
    env = np.arange(2000, 22000, 2000)
    times = 1.7e9 + np.arange(10) * 10.0
    updates, late = np.arange(300, 3300, 300), times + 1.0
    loss = np.linspace(1.0, 0.1, 10)
    log = Log(
        "tensorboard",
        {
            "training/returns_stat/mean": Series(env, times, loss),
            "training/env_step": Series(env, times, env.astype(float)),
            "update/vf_loss/mean": Series(updates, late, loss),
        },
    )
    trace = canonicalize.trace([log])
    assert trace["value/loss"].steps.tolist() == [*(env[:-1] + 200), 20000]
    assert trace["outcome/return"].steps.tolist() == env.tolist()
    assert any(note.startswith("1 column not in") for note in trace.notes)


def test_epochs_of_rl_games_are_placed_at_frames():
    frames, epochs = np.arange(4096, 4096 * 31, 4096), np.arange(1, 31)
    times = 1.7e9 + np.arange(30.0)
    keys = ("rewards/step", "info/epochs", "info/kl", "losses/a_loss", "losses/c_loss")
    series = {key: Series(frames, times, epochs * 1.0) for key in keys}
    series["diagnostics/exp_var"] = Series(epochs, times, epochs / 30)
    series["Episode/Episode_Reward/reach"] = Series(epochs[::2], times[::2], epochs[::2] / 30)
    trace = canonicalize.trace([Log("tensorboard", series)])
    assert trace["value/explained_variance"].steps.tolist() == frames.tolist()
    assert trace["reward/component/reach"].steps.tolist() == frames[::2].tolist()
    assert trace.notes[0].startswith("2 columns not in frames")


def test_updates_without_times_stay_where_they_are():
    steps, none = np.arange(1, 11), np.full(10, np.nan)
    log = Log(
        "csv",
        {
            "training/env_step": Series(steps * 100, none, steps * 1.0),
            "training/returns_stat/mean": Series(steps * 100, none, steps * 1.0),
            "update/vf_loss/mean": Series(steps, none, steps * 1.0),
        },
    )
    trace = canonicalize.trace([log])
    assert trace["value/loss"].steps.tolist() == steps.tolist()
    assert trace.notes == ()


SETTINGS = {
    "rsl_rl": (
        "rsl_rl 5",
        {
            "algorithm/learning_rate": 1e-3,
            "num_steps_per_env": 24,
            "runner/max_iterations": 1500,
            "algorithm/desired_kl": 0.01,
            "algorithm/clip_param": 0.2,
        },
        {
            "learning_rate": 1e-3,
            "n_steps": 24,
            "total_steps": 1500,
            "desired_kl": 0.01,
            "clip_range": 0.2,
        },
    ),
    "rl_games": (
        "rl_games ppo",
        {
            "params/config/e_clip": 0.2,
            "train/params/config/tau": 0.95,
            "params/config/kl_threshold": 0.008,
            "params/config/max_frames": -1,
        },
        {"clip_range": 0.2, "gae_lambda": 0.95, "desired_kl": 0.008, "total_steps": -1},
    ),
    "skrl": (
        "skrl ppo",
        {"agent/learning_rate": 5e-4, "agent/rollouts": 24, "trainer/timesteps": 36000},
        {"learning_rate": 5e-4, "n_steps": 24, "total_steps": 36000},
    ),
    "mlagents": (
        "mlagents ppo",
        {
            "behaviors/3DBall/hyperparameters/beta": 0.005,
            "behaviors/3DBall/hyperparameters/epsilon": 0.2,
            "behaviors/3DBall/max_steps": 500000,
        },
        {"entropy_coef": 0.005, "clip_range": 0.2, "total_steps": 500000},
    ),
    "cleanrl": (
        "cleanrl ppo",
        {"clip_coef": 0.2, "num_envs": 4, "update_epochs": 4, "env_id": "CartPole-v1"},
        {"clip_range": 0.2, "n_envs": 4, "n_epochs": 4, "env_id": "CartPole-v1"},
    ),
    "tianshou": (
        "tianshou 2 ppo",
        {"eps_clip": 0.2, "task": "CartPole-v1", "update_step_num_repetitions": 10},
        {"clip_range": 0.2, "env_id": "CartPole-v1", "n_epochs": 10},
    ),
    "dreamerv3": (
        "dreamer 3",
        {"agent/opt/lr": 4e-5, "run/steps": 1e6, "agent/imag_loss/actent": 3e-4},
        {"learning_rate": 4e-5, "total_steps": 1e6, "entropy_coef": 3e-4},
    ),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_get_their_canonical_names(case):
    text, said, canonical = SETTINGS[case]
    run = [log_of(keys_of(LOGS[text][0])), Log("settings", {}, said)]
    assert canonicalize.trace(run).settings == canonical


def test_a_person_may_say_them_as_the_framework_does():
    said = {
        "clip_coef": 0.2,
        "num_steps_per_env": 24,
        "params/config/e_clip": 0.1,
        "agent/learning_rate": 1e-3,
        "behaviors/Walker/hyperparameters/num_epoch": 3,
    }
    found = load.canonical(said)
    assert found == {"clip_range": 0.1, "n_steps": 24, "learning_rate": 1e-3, "n_epochs": 3}
    with pytest.raises(UsageError, match="no setting is called 'num_steps_per_enw'") as error:
        load.canonical({"num_steps_per_enw": 24})
    assert "num_steps_per_env" in error.value.hint


def test_a_clip_range_in_the_settings_tells_ppo_from_a2c():
    keys = keys_of(LOGS["skrl ppo"][0])
    settings = Log("settings", {}, {"agent/ratio_clip": 0.2})
    assert canonicalize.trace([log_of(keys), settings]).profile is Profile.CONTROL_PPO


def test_an_adaptive_rate_aims_at_a_kl_that_is_no_limit():
    for framework, key in (("rsl-rl", "algorithm/desired_kl"), ("rl-games", "kl_threshold")):
        names = set(TABLE[framework].settings.values())
        assert "desired_kl" in names, key
        assert "target_kl" not in names
