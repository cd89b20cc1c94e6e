"""`store`, `update_memory`, `forget`: the memories of an agent, as it changes them (spec T4, ruling 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from madeleine.memory.errors import InvalidInput, MadeleineError
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.ports import NoTruthChangeToUndo
from madeleine.memory.ingest.store import StoredSceneResult
from madeleine.memory.ingest.update_and_forget import UpdateOutcome
from madeleine.memory.model import Category, EmotionVector, MemoryChanges, MemoryId, Scene, memory_date
from madeleine.memory.recall.selection import (
    ADVICE_ON_MEMORY_LACKING_RECALLED_THEME,
    NON_INFERABLE_MEMORIES_THEME_NAME,
    is_tagged_non_inferable,
)
from madeleine.memory.rules.dynamics.future_dates import different_future_day_in_text
from madeleine.memory.rules.feelings import EMOTION_AXES
from madeleine.memory.rules.storing.unreplaced_clauses import unreplaced_clauses_notice
from madeleine.tools.arguments import (
    LongText,
    SceneLengthText,
    ShortText,
    ToolArguments,
    ZeroToOne,
    replace_invalid_item_by_error,
    unique,
)
from madeleine.tools.dates import validated_timeline_argument
from madeleine.tools.feelings import EmotionLabelsArgument, EmotionVectorArgument
from madeleine.tools.replies import (
    memory_id_and_text_as_json,
    memory_version_as_json,
    missing_vector_notice,
    new_memory_repeats_outdated_notice,
    notice_field,
    notice_of_supersession_by_earlier_memory,
    old_fact_ended_before_new_begins_notice,
    others_still_current_notice,
    possible_change_advice,
    redaction_notice,
    supersession_advice,
    undated_event_notice,
    without_empty_fields,
)
from madeleine.tools.tool import ToolCallContext, object_schema, tool_from_function

CHANGEABLE_MEMORY_FIELDS = ("text", "importance", "themes", "pinned", "when")
MAX_SCENES_PER_STORE_CALL = 20
"""Of one call."""
SCRUB_PENDING_NOTICE = "Gone from every answer, and within {seconds:.0f} s from the disk."
CURRENT_AGAIN_NOTICE = (
    "What is erased superseded current_again, which counts as true again, as if nothing had been told since. If it is "
    "not true: update_memory with retracted, or forget it, too."
)
REMAINING_COPIES_NOTICE = (
    "The files named in copies were made before and may still hold it: tell the person, who alone can delete them."
)
DUPLICATE_WORDING_NOT_KEPT_NOTICE = (
    "That memory says the same, so your wording was not kept. If a fact differs, store with distinct."
)


class DatedActionArguments(ToolArguments):
    date: ShortText
    action: SceneLengthText


class SceneArguments(ToolArguments):
    text: Annotated[LongText, Field(description="Sentences that make sense alone.")]
    when: Annotated[
        ShortText | Annotated[list[ShortText | DatedActionArguments], Field(min_length=1, max_length=50)] | None,
        Field(description="Day of the event, or since when a fact is true: ISO date, time, month, year, timeline."),
    ] = None
    actors: Annotated[list[ShortText], Field(max_length=50, description="Participants, the speaker first.")] = []
    setting: Annotated[SceneLengthText, Field(description="Where.")] = ""
    dialogue: Annotated[list[SceneLengthText], Field(max_length=50, description="Quotes.")] = []
    sensory: Annotated[list[SceneLengthText], Field(max_length=50, description="Seen, heard, smelt.")] = []
    feeling: Annotated[SceneLengthText, Field(description="In first person.")] = ""
    category: Annotated[
        Category,
        Field(
            description="semantic: fact; social: people; working: task at hand; "
            "procedural, rare: standing wishes, how you behave."
        ),
    ] = "episodic"
    importance: Annotated[ZeroToOne | None, Field(description="0 noise, 0.5 default, 1 critical.")] = None
    emotions: EmotionLabelsArgument = []
    emotion_vector: Annotated[
        EmotionVectorArgument | None, Field(description=f"By axis: {', '.join(EMOTION_AXES)}.")
    ] = None
    lesson: Annotated[SceneLengthText, Field(description="To do differently.")] = ""
    themes: Annotated[list[ShortText], Field(max_length=20, description="Topics, to filter by.")] = []
    session_id: Annotated[ShortText, Field(description="Of this conversation.")] = ""
    pinned: Annotated[bool, Field(description="Never fades.")] = False
    supersedes: Annotated[ShortText, Field(description="Id of what this makes untrue.")] = ""
    key: Annotated[ShortText, Field(description="Idempotency key.")] = ""
    distinct: Annotated[bool, Field(description="Keep beside what says the same.")] = False


SCENE_SCHEMA = {"type": "object", "required": ["text"]}
"""Its properties are those of the tool, which a client is not to be shown twice."""


class StoreArguments(SceneArguments):
    text: Annotated[LongText, Field(description="Sentences that make sense alone.")] = ""
    project: Annotated[ShortText, Field(description="Found only there.")] = ""
    level: Annotated[Literal["session", "project"] | None, Field(description="Kept until its end.")] = None
    scenes: Annotated[
        list[Annotated[SceneArguments, replace_invalid_item_by_error(SceneArguments), WithJsonSchema(SCENE_SCHEMA)]],
        Field(max_length=MAX_SCENES_PER_STORE_CALL, description="Several; beside them session_id, project, level."),
    ] = []

    @property
    def scenes_or_errors(self) -> list[SceneArguments | InvalidInput]:
        """What was told, in order. Raises `InvalidInput` for scenes beside a text."""
        if not self.scenes:
            if not self.text:
                raise InvalidInput("Nothing was done. text: is required, or scenes for several memories at once.")
            return [self]
        if beside := sorted(self.model_fields_set - {"scenes", "session_id", "project", "level"}):
            raise InvalidInput(
                f"Nothing was done. Beside scenes leave out {', '.join(beside)}: give them in each scene."
            )
        scenes: list[SceneArguments | InvalidInput] = list(self.scenes)
        return [
            scene
            if isinstance(scene, InvalidInput)
            else scene.model_copy(update={"session_id": scene.session_id or self.session_id})
            for scene in scenes
        ]


@tool_from_function(
    StoreArguments,
    object_schema("", string="id status notice", array="scenes may_supersede", object="superseded"),
    name="store",
)
async def store_memories(call: ToolCallContext, arguments: StoreArguments) -> dict[str, Any]:
    """Store what later conversations should know, a scene a memory: an event, decision, fact, preference, feeling or
    lesson; several by scenes. If something known has changed, name the old memory in supersedes, or store again so if
    the answer's resembles shows it. What says the same as an earlier one reinforces it."""
    call = call.in_project(arguments.project).at_memory_level(arguments.level)
    scenes = arguments.scenes_or_errors
    [first, *others] = outcomes = await _store_each(call, scenes)
    if not arguments.scenes:
        if isinstance(first, MadeleineError):
            raise first
        return await stored_scene_as_json(call, first, has_key=arguments.key != "")
    if all(isinstance(outcome, MadeleineError) for outcome in outcomes) and isinstance(first, MadeleineError):
        raise first if not others else InvalidInput(" ".join(unique(str(outcome) for outcome in outcomes)))
    return {
        "scenes": [
            {"refused": (await call.replace_ids_with_short_ids(str(outcome))).removeprefix("Nothing was done. ")}
            if isinstance(outcome, MadeleineError)
            else await stored_scene_as_json(call, outcome, has_key=True)
            for outcome in outcomes
        ]
    }


