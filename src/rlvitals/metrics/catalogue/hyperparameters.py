"""Canonical names of the settings of a run."""

from rlvitals.metrics.metric import Metric


def _setting(name: str, title: str, unit: str, meaning: str) -> Metric:
    return Metric(name=name, title=title, unit=unit, kind="setting", meaning=meaning)


METRICS = (
    # What is trained, on what, for how long.
    _setting("algorithm", "Algorithm", "", "The training algorithm: ppo, a2c, dqn, sac, grpo."),
    _setting("mode", "Mode", "", "Variant of the algorithm: grpo, psr, nsr, w-reinforce, sft."),
    _setting("env_id", "Environment", "", "The environment's registered name."),
    _setting("model", "Model", "", "The language model that is trained."),
    _setting("dataset", "Dataset", "", "The data that prompts or samples come from."),
    _setting(
        "seed", "Seed", "", "Seed of the random numbers: without it a run cannot be repeated."
    ),
    _setting("total_steps", "Budget", "steps", "How many steps the run is meant to take."),
    _setting("total_episodes", "Episode budget", "episodes", "How many episodes are meant to run."),
    _setting("total_epochs", "Epoch budget", "epochs", "Passes over the data that are planned."),
    _setting("n_actions", "Actions", "actions", "Number of discrete actions: entropy <= its log."),
    _setting("action_dim", "Action dimensions", "", "Number of continuous action dimensions."),
    _setting("n_replicas", "Replicas", "replicas", "Replicas the scheduler can send requests to."),
    _setting(
        "replica_speeds",
        "Speeds of the replicas",
        "",
        "Requests/s that each replica can serve, in the order of indices, as text: 1.5, 1.1, 0.8.",
    ),
    _setting("goal", "Episode length", "", "Whether long episodes are good: survive or arrive."),
    _setting("price_per_hour", "Price", "currency/h", "What an hour of this machine costs."),
    # Collecting and batching.
    _setting("n_envs", "Environments", "", "Environments stepped in parallel."),
    _setting("n_steps", "Rollout length", "steps", "Steps per environment between two updates."),
    _setting("batch_size", "Batch size", "samples", "Samples collected for one update phase."),
    _setting(
        "prompt_batch_size",
        "Prompts per batch",
        "prompts",
        "Prompts of one update phase: times the group size they are its samples.",
    ),
    _setting(
        "prompt_minibatch_size", "Prompts per minibatch", "prompts", "Prompts of one gradient step."
    ),
    _setting(
        "max_policy_lag",
        "Staleness limit",
        "updates",
        "Oldest policy whose samples are still trained on.",
    ),
    _setting("minibatch_size", "Minibatch size", "samples", "Samples of one gradient step."),
    _setting("n_minibatches", "Minibatches", "", "Parts that a batch is split into."),
    _setting("n_epochs", "Epochs per batch", "", "Passes over one batch: more move KL further."),
    _setting("gradient_accumulation", "Accumulation", "", "Backward passes per gradient step."),
    _setting("buffer_size", "Replay buffer", "steps", "Transitions a replay buffer holds."),
    _setting("learning_starts", "Warm-up", "steps", "Steps collected before the first update."),
    _setting("stabilization_steps", "Stabilisation", "steps", "Steps without an update at start."),
    # The objective.
    _setting("learning_rate", "Learning rate", "", "Step size of the optimiser at the start."),
    _setting("gamma", "Discount", "", "Weight of the next step's reward: horizon 1 / (1 - gamma)."),
    _setting("gae_lambda", "GAE lambda", "", "Bias against variance of the advantage: 1 = none."),
    _setting("clip_range", "Clip range", "", "How far the probability ratio may leave 1."),
    _setting("clip_range_high", "Upper clip range", "", "The upper clip range, where it differs."),
    _setting("clip_range_value", "Value clip range", "", "How far a value may move in one update."),
    _setting("target_kl", "KL target per update", "nats", "KL at which an update should stop."),
    _setting(
        "ratio_threshold",
        "Limit of the mean ratio",
        "ratio",
        "A minibatch whose mean probability ratio is above it is skipped.",
    ),
    _setting(
        "desired_kl", "KL aimed at", "nats", "KL per update an adaptive learning rate steers to."
    ),
    _setting("kl_coef", "KL coefficient", "", "Weight of the KL penalty, at the start."),
    _setting("kl_target", "Reference KL target", "nats", "KL per sequence a controller aims at."),
    _setting("kl_horizon", "KL horizon", "samples", "How slowly the KL controller reacts."),
    _setting("beta", "Beta", "", "Weight of the KL to the reference in the GRPO loss."),
    _setting("entropy_coef", "Entropy coefficient", "", "Weight of the entropy bonus."),
    _setting("entropy_min", "Entropy floor", "nats", "Entropy that should not be undershot."),
    _setting("value_coef", "Value coefficient", "", "Weight of the value loss."),
    _setting("max_grad_norm", "Gradient clip", "norm", "Longest gradient that is applied."),
    _setting("weight_decay", "Weight decay", "", "Pull of the optimiser towards small weights."),
    _setting("warmup_steps", "Warm-up steps", "updates", "Updates over which a rate is raised."),
    _setting("tau", "Target smoothing", "", "How fast target networks follow."),
    _setting("target_update_interval", "Target interval", "steps", "Steps between target updates."),
    _setting("epsilon_final", "Final exploration", "", "Exploration rate after its decay."),
    _setting("exploration_fraction", "Exploration share", "", "Share of the run that it decays."),
    _setting("reward_threshold", "Reward threshold", "reward", "Solved, or a positive sample."),
    # Exploration by temperature, scheduler.
    _setting("temperature", "Temperature", "", "Sampling temperature at the start."),
    _setting("min_temperature", "Lowest temperature", "", "Lower limit outside pulses."),
    _setting("max_temperature", "Highest temperature", "", "Upper limit outside pulses."),
    _setting("skip_warmstart", "No warm start", "", "Whether training begins with random weights."),
    _setting("qps_sensitivity", "Rate sensitivity", "", "Cooling per unit of rate pressure."),
    _setting("latency_sensitivity", "Latency sensitivity", "", "Cooling per unit of pressure."),
    _setting("reward_beta", "Reward beta", "", "Weight of throughput in the delta score."),
    _setting("reward_gamma", "Reward gamma", "", "Weight of latency in the delta score."),
    # Language models.
    _setting("num_generations", "Group size", "completions", "Completions for each prompt."),
    _setting("num_iterations", "Iterations", "", "Updates per generated batch; 1 is on-policy."),
    _setting("lambda_psr", "Lambda", "", "Weight of positive samples in W-REINFORCE."),
    _setting("max_completion_length", "Response limit", "tokens", "Longest response allowed."),
    _setting("max_prompt_length", "Prompt limit", "tokens", "Longest prompt allowed."),
    _setting("loss_type", "Loss", "", "Which GRPO loss: grpo, dapo, dr_grpo, cispo, vespo."),
    _setting("scale_rewards", "Advantage scale", "", "What divides advantages: group or batch."),
)
