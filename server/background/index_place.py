"""Where the index is: one of two folders of the data directory, or one of two collections on a Qdrant server. In the
other one the next index is built while the model is switched."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from madeleine.memory.index import Index
from madeleine.server.background.index_origin import INDEX_FOLDERS
from madeleine.server.settings.settings import Settings
from madeleine.storage.qdrant.schema import IndexFingerprint
from madeleine.storage.sql.ledger import LedgerRepositories

BUILT_INDEX_LOCATION_SETTING = "index_built"
"""The ledger's setting for the place of the completed index; an incomplete one is rebuilt."""
SECOND_INDEX_IN_USE_SETTING = "index_second"
"""The ledger's setting: true if the second of the two places holds the index."""
QDRANT_COLLECTION_SETTING = "collection"
"""The ledger's setting for its collection on a Qdrant server."""


@dataclass(frozen=True, slots=True)
class IndexStorageLocation:
    """`name` stays the same. `open` creates an index if there is none, `recreate` an empty one in any case, `remove`
    leaves nothing."""

    name: str
    second: bool
    open: Callable[[IndexFingerprint], Awaitable[Index]]
    recreate: Callable[[IndexFingerprint], Awaitable[Index]]
    remove: Callable[[], Awaitable[None]]


async def live_and_spare_index_locations(
    settings: Settings, ledger: LedgerRepositories
) -> tuple[IndexStorageLocation, IndexStorageLocation]:
    """The place of the index that serves, and the other one."""
    second = bool(await ledger.index_source.setting(SECOND_INDEX_IN_USE_SETTING))
    if not settings.qdrant_url:
        return _index_location_in_folder(settings, second=second), _index_location_in_folder(
            settings, second=not second
        )
    # One for each ledger: a rebuild drops it first.
    collection = await ledger.index_source.setting(QDRANT_COLLECTION_SETTING)
    if collection is None:
        collection = f"madeleine-{uuid.uuid4().hex}"
        await ledger.index_source.set_setting(QDRANT_COLLECTION_SETTING, collection)
    url = settings.qdrant_url
    return _index_location_in_qdrant_collection(url, collection, second=second), _index_location_in_qdrant_collection(
        url, collection, second=not second
    )


def _index_location_in_folder(settings: Settings, *, second: bool) -> IndexStorageLocation:
    from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex

    path = settings.data_dir / INDEX_FOLDERS[second]
    return IndexStorageLocation(
        name="edge-2" if second else "edge",
        second=second,
        open=partial(EmbeddedQdrantIndex.open, path),
        recreate=partial(EmbeddedQdrantIndex.recreate, path),
        remove=partial(asyncio.to_thread, shutil.rmtree, path, ignore_errors=True),
    )


def _index_location_in_qdrant_collection(url: str, collection: str, *, second: bool) -> IndexStorageLocation:
    from madeleine.storage.qdrant.server import QdrantServerIndex

    name = f"{collection}-2" if second else collection
    return IndexStorageLocation(
        name=f"{url}#2" if second else url,
        second=second,
        open=partial(QdrantServerIndex.open, url, collection=name),
        recreate=partial(QdrantServerIndex.open, url, collection=name, reset=True),
        remove=partial(QdrantServerIndex.drop, url, name),
    )
