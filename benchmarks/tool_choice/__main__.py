"""`python -m benchmarks.tool_choice lint|prompt|grade FILE…|run`.

`prompt` prints what a reader is given: the list of tools, and the situations. `grade` grades readers' answers, one JSON
file each. `run` asks the language model that the settings configure, three times.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from pydantic import BaseModel, ConfigDict

from benchmarks.tool_choice.lint import MAX_LIST_CHARS, complaints, list_chars, listed_tools
from benchmarks.tool_choice.situations import Grades, Situation, ToolChoice, grade, read_answers, read_situations
from madeleine.memory.language_model import Prompt, RejectedModelAnswer
from madeleine.server.mcp.server import instructions_for_toolset, toolset_from_settings
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.language_models import LanguageModelPool

READINGS = 3
SITUATIONS_PER_PROMPT = 28
MAX_ANSWER_TOKENS = 8_000
TASK = """\
You are an AI agent. Beside your ability to talk you have the tools below, and nothing else is known about them. For
each situation decide what you would do next: call one of these tools, or none of them. Choose by the list alone.

Answer with one JSON object: for each id of a situation {"tool": "<name>", "arguments": {…}}, or null if you would call
none of the tools. Give the arguments as you would really pass them.
"""


class ChosenCall(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    tool: str
    arguments_json: str


class ChosenCalls(BaseModel):
    choices: list[ChosenCall]


def prompt_text(situations: Sequence[Situation]) -> str:
    instructions = instructions_for_toolset(toolset_from_settings(Settings()))
    tools = json.dumps(listed_tools(), ensure_ascii=False, indent=1)
    asked = "\n".join(f"{situation.id}: {situation.text}" for situation in situations)
    return f"{TASK}\n# The server's instructions\n{instructions}\n\n# tools/list\n{tools}\n\n# Situations\n{asked}\n"


def show(name: str, grades: Grades) -> None:
    print(f"{name}: {grades.share_right:.1%} of {grades.asked} right")
    for situation, answer in grades.wrong.values():
        expected = " or ".join(map(_line, situation.expected or [None]))
        print(f"  {situation.id}: answered {_line(answer)}; expected {expected}")


def _line(choice: ToolChoice | None) -> str:
    return f"{choice.tool} {json.dumps(dict(choice.arguments), ensure_ascii=False)}" if choice else "no call"


def grade_files(files: Sequence[str]) -> None:
    situations = read_situations()
    grades = [grade(situations, read_answers(json.loads(Path(file).read_text(encoding="utf-8")))) for file in files]
    for file, of_file in zip(files, grades, strict=True):
        show(file, of_file)
    print(f"mean of {len(grades)}: {mean(one.share_right for one in grades):.1%}")


async def run_with_model() -> None:
    situations, shares = read_situations(), []
    async with LanguageModelPool(Settings()) as pool, pool.lease_model_for_this_process() as model:
        if model is None:
            sys.exit("No language model is configured. Set MADELEINE_LLM, or use `prompt` and `grade`.")
        for reading in range(1, READINGS + 1):
            answers: dict[str, ToolChoice | None] = {}
            for start in range(0, len(situations), SITUATIONS_PER_PROMPT):
                part = situations[start : start + SITUATIONS_PER_PROMPT]
                prompt = Prompt(
                    purpose="tool choice",
                    system="Decide as the agent. For no call let `tool` be an empty text.",
                    text=prompt_text(part),
                    size="large",
                    max_tokens=MAX_ANSWER_TOKENS,
                )
                answer = await model.answer_prompt(prompt, ChosenCalls, lambda cost: None)
                if isinstance(answer, RejectedModelAnswer):
                    sys.exit(f"The answer cannot be used: {answer.reason}")
                choices = {call.id: (call.tool, json.loads(call.arguments_json)) for call in answer.choices}
                answers |= read_answers({id_: {"tool": tool, "arguments": a} for id_, (tool, a) in choices.items()})
            grades = grade(situations, answers)
            shares.append(grades.share_right)
            show(f"reading {reading}", grades)
    print(f"mean of {READINGS}: {mean(shares):.1%}")


def lint() -> None:
    tools = listed_tools()
    print(f"tools/list: {list_chars(tools):,} of at most {MAX_LIST_CHARS:,} characters")
    found = list(complaints(tools))
    print("\n".join(found) or "nothing to complain of")
    sys.exit(1 if found else 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["lint", "prompt", "grade", "run"])
    parser.add_argument("files", nargs="*", help="for grade: answers of a reader each")
    arguments = parser.parse_args()
    match arguments.verb:
        case "lint":
            lint()
        case "prompt":
            print(prompt_text(read_situations()))
        case "grade":
            grade_files(arguments.files)
        case _:
            asyncio.run(run_with_model())


if __name__ == "__main__":
    main()
