"""The memory servers that are compared, each in the version named here, as its own documentation starts it.

Each is installed into a folder of the run. All that embed use the same all-MiniLM-L6-v2, so no model is downloaded.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

from madeleine.inference.default_model.sources import find_english_encoder_source
from madeleine.inference.fp32_model import check_and_lay_out_fp32_model

ROOT = Path(__file__).parents[2]
QDRANT_SERVER = "mcp-server-qdrant==0.8.1"
GRAPH_SERVER = "@modelcontextprotocol/server-memory@2026.8.31"
TIMEOUT_SECONDS = 120.0
_WITH_LOCAL_MODEL = (
    "import sys, fastembed, functools, mcp_server_qdrant.embeddings.fastembed as provider\n"
    "provider.TextEmbedding = functools.partial(fastembed.TextEmbedding, specific_model_path=sys.argv.pop())\n"
    "from mcp_server_qdrant.main import main\n"
    "main()\n"
)


@dataclass(frozen=True, slots=True)
class MemoryServer:
    """`data`: environment variable that holds the place of the memory."""

    name: str
    command: Sequence[str]
    data: str
    environment: Mapping[str, str] = field(default_factory=dict)

    @asynccontextmanager
    async def connected(self, place: Path) -> AsyncIterator[Client]:
        environment = {**os.environ, **self.environment, self.data: str(place)}
        executable, *arguments = self.command
        server = StdioServerParameters(command=executable, args=arguments, env=environment, cwd=ROOT)
        with place.with_suffix(".log").open("a", encoding="utf-8") as log:
            transport = stdio_client(server, errlog=log)
            async with Client(transport, read_timeout_seconds=TIMEOUT_SECONDS, mode="legacy") as client:
                yield client

    async def store(self, client: Client, name: str, text: str) -> None:
        """Raises `RuntimeError` if the server refuses."""
        await call(client, *self.store_call(name, text))

    async def recall(self, client: Client, question: str) -> str:
        return await call(client, *self.recall_call(question))

    def told(self, answer: str) -> str:
        """The part of an answer that claims to answer the question."""
        return answer

    async def forget(self, client: Client, name: str, text: str) -> bool:
        """Erase a memory. False if the server has no tool for it."""
        return False

    def store_call(self, name: str, text: str) -> tuple[str, dict[str, Any]]:
        raise NotImplementedError

    def recall_call(self, question: str) -> tuple[str, dict[str, Any]]:
        raise NotImplementedError


class Madeleine(MemoryServer):
    def store_call(self, name: str, text: str) -> tuple[str, dict[str, Any]]:
        return "store", {"text": text, "key": name}

    def recall_call(self, question: str) -> tuple[str, dict[str, Any]]:
        return "recall", {"query": question, "format": "memories", "limit": 10}

    def told(self, answer: str) -> str:
        """`near` says of itself that it does not answer."""
        return answer.partition('"near":')[0]

    async def forget(self, client: Client, name: str, text: str) -> bool:
        found = json.loads(await self.recall(client, text))["memories"]
        await call(client, "forget", {"ids": [found[0]["id"]]})
        return True


class QdrantServer(MemoryServer):
    def store_call(self, name: str, text: str) -> tuple[str, dict[str, Any]]:
        return "qdrant-store", {"information": text}

    def recall_call(self, question: str) -> tuple[str, dict[str, Any]]:
        return "qdrant-find", {"query": question}


class GraphServer(MemoryServer):
    """A memory is an entity with one observation. Its search looks for the query as it stands in these, so it is asked
    for each of a question's three longest words."""

    def store_call(self, name: str, text: str) -> tuple[str, dict[str, Any]]:
        return "create_entities", {"entities": [{"name": name, "entityType": "memory", "observations": [text]}]}

    async def recall(self, client: Client, question: str) -> str:
        words = sorted(re.findall(r"\w+", question), key=len)[-3:]
        return "\n".join([await call(client, "search_nodes", {"query": word}) for word in reversed(words)])

    async def forget(self, client: Client, name: str, text: str) -> bool:
        await call(client, "delete_entities", {"entityNames": [name]})
        return True


async def call(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    answer = await client.call_tool(tool, arguments)
    if answer.is_error:
        raise RuntimeError(text_of(answer))
    return text_of(answer)


def text_of(answer: CallToolResult) -> str:
    return "\n".join(block.text for block in answer.content if isinstance(block, TextContent))


async def servers(folder: Path) -> list[MemoryServer]:
    """Ready to be started. Needs the package indices of Python and, for one of them, `npm`."""
    found: list[MemoryServer] = [
        Madeleine(
            "Madeleine",
            [sys.executable, "-m", "madeleine"],
            "MADELEINE_DATA_DIR",
            {"MADELEINE_PATROL_AUTO": "false", "MADELEINE_IDLE_SECONDS": "1"},
        )
    ]
    python = await asyncio.to_thread(_venv_with, folder / "qdrant", QDRANT_SERVER)
    model = await asyncio.to_thread(_model_files, folder / "model")
    found.append(
        QdrantServer(
            QDRANT_SERVER.replace("==", " "),
            [str(python), "-c", _WITH_LOCAL_MODEL, str(model)],
            "QDRANT_LOCAL_PATH",
            {"COLLECTION_NAME": "memories", "HF_HUB_OFFLINE": "1"},
        )
    )
    if npm := shutil.which("npm"):
        await asyncio.to_thread(_run, [npm, "install", "--silent", "--prefix", str(folder / "npm"), GRAPH_SERVER])
        name, _, version = GRAPH_SERVER.rpartition("@")
        script = folder / "npm" / "node_modules" / name / "dist" / "index.js"
        found.append(GraphServer(f"server-memory {version}", ["node", str(script)], "MEMORY_FILE_PATH"))
    return found


def _model_files(folder: Path) -> Path:
    """The model in fp32 as fastembed looks for it."""
    source = find_english_encoder_source()
    if source is None:
        raise RuntimeError("the extra fp32 is not installed: make .venv/.dev")
    onnx_file, directory = check_and_lay_out_fp32_model(source, folder)
    for file in onnx_file.parent.iterdir():
        shutil.copyfile(file, directory / file.name)
    return directory


def _venv_with(folder: Path, requirement: str) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    _run([str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install", requirement])
    return python


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
