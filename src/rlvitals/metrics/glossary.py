"""Define the terms that the guides and the output use."""

from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """A term, its meaning, and synonyms."""

    name: str
    meaning: str
    also: tuple[str, ...] = ()
    see_also: tuple[str, ...] = ()  # canonical metrics


TERMS: tuple[Term, ...] = (
    # The field's words.
    Term(
        "policy",
        "The function that maps a state to the probabilities of actions; for a language model,"
        " a text to the probabilities of the next token.",
        also=("pi", "π", "actor"),
        see_also=("policy/loss", "exploration/entropy"),
    ),
    Term(
        "value function",
        "The return that the policy can expect from a state. The critic learns it, and the"
        " advantage is measured against it.",
        also=("critic", "V(s)", "V"),
        see_also=("value/loss", "value/explained_variance"),
    ),
    Term(
        "advantage",
        "How much better an action turned out than the policy's average action in that state.",
        also=("A(s,a)", "A"),
        see_also=("policy/advantage_mean", "policy/advantage_std"),
    ),
    Term(
        "return",
        "The sum of rewards from a step to the end of the episode, later ones discounted by gamma"
        " when the agent learns from it; the episode return that is logged is not discounted.",
        also=("G", "Gₜ", "G_t", "episode return"),
        see_also=("outcome/return", "value/return_mean"),
    ),
    Term(
        "entropy",
        "How undecided the policy is: 0 when it always takes the same action, ln(n) when n actions"
        " are equally likely. Of continuous actions it may be negative.",
        see_also=("exploration/entropy",),
    ),
    Term(
        "KL divergence",
        "How far one distribution is from another, 0 when they are equal. RL watches two: between"
        " the policies before and after an update, and between the policy and a frozen reference.",
        also=("KL", "relative entropy", "approximate KL divergence", "approx. KL"),
        see_also=("policy/approx_kl", "policy/kl_to_reference"),
    ),
    Term(
        "clipping",
        "PPO takes no gradient from a sample whose probability ratio has already left 1 +- the clip"
        " range in the direction its advantage pushes. It bounds the incentive, not the update.",
        also=("clip range", "PPO clip"),
        see_also=("policy/clip_fraction", "policy/clip_fraction_effective"),
    ),
    Term(
        "GAE",
        "Generalised advantage estimation: a mix of short and long estimates of the advantage."
        " Lambda near 0 trusts the critic (bias), near 1 the rewards (variance).",
        also=(
            "generalised advantage estimation",
            "generalized advantage estimation",
            "gae_lambda",
            "λ",
        ),
        see_also=("policy/advantage_std",),
    ),
    Term(
        "explained variance",
        "The share of the returns' variance that the critic predicts: 1 is perfect, 0 no better"
        " than a constant. It means nothing where returns hardly vary.",
        see_also=("value/explained_variance",),
    ),
    Term(
        "probability ratio",
        "The new probability of an action over the old one. Its mean is 1 by construction, so a"
        " mean far from 1 says that the old probabilities are wrong.",
        also=("ratio", "importance ratio"),
        see_also=("policy/ratio",),
    ),
    Term(
        "rollout",
        "The steps collected with one policy before it is updated.",
        also=("batch",),
        see_also=("progress/rollout_length",),
    ),
    Term(
        "episode",
        "One try from a reset to an end: terminated by the task or truncated by a time limit.",
        see_also=("outcome/episode_length",),
    ),
    Term(
        "on-policy",
        "Learning only from what the present policy collected: PPO, A2C, GRPO with one iteration.",
    ),
    Term(
        "off-policy",
        "Learning from what other, older policies collected: DQN, SAC, TD3 with a replay buffer.",
    ),
    Term(
        "reward hacking",
        "The reward rises while what it stands for does not: the policy found a way around it.",
        see_also=("outcome/return", "outcome/success_rate"),
    ),
    Term(
        "reference model",
        "The frozen model that RLHF starts from; a KL penalty keeps the policy near it.",
        see_also=("policy/kl_to_reference",),
    ),
    Term(
        "GRPO",
        "Group-relative policy optimisation: a completion's advantage is its reward against the"
        " mean of its prompt's other completions, without a critic.",
        see_also=("reward/group_zero_std",),
    ),
    Term(
        "PSR",
        "Positive sample reinforcement: only completions at or above the reward threshold are"
        " learnt from.",
        see_also=("language/positive_share",),
    ),
    Term(
        "NSR",
        "Negative sample reinforcement: only completions below the reward threshold are learnt"
        " from, by making them less likely.",
        see_also=("language/negative_share",),
    ),
    Term(
        "W-REINFORCE",
        "Both: positive samples weighted by lambda (0.1), negative ones by 1.",
        see_also=("language/pos_neg_ratio",),
    ),
    # Words of measurement.
    Term(
        "k1",
        "The KL estimate mean(-log r): right on average, but a single batch may be negative."
        " Clamped at 0 it shows exact zeros and is too high on average.",
        see_also=("policy/approx_kl", "policy/kl_signed"),
    ),
    Term(
        "k2",
        "The KL estimate mean((log r)^2) / 2: never negative, close while KL is small, too large"
        " when it is large.",
        see_also=("policy/approx_kl",),
    ),
    Term(
        "k3",
        "The KL estimate mean((r - 1) - log r): never negative and right on average.",
        see_also=("policy/approx_kl",),
    ),
    Term(
        "nats",
        "The unit of entropy and KL with the natural logarithm: 1 nat is 1.44 bits.",
    ),
    Term(
        "moving average",
        "A value that averages the last points, as SB3's return does over 100 episodes. It lags,"
        " and its neighbours are not independent.",
        also=("window", "smoothed"),
    ),
    Term(
        "EMA",
        "Exponential moving average: older points weigh less and less.",
        also=("exponential moving average",),
        see_also=("outcome/win_rate_ema",),
    ),
    Term(
        "block mean",
        "The mean over a stretch of the run, long enough that neighbouring blocks are nearly"
        " independent: what trends are tested on.",
        also=("block",),
    ),
    Term(
        "normalised entropy",
        "Entropy over ln(actions): 1 is uniform, 0 deterministic. Only for discrete actions.",
        see_also=("exploration/entropy",),
    ),
    Term(
        "share of the way",
        "(return - random return) / (solved return - random return): where the run stands between"
        " chance and success, for environments whose scores are known.",
    ),
    Term(
        "profile",
        "The kind of training, which decides the rules that apply and the healthy ranges:"
        " control-ppo, scheduler-ppo, rlhf-ppo, grpo, psr, nsr, w-reinforce, on- or off-policy.",
    ),
    Term("budget", "How many steps the run is meant to take, from its settings."),
    Term("seam", "A step that goes back: the run was resumed there from a checkpoint."),
    # Words of our answers.
    Term("finding", "Something wrong, with the step it began, numbers, causes and remedies."),
    Term("clear", "A rule had the data to judge and found nothing."),
    Term(
        "undecided",
        "A rule could not judge: something is not logged, or there is too little of it. Never"
        " counted as health.",
    ),
    Term("coverage", "How many rules could judge this run, and what to log so that more could."),
    Term("note", "A finding worth knowing that asks for nothing."),
    Term("warning", "A finding that will probably cost the run its aim."),
    Term("error", "A finding that makes the rest of the run worthless."),
    Term("failed", "Verdict: the process ended with an error, or its numbers ceased to be."),
    Term("hung", "Verdict: the process lives, but nothing is logged any more."),
    Term("collapsed", "Verdict: the outcome was better and has been lost, or the policy froze."),
    Term("unstable", "Verdict: the outcome swings without settling."),
    Term("stalled", "Verdict: the outcome has never improved."),
    Term("plateau", "Verdict: the outcome improved and has stopped below what is possible."),
    Term("converged", "Verdict: the outcome has stopped improving near the best there is."),
    Term("learning", "Verdict: the outcome improves."),
    Term("unknown", "Verdict: too short or too poor a log to tell. Never a pass."),
)


def lookup(text: str) -> Term | None:
    """Return the term with this name or synonym, ignoring case; None if there is none."""
    key = text.strip().lower()
    for term in TERMS:
        if key in {name.lower() for name in (term.name, *term.also)}:
            return term
    return None
