"""The list of tools says what an agent has to know, and the benchmark of tool choice grades as it should."""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.tool_choice.lint import complaints, listed_tools
from benchmarks.tool_choice.situations import ToolChoice, grade, read_answers, read_situations
from tests.rows import for_each_row

SITUATIONS = read_situations()


def test_the_list_of_tools_has_no_complaint() -> None:
    assert list(complaints(listed_tools())) == []


def test_the_lint_names_what_is_wrong() -> None:
    tools = listed_tools()
    tools[0]["description"] = tools[1]["description"].replace("ids such as m12", "name")
    del tools[2]["inputSchema"]["properties"]["limit"]["description"]
    found = " ".join(complaints(tools))
    assert "recall and recall_memory: 100% of the words" in found or "of the words are the same" in found
    assert "search_memory: nothing explains the argument limit" in found


def test_there_are_situations_of_many_kinds_and_languages() -> None:
    expected = Counter(choice.tool for situation in SITUATIONS for choice in situation.expected[:1])
    assert sum(expected.values()) >= 80
    assert sum(not situation.expected for situation in SITUATIONS) >= 20
    assert expected.keys() == {tool["name"] for tool in listed_tools()}
    assert len({situation.language for situation in SITUATIONS}) == 12
    assert len({situation.id for situation in SITUATIONS}) == len(SITUATIONS)


def test_every_expected_argument_is_one_of_its_tool() -> None:
    known = {tool["name"]: set(tool["inputSchema"]["properties"]) for tool in listed_tools()}
    for situation in SITUATIONS:
        for choice in situation.expected:
            assert set(choice.arguments) <= known[choice.tool], situation.id


@for_each_row(
    ("answer", "right"),
    [
        ({"tool": "recall", "arguments": {"query": "Who is MARA?", "limit": 5}}, True),
        ({"tool": "recall", "arguments": {"query": "who"}}, False),
        ({"tool": "search_memory", "arguments": {"query": "Mara", "themes": ["work", "Team"]}}, True),
        ({"tool": "search_memory", "arguments": {"query": "Mara", "themes": ["team"], "limit": True}}, False),
        (None, False),
    ],
)
def test_an_answer_is_right_if_it_meets_an_expected_call(answer: object, right: bool) -> None:
    from benchmarks.tool_choice.situations import Situation

    expected = (
        ToolChoice("recall", {"query": "~mara"}),
        ToolChoice("search_memory", {"query": "*", "themes": ["~team", "work"]}),
    )
    situation = Situation("x", "en", "Who is Mara?", expected)
    assert (grade([situation], read_answers({"x": answer})).wrong == {}) is right


def test_without_an_expected_call_only_none_is_right() -> None:
    [silent] = [situation for situation in SITUATIONS if situation.id == "none-thanks"]
    answers: list[dict[str, Any]] = [
        {"none-thanks": None},
        {"none-thanks": {"tool": ""}},
        {},
        {"none-thanks": {"tool": "recall"}},
    ]
    assert [grade([silent], read_answers(raw)).share_right for raw in answers] == [1.0, 1.0, 1.0, 0.0]
