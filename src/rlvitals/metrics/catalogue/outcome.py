"""Outcome metrics: return, success, score, and serving performance."""

from rlvitals.metrics.metric import NOT_NEGATIVE, SHARE, Band, Metric

RETURN = Metric(
    name="outcome/return",
    title="Episode return",
    unit="reward",
    kind="outcome",
    meaning="Mean undiscounted reward of whole episodes: what the agent is trained for.",
    formula="mean over episodes of sum_t r_t",
    better="up",
    see_also=("outcome/success_rate", "outcome/eval_return", "outcome/reward"),
)

EVAL_RETURN = Metric(
    name="outcome/eval_return",
    title="Evaluation return",
    unit="reward",
    kind="outcome",
    meaning="Mean return of separate evaluation episodes, usually without exploration noise.",
    formula="mean over evaluation episodes of sum_t r_t",
    better="up",
    see_also=("outcome/return",),
)

RETURN_MIN = Metric(
    name="outcome/return_min",
    title="Lowest episode return",
    unit="reward",
    kind="outcome",
    meaning="The worst episode among those averaged: a floor that falls shows lost reliability.",
    formula="min over episodes of sum_t r_t",
    better="up",
    see_also=("outcome/return",),
)

RETURN_MAX = Metric(
    name="outcome/return_max",
    title="Highest episode return",
    unit="reward",
    kind="outcome",
    meaning="The best episode among those averaged: shows what the policy can already do.",
    formula="max over episodes of sum_t r_t",
    better="up",
    see_also=("outcome/return",),
)

EVAL_RETURN_MIN = Metric(
    name="outcome/eval_return_min",
    title="Lowest evaluation return",
    unit="reward",
    kind="outcome",
    meaning="The worst of the evaluation's episodes.",
    formula="min over evaluation episodes of sum_t r_t",
    better="up",
    see_also=("outcome/eval_return",),
)

EVAL_RETURN_MAX = Metric(
    name="outcome/eval_return_max",
    title="Highest evaluation return",
    unit="reward",
    kind="outcome",
    meaning="The best of the evaluation's episodes.",
    formula="max over evaluation episodes of sum_t r_t",
    better="up",
    see_also=("outcome/eval_return",),
)

AGENT_RETURN = Metric(
    name="outcome/agent_return",
    title="Episode return of one agent",
    unit="reward",
    kind="outcome",
    meaning="Return of one of several agents. Between opponents one's gain is the other's loss:"
    " it says who is ahead, not whether they get better.",
    formula="sum_t r_t of agent i",
    better="depends",
    see_also=("outcome/return", "outcome/elo"),
    family=True,
)

GROUP_RETURN = Metric(
    name="outcome/group_return",
    title="Episode return of a group",
    unit="reward",
    kind="outcome",
    meaning="Mean reward that groups of agents earn together, beside what each earns alone.",
    formula="mean over groups of sum_t r_t",
    better="up",
    see_also=("outcome/return", "outcome/agent_return"),
)

ELO = Metric(
    name="outcome/elo",
    title="Elo rating in self-play",
    unit="points",
    kind="outcome",
    meaning="Skill against the run's own past policies: it rises while the policy beats them,"
    " where the return against an equal cannot.",
    better="up",
    see_also=("outcome/agent_return", "outcome/win_rate_ema"),
)

ENDING = Metric(
    name="outcome/ending",
    title="How episodes end",
    unit="episodes",
    kind="outcome",
    meaning="How often episodes ended for one reason, as the environment counts it: time running"
    " out is good where the agent must survive, falling is not.",
    better="depends",
    see_also=("outcome/episode_length",),
    family=True,
)

SUCCESS_RATE = Metric(
    name="outcome/success_rate",
    title="Success rate",
    unit="share",
    kind="outcome",
    meaning="Share of episodes that reach the goal. Watch it beside the return: a return that"
    " rises without it is a sign of reward hacking.",
    formula="successes / episodes",
    better="up",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("outcome/return", "outcome/win_rate_ema"),
)

EVAL_SUCCESS_RATE = Metric(
    name="outcome/eval_success_rate",
    title="Evaluation success rate",
    unit="share",
    kind="outcome",
    meaning="Share of evaluation episodes that reach the goal.",
    formula="successes / evaluation episodes",
    better="up",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("outcome/success_rate",),
)

WIN_RATE_EMA = Metric(
    name="outcome/win_rate_ema",
    title="Win rate, smoothed",
    unit="share",
    kind="outcome",
    meaning="Exponential moving average of wins. In self-play against equals it is 0.5 by"
    " construction and says nothing about progress.",
    formula="ema_t = (1 - alpha) ema_{t-1} + alpha win_t",
    better="up",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("outcome/success_rate",),
)

REWARD = Metric(
    name="outcome/reward",
    title="Mean reward",
    unit="reward",
    kind="outcome",
    meaning="Mean reward of a rollout or batch, where no episode return exists: per decision in"
    " a continuing task, per completion for a language model.",
    formula="mean over the batch of r",
    better="up",
    see_also=("outcome/return", "outcome/score", "language/filtered_reward"),
)

EVAL_REWARD = Metric(
    name="outcome/eval_reward",
    title="Evaluation reward",
    unit="reward",
    kind="outcome",
    meaning="Mean reward on held-out prompts or problems.",
    formula="mean over the evaluation set of r",
    better="up",
    see_also=("outcome/reward",),
)

SCORE = Metric(
    name="outcome/score",
    title="Reward-model score",
    unit="score",
    kind="outcome",
    meaning="Mean score from the reward model, before any KL penalty. Its zero is arbitrary:"
    " only changes mean something. Judge it at the KL it costs.",
    formula="mean over sequences of score",
    better="up",
    see_also=("outcome/rlhf_reward", "policy/kl_to_reference"),
)