async def _store_each(
    call: ToolCallContext, scenes: Sequence[SceneArguments | InvalidInput]
) -> list[StoredSceneResult | MadeleineError]:
    """The outcome of each scene. In one transaction if all can be stored, else each by itself."""
    request_key = call.request_key()
    outcomes: list[StoredSceneResult | MadeleineError | NewScene] = []
    for position, scene in enumerate(scenes):
        key = f"{request_key}-{position}" if request_key and len(scenes) > 1 else request_key
        try:
            outcomes.append(scene if isinstance(scene, InvalidInput) else await _scene_with_full_id(call, scene, key))
        except InvalidInput as error:
            outcomes.append(error)
    stored = iter(await _store_together_or_singly(call, [new for new in outcomes if isinstance(new, NewScene)]))
    return [next(stored) if isinstance(outcome, NewScene) else outcome for outcome in outcomes]


async def _scene_with_full_id(call: ToolCallContext, scene: SceneArguments, request_key: str) -> NewScene:
    new = new_scene_from_arguments(scene, request_key=request_key)
    if not scene.supersedes:
        return new
    [superseded] = (await call.use_cases.short_ids.full_memory_id_by_given_id(call.scope, [scene.supersedes])).values()
    return replace(new, supersedes=superseded)


async def _store_together_or_singly(
    call: ToolCallContext, scenes: Sequence[NewScene]
) -> list[StoredSceneResult | MadeleineError]:
    try:
        return list(await call.use_cases.store(call.scope, scenes))
    except MadeleineError as error:
        if len(scenes) == 1:
            return [error]
    return [outcome for scene in scenes for outcome in await _store_together_or_singly(call, [scene])]


