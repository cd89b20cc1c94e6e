"""Settings: the environment, then `madeleine.toml`, then the defaults."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from madeleine.inference import PACKAGED_MODEL_NAME
from madeleine.memory.errors import InvalidInput
from madeleine.server.settings.environment import SETTINGS_FILE
from madeleine.server.settings.settings import Settings, read_settings


def environment(data_dir: Path, **given: str) -> dict[str, str]:
    return {
        "MADELEINE_DATA_DIR": str(data_dir),
        **{f"MADELEINE_{name.upper()}": value for name, value in given.items()},
    }


def test_nothing_needs_to_be_set(tmp_path: Path) -> None:
    """spec P9: threshold 0.35; ruling 6: the default model."""
    settings = read_settings(environment(tmp_path))
    assert settings == Settings(data_dir=tmp_path)
    assert (settings.being, settings.embedding_model, settings.recall_threshold) == (
        "default",
        PACKAGED_MODEL_NAME,
        0.35,
    )


def test_without_a_setting_the_data_is_where_the_platform_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert read_settings({}).data_dir == platformdirs.user_data_path("madeleine", appauthor=False)


def test_reading_the_settings_creates_nothing(tmp_path: Path) -> None:
    read_settings(environment(tmp_path / "new"))
    assert list(tmp_path.iterdir()) == []


def test_the_file_in_the_data_directory_is_read(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).write_text(
        'being = "ada"\nmax_text_chars = 500\nrecall_threshold = 0.5\n', encoding="utf-8"
    )
    settings = read_settings(environment(tmp_path))
    assert (settings.being, settings.max_text_chars, settings.recall_threshold) == ("ada", 500, 0.5)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).write_text('being = "ada"\nlog_level = "debug"\n', encoding="utf-8")
    settings = read_settings(environment(tmp_path, being="bob"))
    assert (settings.being, settings.log_level) == ("bob", "debug")


def test_other_programs_variables_are_none_of_ours(tmp_path: Path) -> None:
    assert (
        read_settings({**environment(tmp_path), "BEING": "x", "madeleine_being": "y", "PATH": "/bin"}).being
        == "default"
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("BEEING", "Is 'MADELEINE_BEING' meant?"),
        ("RECALL_TRESHOLD", "Is 'MADELEINE_RECALL_THRESHOLD' meant?"),
        ("IDEL_SECONDS", "Is 'MADELEINE_IDLE_SECONDS' meant?"),
        ("DATA-DIR", "Is 'MADELEINE_DATA_DIR' meant?"),
        ("URLL", "Is 'MADELEINE_URL' meant?"),
        ("", "`madeleine help settings` lists all."),
        ("XYZZY", "`madeleine help settings` lists all."),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_name(tmp_path: Path, name: str, hint: str) -> None:
    """A misspelt setting that is passed over in silence is found months later; all names are too many to read."""
    with pytest.raises(InvalidInput) as caught:
        read_settings({**environment(tmp_path), f"MADELEINE_{name}": "x"})
    assert str(caught.value) == f"Unknown setting MADELEINE_{name} in the environment. {hint}"


def test_an_unknown_name_in_the_file_is_refused_by_name_and_place_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).write_text('beeing = "ada"\n', encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_settings(environment(tmp_path))
    place = tmp_path / SETTINGS_FILE
    assert str(caught.value) == f"Unknown setting beeing in {place}. Is 'being' meant?"


def test_an_unknown_entry_of_a_setting_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"retention\.dayz in .*: there is no such entry"):
        read_settings(environment(tmp_path, retention='{"dayz": 3}'))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recall_threshold", "much"),
        ("recall_threshold", "1.5"),
        ("recall_threshold", "nan"),
        ("ranking", "best"),
        ("associative_weights", '{"emotion": 1.1}'),
        ("associative_weights", '{"envy": 1}'),
        ("associative_weights", "0.5"),
        ("reranker_seconds", "600"),
        ("max_text_chars", "99"),
        ("max_text_chars", "1.5"),
        ("max_text_chars", "9" * 30),
        ("being", "x" * 201),
        ("being", "a\nb"),
        ("log_level", "loud"),
        ("log_level", "DEBUG!"),
    ],
)
def test_a_bad_value_in_the_environment_is_named(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=name) as caught:
        read_settings(environment(tmp_path, **{name: value}))
    assert "the environment" in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:6333", "localhost", "/var/qdrant", "ftp://localhost", ":memory:"])
def test_an_address_that_is_none_is_refused_with_what_to_write(tmp_path: Path, url: str) -> None:
    """The client takes it for a directory, and makes it."""
    with pytest.raises(InvalidInput, match="qdrant_url") as caught:
        read_settings(environment(tmp_path, qdrant_url=url))
    assert "http://localhost:6333" in str(caught.value)


@pytest.mark.parametrize("url", ["http://localhost:6333", "https://qdrant.example.org"])
def test_an_address_is_taken_as_it_is(tmp_path: Path, url: str) -> None:
    assert read_settings(environment(tmp_path, qdrant_url=url)).qdrant_url == url


@pytest.mark.parametrize("level", ["INFO", "Info", "info"])
def test_the_log_level_may_be_written_in_any_case(tmp_path: Path, level: str) -> None:
    assert read_settings(environment(tmp_path, log_level=level)).log_level == "info"


@pytest.mark.parametrize(
    ("line", "name"),
    [("recall_threshold = 2", "recall_threshold"), ("being = 3", "being"), ("max_text_chars = nan", "max_text_chars")],
)
def test_a_bad_value_in_the_file_is_named_with_the_file(tmp_path: Path, line: str, name: str) -> None:
    (tmp_path / SETTINGS_FILE).write_text(line, encoding="utf-8")
    with pytest.raises(InvalidInput, match=name) as caught:
        read_settings(environment(tmp_path))
    assert SETTINGS_FILE in str(caught.value)


@pytest.mark.parametrize("content", [b"being = ", b"\xff\xfe", b"being = 'a'\nbeing = 'b'"])
def test_a_file_that_is_not_toml_is_refused_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    (tmp_path / SETTINGS_FILE).write_bytes(content)
    with pytest.raises(InvalidInput, match="Correct it or remove it"):
        read_settings(environment(tmp_path))


def test_a_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_settings(environment(tmp_path / "file"))


@pytest.mark.parametrize("name", ["being", "embedding_model", "recall_threshold", "max_text_chars"])
def test_an_empty_variable_counts_as_not_set(tmp_path: Path, name: str) -> None:
    assert read_settings(environment(tmp_path, **{name: ""})) == read_settings(environment(tmp_path))


def test_an_empty_data_directory_is_the_default_and_not_the_current_one() -> None:
    assert read_settings({"MADELEINE_DATA_DIR": ""}).data_dir == read_settings({}).data_dir


def test_a_tilde_is_the_home_directory() -> None:
    assert read_settings({"MADELEINE_DATA_DIR": "~/memories"}).data_dir == Path.home() / "memories"


def test_the_file_cannot_say_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).write_text('data_dir = "/elsewhere"', encoding="utf-8")
    with pytest.raises(InvalidInput, match="MADELEINE_DATA_DIR"):
        read_settings(environment(tmp_path))


# --- which tools ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["memory,patrol", " memory , patrol ,"])
def test_names_are_separated_by_commas(tmp_path: Path, given: str) -> None:
    settings = read_settings(environment(tmp_path, toolsets=given, exclude_tools="forget", read_only="true"))
    assert (settings.toolsets, settings.tools) == (("memory", "patrol"), ())
    assert (settings.exclude_tools, settings.read_only) == (("forget",), True)


def test_in_the_file_names_may_be_a_list(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).write_text('tools = ["recall", "store"]\ntoolsets = "patrol"\n', encoding="utf-8")
    settings = read_settings(environment(tmp_path))
    assert (settings.tools, settings.toolsets) == (("recall", "store"), ("patrol",))


def test_the_command_line_wins_over_all(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).write_text('tools = ["recall"]\nbeing = "ada"\n', encoding="utf-8")
    settings = read_settings(
        environment(tmp_path, tools="store"), overrides={"tools": "forget,recall", "read_only": True}
    )
    assert (settings.tools, settings.read_only, settings.being) == (("forget", "recall"), True, "ada")


# --- patrols ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "hour"), [("0", 0), ("23", 23), ("off", None), (" Never ", None), ("", 3)])
def test_the_hour_of_the_patrol_may_be_off(tmp_path: Path, given: str, hour: int | None) -> None:
    assert read_settings(environment(tmp_path, patrol_at_hour=given)).patrol_at_hour == hour


@pytest.mark.parametrize(
    ("name", "value"),
    [("patrol_at_hour", "24"), ("patrol_at_hour", "noon"), ("patrol_after_memories", "-1"), ("patrol_auto", "x")],
)
def test_a_time_for_patrols_that_there_is_not_is_named(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        read_settings(environment(tmp_path, **{name: value}))
