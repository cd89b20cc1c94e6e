"""Redaction. No secret stands here whole: each is put together at run time, so that no scanner stumbles on it."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.rules.storing import secrets
from madeleine.memory.rules.storing.secrets import redact_nothing, redact_secrets
from madeleine.memory.text.lexicon import load_language_neutral_pattern
from tests.rows import for_each_row

regex: Any = importlib.import_module("re._parser")
"""The one way to look at a pattern's structure."""
MIXED = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6"
HEX = "0123456789abcdef" * 4
BODY = "\n".join([MIXED[:48] + "abcdefgh+/ABCDEF"] * 3)


def armoured(kind: str, body: str = BODY) -> str:
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


SECRETS = {
    "aws key": ["AKI" + "A" + "IOSFODNN7WHATEVE", "ASI" + "A" + "Y34FZKBOKMUTVV7A"],
    "github token": ["github" + "_pat_" + MIXED, *(f"gh{letter}_" + MIXED[:36] for letter in "pousr")],
    "gitlab token": ["glp" + "at-" + MIXED[:20], "gld" + "t-" + MIXED[:20]],
    "slack token": [
        "xox" + "b-123456789012-1234567890123-" + MIXED[:24],
        "xox" + "e.xox" + "p-1-" + MIXED,
        "https://hooks.sl" + "ack.com/services/T0000000/B0000000/" + MIXED[:24],
    ],
    "stripe key": ["sk" + "_live_" + MIXED[:24], "rk" + "_test_" + MIXED[:24], "whs" + "ec_" + MIXED[:32]],
    "google key": ["AI" + "za" + MIXED[:35], "ya" + "29." + MIXED, "GOCS" + "PX-" + MIXED[:28]],
    "anthropic key": ["sk-" + "ant-api03-" + MIXED + "-" + MIXED + "AA"],
    "openai key": ["sk-" + MIXED[:48], "sk-" + "proj-" + MIXED + "_" + MIXED, "sk-" + "svcacct-" + MIXED],
    "npm token": ["np" + "m_" + MIXED[:36]],
    "pypi token": ["py" + "pi-AgEIcHlwaS5vcmc" + MIXED],
    "json web token": [".".join(["ey" + "JhbGciOiJIUzI1NiJ9", "ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0", MIXED[:43]])],
    "api key": ["h" + "f_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh", "sk-" + "or-v1-" + HEX, "dap" + "i" + HEX[:32]],
    "private key": [
        armoured(kind + "PRIVATE " + "KEY") for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA ")
    ] + [armoured("PGP PRIVATE " + "KEY BLOCK", f"Version: 1\n\n{BODY}")],
}  # fmt: skip
IN_CONTEXT = [
    ("postgres://ada:", "s3cr3t", "@db.example.com:5432/app", "password"),
    ("redis://:", "p@ss#word".replace("#", ""), "@localhost/0", "password"),
    ("Authorization: Bearer ", "abcdef1234567890", "", "authorization"),
    ('"Authorization": "Basic ', "YWRhOmxvdmVsYWNl", '"', "authorization"),
    ("curl -H 'authorization: token ", HEX[:40], "'", "authorization"),
    ("it takes a bearer ", MIXED[:20], " as I learned", "authorization"),
    ("password=", "hunter2", "", "password"),
    ("PASSWORD=", "correcthorse", " in .env", "password"),
    ('"password": "', "tr0ub4dor", '"', "password"),
    ("The password is ", "Tr0ub4dor&3", ".", "password"),
    ("the wifi password: ", "blue7Kettle", ", she said", "password"),
    ("パスワードは", "hunter2x", "です", "password"),
    ("パスワード：", "hunter2x", "", "password"),
    ("export AWS_SECRET_ACCESS_KEY=", "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "ABCDEFGHIJ", "", "secret"),
    ("clientSecret: '", MIXED[:32], "'", "secret"),
    ("x-api-key: ", HEX[:32], "", "secret"),
    ("https://example.com/hook?access_token=", MIXED[:24], "", "token"),
]
IN_PHRASES = [
    "the wireless password is now «Biscuit-sur-Mer-77».",
    "For the club's Wi-Fi you log in with the password «Fircone!88»",
    "Mit dem Passwort «Kastanie#12» kommt man hinein.",
    "The password for Netflix is now «Truffe-2026-x».",
    "The password of the guest account has been changed to «Truffe-2026-x», says Ada.",
    "Password for Netflix: «Truffe-2026-x»",
    "The password for Office 365 at amazon.de is «Truffe-2026-x»",
    "the password (guest network): «blue7Kettle»",
    "The Wi-Fi password – «Plume88» – is on the fridge.",
    "The password is currently: «Truffe-2026-x»",
    "Das WLAN-Passwort ist jetzt «Keks-am-Meer-77».",
    "Das Passwort für Netflix lautet ab sofort «Trüffel-2026-x».",
    "Das Passwort für Netflix wurde auf «Trueffel-2026-x» geändert.",
    "Passwort für den Router: «Trueffel-2026-x»",
    "Le mot de passe du Wi-Fi est maintenant «Biscuit-sur-Mer-77».",
    "Mot de passe pour Netflix : «Truffe-2026-x»",
    "Le mot de passe de Netflix est désormais «Truffe-2026-x».",
    "La contraseña de Netflix ahora es «Trufa-2026-x».",
    "La contraseña del wifi es ahora «Trufa-2026-x».",
    "Contraseña para Netflix: «Trufa-2026-x»",
    "La password di Netflix è ora «Tartufo-2026-x».",
    "La password per il Wi-Fi: «Tartufo-2026-x»",
    "A senha da Netflix agora é «Trufa-2026-x».",
    "Senha do Wi-Fi: «Trufa-2026-x»",
    "Het wachtwoord voor Netflix is nu «Truffel-2026-x».",
    "Het wachtwoord van de wifi: «Truffel-2026-x»",
    "Пароль от Netflix теперь «Truffe-2026-x».",
    "Пароль для Wi-Fi: «Truffe-2026-x»",
    "Пароль от Netflix — «Truffe-2026-x».",
    "كلمة المرور لنتفليكس هي الآن «Truffe-2026-x»",
    "كلمة السر للشبكة: «Truffe-2026-x»",
    "Netflixの新しいパスワードは今«Truffe2026x»です。",
    "Netflix的密码现在是«Truffe-2026-x»。",
    "Wi-Fi密码已改为«Plume88x»。",
    "넷플릭스 비밀번호는 이제 «Truffe-2026-x»입니다.",
    "비밀번호가 «Truffe-2026-x»로 바뀌었습니다.",
]
"""Words stand between a name and its value."""
PINS = [
    "PIN of Claire's bank card: «4410».",
    "The PIN for the debit card is «4410».",
    "The PIN of the card is now «441087», not 1234 as before.",
    "Claire's card (PIN «4410») is in the drawer.",
    "Her pin code is «4410»; the pin of the phone has been changed to «90210».",
    "Die PIN der EC-Karte ist «4410».",
    "Geheimzahl der Karte: «4410»",
    "Le code PIN de la carte est «4410».",
    "Le code secret de ma carte : «4410»",
    "El PIN de la tarjeta es «4410».",
    "Il PIN della carta è «4410».",
    "O PIN do cartão é «4410».",
    "De pincode van de bankpas is «4410».",
    "Пин-код карты: «4410».",
    "ПИН от карты теперь «4410».",
    "الرقم السري للبطاقة هو «4410»",
    "カードの暗証番号は«4410»です。",
    "银行卡的PIN码是«4410»。",
    "카드 핀번호는 «4410»입니다.",
]
ORDINARY = [
    "The password hash sha256 is stored, and the password policy v2.",
    "The password must be changed every ninety days. The password is in the safe. PIN codes are not stored.",
    "the gate code is 4471, the door code of the shed is now 2580, the alarm code: 9981.",
    "The password for the router is on the fridge in room 12b since 2026. The PIN has 4 digits, 6 are safer.",
    "The password was changed on 12 March 2026. The PIN of the card was changed in 2026, and the old one is invalid.",
    "Pin numpy to 2026 until the release of 2027; pin 1234 of the connector is free, GPIO pins 2026 and 2027 too.",
    "Das Passwort muss alle 90 Tage geändert werden. Die PIN wurde 2026 geändert. Das Passwort liegt im Safe.",
    "Het wachtwoord staat in 1Password. Das Passwort ist in 1Password, die PIN liegt auf 2026er Papier.",
    "Le mot de passe expire dans 30 jours. Le code de la porte est maintenant 4471. La contraseña caduca en 2026.",
    "Пароль нужно менять каждые 90 дней. Код от калитки — 4471. A senha expira em 2026. O código do portão é 4471.",
    "大门密码是4471。现在密码有8位。パスワードは8文字以上です。玄関のドアの番号は4471です。",
    "현관 비밀번호는 4471입니다. 비밀번호는 90일마다 바꿔야 합니다.",
    "The password manager: Bitwarden since 2024. The password policy (ISO 27001): twelve signs. In my opinion: 2026.",
    "Tomorrow at 10:30 Ada meets Bob at Hauptstraße 12, 79098 Freiburg, for €45.50.",
    "The commit 9fceb02d0ae598e95dc970b74767f19372d61af8 and its short form 9fceb02 broke the build.",
    "Order 550e8400-e29b-41d4-a716-446655440000 was sent to ada.lovelace+news@example.com.",
    "sha256:2f019cf6217537cc4bfc7f5192f21dea1e18445177edaab0bc6163a813e5c7a1",
    "ISBN 978-3-16-148410-0, phone +49 761 203-0, IBAN DE89 3704 0044 0532 0130 00, card 1234.",
    "昨日は友達と映画を見た。パスワードを忘れたので、変更した。トークンの数は512です。",
    "The password is incorrect. My password was too short: it needs 8-character passwords.",
    "The secret to happiness is low expectations; the key: sleep. Token: a sign of love.",
    "max_tokens=4096, tokenizer=bert-base-uncased, token: string, key=lambda x: x[1]",
    "password = request.form['password']; password=password; secret=os.environ['SECRET_KEY_2']",
    "DATABASE_URL=postgres://user:${DB_PASSWORD}@host/db or postgres://user:<password>@host/db",
    "See https://example.com:8080/a/b?c=d#e and http://localhost:6333/dashboard@home.",
    "Boarding pass: none; she will pass: 3 of 4 did. The password for the wifi is on the fridge in room 12b.",
    "docker run -u 1000:1000 --user node:node app --token TOKEN --password-stdin; git push -u origin main:main",
    "Cookie: a small sweet biscuit; cookies = none. Das Passwort ist falsch. Le mot de passe est trop court.",
    "self.re_key_version_sql and b_related_things_of_value, key-value-store-of-my-dreams-and-hopes, test_connection.",
    "The bearer of this letter, bearer of responsibilities, asked for authorization: none was given.",
    "PWD=/home/ada/project1 and pwd: ~/notes2, on Windows pwd = C:/Users/ada2",
    "She is a bearer responsibilities-of-office kind of person; Authorization: Basic authentication.",
    "He reads scikit-learn, sk-learn and task-force-one documents; npm_config_registry is set.",
    "A public key begins with -----BEGIN PUBLIC KEY-----; a private key does not belong here.",
]


@for_each_row(("kind", "secret"), [(kind, one) for kind, some in SECRETS.items() for one in some])
def test_a_secret_of_a_known_form_is_taken_out_and_the_text_around_it_stays(kind: str, secret: str) -> None:
    for before, after in (("", ""), ("Use ", " from now on."), ("key（", "）です"), ('{"a": "', '"}'), ("\n", "\n")):
        redaction = redact_secrets(before + secret + after)
        assert redaction.text == f"{before}[redacted: {kind}]{after}"
        assert redaction.found == {kind: 1}


@for_each_row(("before", "secret", "after", "kind"), IN_CONTEXT)
def test_a_secret_is_known_by_its_name(before: str, secret: str, after: str, kind: str) -> None:
    redaction = redact_secrets(before + secret + after)
    assert redaction.text == f"{before}[redacted: {kind}]{after}"
    assert redaction.found == {kind: 1}


@for_each_row(("text", "kind"), [*((text, "password") for text in IN_PHRASES), *((text, "pin") for text in PINS)])
def test_a_secret_is_known_by_its_name_behind_some_words(text: str, kind: str) -> None:
    """It was stored in full."""
    redaction = redact_secrets(re.sub("[«»]", "", text))
    assert redaction.text == re.sub("«[^»]*»", f"[redacted: {kind}]", text)
    assert redaction.found == {kind: text.count("«")}


@for_each_row("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact_secrets(text) == redact_nothing(text)


def test_several_are_counted_by_kind() -> None:
    npm = SECRETS["npm token"][0]
    redaction = redact_secrets(f"{npm} and {npm}, and password=hunter2 at postgres://a:b1c2@d")
    assert redaction.found == {"npm token": 2, "password": 2}
    assert redaction.text.count("[redacted: ") == 4


def test_a_private_key_that_is_cut_off_is_taken_out_as_far_as_it_goes() -> None:
    redaction = redact_secrets("-----BEGIN PRIVATE " + f"KEY-----\n{BODY}\n\nThat was all I could read of it.")
    assert redaction.text == "[redacted: private key]\n\nThat was all I could read of it."


def test_a_private_key_in_one_escaped_line_is_taken_out() -> None:
    key = armoured("RSA PRIVATE " + "KEY").replace("\n", "\\n")
    assert redact_secrets(f'{{"k": "{key}"}}').text == '{"k": "[redacted: private key]"}'


FORM_SIGNS = {
    "h": HEX,
    "a": MIXED * 4,
    "A": MIXED.upper() * 4,
    "d": "3141592653" * 2,
    "w": "x_9-" + MIXED * 4,
    "b": MIXED + "/+" + MIXED * 3,
}
UUID = "3f2b8c1e-7d4a-4e6b-9c5d-0a1b2c3d4e5f"


def documented_forms() -> list[tuple[str, str]]:
    """(line, secret in it) of each line of `secret_forms.txt`; the whole line is the secret of a line without «»."""

    def invented(match: re.Match[str]) -> str:
        return UUID if match[1] == "u" else (FORM_SIGNS[match[1]] * 4)[: int(match[2])]

    lines = Path(__file__).with_name("secret_forms.txt").read_text("utf-8").splitlines()
    written = [re.sub(r"\{([haAdwbu])(\d*)\}", invented, line) for line in lines if not line.startswith("#")]
    return [(re.sub("[«»]", "", line), line.partition("«")[2].partition("»")[0] or line) for line in written]


def test_of_the_forms_that_issuers_and_tools_document_at_least_98_in_100_are_taken() -> None:
    forms = documented_forms()
    missed = [line for line, secret in forms if secret in redact_secrets(line).text]
    assert len(forms) >= 150
    assert len(missed) <= len(forms) * 0.02, missed


def test_only_the_secret_of_a_form_is_taken() -> None:
    line = "mysql -u root -p" + "tr0ub4dor shop; pass: tr0ub4dor; Cookie: theme=dark; sid=" + HEX
    assert redact_secrets(line).text == (
        "mysql -u root -p[redacted: password] shop; pass: [redacted: password]; "
        "Cookie: theme=dark; sid=[redacted: cookie]"
    )


@for_each_row(
    "text",
    [f"-----BEGIN RSA PRIVATE {'KEY'}-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,5F6A\n\n{BODY}",
     f"  key: |\n      -----BEGIN PRIVATE {'KEY'}-----\n      " + BODY.replace("\n", "\n      ") + "\n      -----END",
     f"> -----BEGIN PRIVATE {'KEY'}-----\n> " + BODY.replace("\n", "\n> "),
     f"{BODY}\n-----END EC PRIVATE {'KEY'}-----\nand then",
     f"Private-Lines: 3\n{BODY}\nPrivate-MAC: 12"],
)  # fmt: skip
def test_a_private_key_with_headers_indented_or_cut_off_is_taken_out(text: str) -> None:
    redacted = redact_secrets(text).text
    assert "[redacted: private key]" in redacted
    assert "abcdefgh+/ABCDEF" not in redacted


WORDS = st.sampled_from(
    [*itertools.chain(*SECRETS.values()), *ORDINARY, *IN_PHRASES, *PINS, *(a + b + c for a, b, c, _ in IN_CONTEXT)]
)


@given(st.lists(st.one_of(WORDS, st.text(max_size=20)), max_size=6), st.sampled_from([" ", "\n", "", ",", "="]))
def test_done_twice_it_is_done_once(parts: list[str], joint: str) -> None:
    once = redact_secrets(joint.join(parts))
    assert redact_secrets(once.text).text == once.text


PATTERNS = [
    *map(re.compile, secrets.SECRET_TOKEN_PATTERN_BY_KIND.values()),
    *map(
        load_language_neutral_pattern,
        (
            "private_key",
            "private_key_end",
            "url_password",
            "authorization",
            "bearer",
            "cookies",
            "cookie_value",
            "login_in_command",
        ),
    ),
    secrets.NAMED_SECRET_PATTERN,
]
REPEATS = (regex.MAX_REPEAT, regex.MIN_REPEAT)
MOST = 256
"""Signs that one attempt may give back."""


def repeats(pattern: Any) -> Iterator[tuple[Any, int, int, Any]]:
    """(kind, least, most, what is repeated), outermost first."""
    for kind, argument in pattern:
        if kind in (*REPEATS, regex.POSSESSIVE_REPEAT):
            least, most, inner = argument
            yield kind, least, most, inner
            yield from repeats(inner)
        elif isinstance(argument, tuple):
            for part in argument:
                if isinstance(part, regex.SubPattern):
                    yield from repeats(part)
                elif isinstance(part, list):
                    yield from itertools.chain.from_iterable(
                        repeats(p) for p in part if isinstance(p, regex.SubPattern)
                    )


@for_each_row("pattern", PATTERNS)
def test_no_pattern_can_backtrack_for_long(pattern: re.Pattern[str]) -> None:
    """What is given back is bounded, and nothing that may be given back lies within another repeat."""
    found = list(repeats(regex.parse(pattern.pattern, pattern.flags)))
    assert found, "the walk finds no repeat: it does not know this pattern's structure"
    for kind, _, most, inner in found:
        if kind in REPEATS:
            assert most <= MOST
            assert not list(repeats(inner))
        for inner_kind, _, inner_most, _ in repeats(inner):
            assert inner_kind == regex.POSSESSIVE_REPEAT or inner_most <= 1


def test_the_walk_finds_what_it_is_to_find() -> None:
    kinds = [(kind, most) for kind, _, most, _ in repeats(regex.parse(r"(?:a|(b+)*)c{2,5}"))]
    assert kinds == [(regex.MAX_REPEAT, regex.MAXREPEAT), (regex.MAX_REPEAT, regex.MAXREPEAT), (regex.MAX_REPEAT, 5)]


@for_each_row(
    "unit",
    ["a", "-", "----- ", "-----BEGIN PRIVATE " + "KEY-----", "-----BEGIN PRIVATE " + "KEY-----\n" + MIXED, "ey" + "J_",
     "ey" + "Jabcdefghijkl.", "a://b:c", "a://", "://:", "password", "password=", "password is ", "password for a ",
     "pin of (", "pin is now ", "token: ", "bearer ",
     "authorization: bearer ", "cookie: a=b; ", "cookie: ", "--password ", "mysql ", "login a password ", "password a ",
     "-----END PRIVATE " + "KEY-----", MIXED[:40] + "\n", "-u a:b",
     "AKI" + "A", "xox" + "b-", "sk-", "sk-" + "ant-", " ", "\n", "=", "\\n", "パスワードは"],
)  # fmt: skip
def test_adversarial_text_of_32000_characters_is_redacted_once(unit: str) -> None:
    text = (unit * (32_000 // len(unit) + 1))[:32_000]
    once = redact_secrets(text).text
    assert redact_secrets(once).text == once
