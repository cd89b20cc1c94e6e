"""The encoder of English, all-MiniLM-L6-v2 in 8 bits: an ONNX file of 23 MB from the fp32 tensors of 90 MB (spec O7,
ADR 40).

Input: `ids`, int64, (1, tokens). Output: `vector`, float32, (1, 384), the mean over the tokens, of unit length.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from madeleine.inference.default_model.model_files import ModelFiles, check_file_sha256
from madeleine.inference.default_model.onnx_graph import (
    ONNX_MICROSOFT_OPERATOR_DOMAIN,
    Float32WeightsByName,
    OnnxArray,
    OnnxGraphBuilder,
    int8_values_and_scales,
)

ENGLISH_ENCODER_FILE = "model.int8.onnx"
TOKENIZER_FILE = "tokenizer.json"
ENGLISH_ENCODER_FILES = ModelFiles(
    Path(__file__).parent / "all-MiniLM-L6-v2",
    {
        ENGLISH_ENCODER_FILE: "3101860748e9aa4502c5d518f9b7306293990e8ef07bf9c2fec0a6c2fa1e1ca9",
        TOKENIZER_FILE: "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904",
    },
)
FP32_WEIGHTS_FILE = "onnx/model.onnx_data"
SHA256_BY_FP32_FILE: Mapping[str, str] = {
    TOKENIZER_FILE: ENGLISH_ENCODER_FILES.sha256[TOKENIZER_FILE],
    "onnx/model.onnx": "2f019cf6217537cc4bfc7f5192f21dea1e18445177edaab0bc6163a813e5c7a1",
    FP32_WEIGHTS_FILE: "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de",
}

LAYERS, HEADS, WIDTH, INNER_WIDTH, WORDS, SOURCE_POSITIONS = 6, 12, 384, 1536, 30522, 512
MAX_ENGLISH_ENCODER_TOKENS = 256
LAYER_NORM_EPSILON = 1e-12


def write_english_encoder_files(source: Path) -> None:
    """Write model and tokenizer; `source` holds the fp32 files. Takes half a second and 200 MB. Raises
    `DamagedModelFile` if a file of the source or the result is not the expected one, `OSError` if it cannot be written.
    """
    for name in (FP32_WEIGHTS_FILE, TOKENIZER_FILE):
        check_file_sha256(source, name, SHA256_BY_FP32_FILE[name])
    ENGLISH_ENCODER_FILES.write(
        {
            ENGLISH_ENCODER_FILE: english_encoder_onnx_bytes(
                read_fp32_tensors((source / FP32_WEIGHTS_FILE).read_bytes())
            ),
            TOKENIZER_FILE: (source / TOKENIZER_FILE).read_bytes(),
        }
    )


def read_fp32_tensors(weights: bytes) -> Float32WeightsByName:
    """The tensors of `model.onnx_data`, which lie there in this order without a gap."""
    shapes: dict[str, tuple[int, ...]] = {"words": (WORDS, WIDTH), "types": (2, WIDTH)}
    shapes |= {"positions": (SOURCE_POSITIONS, WIDTH), "norm.weight": (WIDTH,), "norm.bias": (WIDTH,)}
    for layer in range(LAYERS):
        shapes |= {f"{layer}.{part}.weight": (WIDTH, WIDTH) for part in "qkv"}
        shapes |= {f"{layer}.{part}.bias": (WIDTH,) for part in "qkv"}
        for part, before, after in (("o", WIDTH, WIDTH), ("up", WIDTH, INNER_WIDTH), ("down", INNER_WIDTH, WIDTH)):
            shapes |= {f"{layer}.{part}.weight": (before, after), f"{layer}.{part}.bias": (after,)}
            if part != "up":
                shapes |= {f"{layer}.{part}.norm.weight": (WIDTH,), f"{layer}.{part}.norm.bias": (WIDTH,)}
    numbers, tensors, start = np.frombuffer(weights, "<f4"), {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        tensors[name] = numbers[start : start + size].reshape(shape)
        start += size
    return tensors


def english_encoder_onnx_bytes(source: Float32WeightsByName) -> bytes:
    """The ONNX file."""
    graph = OnnxGraphBuilder(layer_norm_epsilon=LAYER_NORM_EPSILON)
    words, word_scales = int8_values_and_scales(source["words"], axis=1, maximum=127)
    rows = graph.add_node("Gather", [graph.add_tensor("words", words), "ids"])
    scales = graph.add_node("Gather", [graph.add_tensor("word scales", word_scales), "ids"])
    embedded = graph.add_node("Mul", [graph.add_node("Cast", [rows], to=1), scales])
    positions = graph.add_tensor("positions", source["positions"][:MAX_ENGLISH_ENCODER_TOKENS] + source["types"][0])
    tokens = graph.add_node("Shape", ["ids"], start=1, end=2)
    positions = graph.add_node("Slice", [positions, graph.add_tensor("zero", np.zeros(1, np.int64)), tokens])
    embedded = graph.add_node("Add", [embedded, positions])
    states = graph.add_layer_norm(source, "norm", embedded)
    for layer in range(LAYERS):
        given = graph.add_dynamic_quantization(states)
        heads = [graph.add_int8_matrix_product(source, f"{layer}.{part}", given) for part in "qkv"]
        attended = graph.add_node("MultiHeadAttention", heads, domain=ONNX_MICROSOFT_OPERATOR_DOMAIN, num_heads=HEADS)
        states = graph.add_product_residual_and_norm(source, f"{layer}.o", attended, states)
        inner = graph.add_node(
            "Gelu", [graph.add_int8_matrix_product(source, f"{layer}.up", graph.add_dynamic_quantization(states))]
        )
        states = graph.add_product_residual_and_norm(source, f"{layer}.down", inner, states)
    mean = graph.add_node("ReduceMean", [states, graph.add_tensor("token axis", np.ones(1, np.int64))], keepdims=0)
    graph.add_node("LpNormalization", [mean], output="vector", axis=-1, p=2)
    return graph.model_bytes(
        "all-MiniLM-L6-v2 in 8 bits",
        [OnnxArray("ids", "int64", (1, "tokens"))],
        OnnxArray("vector", "float32", (1, WIDTH)),
    )
