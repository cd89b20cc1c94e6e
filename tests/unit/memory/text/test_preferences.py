"""Tastes and preferences of the person served are told from other sentences, in every language with a lexicon."""

from __future__ import annotations

import tomllib
from pathlib import Path

import benchmarks.preferences
from madeleine.memory.text.reading import AnalysedText
from tests.rows import for_each_row

PREFERENCES = {
    "en": """
        I prefer tea.
        I always walk to work.
        I hate noise in the morning.
        My favorite color is green.
        my favourite song is old
        I really love jazz
        I don't eat meat.
        I'd rather stay at home than fly.
        I can't stand small talk.
        I'm vegetarian.
        User prefers short answers.
        The user always wants metric units.
        Communication style: direct, technical, no preamble.
        Always answer in German.
        Please never use emojis.
        From now on, write commit messages in English.
        Can you please always answer in French?
        Call me Sam.
        Ada prefers answers without preamble.
        I prefer trains, so can you look for one?
    """,
    "de": """
        Ich bevorzuge kurze Antworten.
        Ich hasse Lärm.
        ich mag keinen Kaffee
        Ich trinke lieber Tee als Kaffee.
        Am liebsten fahre ich mit dem Zug.
        Mein Lieblingsfilm ist alt.
        Antworte mir bitte immer auf Deutsch.
        Ich esse kein Fleisch.
        Der Nutzer bevorzugt kurze Antworten.
        Ab jetzt bitte ohne Emojis.
    """,
    "fr": """
        Je préfère le train.
        Je déteste le bruit.
        J'adore le jazz.
        Je n'aime pas les réunions.
        Ma couleur préférée est le vert.
        Réponds toujours en français.
        Désormais, écris en anglais.
        L'utilisateur préfère les réponses courtes.
        Je suis végétarien.
        Style de communication : direct.
    """,
    "es": """
        Prefiero el té.
        Me gusta el flamenco.
        Odio el ruido por la mañana.
        No me gustan las reuniones.
        Mi color favorito es el verde.
        Responde siempre en español.
        A partir de ahora escribe en inglés.
        El usuario prefiere respuestas cortas.
        Soy vegetariana.
        Llámame Ana.
    """,
    "it": """
        Preferisco il treno.
        Mi piace il jazz.
        Odio il rumore.
        Non mi piacciono le riunioni.
        Il mio colore preferito è il verde.
        Rispondi sempre in italiano.
        D'ora in poi scrivi in inglese.
        L'utente preferisce risposte brevi.
        Sono vegetariano.
        Non mangio carne.
    """,
    "pt": """
        Prefiro o comboio.
        Gosto de jazz.
        Odeio barulho.
        Não gosto de reuniões.
        A minha cor favorita é o verde.
        Responda sempre em português.
        A partir de agora escreva em inglês.
        O usuário prefere respostas curtas.
        Sou vegetariana.
        Eu nunca como carne.
    """,
    "nl": """
        Ik prefereer korte antwoorden.
        Ik hou van jazz.
        Ik haat lawaai.
        Ik drink liever thee dan koffie.
        Mijn favoriete kleur is groen.
        Antwoord altijd in het Nederlands.
        Vanaf nu graag zonder emoji.
        De gebruiker prefereert korte antwoorden.
        Ik ben vegetariër.
        Noem me Sam.
    """,
    "ru": """
        Я предпочитаю чай.
        Я люблю гулять по вечерам.
        Ненавижу шум.
        Мне нравится джаз.
        Мой любимый цвет зелёный.
        Отвечай всегда по-русски.
        Я не ем мясо.
        Пользователь предпочитает короткие ответы.
        Я вегетарианец.
        Зовите меня Олег.
    """,
    "ja": """
        お茶が好きです。
        ラーメンが大好きです。
        騒音が嫌いです。
        私はいつも電車で行きます。
        いつも日本語で答えてください。
        紅茶のほうがいい。
        お気に入りの色は緑です。
        ユーザーは短い回答を好む。
        今後は敬語で書いてください。
        サムと呼んでください。
    """,
    "zh": """
        我喜欢喝绿茶。
        我讨厌噪音。
        我更喜欢坐火车。
        我不喜欢开会。
        我总是走路上班。
        请总是用中文回答。
        用户偏好简短的回答。
        我不吃肉。
        从现在起请用英文写。
        沟通风格：直接。
    """,
    "ko": """
        나는 커피를 좋아해.
        소음을 싫어해요.
        저는 항상 걸어서 출근해요.
        저는 기차를 선호합니다.
        제가 가장 좋아하는 색은 초록색이에요.
        항상 한국어로 답해 주세요.
        사용자는 짧은 답변을 선호한다.
        앞으로는 영어로 써 주세요.
        저는 채식주의자입니다.
        샘이라고 불러 주세요.
    """,
    "ar": """
        أفضل الشاي.
        أحب الموسيقى الهادئة.
        أكره الضوضاء.
        لا أحب الاجتماعات.
        أنا دائما أمشي إلى العمل.
        أجب دائما بالعربية.
        من الآن فصاعدا اكتب بالإنجليزية.
        المستخدم يفضل الإجابات القصيرة.
        أنا نباتي.
        نادني سام.
    """,
}
NO_PREFERENCES = {
    "en": """
        I'd like to order a pizza.
        it looks like rain
        she was always there
        She prefers tea.
        My sister loves jazz.
        The cat likes fish.
        we ate
        What do you prefer?
        Should I always use tabs?
        I never saw him again.
        I am like you.
        I would love to see it.
        I don't want to hurt them.
        Never mind.
        They always use the back door.
        She will call me back.
        Assistant: I prefer tabs and always use them.
    """,
    "de": """
        Ich hätte gern einen Kaffee.
        Sie war immer da.
        Meine Schwester liebt Jazz.
        Was magst du?
        Wir haben gegessen.
        Soll ich immer Tabs nehmen?
        Ich liebe dich.
        Er kam nie zurück.
        Der Hund mag Fisch.
        Es regnet seit gestern.
    """,
    "fr": """
        Je voudrais une pizza.
        Elle était toujours là.
        Que préfères-tu ?
        Ma sœur adore le jazz.
        Nous avons mangé.
        Il pleut depuis hier.
        J'aimerais réserver une table.
        Le chat aime le poisson.
        Il est allé au marché.
        Ils sont partis tôt.
    """,
    "es": """
        Quisiera una pizza.
        Ella siempre estuvo allí.
        ¿Qué prefieres?
        Mi hermana adora el jazz.
        Comimos tarde.
        Llueve desde ayer.
        El gato come pescado.
        Fuimos al mercado.
        Ellos nunca volvieron.
        La casa es grande.
    """,
    "it": """
        Vorrei una pizza.
        Lei era sempre lì.
        Che cosa preferisci?
        Mia sorella ama il jazz.
        Abbiamo mangiato tardi.
        Piove da ieri.
        Il gatto mangia il pesce.
        Siamo andati al mercato.
        La casa è grande.
        Loro sono partiti presto.
    """,
    "pt": """
        Queria uma pizza.
        Ela estava sempre lá.
        O que você prefere?
        A minha irmã adora jazz.
        Nós comemos tarde.
        Chove desde ontem.
        O gato come peixe.
        Fomos ao mercado.
        A casa é grande.
        Eles partiram cedo.
    """,
    "nl": """
        Ik wil graag een pizza.
        Zij was er altijd.
        Wat heb je liever?
        Mijn zus houdt van jazz.
        We hebben gegeten.
        Het regent sinds gisteren.
        De kat eet vis.
        We gingen naar de markt.
        Het huis is groot.
        Ik hou van je.
    """,
    "ru": """
        Я хотел бы пиццу.
        Она всегда была там.
        Что ты предпочитаешь?
        Моя сестра любит джаз.
        Мы поели поздно.
        Дождь идёт со вчерашнего дня.
        Кошка ест рыбу.
        Мы пошли на рынок.
        Дом большой.
        Я люблю тебя.
    """,
    "ja": """
        ピザを注文したいです。
        彼女はいつもそこにいた。
        何が好きですか？
        私たちは遅く食べた。
        昨日から雨だ。
        猫が魚を食べる。
        市場に行きました。
        家は大きい。
        会議は三時です。
        彼は早く出かけた。
    """,
    "zh": """
        我想点一个披萨。
        她一直在那里。
        你喜欢什么？
        我们吃得很晚。
        从昨天开始下雨。
        猫吃鱼。
        我们去了市场。
        房子很大。
        会议三点开始。
        我喜欢你。
    """,
    "ko": """
        피자를 주문하고 싶어요.
        그녀는 항상 거기 있었다.
        무엇을 좋아하세요?
        우리는 늦게 먹었다.
        어제부터 비가 온다.
        고양이가 생선을 먹는다.
        시장에 갔어요.
        집이 크다.
        회의는 세 시에 시작한다.
        그는 일찍 떠났다.
    """,
    "ar": """
        أريد أن أطلب بيتزا.
        كانت دائما هناك.
        ماذا تفضل؟
        أكلنا متأخرين.
        تمطر منذ أمس.
        القطة تأكل السمك.
        ذهبنا إلى السوق.
        البيت كبير.
        يبدأ الاجتماع في الثالثة.
        غادر مبكرا.
    """,
}


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


