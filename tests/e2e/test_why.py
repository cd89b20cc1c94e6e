"""`madeleine why`, `explain` over the library, and the doctor: beside a real host, which counts nothing for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import madeleine as library
from madeleine.models import RecallExplanation
from tests.e2e.hosting import hosted, madeleine, no_host_left
from tests.e2e.serving import call_tool

QUESTION = "Where is the harbour?"


def explanation(run_output: str) -> RecallExplanation:
    return RecallExplanation.model_validate(json.loads(run_output))


@pytest.mark.slow
async def test_why_a_memory_comes_is_told_by_command_and_library_alike(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with no_host_left(data):
        async with hosted(data) as client, hosted(data, being="bob") as other:
            harbour = await call_tool(client, "store", text="The harbour is at the end of the road.")
            violin = await call_tool(client, "store", text="Ann plays the violin on Mondays.")
            await call_tool(other, "store", text="Bob's harbour is a secret.")
            await call_tool(other, "store", text="Bob keeps bees.")
            bobs = await call_tool(other, "store", text="Bob sails to the harbour.")
            why = explanation(madeleine(data, "why", QUESTION, "--json").stdout)
            assert [one.id for one in why.memories] == [harbour["id"], violin["id"]]
            assert why.memories[0].outcome == "recalled"
            of_one = madeleine(data, "why", QUESTION, violin["id"])
            assert of_one.stdout.startswith(f"{violin['id']}: ")
            assert "likeness" in of_one.stdout
            unknown = explanation(madeleine(data, "why", QUESTION, bobs["id"], "--json").stdout)
            assert unknown.memories[-1].outcome == "unknown"
            assert "Bob" not in unknown.model_dump_json()
            beside_host = madeleine(data, "doctor", "--json")
            areas = {one["area"]: one for one in json.loads(beside_host.stdout)["findings"]}
            assert "serves 2 clients" in areas["host"]["text"]
            assert areas["index"]["text"].startswith("The index is open")
            assert beside_host.returncode == 0
            [record] = (await call_tool(client, "recall_memory", ids=[harbour["id"]]))["memories"]
            # Opening it is the one reactivation.
            assert record["reactivation_count"] <= 1
        async with library.connect(being="ada", data_dir=data) as memory:
            answer = await memory.recall(QUESTION, explain=violin["id"], limit=1)
            assert answer.explain is not None
            assert answer.explain.memories[-1].id == violin["id"]
            [recalled] = answer.memories
            parts = answer.explain.memories[0].parts
            assert abs(sum(parts.values()) - (recalled.score or 0)) < 1e-6
            assert parts == why.memories[0].parts
