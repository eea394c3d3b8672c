"""A Llama with random weights, written on the spot: it answers like a real model, and its answers mean nothing."""

import sys
from pathlib import Path
from string import ascii_lowercase

import gguf
import numpy as np

LAYERS, WIDTH, HEADS, FEED_FORWARD, CONTEXT = 1, 32, 2, 64, 16384
CHAT = "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def write_model(path: Path, seed: int = 0) -> None:
    """Write a model of about a third of a megabyte. The same seed gives the same weights."""
    writer = gguf.GGUFWriter(str(path), "llama")
    tokens = _tokens()
    _describe(writer, tokens)
    for name, weights in _weights(len(tokens), np.random.default_rng(seed)):
        writer.add_tensor(name, weights.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tokens() -> list[tuple[bytes, float, int]]:
    """Text, score and type: control tokens, every byte, the printable characters, and pairs of letters.

    The pairs halve the number of tokens of a prompt, and with it the time of a test.
    """
    control = [(text, 0.0, gguf.TokenType.CONTROL) for text in (b"<unk>", b"<s>", b"</s>")]
    every_byte = [(f"<0x{number:02X}>".encode(), 0.0, gguf.TokenType.BYTE) for number in range(256)]
    # A space is written as U+2581 in this kind of vocabulary.
    printable = ["▁", *(chr(number) for number in range(33, 127))]
    pairs = [first + second for first in "▁" + ascii_lowercase for second in ascii_lowercase]
    normal = [(text.encode(), -float(rank), gguf.TokenType.NORMAL) for rank, text in enumerate(printable + pairs)]
    return [*control, *every_byte, *normal]


def _describe(writer: gguf.GGUFWriter, tokens: list[tuple[bytes, float, int]]) -> None:
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    texts, scores, types = zip(*tokens, strict=True)
    writer.add_token_list(list(texts))
    writer.add_token_scores(list(scores))
    writer.add_token_types([int(kind) for kind in types])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(CHAT)


def _weights(vocabulary: int, random: np.random.Generator):
    def matrix(rows: int, columns: int):
        return random.normal(0, 0.2, (rows, columns))

    yield "token_embd.weight", matrix(vocabulary, WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        for norm in ("attn_norm", "ffn_norm"):
            yield f"{block}.{norm}.weight", np.ones(WIDTH)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"{block}.{part}.weight", matrix(WIDTH, WIDTH)
        yield f"{block}.ffn_gate.weight", matrix(FEED_FORWARD, WIDTH)
        yield f"{block}.ffn_up.weight", matrix(FEED_FORWARD, WIDTH)
        yield f"{block}.ffn_down.weight", matrix(WIDTH, FEED_FORWARD)
    yield "output_norm.weight", np.ones(WIDTH)
    yield "output.weight", _output(vocabulary, matrix)


def _output(vocabulary: int, matrix):
    """Only printable characters and the end of text are ever likely: nonsense, but valid UTF-8."""
    weights = matrix(vocabulary, WIDTH)
    weights[3:259] *= 0.01
    return weights


if __name__ == "__main__":
    write_model(Path(sys.argv[1]))
