"""Check whether plain questions are given to a model in its chat template."""

from rlvitals import UsageError
from rlvitals.trainers.language.config import DataConfig
from rlvitals.trainers.language.data import Task
from rlvitals.trainers.language.models import Loaded


def check(config: DataConfig, loaded: Loaded, task: Task) -> tuple[str, ...]:
    """Return notes about how questions are given to the model.

    Raises UsageError where conversations are asked for, and the model has no template.
    """
    template = loaded.processor.chat_template
    if config.chat and template is None:
        raise UsageError(
            "the model has no chat template",
            where="data.chat",
            hint="leave it out, or put a chat_template.jinja beside the model",
        )
    plain = getattr(task.train.features["prompt"], "dtype", "") == "string"
    if not plain or template is None or loaded.tiny:
        return ()
    note = (
        "the model has a chat template, and questions are put to it as they are"
        " (--chat: in its template)"
    )
    return (note,)
