"""What an embedded index does when its files are damaged or its process is killed.

A truncated file under the engine's memory maps ends the process with SIGBUS, so the damaged ones are opened in another
process: `python -m tests.faults.test_torn_index`.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from madeleine.memory.errors import IndexNeedsRebuild, IndexUnavailable
from madeleine.memory.index import IndexPoint
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.qdrant.edge_files import copy_sparse_tree
from tests.contracts.index_points import ADA, FINGERPRINT, VectorQuery, candidates, memory_id, point, random_points

POINTS = 400
WORDS = 20
"""At most, of a point: reading long texts would take longer than the index does."""
_ROOT = Path(__file__).parents[2]


def points_with_a_common_word(count: int, *, start: int = 1) -> list[IndexPoint]:
    return [
        point(start + number, f"everything {' '.join(random.words.split()[:WORDS])}", random.vector)
        for number, random in enumerate(random_points(count, seed=start))
    ]


async def ids_of(index: EmbeddedQdrantIndex) -> set[str]:
    question = VectorQuery(words="everything", vector=None, statuses=(), sparse_limit=10 * POINTS)
    return set((await candidates(index, ADA, question)).ids)


async def build(directory: Path, *, optimized: bool) -> None:
    index = await EmbeddedQdrantIndex.recreate(directory, FINGERPRINT, full_scan_points=100)
    await index.upsert(points_with_a_common_word(POINTS - 100))
    if optimized:
        assert await index.optimize_if_worthwhile()
    await index.upsert(points_with_a_common_word(100, start=POINTS - 99))
    await index.flush()
    await index.upsert(points_with_a_common_word(10, start=POINTS - 9))
    await index.delete([memory_id(5000)])
    await index.close()


def opened_outcome(directory: Path) -> str:
    async def look() -> str:
        try:
            index = await EmbeddedQdrantIndex.open(directory, FINGERPRINT)
        except IndexNeedsRebuild:
            return "torn"
        complete = await index.count() == POINTS and await ids_of(index) == {memory_id(n + 1) for n in range(POINTS)}
        await index.close()
        return "whole" if complete else "WRONG"

    return asyncio.run(look())


def truncated_to(length: Callable[[int], int]) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, length(path.stat().st_size))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "deleted": Path.unlink,
    "emptied": truncated_to(lambda size: 0),
    "halved": truncated_to(lambda size: size // 2),
    "short of a byte": truncated_to(lambda size: max(0, size - 1)),
}


def open_after_each_damage(pristine: Path, work: Path) -> None:
    """Prints `<damage> <file>` and then the outcome, each on its line, so that the last line names what killed us."""
    copy_sparse_tree(pristine, work)
    for path, (name, damage) in itertools.product(sorted(_files(pristine)), DAMAGES.items()):
        print(f"{name} {path}", flush=True)
        damage(work / path)
        outcome = opened_outcome(work)
        print(outcome, flush=True)
        if outcome == "torn" and not (work / "opening").exists():
            (work / path).unlink(missing_ok=True)
            shutil.copyfile(pristine / path, work / path)
        else:
            shutil.rmtree(work)
            copy_sparse_tree(pristine, work)


def _files(directory: Path) -> Iterator[str]:
    return (path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


async def write_and_tell(directory: Path, manner: str) -> None:
    """Upserts without end, and prints each number once its upsert was answered; "flushed" once a flush was."""
    index = await EmbeddedQdrantIndex.open(directory, FINGERPRINT)
    background: set[asyncio.Task[bool]] = set()
    for number in itertools.count(1):
        await index.upsert(points_with_a_common_word(1, start=number))
        print(number, flush=True)
        if manner == "flushing" and number % 7 == 0:
            await index.flush()
            print("flushed", flush=True)
        if manner == "optimizing" and number % 150 == 0:
            task = asyncio.create_task(index.optimize_if_worthwhile())
            background.add(task)
            task.add_done_callback(background.discard)


def _child(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.faults.test_torn_index", *arguments]
    return subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    # The optimized one has files of each kind: what was written since lies beside its graph.
    "optimized",
    [pytest.param(False, id="plain"), pytest.param(True, id="optimized")],
)
def test_whatever_file_is_damaged_the_index_is_torn_or_whole(tmp_path: Path, optimized: bool) -> None:
    asyncio.run(build(tmp_path / "pristine", optimized=optimized))
    with _child("damage", str(tmp_path / "pristine"), str(tmp_path / "work")) as child:
        output = child.communicate()[0].splitlines()
    assert child.returncode == 0, f"died of {child.returncode} after: {output[-1:]}"
    outcomes = dict(zip(output[::2], output[1::2], strict=True))
    assert len(outcomes) > 4 * 50
    assert {case: outcome for case, outcome in outcomes.items() if outcome not in ("torn", "whole")} == {}


@pytest.mark.parametrize("manner", ["upserting", "flushing", "optimizing"])
@pytest.mark.parametrize("answered", [1, 40, 333])
def test_a_killed_process_leaves_what_was_flushed_and_takes_the_rest_again_without_a_rebuild(
    tmp_path: Path, manner: str, answered: int
) -> None:
    """ADR 92: what was not flushed still has its mark in the ledger, and is upserted again at the next start."""
    directory = tmp_path / "index"

    async def make() -> None:
        await (await EmbeddedQdrantIndex.recreate(directory, FINGERPRINT, full_scan_points=100)).close()

    asyncio.run(make())
    with _child("write", str(directory), manner) as child:
        assert child.stdout is not None
        told = [next(child.stdout) for _ in range(answered)]
        child.send_signal(signal.SIGKILL)
        told += child.stdout.readlines()
    told = [line.strip() for line in told if line.endswith("\n")]
    flushed = [number for number, follower in pairwise(told) if follower == "flushed"]
    last = max(int(line) for line in told if line != "flushed")

    async def look() -> None:
        index = await EmbeddedQdrantIndex.open(directory, FINGERPRINT)
        ids = await ids_of(index)
        assert len(ids) == await index.count() <= last + 1
        assert ids >= {memory_id(number) for number in range(1, int(flushed[-1]) + 1 if flushed else 1)}
        again = [one for number in range(1, last + 2) for one in points_with_a_common_word(1, start=number)]
        await index.upsert(again)
        assert await ids_of(index) == {one.memory.id for one in again}
        assert await index.count() == len(again)
        for one in again:
            found = await candidates(index, ADA, VectorQuery(words="", vector=one.vector, statuses=(), dense_limit=1))
            assert found.ids[0] == one.memory.id
        await index.close()

    asyncio.run(look())


async def test_an_index_whose_opening_ended_the_process_is_torn_at_the_next_start(tmp_path: Path) -> None:
    await build(tmp_path / "index", optimized=False)
    (tmp_path / "index" / "opening").touch()
    with pytest.raises(IndexNeedsRebuild):
        await EmbeddedQdrantIndex.open(tmp_path / "index", FINGERPRINT)
    anew = await EmbeddedQdrantIndex.recreate(tmp_path / "index", FINGERPRINT)
    assert await anew.count() == 0
    await anew.close()
    await (await EmbeddedQdrantIndex.open(tmp_path / "index", FINGERPRINT)).close()


async def test_scribbled_metadata_is_torn(tmp_path: Path) -> None:
    await build(tmp_path / "index", optimized=True)
    for path in sorted((tmp_path / "index").rglob("*.json")):
        content = path.read_bytes()
        path.write_bytes(b"\x00" * len(content))
        with pytest.raises(IndexNeedsRebuild):
            await EmbeddedQdrantIndex.open(tmp_path / "index", FINGERPRINT)
        path.write_bytes(content)
    await (await EmbeddedQdrantIndex.open(tmp_path / "index", FINGERPRINT)).close()


async def test_a_directory_that_never_got_its_list_of_files_is_torn(tmp_path: Path) -> None:
    (tmp_path / "index" / "generation-1").mkdir(parents=True)
    with pytest.raises(IndexNeedsRebuild):
        await EmbeddedQdrantIndex.open(tmp_path / "index", FINGERPRINT)


async def test_a_panic_of_the_engine_is_an_unavailable_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException): ...

    class Shard:
        def count(self, request: object) -> int:
            raise PanicException("called `Option::unwrap()` on a `None` value")

    index = await EmbeddedQdrantIndex.open(tmp_path / "index", FINGERPRINT)
    with monkeypatch.context() as patch:
        patch.setattr(index, "_shard", Shard())
        with pytest.raises(IndexUnavailable):
            await index.count()
    await index.close()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["damage", pristine_, work_]:
            open_after_each_damage(Path(pristine_), Path(work_))
        case ["write", directory_, manner_]:
            asyncio.run(write_and_tell(Path(directory_), manner_))