RLHF_REWARD = Metric(
    name="outcome/rlhf_reward",
    title="RLHF reward",
    unit="score",
    kind="outcome",
    meaning="What RLHF maximises: the score minus the price of leaving the reference model. It"
    " may fall because the KL coefficient rose.",
    formula="score + non_score_reward, with non_score_reward = -kl_coef * sum_t KL_t",
    better="up",
    see_also=("outcome/score", "reward/non_score"),
)

EPISODE_LENGTH = Metric(
    name="outcome/episode_length",
    title="Episode length",
    unit="steps",
    kind="outcome",
    meaning="Mean steps of an episode. Longer is better where the agent must survive, shorter"
    " where it must arrive; a sudden jump is a change of behaviour.",
    formula="mean over episodes of T",
    better="depends",
    possible=NOT_NEGATIVE,
    see_also=("outcome/return",),
)

EVAL_EPISODE_LENGTH = Metric(
    name="outcome/eval_episode_length",
    title="Evaluation episode length",
    unit="steps",
    kind="outcome",
    meaning="Mean steps of an evaluation episode.",
    formula="mean over evaluation episodes of T",
    better="depends",
    possible=NOT_NEGATIVE,
    see_also=("outcome/episode_length",),
)

THROUGHPUT = Metric(
    name="outcome/throughput",
    title="Served throughput",
    unit="requests/s",
    kind="outcome",
    meaning="Requests the served cluster completes per second of simulated time: the scheduler's"
    " real aim. An average over the run so far flattens as 1/t.",
    formula="completed requests / time",
    better="up",
    possible=NOT_NEGATIVE,
    see_also=("outcome/latency", "throughput/steps_per_second"),
)

LATENCY = Metric(
    name="outcome/latency",
    title="Request latency",
    unit="s",
    kind="outcome",
    meaning="Mean end-to-end time of completed requests. An average over the run so far flattens"
    " as 1/t.",
    formula="mean over requests of (completion - arrival)",
    better="down",
    possible=NOT_NEGATIVE,
    see_also=("outcome/throughput",),
)

TAIL_LATENCY = Metric(
    name="outcome/tail_latency",
    title="Tail latency",
    unit="s",
    kind="outcome",
    meaning="A high percentile of request latency: what the slowest requests feel.",
    formula="percentile p of latency over the last requests",
    better="down",
    possible=NOT_NEGATIVE,
    see_also=("outcome/latency",),
    family=True,
)

ACCURACY = Metric(
    name="outcome/accuracy",
    title="Accuracy",
    unit="share",
    kind="outcome",
    meaning="Share of right answers, or of right tokens in supervised training.",
    formula="right / all",
    better="up",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("outcome/reward",),
)

EVAL_ACCURACY = Metric(
    name="outcome/eval_accuracy",
    title="Evaluation accuracy",
    unit="share",
    kind="outcome",
    meaning="Share of right answers, or of right tokens, on held-out data.",
    formula="right / all",
    better="up",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("outcome/accuracy",),
)

EVAL_TASK = Metric(
    name="outcome/eval_task",
    title="Score on one held-out set",
    unit="score",
    kind="outcome",
    meaning="Held-out score by data set and estimate: mean@k or avg@k is the mean of k answers,"
    " best@k or pass@k the best of k, maj@k the majority's. Only mean and majority say what one"
    " answer is worth.",
    formula="mean over prompts of the estimate",
    better="up",
    see_also=("outcome/eval_accuracy", "outcome/eval_reward"),
    family=True,
)

TASK_REWARD = Metric(
    name="outcome/task_reward",
    title="Reward of one task",
    unit="reward",
    kind="outcome",
    meaning="Mean training reward of one environment or data set of several.",
    formula="mean over the task's rollouts of r",
    better="up",
    see_also=("outcome/reward",),
    family=True,
)

PASS_RATE = Metric(
    name="outcome/pass_rate",
    title="Solved in k tries",
    unit="share",
    kind="outcome",
    meaning="Share of training prompts of which at least one of k answers is right. It can stand"
    " still while single answers get better: then the policy only sharpens.",
    formula="mean over prompts of 1 - C(n - c, k) / C(n, k)",
    better="up",
    healthy=Band(low=0.0, high=1.0),
    possible=SHARE,
    see_also=("outcome/accuracy",),
    family=True,
)

DOMAIN = Metric(
    name="outcome/domain",
    title="Measure of your own",
    unit="its own",
    kind="outcome",
    meaning="What matters in one field alone: distance to the goal, collisions. Any key of a log"
    " can be called so: --map env/collisions=outcome/domain/collision_rate. It is shown, and judged"
    " by no rule.",
    see_also=("outcome/return", "outcome/success_rate"),
    family=True,
)

METRICS = (
    RETURN,
    EVAL_RETURN,
    RETURN_MIN,
    RETURN_MAX,
    EVAL_RETURN_MIN,
    EVAL_RETURN_MAX,
    AGENT_RETURN,
    GROUP_RETURN,
    ELO,
    ENDING,
    SUCCESS_RATE,
    EVAL_SUCCESS_RATE,
    WIN_RATE_EMA,
    REWARD,
    EVAL_REWARD,
    SCORE,
    RLHF_REWARD,
    EPISODE_LENGTH,
    EVAL_EPISODE_LENGTH,
    THROUGHPUT,
    LATENCY,
    TAIL_LATENCY,
    ACCURACY,
    EVAL_ACCURACY,
    EVAL_TASK,
    TASK_REWARD,
    PASS_RATE,
    DOMAIN,
)
