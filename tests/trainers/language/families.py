"""Small models of real architectures, random weights, as their folders lie on the hub."""

import json

import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

LINES = ("user assistant", "What is 3+4? The answer is 7.", "<think>steps</think>", "a chart")
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['content'] is string %}"
    "{{ m['content'] }}{% else %}{% for c in m['content'] %}{% if c['type'] == 'image' %}<image>"
    "{% else %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SMALL = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512,
}  # fmt: skip
SIGHT = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
    "image_size": 28, "patch_size": 14,
}  # fmt: skip
IMAGE = "<image>"
PIXELS = {
    "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
    "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
}  # fmt: skip


def tokenizer(end="<|im_end|>", pad="<|endoftext|>", chat=CHAT, special=()):
    """Return a byte-level BPE that has read a few lines."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    named = [name for name in ("<bos>", pad, "<|im_start|>", end, *special) if name]
    letters = pre_tokenizers.ByteLevel.alphabet()
    how = trainers.BpeTrainer(
        vocab_size=320, special_tokens=named, initial_alphabet=letters, show_progress=False
    )
    made.train_from_iterator(LINES, how)
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=end, pad_token=pad, chat_template=chat,
        bos_token="<bos>",
    )  # fmt: skip


def ids(reads):
    return {
        "vocab_size": len(reads) + 5,  # as real ones: more rows than tokens
        "eos_token_id": reads.eos_token_id, "pad_token_id": reads.pad_token_id,
        "bos_token_id": reads.bos_token_id,
    }  # fmt: skip


def save(folder, reads, model, **files):
    """Write a model's folder; `files` are further ones by their stems."""
    model.save_pretrained(folder)
    reads.save_pretrained(folder)
    for stem, said in files.items():
        (folder / f"{stem}.json").write_text(json.dumps(said))
    return folder


def qwen2(folder):
    """bfloat16, tied embeddings, two tokens that end an answer."""
    reads = tokenizer()
    config = hf.Qwen2Config(**SMALL, **ids(reads), tie_word_embeddings=True)
    model = hf.Qwen2ForCausalLM(config).to(torch.bfloat16)
    model.generation_config.eos_token_id = [reads.eos_token_id, reads.pad_token_id]
    return save(folder, reads, model)


def llama(folder):
    """Untied embeddings, and a tokenizer without a pad token."""
    reads = tokenizer(end="<|eot_id|>", pad=None)
    config = hf.LlamaConfig(**SMALL, **ids(reads), tie_word_embeddings=False)
    return save(folder, reads, hf.LlamaForCausalLM(config))


def gpt2(folder):
    """Layers of other names, transposed; neither chat template nor pad token."""
    reads = tokenizer(end="<|endoftext|>", pad=None, chat=None)
    config = hf.GPT2Config(
        n_embd=32, n_layer=2, n_head=4, n_positions=256, vocab_size=len(reads),
        eos_token_id=reads.eos_token_id, bos_token_id=reads.eos_token_id,
    )  # fmt: skip
    return save(folder, reads, hf.GPT2LMHeadModel(config))


def neox(folder):
    """A head that is called neither lm_head nor embed_tokens."""
    reads = tokenizer(end="<|endoftext|>", pad=None, chat=None)
    config = hf.GPTNeoXConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=256, vocab_size=len(reads), eos_token_id=reads.eos_token_id,
        bos_token_id=None,
    )  # fmt: skip
    return save(folder, reads, hf.GPTNeoXForCausalLM(config))


def phi3(folder):
    """One layer for queries, keys and values."""
    reads = tokenizer()
    return save(folder, reads, hf.Phi3ForCausalLM(hf.Phi3Config(**SMALL, **ids(reads))))


def llava(folder):
    """CLIP before a Llama."""
    reads = tokenizer(special=(IMAGE,))
    token = reads.convert_tokens_to_ids(IMAGE)
    config = hf.LlavaConfig(
        vision_config={"model_type": "clip_vision_model", "projection_dim": 32, **SIGHT},
        text_config={"model_type": "llama", **SMALL, **ids(reads)},
        image_token_index=token, image_token_id=token,
    )  # fmt: skip
    side = {"height": 28, "width": 28}
    images = {
        "image_processor_type": "CLIPImageProcessor", "processor_class": "LlavaProcessor",
        "size": {"shortest_edge": 28}, "do_center_crop": True, "crop_size": side, **PIXELS,
    }  # fmt: skip
    both = {
        "processor_class": "LlavaProcessor", "patch_size": 14, "image_token": IMAGE,
        "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1,
    }  # fmt: skip
    model = hf.LlavaForConditionalGeneration(config)
    return save(folder, reads, model, preprocessor_config=images, processor_config=both)


def paligemma(folder):
    """SigLIP before a Gemma 2, and no chat template."""
    reads = tokenizer(end="<eos>", pad="<pad>", chat=None, special=(IMAGE,))
    config = hf.PaliGemmaConfig(
        text_config={"model_type": "gemma2", "head_dim": 8, **SMALL, **ids(reads)},
        vision_config={"model_type": "siglip_vision_model", "projection_dim": 32, **SIGHT},
        projection_dim=32, hidden_size=32, image_token_index=reads.convert_tokens_to_ids(IMAGE),
    )  # fmt: skip
    images = {
        "image_processor_type": "SiglipImageProcessor", "processor_class": "PaliGemmaProcessor",
        "image_seq_length": 4, "size": {"height": 28, "width": 28}, **PIXELS,
    }  # fmt: skip
    model = hf.PaliGemmaForConditionalGeneration(config)
    return save(folder, reads, model, preprocessor_config=images)
