"""Turn the material of a context into prompt entries, each item once, and fit them into the token limit, counted by the
model's own tokenizer (spec P5, H5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from madeleine.memory.chat import ConversationMessage
from madeleine.memory.context.ports import SessionStartMemories
from madeleine.memory.context.values import ContextFlags, DroppedPromptEntryCount
from madeleine.memory.core_blocks.values import CoreBlock
from madeleine.memory.embedding import Embedder
from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Memory, MemoryId, Note
from madeleine.memory.patrol_records import DiaryEntry
from madeleine.memory.profile import ProfileEntry
from madeleine.memory.rules.prompting import (
    ASSISTANT_REPLY_AFTER_MEMORY_SNAPSHOT,
    PROMPT_PART_NAMES,
    SNAPSHOT_PARTS,
    STORED_TEXT_IS_DATA_NOTICE,
    SYSTEM_PROMPT_PARTS,
    TURN_PARTS,
    PromptPartName,
    first_sentence,
    memories_in_prompt_order,
    prompt_part_delimiters,
    render_core_block,
    render_dated_item,
    render_list_item,
    render_memory_as_list_item,
    render_memory_line_with_id,
    render_memory_lines,
    render_message_as_prompt_list_item,
    render_named_item,
    render_prompt_part,
    render_prompt_parts,
    render_soul_section,
    text_with_version_change,
)

MAX_SHOWN_LEARNT_PREFERENCES = 50
"""Latest unnamed preferences that are shown: they are learnt without a request and are in every prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPromptBlockEntry:
    """A rendered entry. `rank`: its place within its part, 0 the most valuable. `full_text`: a longer text in place of
    `text` where there is room; "" for none."""

    part: PromptPartName
    id: str
    text: str
    rank: int
    full_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMaterial:
    """What ledger, recall and search returned, before any token limit. Policies, profile, notes, diary
    and chats: oldest first;
    `recent_nodes` and `hits`: latest first; `recalled`: best first."""

    policies: Sequence[Memory] = ()
    profile: Sequence[ProfileEntry] = ()
    possibly_outdated_preferences: Collection[MemoryId] = ()
    core_blocks: Sequence[CoreBlock] = ()
    thoughts: Sequence[str] = ()
    notes: Sequence[Note] = ()
    diary: Sequence[DiaryEntry] = ()
    recent_nodes: Sequence[Memory] = ()
    start: SessionStartMemories = field(default_factory=SessionStartMemories)
    recalled: Sequence[tuple[Memory, float]] = ()
    hits: Sequence[SearchHit] = ()
    current_chat: Sequence[ConversationMessage] = ()
    other_chats: Sequence[ConversationMessage] = ()
    words_only_reason: str = ""


