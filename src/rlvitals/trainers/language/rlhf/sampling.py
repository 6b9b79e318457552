"""Sample responses token by token from the policy's softmax."""

from collections.abc import Sequence

import torch
from torch import Tensor

from rlvitals.trainers.language.rlhf.batch import Responses
from rlvitals.trainers.language.rlhf.policy import Policy


def sample(  # noqa: PLR0913 - what a response is drawn with, each by its name
    policy: Policy,
    queries: Tensor,
    attention: Tensor,
    *,
    length: int,
    temperature: float,
    ends: Sequence[int],
    padding: int,
) -> Responses:
    """Draw a response of at most `length` tokens to each prompt: tokens [b, q], padded on the left.

    No token is left out and none preferred, whatever the model's own settings are: what is drawn
    from is what the ratio is made of. torch's generator is drawn from.
    """
    stop = torch.tensor(list(ends), device=queries.device)
    going = torch.ones(len(queries), dtype=torch.bool, device=queries.device)
    new, full_attention, cache = queries, attention, None
    drawn: list[Tensor] = []
    masks: list[Tensor] = []
    while len(drawn) < length and bool(going.any()):
        with torch.no_grad():
            read = policy.read(new, full_attention, use_cache=True, past_key_values=cache)
        cache = read.past_key_values
        chances = torch.softmax(read.logits[:, -1].float() / temperature, -1)
        token = torch.multinomial(chances, 1).masked_fill(~going[:, None], padding)
        masks.append(going)
        drawn.append(token)
        full_attention = torch.cat((full_attention, going[:, None].to(full_attention.dtype)), 1)
        going = going & ~torch.isin(token[:, 0], stop)
        new = token
    mask = torch.stack(masks, 1).float()
    return Responses(torch.cat((queries, *drawn), 1), full_attention, mask, finished=~going)
