"""Keys that say by a word what sort of number they hold: a count, a share, a setting.

Such a key is known and judged by no rule. A table names what a rule can use with metrics of their
own, and gives in `other_prefixes` the prefixes below which its framework logs the others.
"""

import re
from functools import lru_cache

from rlvitals.metrics.catalogue import rollouts, throughput
from rlvitals.metrics.frameworks.key import Name

COUNT_WORDS = (  # words that end a key that counts
    r"num|counts?|total|n|size|qsize|queued?|samples?|rollouts?|groups?|tasks?|turns|requests?"
    r"|calls|version\w*|inflight|in_flight\w*|steps?|step_\w+|syncs?|episodes|tokens|toks"
    r"|segments|shards?|drafts|rows\w*|updates\w*|pending|consumed|filtered|processed|quota"
    r"|messages|attempts|backends|passes|batches|datums|positions|rubrics|overrides|skipped"
    r"|replicas|remaining|epoch\w*|spans|flushes"
)
# The first line that fits decides: "queue_size/max" is an extreme, "stale_samples_ratio" a share.
KEY_KINDS = (
    (
        throughput.PHASE_RATE,
        r"\w*(?:tps|tflops|tok_per_s|tokens_per_second|samples_per_second|per_sec|goodput)\w*",
    ),
    (
        throughput.DATA_SIZE,
        r"\w*(?:bytes|mbytes|media|payload|gib|_gb|elems|elements|serialized)\w*",
    ),
    (
        rollouts.EXTREME,
        (
            r"(?:\w*_)?(?:max|min|std|p\d+|median|minmax_diff|sum|sq_mean|sum_squares?|var)(?:@\w+)?"
            r"|(?:max|min|std)_(?!concurrent|queue|required)\w*"
        ),
    ),
    (
        rollouts.LOGGED_SETTING,
        (
            r"\w*(?:threshold|coef|lambda|bound|kl_loss_scale|required_samples|max_concurrent\w*"
            r"|max_queue\w*|max_required\w*|max_inflight|capacity|max_rollout_quota|topk|enabled"
            r"|mode|weights?)(?:@\w+)?"
        ),
    ),
    (
        rollouts.SHARE_OF,
        (
            r"frac_\w+|\w*(?:frac|fractions?|share|ratio|rate|pct|percent|clipfrac|utilization|density|mass"
            r"|mask_mean|indicator|effective|too_easy|too_hard|informative|proportion)(?:_mean)?"
            r"(?:-pos-\w+)?(?:@\w+)?"
        ),
    ),
    (
        rollouts.LENGTH_OF,
        (
            r"\w*(?:length|lengths|seq_len|tokens_per_\w+|assistant_tokens|accept_length)(?:_mean)?"
            r"|\w*length\w*/mean"
        ),
    ),
    (
        rollouts.COUNT,
        (
            r"(?:\w+_)?(?:n|num|total|solve)_\w+|\w*size_at_\w+"
            rf"|(?:\w+_)?(?:{COUNT_WORDS})(?:@\w+)?"
        ),
    ),
)
UNJUDGED = (*(f"{metric.name}/" for metric, _ in KEY_KINDS), f"{rollouts.STATISTIC.name}/")


@lru_cache(maxsize=4096)  # keys
def name(key: str) -> Name:
    """Return what a key's words say of its number: `language/statistic` where they say nothing."""
    for metric, pattern in KEY_KINDS:
        if re.fullmatch(rf"(?:.+/)?(?:{pattern})", key):
            return Name(metric, "by its name")
    for metric, pattern in KEY_KINDS[4:]:  # may end in a part: "requests_total/shard_0"
        if re.fullmatch(rf".+/(?:{pattern})/[^/]+", key):
            return Name(metric, "by its name")
    return Name(rollouts.STATISTIC)
