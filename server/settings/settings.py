"""Settings (spec O6), from the environment (`MADELEINE_…`) and `madeleine.toml` in the data directory.

The environment wins; `server.settings.environment` alone reads it. A setting of a configuration has the default of that
configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from madeleine.inference import PACKAGED_MODEL_NAME
from madeleine.memory.context.context import DEFAULT_MAX_CONTEXT_TOKENS
from madeleine.memory.context.values import ContextFlags
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.erased_bytes import DEFAULT_PROMISED_ERASURE_SECONDS
from madeleine.memory.lessons.lessons import LessonConfig
from madeleine.memory.model import MemoryLevel, Role, is_connectable_being
from madeleine.memory.organisation.knowledge import OrganisationKnowledgeConfig
from madeleine.memory.permissions import KnowledgeWriteAccess
from madeleine.memory.recall.config import RecallConfig
from madeleine.memory.retention.levels import MAX_PROJECT_NAME_CHARS, MemoryLevelsOfBeings
from madeleine.memory.rules.archiving.retention import RetentionConfig
from madeleine.memory.rules.ranking.profiles import AssociativeRankingWeights, RankingProfile
from madeleine.memory.rules.storing.chunk_scoring import MIN_STORED_CHUNK_IMPORTANCE
from madeleine.memory.rules.storing.likeness import DuplicateThresholds
from madeleine.memory.watch.thread import MemoryExtractionConfig
from madeleine.patrol.context import PatrolConfig
from madeleine.patrol.triggers import PatrolTriggerConfig
from madeleine.server.addresses import is_http_url
from madeleine.server.settings.environment import (
    AUTOMATIC_PROJECT_VALUE,
    DEFAULT_MAX_TEXT_CHARS,
    ENVIRONMENT_VARIABLE_PREFIX,
    SETTINGS_FILE,
    read_environment_variables,
    read_settings_file,
    resolve_data_directory,
    setting_values_from_variables,
)
from madeleine.server.settings.fields import (
    CommaSeparatedNames,
    LowercaseValidator,
    SecondsUpToOneDay,
    TokenBudgetSetting,
    UnitFraction,
    text_parsing_validator,
    valid_if_set_validator,
    validator_parsing_json_text,
)
from madeleine.server.settings.http import HttpSettings
from madeleine.server.settings.language_model import LlmSettings
from madeleine.server.suggestions import nearest_name

_RECALL_DEFAULTS, _PATROL_DEFAULTS = RecallConfig(), PatrolConfig()
_DEFAULT_DUPLICATE_THRESHOLDS = DuplicateThresholds()
_QDRANT_URL_HINT = "as in http://localhost:6333; leave it out for the index in the data directory"
_ORGANISATION_DEFAULTS, _LESSON_DEFAULTS = OrganisationKnowledgeConfig(), LessonConfig()
_MEMORY_THREAD_ENABLING_HINT = (
    "set MADELEINE_LLM_API_KEY or MADELEINE_LLM_URL, or MADELEINE_THREAD_RECORDS to do without one"
)
_SCHEDULE_DEFAULTS, _THREAD_DEFAULTS = PatrolTriggerConfig(), MemoryExtractionConfig()


def _none_if_written_as_off(written: str) -> object:
    return None if written.strip().lower() in ("off", "none", "never", "") else written


def _path_or_none(written: str) -> object:
    return Path(written).expanduser().absolute() if written.strip() else None


class MemoryExtractionEnablement(NamedTuple):
    """Whether the memory thread runs, and why."""

    on: bool
    reason: str


class Settings(HttpSettings, LlmSettings, ContextFlags):
    """Every setting with its default. `MADELEINE_DATA_DIR` sets `data_dir`, and so on."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    data_dir: Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())] = Field(
        default_factory=resolve_data_directory
    )
    being: Annotated[
        str,
        Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$"),
        valid_if_set_validator(is_connectable_being, "this name is kept for what all beings share"),
    ] = "default"
    role: Role = "senior"
    """Of callers without a token: clients on stdio, commands, and over HTTP while there is no token."""
    embedding_model: Annotated[str, Field(min_length=1)] = PACKAGED_MODEL_NAME
    qdrant_url: Annotated[
        str, valid_if_set_validator(is_http_url, f"it must begin with http:// or https://, {_QDRANT_URL_HINT}")
    ] = ""
    """A Qdrant server instead of the embedded index. Its client takes anything else for a directory, and makes it."""
    database_url: Annotated[
        str,
        Field(repr=False),
        valid_if_set_validator(
            lambda url: url.startswith(("postgresql://", "postgres://")),
            "it must begin with postgresql://, as in postgresql://madeleine@db.example/madeleine",
        ),
    ] = ""
    """PostgreSQL instead of a file of SQLite in the data directory. It may hold a password."""
    idle_seconds: Annotated[float, Field(gt=0, le=10**7)] = 600.0
    """Time from the last client's disconnection to the host's end."""
    attach: Literal["", "unix", "tcp"] = ""
    """How clients reach their host: a Unix socket, or loopback TCP with a token; "": the platform's default."""
    log_level: Annotated[Literal["debug", "info", "warning", "error"], LowercaseValidator] = "info"

    toolsets: CommaSeparatedNames = ()
    tools: CommaSeparatedNames = ()
    exclude_tools: CommaSeparatedNames = ()
    read_only: bool = False

    max_text_chars: Annotated[int, Field(ge=100, le=10_000_000)] = DEFAULT_MAX_TEXT_CHARS
    redact: bool = True
    """Take secrets (keys, tokens, passwords) out of what is stored."""
    erasure_seconds: SecondsUpToOneDay = DEFAULT_PROMISED_ERASURE_SECONDS
    """Within which the bytes of what was forgotten are gone from the disk (ruling 25)."""
    same_scene_cosine: UnitFraction = _DEFAULT_DUPLICATE_THRESHOLDS.same
    """From it a scene that is worded a little otherwise may be one told again (spec T6); its words decide."""
    min_resemblance: UnitFraction = _DEFAULT_DUPLICATE_THRESHOLDS.resembling
    """From it a scene is linked to the memory that resembles it most, by words and meaning."""
    ingest_threshold: UnitFraction = MIN_STORED_CHUNK_IMPORTANCE
    """Chunks of less importance are not stored (spec L1)."""

    recall_threshold: UnitFraction = _RECALL_DEFAULTS.thresholds.likeness
    recall_min_importance: UnitFraction = _RECALL_DEFAULTS.min_importance
    recall_non_inferable_only: bool = False
    """Restrict recall to memories with the theme `non-inferable`."""
    ranking: Annotated[RankingProfile, LowercaseValidator] = _RECALL_DEFAULTS.ranking
    """The profile of calls that choose none."""
    associative_weights: Annotated[AssociativeRankingWeights, validator_parsing_json_text('{"similarity": 0.45}')] = (
        _RECALL_DEFAULTS.profiles.associative
    )
    """Weights of the profile `associative` (ruling 9); one that is left out keeps its default."""
    reranker: Annotated[str, Field(max_length=1_000)] = ""
    """A cross-encoder that fastembed knows, or a directory that holds one; "" for none."""
    reranker_seconds: Annotated[float, Field(gt=0, le=30)] = 2.0
    """A recall waits for it no longer."""
    recall_reformulation: bool = False
    """Let a language model reword a query that found too little."""
    recall_reformulation_seconds: Annotated[float, Field(gt=0, le=120)] = _RECALL_DEFAULTS.reformulation.seconds

    patrol_auto: bool = True
    patrol_after_memories: Annotated[int, Field(ge=0, le=10**9)] = _SCHEDULE_DEFAULTS.after_memories
    """New memories since the last patrol; 0: never for their number."""
    patrol_at_hour: Annotated[
        Annotated[int, Field(ge=0, le=23)] | None, text_parsing_validator(_none_if_written_as_off)
    ] = _SCHEDULE_DEFAULTS.at_hour
    """In this machine's time; "off": at no hour."""
    patrol_after_idle_minutes: Annotated[float, Field(ge=0, le=10**6)] = 60.0
    """Minutes without a call while something is new; 0: never for idleness."""
    patrol_check_seconds: SecondsUpToOneDay = 60.0
    """Interval between two checks whether a patrol is due; the first comes as long after the start."""
    patrol_step_seconds: SecondsUpToOneDay = _PATROL_DEFAULTS.step_seconds
    patrol_undoable_runs: Annotated[int, Field(ge=1, le=10**6)] = _PATROL_DEFAULTS.undoable_runs
    """Finished runs of a being that can be undone; of older ones the journal is dropped."""
    patrol_token_budget: TokenBudgetSetting = _PATROL_DEFAULTS.token_budget
    compression_threshold: Annotated[int, Field(ge=1, le=10**9)] = _PATROL_DEFAULTS.compression_threshold

    thread: Annotated[Literal["auto", "on", "off"], LowercaseValidator] = "auto"
    """auto: where a language model was chosen for this program, or `thread_records` is on. on: also with a key that
    lies in the environment for others."""
    thread_seconds: SecondsUpToOneDay = 5.0
    """Interval between two polls; a new message starts one at once."""
    thread_settle_seconds: Annotated[float, Field(ge=0, le=86_400)] = _THREAD_DEFAULTS.settle_time.total_seconds()
    thread_token_budget: TokenBudgetSetting = _THREAD_DEFAULTS.token_budget
    thread_records: bool = _THREAD_DEFAULTS.records_exchanges

    backup_hours: Annotated[float, Field(ge=0, le=10_000)] = 0.0
    """Between two backups that the process makes by itself; 0: none."""
    backup_keep: Annotated[int, Field(ge=1, le=10_000)] = 7
    """The last ones in their folder; older ones are deleted when the process has made another."""
    backup_dir: Annotated[Path | None, text_parsing_validator(_path_or_none)] = None
    """Default: `backups` in the data directory."""

    level: Annotated[MemoryLevel, LowercaseValidator] = "persistent"
    """How long what a connection stores is kept: not at all, until its session or project ends, for good."""
    levels: Annotated[Mapping[str, MemoryLevel], validator_parsing_json_text('{"ada": "session"}')] = Field(
        default_factory=dict
    )
    """Of beings that have another level, also over HTTP."""
    project: Annotated[str, Field(max_length=MAX_PROJECT_NAME_CHARS, pattern=r"^[^\x00-\x1f]*$")] = ""
    """The project that a connection works in: what belongs to another is not found, what it stores belongs to it.
    "auto": that of the client's directory, or of its first root."""
    retention: Annotated[RetentionConfig, validator_parsing_json_text('{"days": 365, "rules": {"working": 7}}')] = (
        RetentionConfig()
    )
    """How long memories are kept before they go into the archive, by category and being; by default for good."""

    lesson_min_confidence: UnitFraction = _LESSON_DEFAULTS.min_confidence
    """A proposed lesson of less is discarded."""
    skill_directory: Annotated[Path | None, text_parsing_validator(_path_or_none)] = None
    """Where lessons are written as skills, a folder with a SKILL.md each; None: nowhere."""

    organisation_write_access: Annotated[
        KnowledgeWriteAccess, validator_parsing_json_text('{"policy": ["human", "lead"]}')
    ] = _ORGANISATION_DEFAULTS.write_access
    """The roles that may write each kind of shared knowledge; a kind that is left out keeps its default."""
    organisation_policies: Annotated[int, Field(ge=0, le=50)] = _ORGANISATION_DEFAULTS.max_policies
    """Core policies at most: all of them are in every prompt."""
    organisation_retrieved: Annotated[int, Field(ge=1, le=50)] = _ORGANISATION_DEFAULTS.max_retrieved
    """Shared facts that one search brings."""

    context_token_limit: Annotated[int, Field(ge=1, le=1_000_000)] = DEFAULT_MAX_CONTEXT_TOKENS

    @property
    def memory_level_config(self) -> MemoryLevelsOfBeings:
        """Without a project where the client is to be asked for it (`is_project_automatic`)."""
        return MemoryLevelsOfBeings(self.level, self.levels, "" if self.is_project_automatic else self.project)

    @property
    def is_project_automatic(self) -> bool:
        return self.project == AUTOMATIC_PROJECT_VALUE

    @property
    def memory_extraction_enablement(self) -> MemoryExtractionEnablement:
        """By default on only with a language model (spec T1)."""
        if self.thread == "off":
            return MemoryExtractionEnablement(False, "MADELEINE_THREAD is off")
        if self.has_chosen_llm():
            return MemoryExtractionEnablement(True, "a language model was chosen")
        if self.thread_records:
            return MemoryExtractionEnablement(
                True, "MADELEINE_THREAD_RECORDS keeps conversations without a language model"
            )
        if not self.resolved_llm_key():
            return MemoryExtractionEnablement(False, f"there is no language model; {_MEMORY_THREAD_ENABLING_HINT}")
        if self.thread == "on":
            return MemoryExtractionEnablement(
                True, "MADELEINE_THREAD is on, and there is a key that other programs use"
            )
        return MemoryExtractionEnablement(
            False, "there is only a key that other programs use; set MADELEINE_THREAD to on to use it"
        )


