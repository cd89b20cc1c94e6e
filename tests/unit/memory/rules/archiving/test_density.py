"""Five signals tell dense texts from sparse ones (spec O8)."""

from __future__ import annotations

from madeleine.memory.rules.archiving.density import (
    classify_density,
    density_signals,
    extractive_or_abstractive_mode_for_texts,
)
from madeleine.memory.rules.archiving.extracts import make_extractive_digest
from tests.rows import for_each_row

SPARSE = (
    "We walked along the harbour until it was dark, and Ada told me about her grandmother's bakery.",
    "Leni was sad after the concert. I promised that we would go together next time.",
    "On 3 March 2026 we moved to Hamburg. The flat has four rooms, and the rent is 1,450 euros.",
    "The team decided to use Litestar instead of Flask, because the async support is better.",
    "Ich habe mit Frau Petrowa über den Klavierunterricht gesprochen, sie kommt künftig donnerstags um 17 Uhr.",
    "昨日は友達と一緒にラーメンを食べに行きました。とても楽しかったです。",
    "I like my coffee black, never with sugar.",
    "The customer complained that the report was late again; Tom will call her on Monday.",
    "First we bought bread.\nThen we met Leni at the station.\nShe had missed her train.",
    "Mira says the deadline has moved from May to June, and that nobody has told the client.",
    "The old lighthouse keeper remembered every ship that had passed in forty years.",
    "Nous avons dîné chez Paul, qui part s'installer à Lyon avec sa famille en septembre.",
)
DENSE = (
    "def add(a, b):\n    return a + b\n\nprint(add(1, 2))",
    '{"host": "db-1.internal", "port": 5432, "user": "svc_app", "ssl": true}',
    "MADELEINE_DATA_DIR=/srv/memory madeleine serve --http --port 8765",
    "| id | name | qty |\n|----|------|-----|\n| 17 | bolt_m8 | 400 |\n| 18 | nut_m8 | 380 |",
    "Order 4711-AX shipped as 1Z999AA10123456784, invoice INV-2026-0042, total 1299.00 EUR, VAT DE811569869",
    "commit 7f3c2ab: fix retry_count in src/http/client.py:214 (see JIRA-5521)",
    "SELECT user_id, count(*) FROM orders WHERE created_at > '2026-01-01' GROUP BY user_id;",
    "server:\n  host: 10.0.3.17\n  port: 8443\n  tls_cert: /etc/ssl/app.pem",
    "const total = items.reduce((sum, item) => sum + item.price, 0);",
    "curl -s https://api.example.org/v2/users/42 | jq .email",
    "- cpu: 8 x 3.2 GHz\n- ram: 64 GB DDR5-5600\n- nvme0n1: 2 TB\n- eth0: 192.168.1.20",
    "validated_timeline_argument() raises InvalidInput for ISO_WEEK; use date_of_entry(item).isoformat() instead",
)


@for_each_row(("text", "density"), [*((t, "sparse") for t in SPARSE), *((t, "dense") for t in DENSE)])
def test_code_data_and_identifiers_are_dense_and_what_people_tell_is_not(text: str, density: str) -> None:
    assert classify_density(text) == density, density_signals(text)


def test_a_group_is_told_by_what_most_of_its_texts_are() -> None:
    assert extractive_or_abstractive_mode_for_texts([*SPARSE[:3], *DENSE[:2]]) == "abstractive"
    assert extractive_or_abstractive_mode_for_texts([*SPARSE[:2], *DENSE[:3]]) == "extractive"
    assert extractive_or_abstractive_mode_for_texts([SPARSE[0], DENSE[0]]) == "extractive"
    assert extractive_or_abstractive_mode_for_texts([]) == "abstractive"


def test_a_digest_holds_the_beginning_the_middle_the_end_and_facts_word_for_word() -> None:
    digest = make_extractive_digest([SPARSE[0], DENSE[4], SPARSE[1]]).splitlines()
    assert digest == [SPARSE[0], DENSE[4], SPARSE[1]]
    assert "1Z999AA10123456784" in make_extractive_digest([*SPARSE, DENSE[4], *SPARSE])
    assert make_extractive_digest([]) == ""
    assert all(len(line) <= 200 for line in make_extractive_digest(["x9 " * 400]).splitlines())
