"""Writes ONNX files with numpy alone (ADR 40): every build gives the same bytes, which a hash checks.

Each column of a weight has a scale of its own, and 7 bits, so that no processor's partial sums saturate: AVX2, VNNI and
arm64 compute the same integers. Activations are quantized while the model runs, with one range for the whole input. An
input is therefore one text, and its vector does not depend on what else is embedded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_INT8_WEIGHT = 64
"""The greatest weight: two products with a byte, 2 × 255 × 64, fit in 16 bits, where AVX2 adds them up."""

Float32WeightsByName = Mapping[str, NDArray[np.float32]]


def int8_values_and_scales(
    values: NDArray[np.float32], *, axis: int, maximum: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Whole numbers, and the scale of each slice along `axis` that makes them the values again."""
    scales = (np.abs(values).max(axis=axis, keepdims=True) / np.float32(maximum)).astype(np.float32)
    return np.rint(values / scales).astype(np.int8), scales


ONNX_MICROSOFT_OPERATOR_DOMAIN = "com.microsoft"
_ONNX_TYPE_NUMBER_BY_DTYPE = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7}


@dataclass(frozen=True, slots=True)
class OnnxArray:
    """An input or the output of a graph. `shape`: a name stands for a size that differs from run to run."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    def encode(self) -> bytes:
        sizes = [
            _encode_protobuf_bytes(
                1, _encode_protobuf_bytes(2, size) if isinstance(size, str) else _encode_protobuf_integer(1, size)
            )
            for size in self.shape
        ]
        kind = _encode_protobuf_integer(1, _ONNX_TYPE_NUMBER_BY_DTYPE[self.dtype])
        tensor = _encode_protobuf_bytes(1, kind + _encode_protobuf_bytes(2, b"".join(sizes)))
        return _encode_protobuf_bytes(1, self.name) + _encode_protobuf_bytes(2, tensor)


class OnnxGraphBuilder:
    """An ONNX graph in the making, as the messages of `onnx.proto`. Methods return the name of what they add."""

    def __init__(self, *, layer_norm_epsilon: float) -> None:
        self._layer_norm_epsilon = layer_norm_epsilon
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
        weights, scales = int8_values_and_scales(source[f"{name}.weight"], axis=0, maximum=MAX_INT8_WEIGHT)
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
        return self.add_node("LayerNormalization", [states, *scale_and_bias], epsilon=self._layer_norm_epsilon)

    def model_bytes(self, name: str, inputs: Sequence[OnnxArray], output: OnnxArray) -> bytes:
        graph = [_encode_protobuf_bytes(1, node) for node in self._nodes] + [_encode_protobuf_bytes(2, name)]
        graph += [_encode_protobuf_bytes(5, tensor) for tensor in self._tensors.values()]
        graph += [_encode_protobuf_bytes(11, given.encode()) for given in inputs]
        graph += [_encode_protobuf_bytes(12, output.encode())]
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
