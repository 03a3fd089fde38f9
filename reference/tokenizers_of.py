"""tiktoken and Hugging Face's tokenizers with GPT-2's vocabulary, from the same two files."""
import json

import tiktoken
import tokenizers

BATCH = 1000
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


def tiktoken_of(folder):
    vocabulary = json.load(open(folder + "/vocab.json", encoding="utf-8"))
    byte_of = {chr(b): b for b in [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]}
    rest = [b for b in range(256) if b not in byte_of.values()]
    byte_of.update({chr(256 + i): b for i, b in enumerate(rest)})
    special = {"<|endoftext|>": vocabulary.pop("<|endoftext|>")}
    ranks = {bytes(byte_of[c] for c in t): i for t, i in vocabulary.items()}
    return tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special)


def huggingface_of(folder):
    model = tokenizers.models.BPE.from_file(folder + "/vocab.json", folder + "/merges.txt")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def encoders(folder, threads=None):
    """Functions from a list of texts to lists of ids, by name; threads: None is one core."""
    t, h = tiktoken_of(folder), huggingface_of(folder)

    def of_tiktoken(texts):
        if threads:
            return t.encode_ordinary_batch(texts, num_threads=threads)
        return [t.encode_ordinary(x) for x in texts]

    def of_huggingface(texts):
        ids = []
        for first in range(0, len(texts), BATCH):  # an encoding takes far more memory than its ids
            batch = h.encode_batch(texts[first:first + BATCH], add_special_tokens=False)
            ids += [x.ids for x in batch]
        return ids

    return {"tiktoken " + tiktoken.__version__: of_tiktoken,
            "tokenizers " + tokenizers.__version__: of_huggingface}