async def stored_scene_as_json(call: ToolCallContext, stored: StoredSceneResult, *, has_key: bool) -> dict[str, Any]:
    memory, reinforced, before = stored.memory, stored.status == "reinforced", stored.may_supersede
    themes = call.use_cases.recall.config.themes
    advice_due = NON_INFERABLE_MEMORIES_THEME_NAME in themes and not is_tagged_non_inferable(memory.themes)
    is_named = stored.told_again is not None or (before is not None and stored.resembled_memory_id == before.id)
    possible = stored.may_have_changed
    resembled = possible[0] if possible else None if is_named else stored.resembled
    old = stored.superseded
    others = await call.use_cases.browse.current_memories_that_said_the_same(call.scope, old) if old else ()
    return without_empty_fields(
        id=memory.short_id,
        status=stored.status,
        reinforced=memory.scene.action if reinforced else None,
        not_kept=stored.not_kept,
        repeated=(stored.repeated and has_key) or None,
        resembles=memory_id_and_text_as_json(resembled) if resembled else None,
        may_supersede=[memory_id_and_text_as_json(before)] if before else None,
        superseded=memory_version_as_json(stored.superseded) if stored.superseded else None,
        redacted=dict(stored.redacted),
    ) | notice_field(
        DUPLICATE_WORDING_NOT_KEPT_NOTICE if stored.not_kept else "",
        missing_vector_notice("Stored", stored.embedding_error),
        redaction_notice(stored.redacted),
        ADVICE_ON_MEMORY_LACKING_RECALLED_THEME if advice_due else "",
        supersession_advice(memory, before) if before else "",
        possible_change_advice(memory, *possible) if possible else "",
        notice_of_supersession_by_earlier_memory(stored),
        new_memory_repeats_outdated_notice(memory, stored.told_again) if stored.told_again else "",
        _notice_of_unreplaced_clauses(stored),
        others_still_current_notice(stored, others),
        old_fact_ended_before_new_begins_notice(stored) or undated_event_notice(stored),
    )


def _notice_of_unreplaced_clauses(stored: StoredSceneResult) -> str:
    old = stored.superseded
    return unreplaced_clauses_notice(old.short_id, old.scene.action, stored.memory.scene.action) if old else ""


def new_scene_from_arguments(arguments: SceneArguments, *, request_key: str = "") -> NewScene:
    """`request_key` replaces a key that the caller did not give."""
    return arguments.to_dataclass(
        NewScene,
        supersedes=None,
        scene=arguments.to_dataclass(
            Scene,
            action=arguments.text.strip(),
            actors=unique(arguments.actors),
            when=validated_timeline_argument("when", arguments.when or ()),
        ),
        emotions=unique(arguments.emotions),
        emotion=arguments.emotion_vector.to_dataclass(EmotionVector) if arguments.emotion_vector else None,
        themes=unique(arguments.themes),
        key=arguments.key or request_key or None,
    )


class UpdateMemoryArguments(ToolArguments):
    id: ShortText
    text: Annotated[LongText, Field(description="The whole new text.")] = ""
    when: Annotated[
        ShortText, Field(description="Since when text is true, or the event's new day. Alone: its date.")
    ] = ""
    retracted: Annotated[SceneLengthText, Field(description="Why it was never true.")] = ""
    undo: Annotated[bool, Field(description="Take back the last change.")] = False
    importance: Annotated[ZeroToOne | None, Field(description="0 noise, 1 critical.")] = None
    themes: Annotated[list[ShortText] | None, Field(max_length=20, description="In place of the old ones.")] = None
    pinned: Annotated[bool | None, Field(description="Never fades.")] = None


@tool_from_function(
    UpdateMemoryArguments, object_schema("id changed", string="id", array="changed versions", object="superseded")
)
async def update_memory(call: ToolCallContext, arguments: UpdateMemoryArguments) -> dict[str, Any]:
    """Correct a memory, or pin or weigh it; what is left out stays. A changed fact: text and when
    do what store's supersedes does, and keep actors, themes and lesson. Something never true: give retracted."""
    [memory_id] = (await call.use_cases.short_ids.full_memory_id_by_given_id(call.scope, [arguments.id])).values()
    if arguments.undo or arguments.retracted:
        return await _retract_or_undo(call, memory_id, arguments)
    themes = None if arguments.themes is None else unique(arguments.themes)
    text = arguments.text.strip() or None
    dates = (
        tuple(str(entry) for entry in validated_timeline_argument("when", arguments.when)) if arguments.when else None
    )
    changes = arguments.to_dataclass(MemoryChanges, text=text, themes=themes, when=None if text else dates)
    if changes == MemoryChanges():
        raise InvalidInput("Nothing to change. Give text, when, importance, themes, pinned, retracted or undo.")
    if text and dates:
        [when] = dates
        return _result_of_revision_as_json(
            await call.use_cases.change_truth.revise(call.scope, memory_id, changes, when=when), changes
        )
    return _result_of_update_as_json(call, await call.use_cases.update(call.scope, memory_id, changes))


