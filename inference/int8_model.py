"""all-MiniLM-L6-v2 in 8 bits: an ONNX file of 23 MB from the fp32 tensors of 90 MB (spec O7, ADR 0040).

The build imports this file alone, and needs numpy alone (`hatch_build.py`). The graph is written out here and not by
`onnxruntime.quantization`, whose result depends on the versions of several packages: every build gives the same bytes,
which a hash checks, and the graph has fewer and larger operators.

Each column of a weight has a scale of its own, and 7 bits, so that no processor's partial sums saturate: AVX2, VNNI and
arm64 compute the same integers. Activations are quantized while the model runs, with one range for the whole input. An
input is therefore one text, and its vector does not depend on what else is embedded.

Input: `ids`, int64, (1, tokens). Output: `vector`, float32, (1, 384), the mean over the tokens, of unit length.
"""

from __future__ import annotations

import hashlib
import struct
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PACKAGED_MODEL_FOLDER = Path(__file__).parent / "all-MiniLM-L6-v2"
"""Made by the build, and not in the repository."""
INT8_MODEL_FILE = "model.int8.onnx"
TOKENIZER_FILE = "tokenizer.json"
FP32_WEIGHTS_FILE = "onnx/model.onnx_data"
SHA256_BY_MODEL_FILE: Mapping[str, str] = {
    INT8_MODEL_FILE: "3101860748e9aa4502c5d518f9b7306293990e8ef07bf9c2fec0a6c2fa1e1ca9",
    TOKENIZER_FILE: "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904",
    "onnx/model.onnx": "2f019cf6217537cc4bfc7f5192f21dea1e18445177edaab0bc6163a813e5c7a1",
    FP32_WEIGHTS_FILE: "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de",
}

LAYERS, HEADS, WIDTH, INNER_WIDTH, WORDS, SOURCE_POSITIONS = 6, 12, 384, 1536, 30522, 512
MAX_INT8_MODEL_TOKENS = 256
MAX_INT8_MODEL_WEIGHT = 64
"""The greatest weight: two products with a byte, 2 × 255 × 64, fit in 16 bits, where AVX2 adds them up."""
LAYER_NORM_EPSILON = 1e-12

Float32WeightsByName = Mapping[str, NDArray[np.float32]]


class DamagedModelFile(ValueError):
    """A file whose hash is not the expected one; tells which."""


def read_model_file_checking_sha256(directory: Path, name: str) -> bytes:
    """The file's content. Raises `DamagedModelFile`, or `OSError` if it cannot be read."""
    content = (directory / name).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256_BY_MODEL_FILE[name]:
        raise DamagedModelFile(f"{name} is damaged (SHA-256 {digest[:12]}…)")
    return content


