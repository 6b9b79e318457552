"""A tokenizer whose tokens are characters and given words."""

from collections.abc import Sequence
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAD_TOKEN, EOS_TOKEN, BOS_TOKEN, UNKNOWN_TOKEN = "<pad>", "<eos>", "<bos>", "<unk>"
IMAGE_TOKEN = "<image>"  # noqa: S105 - no password
CHARACTER_TOKENS = (
    "\n !\"#%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz{|}"
)
# A conversation is its contents one after another; an image is one token in its place.
CHAT_TEMPLATE = (
    "{% for m in messages %}{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}<image>{% else %}{{ c['text'] }}"
    "{% endif %}{% endfor %}{% endif %}{% endfor %}"
)


def tokenizer(words: Sequence[str] = (), special: Sequence[str] = ()) -> Any:
    """Make a tokenizer of characters and `words`; `special` ones are left out of decoded text.

    Of two words that begin alike the longer one is meant.
    """
    reserved = [PAD_TOKEN, EOS_TOKEN, BOS_TOKEN, UNKNOWN_TOKEN, *special]
    vocabulary = {text: i for i, text in enumerate([*reserved, *words, *CHARACTER_TOKENS])}
    raw_tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN_TOKEN))
    either = [*sorted(map(_literal, words), key=len, reverse=True), r"[\s\S]"]
    raw_tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("|".join(either)), "isolated")
    raw_tokenizer.decoder = decoders.Fuse()
    raw_tokenizer.add_special_tokens(reserved)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw_tokenizer, pad_token=PAD_TOKEN, eos_token=EOS_TOKEN,
        bos_token=BOS_TOKEN, unk_token=UNKNOWN_TOKEN,
        padding_side="left", chat_template=CHAT_TEMPLATE, clean_up_tokenization_spaces=False,
    )  # fmt: skip


def _literal(word: str) -> str:
    return "".join(f"\\{c}" if c in r"\^$.|?*+()[]{}-" else c for c in word)