def read_settings(
    variables: Mapping[str, str] | None = None, *, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """`variables`: the process's environment by default; `overrides` win over all. Raises `InvalidInput` that names
    the setting, its source and the reason."""
    return settings_from_variables_and_file(
        setting_values_from_variables(read_environment_variables() if variables is None else variables),
        overrides=overrides,
    )


def settings_from_variables_and_file(
    from_environment: Mapping[str, Any], *, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """`from_environment`: by the settings' names. Raises as `read_settings` does."""
    _require_known_setting_names(from_environment, "the environment", ("url", "token"))
    settings = _validated_settings(from_environment, "the environment")
    file = settings.data_dir / SETTINGS_FILE
    try:
        from_file = read_settings_file(settings.data_dir)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}. Correct it or remove it.") from error
    for name, reason in (("data_dir", "because the file lies in it"), ("attach", "because it is needed earlier")):
        if name in from_file:
            raise InvalidInput(
                f"{name} cannot be set in {file} {reason}: set {ENVIRONMENT_VARIABLE_PREFIX}{name.upper()}."
            )
    _require_known_setting_names(from_file, str(file))
    if from_file:
        settings = _validated_settings(from_file | dict(from_environment), str(file))
    if overrides:
        settings = _validated_settings(dict(settings) | dict(overrides), "the command line")
    settings.require_consistent_llm_settings()
    if settings.database_url and settings.backup_hours:
        raise InvalidInput(
            "MADELEINE_BACKUP_HOURS copies a file of SQLite, and MADELEINE_DATABASE_URL names PostgreSQL. Leave it "
            "out, and use pg_dump."
        )
    return settings


def _require_known_setting_names(names: Iterable[str], source: str, variables: Iterable[str] = ()) -> None:
    """`variables`: where the names are those of variables, further ones that are known, without the prefix. Raises
    `InvalidInput` with the nearest name."""

    def written(name: str) -> str:
        return ENVIRONMENT_VARIABLE_PREFIX + name.upper() if variables else name

    if unknown := sorted(set(names) - set(Settings.model_fields)):
        near = nearest_name(unknown[0], [*Settings.model_fields, *variables])
        hint = f"Is {written(near)!r} meant?" if near else "`madeleine help settings` lists all."
        raise InvalidInput(f"Unknown setting {written(unknown[0])} in {source}. {hint}")


def _validated_settings(values: Mapping[str, Any], source: str) -> Settings:
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        reason = "there is no such entry" if first["type"] == "extra_forbidden" else first["msg"]
        raise InvalidInput(f"The setting {name} in {source} cannot be used: {reason}.") from error