def prompt_entries_from_material(material: ContextMaterial, flags: ContextFlags) -> list[RenderedPromptBlockEntry]:
    """Entries in the order in which they are shown, part by part."""
    recalled: dict[str, int] = {memory.id: rank for rank, (memory, _) in enumerate(material.recalled)}
    recent = [memory for memory in material.recent_nodes if memory.id not in recalled]
    shown: set[str] = {*recalled, *(memory.id for memory in recent), *(note.id for note in material.notes)}
    shown |= {message.id for message in (*material.current_chat, *material.other_chats)}
    shown |= {day.date for day in material.diary}
    hits = [hit for hit in material.hits if hit.id not in shown]
    enabled = [entry for entry in material.profile if entry.enabled]
    block = memories_in_prompt_order(memory for memory, _ in material.recalled)

    def named(part: PromptPartName) -> list[RenderedPromptBlockEntry]:
        entries = [entry for entry in enabled if entry.kind == part]
        return _prompt_entries_first_ranked_best(
            part, ((entry.audit_id, render_named_item(entry.name, entry.value)) for entry in entries)
        )

    soul = [entry for entry in enabled if entry.kind == "soul"]
    start = material.start
    return [
        *_prompt_entries_first_ranked_best(
            "policies", ((rule.id, render_list_item(rule.scene.action)) for rule in material.policies)
        ),
        *_prompt_entries_first_ranked_best(
            "soul", ((entry.name, render_soul_section(entry.name, entry.value)) for entry in soul)
        ),
        *_prompt_entries_first_ranked_best(
            "core_blocks", ((block.id, _core_block_prompt_text(block)) for block in material.core_blocks)
        ),
        *_prompt_entries_first_ranked_best(
            "thoughts", ((str(n), render_list_item(text)) for n, text in enumerate(material.thoughts))
        ),
        *named("partner_rules"),
        *_prompt_entries_first_ranked_best("preferences", _preference_prompt_texts_with_ids(material)),
        *named("relationships"),
        *named("tools"),
        *named("map"),
        *_prompt_entries_last_ranked_best(
            "notes", [(n.id, render_dated_item(n.type, n.created_at, n.shown_text)) for n in material.notes]
        ),
        *named("knowledge"),
        *_diary_prompt_entries(material.diary, full=flags.ai_diary_full and not flags.prompt_lite_mode),
        *(
            entry
            for part, memories in start.groups_without_repeats().items()
            for entry in _prompt_entries_first_ranked_best(
                part,
                (
                    (memory.id, render_memory_line_with_id(memory, start.possible_supersession_remark(memory)))
                    for memory in memories
                ),
            )
        ),
        *_prompt_entries_first_ranked_best(
            "recent_nodes", ((memory.id, render_memory_as_list_item(memory)) for memory in recent)
        ),
        *_prompt_entries_first_ranked_best("memories", ((hit.id, _search_hit_prompt_text(hit)) for hit in hits)),
        *(
            RenderedPromptBlockEntry(part="memory_block", id=memory.id, text=line, rank=recalled[memory.id])
            for memory, line in zip(block, render_memory_lines(block), strict=True)
        ),
        *_prompt_entries_last_ranked_best("history_recent", _message_prompt_texts_with_ids(material.other_chats)),
        *_prompt_entries_last_ranked_best(
            "history_current_chat", _message_prompt_texts_with_ids(material.current_chat)
        ),
    ]


def _core_block_prompt_text(block: CoreBlock) -> str:
    return render_core_block(block.name, block.version, block.text, block.max_chars)


def _search_hit_prompt_text(hit: SearchHit) -> str:
    text = text_with_version_change(hit.snippet, hit.since, hit.before, hit.until)
    return render_dated_item(hit.source, hit.timestamp, text)


def shown_preferences(profile: Sequence[ProfileEntry]) -> list[ProfileEntry]:
    """Of all entries, in the order in which they are shown: named preferences first, then the latest learnt ones."""
    preferences = [entry for entry in profile if entry.enabled and entry.kind == "preferences"]
    named = [entry for entry in preferences if not entry.is_learnt_from_memory]
    learnt = [entry for entry in preferences if entry.is_learnt_from_memory][-MAX_SHOWN_LEARNT_PREFERENCES:]
    return [*named, *learnt]


def _preference_prompt_texts_with_ids(material: ContextMaterial) -> list[tuple[str, str]]:
    outdated = material.possibly_outdated_preferences
    return [
        (
            entry.memory_id or entry.audit_id,
            _preference_prompt_text(entry, is_possibly_outdated=entry.memory_id in outdated),
        )
        for entry in shown_preferences(material.profile)
    ]


def _preference_prompt_text(entry: ProfileEntry, *, is_possibly_outdated: bool) -> str:
    value = f"{entry.value} (a later one may have replaced this)" if is_possibly_outdated else entry.value
    return render_list_item(value) if entry.is_learnt_from_memory else render_named_item(entry.name, value)


def _diary_prompt_entries(days: Sequence[DiaryEntry], *, full: bool) -> list[RenderedPromptBlockEntry]:
    """Shortened entries; with `full`, the whole text as an alternative where it differs."""
    entries = _prompt_entries_last_ranked_best(
        "diary", [(day.date, render_named_item(day.date, first_sentence(day.text))) for day in days]
    )
    if not full:
        return entries
    whole = [render_named_item(day.date, day.text) for day in days]
    pairs = zip(entries, whole, strict=True)
    return [replace(entry, full_text="" if text == entry.text else text) for entry, text in pairs]


def _message_prompt_texts_with_ids(messages: Sequence[ConversationMessage]) -> list[tuple[str, str]]:
    return [
        (said.id, render_message_as_prompt_list_item(said.at, said.role, said.speaker, said.text)) for said in messages
    ]


def _prompt_entries_first_ranked_best(
    part: PromptPartName, entries: Iterable[tuple[str, str]]
) -> list[RenderedPromptBlockEntry]:
    return [
        RenderedPromptBlockEntry(part=part, id=id_, text=text, rank=rank) for rank, (id_, text) in enumerate(entries)
    ]