def _result_of_revision_as_json(stored: StoredSceneResult, changes: MemoryChanges) -> dict[str, Any]:
    planned = stored.may_supersede
    return {
        "id": stored.memory.short_id,
        "changed": _changed_field_names(changes),
        **without_empty_fields(
            superseded=memory_version_as_json(stored.superseded) if stored.superseded else None,
            redacted=dict(stored.redacted),
        ),
        **notice_field(
            missing_vector_notice("Changed", stored.embedding_error),
            supersession_advice(stored.memory, planned) if planned else _notice_of_unreplaced_clauses(stored),
        ),
    }


def _result_of_update_as_json(call: ToolCallContext, updated: UpdateOutcome) -> dict[str, Any]:
    memory, changes = updated.memory, updated.changes
    day = different_future_day_in_text(memory, call.use_cases.update.now()) if changes.text is not None else ""
    return {
        "id": memory.short_id,
        "changed": _changed_field_names(changes),
        **without_empty_fields(redacted=dict(updated.redacted)),
        **notice_field(
            missing_vector_notice("Changed", updated.embedding_error),
            f"It is dated {memory_date(memory)}; for {day} update its when alone, too." if day else "",
        ),
    }


def _changed_field_names(changes: MemoryChanges) -> list[str]:
    return [name for name in CHANGEABLE_MEMORY_FIELDS if getattr(changes, name) is not None]


async def _retract_or_undo(call: ToolCallContext, id_: MemoryId, arguments: UpdateMemoryArguments) -> dict[str, Any]:
    if len(arguments.model_fields_set) > 2:
        raise InvalidInput(
            "Nothing was changed. retracted and undo each stand alone with id. To put right what was never true give "
            "text alone; as_of then shows it, too."
        )
    if arguments.undo:
        try:
            outcome = await call.use_cases.change_truth.undo(call.scope, id_)
        except NoTruthChangeToUndo:
            undone = await call.use_cases.update.undo_last_update(call.scope, id_)
            if undone is None:
                raise
            return _result_of_update_as_json(call, undone)
    else:
        outcome = await call.use_cases.change_truth.retract(call.scope, id_, arguments.retracted.strip())
    named = next((memory for memory in outcome.changed if memory.id == id_), outcome.changed[0])
    return {
        "id": named.short_id,
        "changed": ["truth"],
        "versions": [memory_version_as_json(memory) for memory in outcome.changed],
    }


class ForgetArguments(ToolArguments):
    ids: Annotated[list[ShortText], Field(min_length=1, max_length=50)]
    wait: Annotated[bool, Field(description="Until off the disk.")] = False


@tool_from_function(
    ForgetArguments,
    object_schema("erased", array="erased missing related"),
    destructive=True,
    idempotent=True,
    permission="erase",
)
async def forget(call: ToolCallContext, arguments: ForgetArguments) -> dict[str, Any]:
    """Erase memories with the messages they came from, or single messages by id, from disk too. Only on
    request: to correct use update_memory. related ones stay and may say the same."""
    full_ids = await call.use_cases.short_ids.full_memory_id_by_given_id(call.scope, arguments.ids)
    messages = await call.use_cases.short_ids.full_ids(
        call.scope, "message", [id_ for id_ in full_ids if full_ids[id_] == id_]
    )
    named: dict[str, str] = {**full_ids, **messages}
    result = await call.use_cases.forget(call.scope, [MemoryId(id_) for id_ in named.values()], wait=arguments.wait)
    related = await call.use_cases.short_ids.short_id_by_memory_id(call.scope, result.related)
    current_again = await call.use_cases.update.ledger.memories_with_ids(call.scope, result.current_again)
    return (
        {"erased": [id_ for id_ in named if named[id_] in result.erased]}
        | without_empty_fields(
            missing=[id_ for id_ in named if named[id_] in result.missing],
            related=list(related.values()),
            current_again=[memory_id_and_text_as_json(memory) for memory in current_again],
            messages=result.messages or None,
            diary_entries=result.diary_entries or None,
            copies=list(result.copies),
        )
        | notice_field(
            CURRENT_AGAIN_NOTICE if current_again else "",
            REMAINING_COPIES_NOTICE if result.copies else "",
            "" if result.bytes_scrubbed else SCRUB_PENDING_NOTICE.format(seconds=result.promised_seconds),
        )
    )