def write_int8_model_files(source: Path, target: Path = PACKAGED_MODEL_FOLDER) -> None:
    """Write model and tokenizer to `target`; `source` holds the fp32 files. Takes half a second and 200 MB. Raises
    `DamagedModelFile` if a file of the source or the result is not the expected one, `OSError` if it cannot be written.
    """
    made = {
        INT8_MODEL_FILE: int8_onnx_bytes_from_tensors(
            read_fp32_tensors(read_model_file_checking_sha256(source, FP32_WEIGHTS_FILE))
        ),
        TOKENIZER_FILE: read_model_file_checking_sha256(source, TOKENIZER_FILE),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    # In a folder of its own until it is whole: others may be reading, or making the same.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".all-MiniLM-") as folder:
        for name, content in made.items():
            (Path(folder) / name).write_bytes(content)
            read_model_file_checking_sha256(Path(folder), name)
        target.mkdir(exist_ok=True)
        for name in made:
            (Path(folder) / name).replace(target / name)


def is_model_intact(directory: Path = PACKAGED_MODEL_FOLDER) -> bool:
    """Whether the files are there and undamaged."""
    try:
        return all(read_model_file_checking_sha256(directory, name) for name in (INT8_MODEL_FILE, TOKENIZER_FILE))
    except (OSError, DamagedModelFile):
        return False


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


def int8_onnx_bytes_from_tensors(source: Float32WeightsByName) -> bytes:
    """The ONNX file."""
    graph = _OnnxGraphBuilder()
    words, word_scales = _int8_values_and_scales(source["words"], axis=1, maximum=127)
    rows = graph.add_node("Gather", [graph.add_tensor("words", words), "ids"])
    scales = graph.add_node("Gather", [graph.add_tensor("word scales", word_scales), "ids"])
    embedded = graph.add_node("Mul", [graph.add_node("Cast", [rows], to=1), scales])
    positions = graph.add_tensor("positions", source["positions"][:MAX_INT8_MODEL_TOKENS] + source["types"][0])
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
    return graph.model_bytes()


def _int8_values_and_scales(
    values: NDArray[np.float32], *, axis: int, maximum: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Whole numbers, and the scale of each slice along `axis` that makes them the values again."""
    scales = (np.abs(values).max(axis=axis, keepdims=True) / np.float32(maximum)).astype(np.float32)
    return np.rint(values / scales).astype(np.int8), scales


ONNX_MICROSOFT_OPERATOR_DOMAIN = "com.microsoft"
_ONNX_TYPE_NUMBER_BY_DTYPE = {"float32": 1, "int8": 3, "int64": 7}


class _OnnxGraphBuilder:
    """An ONNX graph in the making, as the messages of `onnx.proto`."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._tensors: dict[str, bytes] = {}

    def add_tensor(self, name: str, values: NDArray[Any]) -> str:
        little_endian = values.astype(values.dtype.newbyteorder("<")).tobytes()
        self._tensors[name] = b"".join(
            [
                *(_encode_protobuf_integer(1, size) for size in values.shape),
                _encode_protobuf_integer(2, _ONNX_TYPE_NUMBER_BY_DTYPE[values.dtype.name]),
                _encode_protobuf_bytes(8, name),
                _encode_protobuf_bytes(9, little_endian),
            ]
        )
        return name

    def add_node(
        self, kind: str, inputs: Iterable[str], *, output: str = "", domain: str = "", **attributes: float
    ) -> str:
        return self._add_node_with_outputs(kind, inputs, [output or f"{kind} {len(self._nodes)}"], domain, attributes)[
            0
        ]

    def _add_node_with_outputs(
        self, kind: str, inputs: Iterable[str], outputs: list[str], domain: str, attributes: Mapping[str, float]
    ) -> list[str]:
        fields = [_encode_protobuf_bytes(1, name) for name in inputs] + [
            _encode_protobuf_bytes(2, name) for name in outputs
        ]
        fields += [
            _encode_protobuf_bytes(4, kind),
            *(_encode_protobuf_bytes(5, _encode_onnx_attribute(name, value)) for name, value in attributes.items()),
        ]
        self._nodes.append(b"".join([*fields, _encode_protobuf_bytes(7, domain)]))
        return outputs

    def add_dynamic_quantization(self, states: str) -> list[str]:
        """The names of the states as bytes, of their scale and of their zero point."""
        names = [f"{states} {part}" for part in ("bytes", "scale", "zero")]
        return self._add_node_with_outputs("DynamicQuantizeLinear", [states], names, "", {})

    def add_int8_matrix_product(self, source: Float32WeightsByName, name: str, given: list[str]) -> str:
        weights, scales = _int8_values_and_scales(source[f"{name}.weight"], axis=0, maximum=MAX_INT8_MODEL_WEIGHT)
        states, scale, zero = given
        inputs = [
            states,
            self.add_tensor(f"{name}.weight", weights),
            scale,
            self.add_tensor(f"{name}.scale", scales[0]),
            zero,
        ]
        bias = self.add_tensor(f"{name}.bias", source[f"{name}.bias"])
        return self.add_node("MatMulIntegerToFloat", [*inputs, "", bias], domain=ONNX_MICROSOFT_OPERATOR_DOMAIN)

    def add_product_residual_and_norm(self, source: Float32WeightsByName, name: str, states: str, skipped: str) -> str:
        """The product with the states, added to those before and normalized."""
        total = self.add_node(
            "Add", [self.add_int8_matrix_product(source, name, self.add_dynamic_quantization(states)), skipped]
        )
        return self.add_layer_norm(source, f"{name}.norm", total)

    def add_layer_norm(self, source: Float32WeightsByName, name: str, states: str) -> str:
        scale_and_bias = [self.add_tensor(f"{name}.{part}", source[f"{name}.{part}"]) for part in ("weight", "bias")]
        return self.add_node("LayerNormalization", [states, *scale_and_bias], epsilon=LAYER_NORM_EPSILON)

    def model_bytes(self) -> bytes:
        graph = [_encode_protobuf_bytes(1, node) for node in self._nodes] + [
            _encode_protobuf_bytes(2, "all-MiniLM-L6-v2 in 8 bits")
        ]
        graph += [_encode_protobuf_bytes(5, tensor) for tensor in self._tensors.values()]
        graph += [
            _encode_protobuf_bytes(11, _encode_onnx_value_info("ids", 7, [1, "tokens"])),
            _encode_protobuf_bytes(12, _encode_onnx_value_info("vector", 1, [1, WIDTH])),
        ]
        sets = [
            _encode_protobuf_bytes(8, _encode_protobuf_bytes(1, domain) + _encode_protobuf_integer(2, version))
            for domain, version in (("", 20), (ONNX_MICROSOFT_OPERATOR_DOMAIN, 1))
        ]
        return b"".join(
            [
                _encode_protobuf_integer(1, 9),
                _encode_protobuf_bytes(2, "madeleine"),
                _encode_protobuf_bytes(7, b"".join(graph)),
                *sets,
            ]
        )


def _encode_onnx_attribute(name: str, value: float) -> bytes:
    if isinstance(value, float):
        return (
            _encode_protobuf_bytes(1, name)
            + _encode_varint(2 << 3 | 5)
            + struct.pack("<f", value)
            + _encode_protobuf_integer(20, 1)
        )
    return _encode_protobuf_bytes(1, name) + _encode_protobuf_integer(3, value) + _encode_protobuf_integer(20, 2)


def _encode_onnx_value_info(name: str, kind: int, shape: list[int | str]) -> bytes:
    sizes = [
        _encode_protobuf_bytes(
            1, _encode_protobuf_bytes(2, size) if isinstance(size, str) else _encode_protobuf_integer(1, size)
        )
        for size in shape
    ]
    return _encode_protobuf_bytes(1, name) + _encode_protobuf_bytes(
        2, _encode_protobuf_bytes(1, _encode_protobuf_integer(1, kind) + _encode_protobuf_bytes(2, b"".join(sizes)))
    )


def _encode_protobuf_integer(field: int, value: int) -> bytes:
    return _encode_varint(field << 3) + _encode_varint(value & (1 << 64) - 1)


def _encode_protobuf_bytes(field: int, value: bytes | str) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return _encode_varint(field << 3 | 2) + _encode_varint(len(content)) + content


def _encode_varint(value: int) -> bytes:
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])
