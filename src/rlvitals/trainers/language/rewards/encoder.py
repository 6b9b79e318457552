"""Similarity of two texts: the cosine of a sentence encoder's mean-pooled outputs."""

from functools import lru_cache

from rlvitals import UsageError
from rlvitals.trainers.language.rewards.reward import Alike


def load(name: str) -> Alike:
    """Load a model by its name or folder, on the CPU. Raises UsageError where it cannot be."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    try:
        tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the model of process_style_reward cannot be loaded: {str(error).splitlines()[0]}",
            where=f"rewards.process_model = {name!r}",
            hint="a folder, or a name as sentence-transformers/all-MiniLM-L6-v2",
        ) from error
    model.eval()
    limit = min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 512))

    # References come again with each completion.
    @lru_cache(maxsize=4096)
    def embed(text: str) -> torch.Tensor:
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=limit)
        with torch.no_grad():
            states = model(**inputs).last_hidden_state[0]
        mean = states.mean(0)
        return mean / mean.norm().clamp_min(1e-12)

    def alike(text: str, reference: str) -> float:
        if not text.strip():
            return 0.0
        return min(max(float(embed(text) @ embed(reference)), 0.0), 1.0)

    return alike
