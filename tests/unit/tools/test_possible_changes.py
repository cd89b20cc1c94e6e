"""What a new memory that tells of a change may have changed, named for the caller to judge (ruling 14, ADR 74)."""

from __future__ import annotations

import pytest

from tests.unit.tools.conftest import Use, recalled

BACKUPS = "Nightly backups of db-main go to an S3 bucket in Dublin and are held for 14 days."
LONGER = "On the auditor's demand backups of db-main are kept for 35 days from now on."
OTHERS = ("The harbour froze over", "Tom plays the violin on Sundays", "The bakery opens at seven")


async def stored(use: Use, *texts: str) -> list[dict[str, object]]:
    return [await use("store", text=text) for text in (*OTHERS, *texts)][len(OTHERS) :]


async def test_a_change_that_is_not_proposed_names_what_it_most_likely_changed(use: Use) -> None:
    old, new = await stored(use, BACKUPS, LONGER)
    assert "may_supersede" not in new
    assert new["resembles"] == {"id": old["id"], "text": BACKUPS}
    assert "This tells of a change." in str(new["notice"])
    assert f"repeat this store with supersedes: {old['id']}" in str(new["notice"])
    decided = await use("store", text=LONGER, supersedes=old["id"])
    assert (decided["id"], decided["superseded"]["id"]) == (new["id"], old["id"])
    assert "This tells of a change" not in decided.get("notice", "")
    assert await recalled(use, "How long are backups of db-main kept?") == [LONGER]


async def test_what_tells_of_no_change_gets_no_advice(use: Use) -> None:
    _, new = await stored(use, BACKUPS, "Backups of db-main are kept for 35 days, as the auditor had demanded.")
    assert "This tells of a change" not in str(new.get("notice"))


async def test_each_of_a_series_gets_no_advice(use: Use) -> None:
    """Several that differ but for a value are all true."""
    runs = await stored(use, *(f"Run {n} of the import was stopped after {n + 3} minutes." for n in range(1, 5)))
    assert not any("This tells of a change" in str(run.get("notice")) for run in runs)


async def test_a_change_is_not_advised_as_a_mistake(use: Use) -> None:
    _, new = await stored(use, "The depot is in Lyon.", "Since May the depot is not in Lyon but in Rome.")
    assert "wrong from the start" not in str(new.get("notice"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The kiosk is closed on Mondays.", "The day of the kiosk was noted wrongly, it is Tuesday."),
        ("Ngozi's injection is at 10:15.", "We had noted the wrong hour: Ngozi's injection is at 10:45."),
        ("Der Kiosk am Hafen hat montags zu.", "Das war falsch: der Kiosk am Hafen hat dienstags zu."),
    ],
)
async def test_a_mistake_is_not_advised_as_a_change_alone(use: Use, old: str, new: str) -> None:
    """What supersedes a mistake would leave it true for the time before."""
    before, after = await stored(use, old, new)
    assert f"If {before['id']} was wrong from the start, correct it instead" in str(after["notice"])
    assert f"update_memory({before['id']}, text)" in str(after["notice"])


async def test_a_recall_names_beside_a_memory_what_may_tell_a_change_of_it(use: Use) -> None:
    """The older one stood alone, though the store had linked the two."""
    old, new = await stored(use, BACKUPS, LONGER)
    assert new["resembles"] == {"id": old["id"], "text": BACKUPS}
    found = await use("recall", query="nightly backups S3 bucket Dublin", format="memories", limit=1)
    assert [memory["id"] for memory in found["memories"]] == [old["id"]]
    assert [memory["id"] for memory in found["near"]] == [new["id"]]
    asked = {"query": "nightly backups S3 bucket Dublin", "limit": 1, "explain": new["id"], "format": "memories"}
    assert "It may tell what became of a memory that is shown." in str(await use("recall", **asked))


async def test_a_recall_names_beside_a_memory_what_was_proposed_to_supersede_it(use: Use) -> None:
    """Where the question names what the older one alone tells of, the newer is not put first; it was not named."""
    old, new = await stored(
        use,
        "The build machines forge-1 to forge-4 are on Ubuntu 20.04.",
        "forge-1 to forge-4 were reinstalled with Ubuntu 24.04 by Mei-Ling.",
    )
    assert [one["id"] for one in new["may_supersede"]] == [old["id"]]  # type: ignore[attr-defined]
    found = await use("recall", query="Which Ubuntu is on the build machines?", format="memories", limit=1)
    assert [memory["id"] for memory in found["memories"]] == [old["id"]]
    assert [(memory["id"], memory["may_supersede"]) for memory in found["near"]] == [(new["id"], old["id"])]


async def test_what_is_known_to_have_changed_one_memory_is_not_said_to_change_another(use: Use) -> None:
    old, other = await stored(use, BACKUPS, "Dumps of db-main are kept for a week.")
    nightly_longer = "On the auditor's demand nightly backups of db-main are held for 35 days from now on."
    new = await use("store", text=nightly_longer, supersedes=other["id"])
    assert new["resembles"]["id"] == old["id"]
    found = await use("recall", query="nightly backups S3 bucket Dublin", format="memories", limit=1)
    assert [memory["id"] for memory in found["memories"]] == [old["id"]]
    assert "near" not in found


async def test_a_dated_change_is_one_of_what_was_stored_before_without_a_date(use: Use) -> None:
    """Since when the undated fact is true nobody has told; the day of storing it is not its beginning."""
    [old] = await stored(use, "The vet of Mogli is Dr Rombach, call 55012.")
    new = await use("store", text="The vet of Mogli is now Dr Beck, call 55012.", when="2026-10-20")
    assert [one["id"] for one in new["may_supersede"]] == [old["id"]]
    assert (await recalled(use, "Who is the vet of Mogli?"))[0].startswith("The vet of Mogli is now")
    told = await use("store", text="The vet of Mogli was Dr Novak, call 55012.", when="2019-05-01")
    assert "may_supersede" not in told


async def test_what_said_the_same_as_a_superseded_memory_is_named(use: Use) -> None:
    """Stored beside it in other words, it stayed current and came first."""
    old, same, other = await stored(
        use,
        "Pull requests of the depot team are small, at most 300 lines of changes.",
        "The depot team keeps pull requests small: 300 lines of changes at most.",
        "The harbour team meets on Mondays for an hour.",
    )
    assert same["resembles"]["id"] == old["id"]  # type: ignore[index]
    new = await use("store", text="The depot team gave up the limit for pull requests.", supersedes=old["id"])
    assert f"{same['id']}, which says much of what {old['id']} said, is still current" in new["notice"]
    assert str(other["id"]) not in new["notice"].replace(str(same["id"]), "").replace(str(old["id"]), "")
    again = await use("store", text="The depot team gave up the limit for pull requests.", supersedes=same["id"])
    assert (again["id"], again["superseded"]["id"]) == (new["id"], same["id"])