def _prompt_entries_last_ranked_best(
    part: PromptPartName, entries: Sequence[tuple[str, str]]
) -> list[RenderedPromptBlockEntry]:
    return _prompt_entries_first_ranked_best(part, reversed(entries))[::-1]


# --- the token limit ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """The rendered prompt. `by_part`: the parts of the turn."""

    system_prompt: str = ""
    snapshot: str = ""
    turn: str = ""
    by_part: Mapping[str, str] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        return "\n\n".join(text for text in (self.system_prompt, self.snapshot, self.turn) if text)


PROMPT_PART_PRIORITY: tuple[PromptPartName | None, ...] = (
    "policies", "soul", "core_blocks", "partner_rules", "preferences", "pinned", "memory_block", "due", "notes",
    "important", "changes", "thoughts", "relationships", "tools", "map", "knowledge", "diary", "recent_nodes",
    "memories", None, "history_current_chat", "history_recent",
)  # fmt: skip
"""The most valuable part first. None: the full text of diary entries."""
_FULL_DIARY_TEXT_PRIORITY = PROMPT_PART_PRIORITY.index(None)


@dataclass(frozen=True, slots=True)
class PromptEntryTokenCosts:
    """Tokens of each entry and of its full text, by position; of the tags of each part, paid with its first entry; and
    of text that is always there."""

    entry_tokens: Sequence[int]
    full_text_tokens: Sequence[int]
    part_tag_tokens: Mapping[PromptPartName, int]
    fixed_tokens: int = 0


PromptEntrySelection = Mapping[int, bool]
"""Positions of the entries that are kept, and whether they are kept in full."""


def select_prompt_entries(
    entries: Sequence[RenderedPromptBlockEntry], costs: PromptEntryTokenCosts, *, limit: int
) -> dict[int, bool]:
    """Greedy by priority: each entry that still fits is kept; an entry that is too long leaves its room to the next
    ones. The costs of the selection never exceed `limit`; nothing is kept if `costs.fixed` alone exceeds it."""
    selection: dict[int, bool] = {}
    used = costs.fixed_tokens
    open_parts: set[PromptPartName] = set()
    for priority, position in _entry_positions_by_priority(entries):
        part = entries[position].part
        in_full = priority == _FULL_DIARY_TEXT_PRIORITY
        if in_full:
            cost = costs.full_text_tokens[position] - costs.entry_tokens[position]
        else:
            cost = costs.entry_tokens[position] + (0 if part in open_parts else costs.part_tag_tokens[part])
        if used + cost <= limit and (position in selection or not in_full):
            selection[position] = in_full
            open_parts.add(part)
            used += cost
    return selection


def _entry_positions_by_priority(entries: Sequence[RenderedPromptBlockEntry]) -> list[tuple[int, int]]:
    """(index in `PROMPT_PART_PRIORITY`, position), most valuable first."""
    keys = [(PROMPT_PART_PRIORITY.index(entry.part), entry.rank, position) for position, entry in enumerate(entries)]
    keys += [
        (_FULL_DIARY_TEXT_PRIORITY, entry.rank, position) for position, entry in enumerate(entries) if entry.full_text
    ]
    return [(priority, position) for priority, _, position in sorted(keys)]


@dataclass(frozen=True, slots=True)
class FittedPrompt:
    """`costs`: None where everything fits, so that nothing had to be counted one by one."""

    entries: Sequence[RenderedPromptBlockEntry]
    selection: PromptEntrySelection
    texts: RenderedPrompt
    tokens: Mapping[str, int]
    costs: PromptEntryTokenCosts | None = None

    def dropped_entry_counts(self) -> Iterator[DroppedPromptEntryCount]:
        """The entries that were dropped or shortened, by part, in display order."""
        if self.costs is None:
            return
        full, short = self.costs.full_text_tokens, self.costs.entry_tokens
        for part in PROMPT_PART_NAMES:
            positions = [position for position, entry in enumerate(self.entries) if entry.part == part]
            shortened = [at for at in positions if self.entries[at].full_text and self.selection.get(at) is False]
            dropped_tokens = [short[at] for at in positions if at not in self.selection]
            saved_tokens = [full[at] - short[at] for at in shortened]
            for tokens, in_full in ((dropped_tokens, False), (saved_tokens, True)):
                if tokens:
                    yield DroppedPromptEntryCount(part=part, count=len(tokens), tokens=sum(tokens), in_full=in_full)


