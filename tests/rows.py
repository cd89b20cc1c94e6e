"""A table that is checked in one test, which names every row that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def for_each_row(
    names: str | tuple[str, ...], rows: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """As `pytest.mark.parametrize`, in one test case. For quick checks of a table, without fixtures."""
    table = list(rows)
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def as_one_test(check: Callable[..., None]) -> Callable[[], None]:
        def check_all() -> None:
            failures: list[Exception] = []
            for row in table:
                values = (row,) if len(arguments) == 1 else row
                try:
                    check(**dict(zip(arguments, values, strict=True)))
                except Exception as error:
                    error.add_note(f"In the row {row!r}")
                    failures.append(error)
            assert table, "a table without rows"
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)

        # Not functools.wraps: pytest would ask for the arguments of `check`.
        check_all.__name__, check_all.__doc__, check_all.__module__ = check.__name__, check.__doc__, check.__module__
        return check_all

    return as_one_test
