"""Exports of conversations, as Claude and ChatGPT send them, in small."""

from __future__ import annotations

from typing import Any


def claude(*said: tuple[str, str], uuid: str = "c-1", name: str = "The harbour") -> dict[str, Any]:
    """`said`: (sender, text), a minute apart."""
    return {
        "uuid": uuid,
        "name": name,
        "summary": "",
        "created_at": "2025-01-02T03:04:00.000000Z",
        "updated_at": "2025-01-02T04:00:00.000000Z",
        "account": {"uuid": "a-1"},
        "chat_messages": [
            {
                "uuid": f"{uuid}-{place}",
                "text": text,
                "content": [{"start_timestamp": None, "type": "text", "text": text, "citations": []}],
                "sender": sender,
                "created_at": f"2025-01-02T03:{4 + place:02}:00.000000Z",
                "updated_at": f"2025-01-02T03:{4 + place:02}:00.000000Z",
                "attachments": [],
                "files": [],
            }
            for place, (sender, text) in enumerate(said)
        ],
    }


def node(id_: str, parent: str | None = None, role: str = "", text: str = "", **more: Any) -> dict[str, Any]:
    """Without a message if it has no role."""
    message = {
        "id": f"m-{id_}",
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": 1_700_000_000.0,
        "content": {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
    } | more
    return {"id": id_, "message": message if role else None, "parent": parent, "children": []}


def chatgpt(*nodes: dict[str, Any], current: str | None = None, id_: str = "g-1") -> dict[str, Any]:
    """`current`: the last one if it is not named."""
    return {
        "title": "The harbour",
        "create_time": 1_700_000_000.0,
        "update_time": 1_700_000_100.0,
        "mapping": {one["id"]: one for one in nodes},
        "moderation_results": [],
        "current_node": current or nodes[-1]["id"],
        "conversation_id": id_,
        "id": id_,
    }
