"""A language model of 130,000 weights, built here: nothing is downloaded."""

import os
import sys
from pathlib import Path

import pytest

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1")
sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """The folder of an untrained model, and its tokenizer."""
    import tiny_language
    import torch

    torch.set_num_threads(1)  # more only wait for each other on a model this small
    return tiny_language.warm_folder(tmp_path_factory.mktemp("base"), steps=0)
