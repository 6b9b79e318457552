"""Usual meaning of the exception that ended a run, and where to look first."""

import re

from rlvitals.startup.lazy_pattern import lazy_pattern

# The first that matches the last line of a traceback. Words that the libraries themselves print.
EXCEPTION_MEANINGS = tuple(
    (lazy_pattern(pattern, re.IGNORECASE), meaning)
    for pattern, meaning in (
        (
            r"OutOfMemoryError|CUDA (?:error: )?out of memory|HIP out of memory",
            (
                "the device's memory is full: shorter responses, smaller micro-batches, or a"
                " smaller share of the memory for the sampler"
            ),
        ),
        (
            r"NCCL|DistBackendError|watchdog|collective operation timeout",
            (
                "a process waited for another one that failed or hangs: the first error of the"
                " other processes tells"
            ),
        ),
        (
            r"ActorDiedError|RayActorError|WorkerCrashedError|worker died|OutOfMemory.*node",
            (
                "a worker process was killed, most often for the host's memory: the worker's own"
                " log tells"
            ),
        ),
        (
            r"probability tensor contains either|multinomial.*(?:nan|inf)",
            (
                "the model's logits are not finite: weights or activations overflowed in an earlier"
                " update"
            ),
        ),
        (
            r"PytorchStreamWriter failed|No space left|Disk quota exceeded|file write failed",
            "the disk is full, most often by checkpoints: the training itself did not fail",
        ),
        (
            r"does not require grad|no grad_fn",
            "nothing in the loss is trained: frozen weights, an adapter that is off, no samples",
        ),
        (
            r"Address already in use|EADDRINUSE",
            "another process has the port: an earlier run or a server that still stands",
        ),
        (
            r"EngineDeadError|EngineCore|engine (?:core )?(?:process|loop).*(?:died|dead|failed)",
            "the sampler's engine died: its own log, further up, has the first error",
        ),
        (
            r"max_model_len|maximum (?:context|model) length|longer than the (?:maximum|specified)",
            "prompt and response together are longer than the model or the sampler allows",
        ),
        (
            r"chat[_ ]template",
            "the tokenizer has no chat template: a base model, or a prompt that is no conversation",
        ),
        (
            r"not compiled with CUDA|no NVIDIA driver|CUDA driver version|no kernel image",
            "this build of PyTorch does not fit the device or its driver",
        ),
        (
            r"device-side assert|index out of (?:bounds|range in self)",
            "an index beyond a table: a token id outside the vocabulary, most often",
        ),
        (
            r"illegal memory access",
            "a kernel read outside its memory: a fault of a library, or of two versions together",
        ),
        (
            r"(?:size|shape)s? (?:mismatch|of tensor)|must match the size|mat1 and mat2",
            "two shapes disagree: padding, a vocabulary that was resized, or a wrong reshape",
        ),
        (
            r"expected all tensors to be on the same device",
            "a tensor was left on another device",
        ),
        (
            r"found invalid values|probability tensor contains",
            (
                "the policy's outputs are not numbers: a reward, an observation, a weight or a"
                " gradient was not one before"
            ),
        ),
        (
            r"divisible",
            "batch sizes do not divide: prompts, responses for each and devices must fit together",
        ),
        (
            r"ModuleNotFoundError|ImportError|failed to import|undefined symbol",
            "a package is missing, or of another version, where this process runs",
        ),
        (
            (
                r"GatedRepoError|RepositoryNotFoundError|HFValidationError|not a local folder"
                r"|FileNotFoundError"
            ),
            "a path, or the name of a model or data set, is wrong or not to be reached from here",
        ),
        (
            r"Timeout|ConnectionError|Connection refused|ConnectionReset|HTTPError|RateLimit",
            "a server did not answer in time: a judge, a tool, a sampler, or a hub",
        ),
        (
            r"NotImplementedError",
            (
                "a case that nobody has written: the last frames name it; a reward function for"
                " this data set, most often"
            ),
        ),
        (
            r"KeyError",
            "a column of the data or a setting has another name than the code expects",
        ),
    )
)


def usual_meaning(error: str) -> str:
    """Return what the last line of a traceback usually means; empty where it says all itself."""
    return next((meaning for pattern, meaning in EXCEPTION_MEANINGS if pattern.search(error)), "")
