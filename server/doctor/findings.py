"""What a check has found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from madeleine.memory.errors import MadeleineError

FindingLevel = Literal["ok", "note", "problem"]
"""A note is worth knowing; a problem is to be solved, and makes the exit code 1."""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """`text`: a sentence. `advice`: what to do; every problem has some. `details`: numbers and names, for programs."""

    area: str
    level: FindingLevel
    text: str
    advice: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


DoctorCheck = Callable[[], Iterable[DoctorFinding]]
BUG_REPORT_ADVICE = "MADELEINE_LOG_LEVEL=debug madeleine doctor shows more; please report it."


def findings_of_checks(checks: Mapping[str, DoctorCheck]) -> Iterator[DoctorFinding]:
    """Of each check by its area; one that fails is a finding itself, and the others go on."""
    for area, check in checks.items():
        try:
            yield from check()
        except MadeleineError as error:
            yield DoctorFinding(area, "problem", str(error), "Solve this and look again.")
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            yield DoctorFinding(area, "problem", f"{error.strerror or error}{where}.", "Check the file and its owner.")
        except Exception as error:  # the one place where an unexpected error of a check is caught
            yield DoctorFinding(area, "problem", f"The check failed ({type(error).__name__}).", BUG_REPORT_ADVICE)
