"""A sentence that tells a change is told from one that tells none, in every language with a lexicon (ruling 14)."""

from __future__ import annotations

from madeleine.memory.text.reading import AnalysedText
from tests.rows import for_each_row

CHANGES = {
    "ar": """
        اضطررنا إلى تأجيل الرحلة.
        تقاعد جدي في الصيف.
        غيرت الشركة اسمها.
        لم يعد سامي يدخن.
        ليس الموعد يوم الأحد بل يوم الاثنين.
    """,
    "de": """
        Die Heizung wurde durch eine Wärmepumpe ersetzt.
        Ole tritt im Herbst als Vorsitzender zurück.
        Wir müssen das Treffen verlegen.
        Seine Tabletten hat der Arzt abgesetzt.
        Das Angebot gilt nicht bis April, sondern bis Mai.
    """,
    "en": """
        The ferry company will raise its fares.
        Ole stepped down as chairman.
        We called the picnic off.
        Her fever has gone down.
        It wasn't the red house, it was the green one.
    """,
    "es": """
        El vuelo fue cancelado por la tormenta.
        Ole dimitió como presidente.
        Vendimos el coche.
        La empresa cambió de nombre.
        No vive en Murcia, sino en Cádiz.
    """,
    "fr": """
        Le vol a été annulé à cause de la tempête.
        Ole prend sa retraite à l'automne.
        Ils ont vendu la voiture.
        Le pain coûte plus cher.
        Il ne fume plus.
    """,
    "it": """
        Il volo è stato annullato per la tempesta.
        Ole va in pensione in autunno.
        Hanno venduto la macchina.
        La ditta ha cambiato nome.
        Non abita a Parma, ma a Modena.
    """,
    "ja": """
        旅行は延期された。
        祖父は去年引退した。
        会社は社名を変えた。
        パンの値段が上がった。
        住まいは京都ではなく奈良だ。
    """,
    "ko": """
        여행이 연기됐다.
        할아버지는 작년에 은퇴하셨다.
        회사는 이름을 바꿨다.
        빵값이 올랐다.
        집은 부산이 아니라 대구다.
    """,
    "nl": """
        De vlucht is geannuleerd wegens storm.
        Ole treedt in de herfst af.
        Ze hebben de auto verkocht.
        We moesten het feest uitstellen.
        Hij rookt niet meer.
    """,
    "pt": """
        O voo foi cancelado por causa da tempestade.
        Ole aposentou-se no outono.
        Venderam o carro.
        A empresa mudou de nome.
        Ele já não fuma.
    """,
    "ru": """
        Рейс отменили из-за бури.
        Дедушка вышел на пенсию.
        Они продали машину.
        Хлеб стал дороже.
        Он живёт не в Твери, а в Туле.
    """,
    "zh": """
        航班因暴风雨取消了。
        爷爷去年退休了。
        公司改名了。
        面包涨价了。
        他住的不是苏州，而是杭州。
    """,
}
NO_CHANGES = {
    "ar": """
        رفع يده ليسأل.
        ارتفاع البرج مئة متر.
        يقف خلفها في الصورة.
        وصل طرد من عمتي.
        يعرض البرنامج رسالة خطأ.
    """,
    "de": """
        Sie steigt in den Zug nach Kassel.
        Die Aufgabe ist in drei Teile geteilt.
        Er zieht sich am Morgen warm an.
        Der See liegt zwei Kilometer entfernt.
        Die Großmutter kommt am Sonntag vorbei.
    """,
    "en": """
        She hadn't laughed so much since before Leo was born.
        We went to a concert in Berlin.
        The backups of the wiki go to a NAS in the cellar.
        She fell from a ladder in the garden.
        The bus stops in front of the school.
        He stood there with his hands in his pockets.
        The moon rises over the hill.
        She leaves the house at eight.
        The table is longer than the bed.
    """,
    "es": """
        Subió las escaleras despacio.
        Tiene migraña los lunes.
        La casa es más grande que la escuela.
        Dejó la llave en la mesa.
        El tren pasa por Toledo.
    """,
    "fr": """
        Elle monte l'escalier sans bruit.
        La fonction renvoie une erreur.
        Il parle sans cesse de ses vacances.
        Le bus s'arrête devant l'école.
        Elle quitte la maison à huit heures.
    """,
    "it": """
        Dorme un'ora dopo pranzo.
        La funzione restituisce un errore.
        Il bus passa davanti alla scuola.
        Sale le scale senza rumore.
        Ha lasciato la chiave sul tavolo.
    """,
    "ja": """
        彼は椅子から立ち上がった。
        彼女は朝六時に着替える。
        車を店の前に止めた。
        彼は間違いなく来る。
        もう少し待ってください。
    """,
    "ko": """
        밤에 비가 내렸다.
        배가 고프다.
        가게 앞에 줄이 길다.
        아이가 길에서 넘어졌다.
        걱정하지 말고 쉬어.
    """,
    "nl": """
        De bus stopt voor de school.
        Zij gaat naar de markt.
        De winkel gaat om zes uur dicht.
        Hij neemt een boek over katten mee.
        Het brood ligt op de plank.
    """,
    "pt": """
        Ela subiu as escadas devagar.
        A casa é maior do que a escola.
        O carro virou à esquerda.
        Deixou a chave na mesa.
        O autocarro passa pela escola.
    """,
    "ru": """
        Она переходит улицу у школы.
        Он работает удалённо из дома.
        Совещание назначено на вторник.
        Она закрыла дверь.
        Функция возвращает ошибку.
    """,
    "zh": """
        他不小心摔了一跤。
        今天累死了。
        会议五点结束。
        她交了朋友。
        我听不见你说话。
    """,
}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@for_each_row("language", CHANGES)
def test_changes_in_any_tense_and_corrections_tell_a_change(language: str) -> None:
    """ruling 14"""
    assert [
        text for text in _lines(CHANGES[language]) if not AnalysedText(text).matches_lexicon_pattern("change")
    ] == []


@for_each_row("language", NO_CHANGES)
def test_habits_moves_of_the_body_and_plain_comparisons_tell_no_change(language: str) -> None:
    """ruling 14"""
    assert [text for text in _lines(NO_CHANGES[language]) if AnalysedText(text).matches_lexicon_pattern("change")] == []
