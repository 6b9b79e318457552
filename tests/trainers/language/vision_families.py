"""Small models that read images, random weights, as their folders lie on the hub."""

import families
import transformers as hf
from families import IMAGE, PIXELS, SIGHT, SMALL, ids, save

# Qwen's: a placeholder between two marks; the processor repeats it for each merged patch.
QWEN = ("<|vision_start|>", "<|image_pad|>", "<|vision_end|>", "<|video_pad|>")
IDEFICS = (IMAGE, "<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
INTERN = ("<img>", "</img>", "<IMG_CONTEXT>", "<video>")
ROPE = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}


def chat(image):
    return families.CHAT.replace(IMAGE, image)


def named_tokens(names, image):
    """Return a tokenizer that has special tokens as attributes by these names."""
    reads = families.tokenizer(special=tuple(names.values()), chat=chat(image))
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=reads.backend_tokenizer, eos_token=reads.eos_token,
        pad_token=reads.pad_token, bos_token=reads.bos_token, chat_template=reads.chat_template,
        extra_special_tokens=names,
    )  # fmt: skip


def qwen_vl(folder, version, patch, text, sight):
    reads = families.tokenizer(special=QWEN, chat=chat("".join(QWEN[:3])))
    start, image, end, video = map(reads.convert_tokens_to_ids, QWEN)
    config = getattr(hf, f"{version}Config")(
        text_config={**SMALL, **ids(reads), "rope_parameters": ROPE, **text},
        vision_config={"depth": 2, "num_heads": 4, "patch_size": patch, **sight},
        image_token_id=image, video_token_id=video, vision_start_token_id=start,
        vision_end_token_id=end, bos_token_id=None, eos_token_id=reads.eos_token_id,
    )  # fmt: skip
    images = {
        "image_processor_type": "Qwen2VLImageProcessor", "processor_class": f"{version}Processor",
        "patch_size": patch, "merge_size": 2, "temporal_patch_size": 2,
        "size": {"shortest_edge": 56 * 56, "longest_edge": 64 * 64}, **PIXELS,
    }  # fmt: skip
    if version.startswith("Qwen2"):
        images |= {"min_pixels": 56 * 56, "max_pixels": 64 * 64}
        del images["size"]
    model = getattr(hf, f"{version}ForConditionalGeneration")(config)
    return save(folder, reads, model, preprocessor_config=images)


def qwen2_vl(folder):
    sight = {"embed_dim": 32, "hidden_size": 32, "mlp_ratio": 2}
    return qwen_vl(folder, "Qwen2VL", 14, {}, sight)


def qwen2_5_vl(folder):
    sight = {
        "hidden_size": 32, "intermediate_size": 64, "out_hidden_size": 32,
        "window_size": 56, "fullatt_block_indexes": [1],
    }  # fmt: skip
    return qwen_vl(folder, "Qwen2_5_VL", 14, {}, sight)


def qwen3_vl(folder):
    sight = {
        "hidden_size": 32, "intermediate_size": 64, "out_hidden_size": 32,
        "num_position_embeddings": 16, "deepstack_visual_indexes": [0],
    }  # fmt: skip
    return qwen_vl(folder, "Qwen3VL", 16, {"head_dim": 8}, sight)


def _idefics(folder, version, images):
    reads = families.tokenizer(special=IDEFICS)
    sight = {**SIGHT, "image_size": 56}
    config = getattr(hf, f"{version}Config")(
        vision_config=sight, text_config={"model_type": "llama", **SMALL, **ids(reads)},
        image_token_id=reads.convert_tokens_to_ids(IMAGE), scale_factor=2,
        pad_token_id=reads.pad_token_id,
    )  # fmt: skip
    edge = {"longest_edge": 56}
    pixels = {
        "image_processor_type": f"{version}ImageProcessor",
        "processor_class": f"{version}Processor",
        "size": edge, "max_image_size": edge, **images, **PIXELS,
    }  # fmt: skip
    both = {"processor_class": f"{version}Processor", "image_seq_len": 4}
    model = getattr(hf, f"{version}ForConditionalGeneration")(config)
    return save(folder, reads, model, preprocessor_config=pixels, processor_config=both)


def idefics3(folder):
    return _idefics(folder, "Idefics3", {"do_image_splitting": False})


def smolvlm(folder):
    return _idefics(folder, "SmolVLM", {"do_image_splitting": True, "size": {"longest_edge": 112}})


