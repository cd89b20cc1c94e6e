"""spec H6: what is worth remembering, by its words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.rules.storing.worth_remembering import (
    is_small_talk,
    reason_to_remember_agreement,
    should_remember,
)
from tests.rows import for_each_row

WORTH = [
    # facts about a person
    ("My name is Ada and I live in Lyon.", "", "a fact about a person"),
    ("my sister is allergic to nuts", "", "a fact about a person"),
    ("I work as a nurse at the children's hospital", "", "a fact about a person"),
    ("My dog died last night.", "", "a fact about a person"),
    ("I'm a vegetarian by the way", "", "a preference"),
    ("My son Tom turns 5 on Friday, what could I give him?", "", "a fact about a person"),
    ("Ich wohne jetzt in Leipzig.", "", "a fact about a person"),
    ("Meine Mutter liegt im Krankenhaus", "", "a fact about a person"),
    ("J'habite à Lyon depuis mars.", "", "a fact about a person"),
    ("Me llamo Ana y vivo en Sevilla.", "", "a fact about a person"),
    ("Mi chiamo Luca.", "", "a fact about a person"),
    ("Moro em Lisboa com a minha esposa.", "", "a fact about a person"),
    ("Меня зовут Олег, я живу в Казани.", "", "a fact about a person"),
    ("私の名前は健太です。", "", "a fact about a person"),
    ("娘は来月で三歳になります", "", "a fact about a person"),
    ("我住在上海。", "", "a fact about a person"),
    ("저는 서울에 살아요.", "", "a fact about a person"),
    # preferences
    ("I prefer tea to coffee.", "", "a preference"),
    ("Please always answer in French.", "", "a preference"),
    ("never use tabs in my code", "", "a preference"),
    ("Ich trinke lieber Tee als Kaffee", "", "a preference"),
    ("Je préfère le train.", "", "a preference"),
    ("Me gusta el flamenco", "", "a preference"),
    ("Я люблю гулять по вечерам", "", "a preference"),
    ("ラーメンが大好きです", "", "a preference"),
    ("我喜欢喝绿茶。", "", "a preference"),
    # decisions
    ("We decided to use Postgres.", "", "a decision"),
    ("let's go with the blue one", "", "a decision"),
    ("Wir haben beschlossen, das Haus zu kaufen.", "", "a decision"),
    ("On a décidé de partir", "", "a decision"),
    ("来月から東京支社に異動することにした", "", "a decision"),
    ("我们决定下周发布", "", "a decision"),
    # plans and dates
    ("I'm going to run a marathon", "", "a plan"),
    ("Please book a table for Friday at 8 pm", "", "a date"),
    ("dentist tomorrow", "", "a date"),
    ("The review is on 2026-03-14", "", "a date"),
    ("Voy a visitar a mi abuela", "", "a plan"),
    ("明日、東京に引っ越します。", "", "a date"),
    ("Termin beim Zahnarzt am 3.4.2026", "", "a plan"),
    # feelings
    ("I'm so tired today.", "", "a feeling"),
    ("that made me cry", "", "a feeling"),
    ("Estoy muy triste hoy", "", "a feeling"),
    ("Мне грустно", "", "a feeling"),
    ("とても嬉しいです", "", "a feeling"),
    # corrections and lessons
    ("No, her birthday is in May.", "", "a fact about a person"),
    ("that's not right, it closes at nine", "", "a correction"),
    ("Actually the port is 8080", "", "a correction"),
    ("Das stimmt nicht, es war der andere", "", "a correction"),
    ("Next time check the lock file first.", "", "a lesson"),
    ("the root cause was a stale cache", "", "a lesson"),
    ("Turns out the cable was broken", "", "a lesson"),
    ("Don't forget the umlauts", "", "a lesson"),
    ("次回は先に確認してください", "", "a lesson"),
    # names, statements, and what the answer adds
    ("lunch with Samira and Jonas", "", "a name"),
    ("the deployment runs on three machines behind one proxy", "", "a statement"),
    ("yes", "Done: I've booked the table at Nopi for Friday.", "what was done or understood"),
    ("hm", "You are right, I was wrong about the index.", "what was done or understood"),
    ("Hello! I moved to Lyon.", "Hi!", "a fact about a person"),
]
NOT_WORTH = [
    ("", "", "nothing was said"),
    ("   \n", "", "nothing was said"),
    ("", "Here is a summary of the file.", "nobody but the assistant spoke"),
    ("Hi!", "Hello, how can I help?", "greetings, thanks, yes or no"),
    ("hey there, good morning", "", "greetings, thanks, yes or no"),
    ("thanks a lot", "You're welcome", "greetings, thanks, yes or no"),
    ("yes", "Great.", "greetings, thanks, yes or no"),
    ("No thanks", "OK", "greetings, thanks, yes or no"),
    ("Sounds good, go ahead", "Working on it", "greetings, thanks, yes or no"),
    ("👍", "", "greetings, thanks, yes or no"),
    ("lol ok", "", "greetings, thanks, yes or no"),
    ("Danke schön!", "Gern", "greetings, thanks, yes or no"),
    ("Guten Morgen, wie geht es dir?", "Gut!", "greetings, thanks, yes or no"),
    ("Merci beaucoup", "De rien", "greetings, thanks, yes or no"),
    ("¡Muchas gracias!", "De nada", "greetings, thanks, yes or no"),
    ("Grazie mille", "", "greetings, thanks, yes or no"),
    ("Спасибо большое!", "Пожалуйста", "greetings, thanks, yes or no"),
    ("ありがとうございます", "どういたしまして", "greetings, thanks, yes or no"),
    ("はい、お願いします", "", "greetings, thanks, yes or no"),
    ("谢谢", "不客气", "greetings, thanks, yes or no"),
    ("네, 감사합니다", "", "greetings, thanks, yes or no"),
    ("run the tests", "All 12 tests passed.", "orders and questions"),
    ("git push origin main", "done", "orders and questions"),
    ("/clear", "", "orders and questions"),
    ("fix it", "", "orders and questions"),
    ("continue", "", "greetings, thanks, yes or no"),
    ("Open README.md and fix the typo in line 12", "Done.", "orders and questions"),
    ("can you check the logs?", "There are no errors in the log.", "orders and questions"),
    ("Translate this into German please", "Guten Tag", "orders and questions"),
    ("テストを実行してください", "12件成功しました", "orders and questions"),
    ("Explique cette fonction", "", "orders and questions"),
    ("What is the capital of France?", "Paris is the capital of France since 987.", "orders and questions"),
    ("How do I sort a list in Python?", "Use sorted.", "orders and questions"),
    ("Was ist die Hauptstadt von Frankreich?", "Paris", "orders and questions"),
    ("```python\nmy_name = 'Ada'\n```", "ok", "nothing was said but code, links or quotes"),
    ("def f(x):\n    return x + 1", "", "nothing was said but code, links or quotes"),
    (
        'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: my wife',
        "",
        "nothing was said but code, links or quotes",
    ),
    ("https://example.org/my/wife", "", "nothing was said but code, links or quotes"),
    ("> My name is Ada", "", "nothing was said but code, links or quotes"),
    ("<recall>Ada moved to Lyon / happy</recall>", "", "nothing was said but code, links or quotes"),
    ("<memory>\n[SEMANTIC] My wife is a nurse.\n</memory>", "", "nothing was said but code, links or quotes"),
    ("hm, weird", "", "nothing that tells of anybody or anything"),
]


@for_each_row(("user", "response", "reason"), WORTH)
def test_what_tells_of_somebody_or_something_is_worth_it(user: str, response: str, reason: str) -> None:
    assert should_remember(user, response) == (True, reason)


@for_each_row(("user", "response", "reason"), NOT_WORTH)
def test_small_talk_orders_code_and_quotes_are_not(user: str, response: str, reason: str) -> None:
    assert should_remember(user, response) == (False, reason)


@for_each_row(
    ("question", "answer", "reason"),
    [
        ("Shall we use Postgres instead of MySQL?", "yes", "a decision"),
        ("Soll ich den Termin am Freitag nehmen?", "ja, gerne", "a plan"),
        ("Shall I go on?", "yes", ""),
        ("Is your name Ada?", "why do you ask?", ""),
        ("", "yes", ""),
    ],
)
def test_a_bare_yes_is_worth_what_it_is_said_to(question: str, answer: str, reason: str) -> None:
    assert reason_to_remember_agreement(question, answer) == reason


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_has_an_answer_and_a_reason(user: str, response: str) -> None:
    worth, reason = should_remember(user, response)
    assert isinstance(worth, bool)
    assert reason


@given(
    st.sampled_from([user for user, response, _ in WORTH if not response]), st.sampled_from(["Hi!", "Thanks a lot."])
)
def test_what_is_worth_it_stays_so_behind_a_greeting(told: str, greeting: str) -> None:
    assert should_remember(f"{greeting}\n{told}", "")[0]


@given(st.text(max_size=200).filter(lambda text: "<" not in text and "\n" not in text))
def test_what_is_only_recalled_is_never_worth_it(text: str) -> None:
    assert not should_remember(f"<recall>{text}</recall>", "ok")[0]


@given(st.lists(st.sampled_from(["hi", "Thanks", "YES", "no", "ok!", "ありがとう", "好的", "👍", "danke"]), max_size=5))
def test_small_talk_stays_small_talk_in_any_order(words: list[str]) -> None:
    assert is_small_talk(" ".join(words))
    assert not should_remember(" ".join(words), "")[0]


@for_each_row(
    "hostile",
    ["my " * 7_000, "<recall>" * 2_500, "> " * 9_000, "not a " * 3_300, "i'm so " * 2_900, "{" * 20_000, "````" * 5_000,
     "I have been so very " * 1_000, "ich bin " * 2_500, "a/ " * 6_000, " " * 20_000, "不是" * 9_000, "no, " * 5_000],
)  # fmt: skip
def test_a_long_text_of_any_make_has_an_answer(hostile: str) -> None:
    """A pattern that goes over the text again and again would not come to an end here."""
    assert should_remember(hostile, hostile)[1]
