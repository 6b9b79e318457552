"""Load the tokenizer or processor of a model, and check for packages that it needs.

All checks read a model's config.json alone: they run before its weights are downloaded.
"""

from typing import Any

import torch
from transformers import AutoProcessor, AutoTokenizer, Idefics3Processor
from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING
from transformers.quantizers.auto import AutoHfQuantizer
from transformers.utils import is_num2words_available, is_torchvision_available

from rlvitals import VitalsError

TORCHVISION = "torchvision"
# Its processor reads a video processor for any prompt. For images it writes what Idefics3's writes.


def check(model_config: Any, name: str, *, vision: bool) -> None:
    """Raise VitalsError where a model needs a package or a GPU that is not here.

    `about`: its configuration; `name`: as it is called in the error.
    """
    package = _missing_package(model_config.model_type) if vision else ""
    if package:
        raise VitalsError(
            f"its processor needs {package}, which is not installed",
            where=name, hint=install(package),
        )  # fmt: skip
    quantised = getattr(model_config, "quantization_config", None)
    if quantised is not None:
        try:
            AutoHfQuantizer.from_config(quantised, pre_quantized=True).validate_environment()
        except (ImportError, RuntimeError, ValueError) as error:
            reason = next((line for line in str(error).splitlines() if line.strip()), "")
            hint = "a model whose weights are not quantised"
            if not torch.cuda.is_available():
                hint += "; this machine has no CUDA GPU"
            raise VitalsError(
                f"its quantised weights cannot be loaded here: {reason}", where=name, hint=hint
            ) from error


def _missing_package(model_type: str) -> str:
    images = IMAGE_PROCESSOR_MAPPING_NAMES.get(model_type)
    if images and "pil" not in images and not is_torchvision_available():
        return TORCHVISION
    if model_type == "smolvlm" and is_torchvision_available() and not is_num2words_available():
        return "num2words"
    return ""


def install(package: str) -> str:
    """Return how to install a package; torchvision has to be the build of this torch."""
    if package != TORCHVISION:
        return f"pip install {package}, or --vlm-name tiny-vlm"
    build = torch.__version__.partition("+")[2] or "cpu"
    return (
        f"pip install torchvision --index-url https://download.pytorch.org/whl/{build} (that of "
        "this torch: another one breaks transformers), or --vlm-name tiny-vlm"
    )


def load(model_config: Any, name: str, *, vision: bool, **options: Any) -> Any:
    """Return a model's tokenizer, or its processor if it reads images.

    Video processors need torchvision. Where it is missing the processor is built without one:
    prompts have images only. `options`: of `from_pretrained`.
    """
    if not vision:
        return AutoTokenizer.from_pretrained(name, padding_side="left", **options)
    kind = AutoProcessor if is_torchvision_available() else _for_images(model_config)
    return kind.from_pretrained(name, padding_side="left", **options)


def _for_images(model_config: Any) -> Any:
    """Return a processor class that needs no video processor.

    A class without its video processor keeps its name, which is saved as `processor_class`.
    """
    if model_config.model_type == "smolvlm":
        return Idefics3Processor
    kind = PROCESSOR_MAPPING.get(type(model_config), AutoProcessor)
    attributes = [] if kind is AutoProcessor else kind.get_attributes()
    if "video_processor" not in attributes:
        return AutoProcessor
    attributes.remove("video_processor")
    return type(
        kind.__name__, (kind,),
        {"get_attributes": classmethod(lambda _: list(attributes)), "__module__": kind.__module__},
    )  # fmt: skip