def internvl(folder):
    names = ("start_image_token", "end_image_token", "context_image_token", "video_token")
    reads = named_tokens(dict(zip(names, INTERN, strict=True)), "<IMG_CONTEXT>")
    config = hf.InternVLConfig(
        vision_config={**SIGHT, "image_size": [56, 56], "patch_size": [14, 14]},
        text_config={"model_type": "qwen2", **SMALL, **ids(reads)},
        image_token_id=reads.convert_tokens_to_ids("<IMG_CONTEXT>"), image_seq_length=4,
    )  # fmt: skip
    images = {
        "image_processor_type": "GotOcr2ImageProcessor", "processor_class": "InternVLProcessor",
        "size": {"height": 56, "width": 56}, "crop_to_patches": False, **PIXELS,
    }  # fmt: skip
    both = {"processor_class": "InternVLProcessor", "image_seq_length": 4}
    model = hf.InternVLForConditionalGeneration(config)
    return save(folder, reads, model, preprocessor_config=images, processor_config=both)


def llava_next(folder):
    return _llava(folder, "LlavaNext", {"image_grid_pinpoints": [[28, 56], [56, 28]]})


def llava_onevision(folder):
    reads = families.tokenizer(special=(IMAGE, "<video>"))
    config = hf.LlavaOnevisionConfig(
        vision_config={"model_type": "siglip_vision_model", **SIGHT},
        text_config={"model_type": "qwen2", **SMALL, **ids(reads)},
        image_token_index=reads.convert_tokens_to_ids(IMAGE),
        image_token_id=reads.convert_tokens_to_ids(IMAGE),
        video_token_index=reads.convert_tokens_to_ids("<video>"),
        video_token_id=reads.convert_tokens_to_ids("<video>"),
        image_grid_pinpoints=[[28, 56], [56, 28]], vision_feature_select_strategy="full",
    )  # fmt: skip
    images = {
        "image_processor_type": "LlavaOnevisionImageProcessor",
        "processor_class": "LlavaOnevisionProcessor", "size": {"height": 28, "width": 28},
        "image_grid_pinpoints": [[28, 56], [56, 28]], **PIXELS,
    }  # fmt: skip
    both = {
        "processor_class": "LlavaOnevisionProcessor", "num_image_tokens": 4,
        "vision_feature_select_strategy": "full", "image_token": IMAGE, "video_token": "<video>",
    }  # fmt: skip
    model = hf.LlavaOnevisionForConditionalGeneration(config)
    return save(folder, reads, model, preprocessor_config=images, processor_config=both)


def _llava(folder, version, more):
    reads = families.tokenizer(special=(IMAGE,))
    token = reads.convert_tokens_to_ids(IMAGE)
    config = getattr(hf, f"{version}Config")(
        vision_config={"model_type": "clip_vision_model", "projection_dim": 32, **SIGHT},
        text_config={"model_type": "llama", **SMALL, **ids(reads)},
        image_token_index=token, image_token_id=token, **more,
    )  # fmt: skip
    side = {"height": 28, "width": 28}
    images = {
        "image_processor_type": f"{version}ImageProcessor",
        "processor_class": f"{version}Processor",
        "size": {"shortest_edge": 28}, "do_center_crop": True, "crop_size": side, **PIXELS, **more,
    }  # fmt: skip
    both = {
        "processor_class": f"{version}Processor", "patch_size": 14, "image_token": IMAGE,
        "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1,
    }  # fmt: skip
    model = getattr(hf, f"{version}ForConditionalGeneration")(config)
    return save(folder, reads, model, preprocessor_config=images, processor_config=both)


def gemma3(folder):
    special = ("<start_of_image>", "<end_of_image>", "<image_soft_token>")
    names = ("boi_token", "eoi_token", "image_token")
    reads = named_tokens(dict(zip(names, special, strict=True)), "<start_of_image>")
    config = hf.Gemma3Config(
        vision_config={**SIGHT}, mm_tokens_per_image=4,
        text_config={**SMALL, **ids(reads), "head_dim": 8, "sliding_window": 64},
        boi_token_index=reads.convert_tokens_to_ids(special[0]),
        eoi_token_index=reads.convert_tokens_to_ids(special[1]),
        image_token_index=reads.convert_tokens_to_ids(special[2]),
    )  # fmt: skip
    images = {
        "image_processor_type": "Gemma3ImageProcessor", "processor_class": "Gemma3Processor",
        "size": {"height": 28, "width": 28}, **PIXELS,
    }  # fmt: skip
    both = {"processor_class": "Gemma3Processor", "image_seq_length": 4}
    model = hf.Gemma3ForConditionalGeneration(config)
    # The library begins with zeros: no image would matter.
    model.model.multi_modal_projector.mm_input_projection_weight.data.normal_(std=0.02)
    return save(folder, reads, model, preprocessor_config=images, processor_config=both)


FAMILIES = {
    "qwen2-vl": qwen2_vl, "qwen2.5-vl": qwen2_5_vl, "qwen3-vl": qwen3_vl, "idefics3": idefics3,
    "smolvlm": smolvlm, "internvl": internvl, "llava": families.llava, "llava-next": llava_next,
    "llava-onevision": llava_onevision, "gemma3": gemma3, "paligemma": families.paligemma,
}  # fmt: skip