async def fit_prompt(
    entries: Sequence[RenderedPromptBlockEntry], embedder: Embedder, *, limit: int, with_notice: bool
) -> FittedPrompt:
    """Keep as many entries as fit, by priority. Neither the one prompt nor its messages together exceed `limit`."""
    selection = {position: bool(entry.full_text) for position, entry in enumerate(entries)}
    texts = render_selected_prompt_entries(entries, selection, with_notice=with_notice)
    tokens = await _count_prompt_tokens_by_block(texts, embedder)
    if tokens["total"] <= limit:
        return FittedPrompt(entries, selection, texts, tokens)
    costs = await _count_tokens_of_prompt_entries(entries, embedder, with_notice=with_notice)
    budget = limit
    while True:
        selection = select_prompt_entries(entries, costs, limit=budget)
        texts = render_selected_prompt_entries(
            entries, selection, with_notice=with_notice and costs.fixed_tokens <= budget
        )
        tokens = await _count_prompt_tokens_by_block(texts, embedder)
        if tokens["total"] <= limit or not texts.prompt:
            return FittedPrompt(entries, selection, texts, tokens, costs)
        # A tokenizer may need more for a text than for its lines.
        budget -= tokens["total"] - limit


def render_selected_prompt_entries(
    entries: Sequence[RenderedPromptBlockEntry], selection: PromptEntrySelection, *, with_notice: bool
) -> RenderedPrompt:
    by_part: dict[PromptPartName, list[str]] = defaultdict(list)
    for position, entry in enumerate(entries):
        if position in selection:
            by_part[entry.part].append(entry.full_text if selection[position] else entry.text)
    system = render_prompt_parts(by_part, SYSTEM_PROMPT_PARTS)
    return RenderedPrompt(
        system_prompt="\n\n".join(text for text in (system, STORED_TEXT_IS_DATA_NOTICE if with_notice else "") if text),
        snapshot=render_prompt_parts(by_part, SNAPSHOT_PARTS),
        turn=render_prompt_parts(by_part, TURN_PARTS),
        by_part={part: render_prompt_part(part, by_part[part]) for part in TURN_PARTS if by_part[part]},
    )


async def _count_prompt_tokens_by_block(texts: RenderedPrompt, embedder: Embedder) -> dict[str, int]:
    """Tokens by block; `total` is the greater of the two forms, the one prompt and the messages."""
    snapshot = f"{texts.snapshot}\n{ASSISTANT_REPLY_AFTER_MEMORY_SNAPSHOT}" if texts.snapshot else ""
    blocks: dict[str, str] = {"system_prompt": texts.system_prompt, "snapshot": snapshot, **texts.by_part}
    prompt, turn, *counts = await embedder.count_tokens([texts.prompt, texts.turn, *blocks.values()])
    tokens = dict(zip(blocks, counts, strict=True))
    total = max(prompt, tokens["system_prompt"] + tokens["snapshot"] + turn)
    return {"total": total} | {name: count for name, count in tokens.items() if count}


async def _count_tokens_of_prompt_entries(
    entries: Sequence[RenderedPromptBlockEntry], embedder: Embedder, *, with_notice: bool
) -> PromptEntryTokenCosts:
    notice = f"{STORED_TEXT_IS_DATA_NOTICE}\n\n" if with_notice else ""
    reply = (
        f"{ASSISTANT_REPLY_AFTER_MEMORY_SNAPSHOT}\n" if any(entry.part in SNAPSHOT_PARTS for entry in entries) else ""
    )
    tags = ["\n".join((*prompt_part_delimiters(part), "\n")) for part in PROMPT_PART_NAMES]
    counted = await embedder.count_tokens(
        [notice, reply, *tags, *(f"{entry.text}\n" for entry in entries), *(f"{e.full_text}\n" for e in entries)]
    )
    counts = iter(counted)
    return PromptEntryTokenCosts(
        fixed_tokens=next(counts) + next(counts),
        part_tag_tokens={part: next(counts) for part in PROMPT_PART_NAMES},
        entry_tokens=[next(counts) for _ in entries],
        full_text_tokens=list(counts),
    )