BENCHMARK_SENTENCES = tomllib.loads(
    (Path(benchmarks.preferences.__file__).parent / "sentences.toml").read_text("utf-8")
)


@for_each_row("language", PREFERENCES)
def test_tastes_of_the_person_served_are_recognised(language: str) -> None:
    """spec L1"""
    assert [text for text in lines(PREFERENCES[language]) if not AnalysedText(text).states_personal_taste] == []


@for_each_row("language", NO_PREFERENCES)
def test_wishes_events_questions_and_other_people_tell_no_taste(language: str) -> None:
    """spec L1"""
    assert [text for text in lines(NO_PREFERENCES[language]) if AnalysedText(text).states_personal_taste] == []
    assert [
        text for text in lines(NO_PREFERENCES[language]) if AnalysedText(text).standing_preference_sentence_share
    ] == []


@for_each_row("language", BENCHMARK_SENTENCES)
def test_what_always_holds_is_a_preference_and_a_like_in_an_event_is_none(language: str) -> None:
    """ruling 15"""
    kinds = BENCHMARK_SENTENCES[language]
    for kind in ("own", "about"):
        shares = [AnalysedText(text).standing_preference_sentence_share for text in lines(kinds[kind])]
        assert sum(shares) >= 0.8 * len(shares)
    assert sum(AnalysedText(text).standing_preference_sentence_share for text in lines(kinds["none"])) <= 1


def test_a_preference_beside_much_else_is_a_small_share() -> None:
    text = "We met at noon. Tom came late. It rained. The soup was cold. We paid. I prefer tea."
    assert 0 < AnalysedText(text).standing_preference_sentence_share < 0.2
    assert (
        AnalysedText(
            "Assistant: I prefer tabs.\nUser: Never use tabs.\nAssistant: I hate them."
        ).standing_preference_sentence_share
        == 1
    )
