"""docs/requirements.md against the code: each requirement is listed once, and its modules exist and cite it."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from tests.rows import for_each_row

ROOT = Path(__file__).parents[2]
PACKAGES = ("memory", "storage", "inference", "patrol", "tools", "server", "madeleine")
LAST_NUMBERS = {"P": 12, "L": 4, "T": 8, "H": 6, "O": 14, "ruling ": 28}
REQUIREMENTS = [f"{family}{number}" for family, last in LAST_NUMBERS.items() for number in range(1, last + 1)]
STATES = {"built", "partly", "planned", "left out"}
_STEPS = r"(?:[ ,]+[❶-❼])*"
_SEPARATOR = r"(?:, (?:and )?| and | or | to )"


def _list_of(item: str) -> str:
    return rf"{item}{_STEPS}(?:{_SEPARATOR}{item}{_STEPS})*"


_CITATION = re.compile(rf"\b(?:[Ss]pec ({_list_of('[PLTHO][0-9]+')})|rulings? ({_list_of('[0-9]+')})\b)")
_ROW = re.compile(r"^\| (?P<requirement>[PLTHO]\d+|ruling \d+) \| [^|]+ \| (?P<modules>[^|]*) \| (?P<state>[^|]+) \|$")


def cited(text: str) -> set[str]:
    """Return the requirements that a text cites: `spec P6, L3`, `spec H1 to H4`, `rulings 2, 7 to 9`."""
    joined = re.sub(r"\s+(?:# )?", " ", text)
    requirements: set[str] = set()
    for by_letter, by_number in _CITATION.findall(joined):
        family, last = ("ruling ", 0) if by_number else ("", 0)
        for range_end, letter, number in re.findall(r"(to )?([PLTHO]?)(\d+)", by_letter or by_number):
            family = letter or family
            first = last + 1 if range_end else int(number)
            requirements |= {f"{family}{each}" for each in range(first, int(number) + 1)}
            last = int(number)
    return requirements


def rows() -> dict[str, tuple[list[str], str]]:
    """Modules and state by requirement."""
    lines = (ROOT / "docs/requirements.md").read_text(encoding="utf-8").splitlines()
    matches = [match for line in lines if (match := _ROW.match(line))]
    table = {match["requirement"]: (re.findall(r"`([^`]+)`", match["modules"]), match["state"]) for match in matches}
    assert len(table) == len(matches), "a requirement is listed twice"
    return table


def citations() -> dict[str, set[str]]:
    """Requirements by path, for every module of the product."""
    found: dict[str, set[str]] = defaultdict(set)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            found[path.relative_to(ROOT).as_posix()] |= cited(path.read_text(encoding="utf-8"))
    return found


@for_each_row(
    ("text", "requirements"),
    [
        ("(spec P6 ❶ ❹, P8, L3)", {"P6", "P8", "L3"}),
        ("spec H1 to H4, L1", {"H1", "H2", "H3", "H4", "L1"}),
        ("spec T7, ruling 9", {"T7", "ruling 9"}),
        ("rulings 2, 7 to 9 and 11", {"ruling 2", "ruling 7", "ruling 8", "ruling 9", "ruling 11"}),
        ("spec P2 `session_count`, ❷; ruling\n    # 2", {"P2", "ruling 2"}),
        ("spec ruling 12", {"ruling 12"}),
        ("spec P5, 1-A", {"P5"}),
    ],
)
def test_citations_are_read_in_every_form(text: str, requirements: set[str]) -> None:
    assert cited(text) == requirements


def test_every_requirement_is_in_the_table() -> None:
    assert list(rows()) == REQUIREMENTS


def test_every_citation_in_the_code_names_a_requirement() -> None:
    unknown = {path: names - set(REQUIREMENTS) for path, names in citations().items() if names - set(REQUIREMENTS)}
    assert unknown == {}


def test_every_module_in_the_table_exists_and_cites_its_requirement() -> None:
    by_path = citations()
    wrong = [
        (requirement, module)
        for requirement, (modules, _) in rows().items()
        for module in modules
        if requirement not in by_path.get(module, set())
    ]
    assert wrong == []


def test_every_built_requirement_names_a_module_and_every_other_state_is_known() -> None:
    for requirement, (modules, state) in rows().items():
        assert state in STATES, requirement
        assert bool(modules) == (state in {"built", "partly"}), requirement


def test_a_cited_requirement_is_not_called_planned() -> None:
    in_code = set().union(*citations().values())
    assert {name for name, (_, state) in rows().items() if state in {"planned", "left out"}} & in_code == set()


def test_the_tests_of_each_clause_exist() -> None:
    text = (ROOT / "docs/requirements.md").read_text(encoding="utf-8")
    [_, by_clause] = text.split("clause by clause\n")
    clauses = [line.split(" | ") for line in by_clause.splitlines() if line.startswith("| spec ")]
    assert {number for clause, *_ in clauses for number in re.findall(r"[PL]\d+", clause)} == {
        *(f"P{number}" for number in range(2, 13)),
        *(f"L{number}" for number in range(1, 5)),
    }
    for clause, _, _, tests in clauses:
        named = re.findall(r"`([^`]+)`", tests)
        assert named, clause
        assert [path for path in named if not (ROOT / path).is_file()] == [], clause
