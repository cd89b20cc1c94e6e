"""Words by which it shows that something was said that is worth remembering, or that nothing was (spec H6).

English, German, French, Spanish, Italian, Portuguese, Russian, Chinese, Japanese, Korean. Of other languages long
statements, numbers, dates and names still tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

SMALL_TALK: frozenset[str] = frozenset(
    """
    hi hello hey heya hiya yo howdy greetings good morning afternoon evening night day bye goodbye cya later see you
    soon
    thanks thank thx ty tysm cheers much very so many lot lots appreciated welcome please pls np sorry oops
    yes yeah yep yup sure ok okay okey k kk fine alright right correct exactly agreed absolutely definitely no nope
    nah
    not really maybe perhaps great nice cool awesome perfect wonderful excellent amazing super lovely brilliant neat
    wow
    lol haha hehe hm hmm uh um oh ah well done good job it that this is are was how you doing do what s up the a and
    to
    for your help again all there everyone everybody friend got understood sounds looks go ahead continue proceed next
    ready now just me too same here have one nice weekend take care i m am see understand let know
    hallo moin servus guten tag morgen abend nacht grüß gott dich euch tschüss tschüs ciao wiedersehen auf bis bald
    danke schön vielen dank sehr bitte gerne gern ja nein doch genau klar okay gut super toll prima stimmt wie geht es
    dir ihnen vielleicht entschuldigung weiter mach
    bonjour salut bonsoir coucou bonne nuit journée soirée au revoir à bientôt demain merci beaucoup bien s'il te vous
    plaît oui non si d'accord daccord ça va comment allez parfait super génial peut-être peut être pardon désolé
    continue
    hola buenos días buenas tardes noches adiós hasta luego gracias muchas de nada por favor sí si no vale claro bueno
    bien perfecto genial qué tal cómo estás está quizás lo siento sigue
    ciao buongiorno buonasera buonanotte salve arrivederci grazie mille prego per favore sì no va bene certo perfetto
    ottimo come stai sta forse scusa
    olá oi bom dia boa tarde noite tchau obrigado obrigada muito por favor sim não tá certo ótimo tudo bem talvez
    desculpa
    привет здравствуйте здравствуй доброе утро добрый день вечер пока до свидания спасибо большое пожалуйста да нет
    ладно
    хорошо отлично понятно конечно может быть как дела
    """.split()
)
"""What is made of these words alone is a greeting, thanks, yes or no."""

SMALL_TALK_CASELESS = re.compile(
    r"こんにちは|こんばんは|おはよう(?:ございます)?|おやすみ(?:なさい)?|ありがとう(?:ございます|ございました)?|どうも|すみません|"
    r"ごめん(?:なさい)?|はい|いいえ|うん|ええ|そうです(?:ね|か)?|そうですか|了解(?:です|しました)?|分かりました|わかりました|"
    r"なるほど|お願いします|よろしく|さようなら|いいですね|続けて(?:ください)?|元気ですか|"
    r"你好|您好|早上好|晚上好|晚安|谢谢|謝謝|多谢|不客气|再见|是的|是|对|不是|不|好的|好|行|可以|嗯|明白了?|知道了|请继续|继续|吗|"
    r"안녕하세요|안녕|감사합니다|고마워요?|고맙습니다|네|예|아니요|아니|응|알겠습니다|좋아요|안녕히|계세요|가세요|계속"
)

QUESTION = re.compile(
    r"[?？؟]\s*$|^(?:what|who|whom|whose|where|when|why|how|which|can|could|would|will|do|does|did|is|are|was|were|should|"
    r"wer|was|wo|wann|warum|wie|welche[rs]?|kannst|können|könntest|"
    r"qui|que|quoi|où|quand|pourquoi|comment|combien|quel(?:le)?s?|peux-tu|pouvez-vous|est-ce|"
    r"qué|quién|dónde|cuándo|cómo|cuál|cuánto|puedes|chi|cosa|dove|perché|come|quale|puoi|quem|onde|como|qual|pode|"
    r"кто|что|где|когда|почему|как|какой|какая|можешь)\b",
    re.I,
)

COMMAND = re.compile(
    r"^(?:please |pls |now |ok(?:ay)?,? |and |then |also |just |bitte |can you |could you |would you )*"
    r"(?:run|rerun|execute|open|close|show|list|print|read|write|create|make|build|compile|install|update|upgrade|delete|"
    r"remove|add|fix|refactor|rename|move|copy|test|lint|format|commit|push|pull|merge|rebase|deploy|restart|start|stop|"
    r"kill|check|find|search|grep|look|explain|summari[sz]e|translate|convert|generate|give|tell|continue|go on|try|"
    r"retry|"
    r"undo|redo|revert|help|use|set|get|fetch|download|upload|send|implement|change|replace|sort|count|compare|review|"
    r"debug|clean|clear|reset|save|load|cd|ls|git|npm|pip|docker|make|cat|sudo|python|cargo|kubectl|"
    r"führe|öffne|zeig|zeige|lies|schreib|schreibe|erstelle|lösche|behebe|prüfe|suche|erkläre|übersetze|starte|mach|"
    r"lance|ouvre|montre|lis|écris|crée|supprime|corrige|vérifie|cherche|explique|traduis|"
    r"ejecuta|abre|muestra|lee|escribe|crea|borra|elimina|corrige|busca|explica|traduce|"
    r"esegui|apri|mostra|leggi|scrivi|crea|cancella|correggi|cerca|spiega|traduci|"
    r"executa|abre|mostra|lê|escreve|cria|apaga|corrige|procura|explica|traduz|"
    r"запусти|открой|покажи|прочитай|напиши|создай|удали|исправь|найди|объясни|переведи)\b",
    re.I,
)
OF_ONESELF = re.compile(
    r"^(?:(?:so|well|hm+|hey|hi|ok(?:ay)?|and|but|also|actually),? )*"
    r"(?:i|i'\w+|we|we'\w+|my|our|ich|wir|mein\w*|unser\w*|je|j'\w+|nous|mon|ma|mes|yo|mi|mis|io|mio|mia|eu|meu|minha|я|мы|мой|моя)\b"
    r"(?!'ll need| need(?: you)? to| want you| would like you)",
    re.I,
)
"""How a sentence begins in which somebody tells of themselves, and perhaps asks something in the end."""
COMMAND_CASELESS = re.compile(
    r"(?:してください|して|を実行|見せて|教えて|開いて|直して|翻訳して)[。！!]?$|^(?:请)?(?:运行|打开|显示|解释|翻译|修复|删除|执行|帮我)"
    r"|(?:해줘|해주세요|보여줘|열어줘|실행해)[.!]?$"
)

_KIN = (
    "name|wife|husband|partner|girlfriend|boyfriend|fiancée?|son|daughter|child|children|kids?|baby|mother|mom|mum|father|"
    "dad|parents?|brother|sister|siblings?|grandmother|grandma|grandfather|grandpa|aunt|uncle|cousin|nephew|niece|friends?|"
    "neighbou?rs?|roommate|boss|manager|colleagues?|coworkers?|team|company|employer|job|work|startup|doctor|therapist|"
    "dog|cat|pet|house|home|flat|apartment|car|birthday|address|phone|email|school|university|thesis|degree|project|"
    "health|allerg\\w+|diet|hobby|hobbies|hometown|country|salary|budget|goal|dream|timezone|pronouns"
)
_PARTS = {
    "{_WHO}": "(?:i|we|you|he|she|they)",
    "{_TASTE}": "(?:prefers?|likes?|loves?|hates?|enjoys?|dislikes?|adores?|loathes?)",
    "{_VERY}": "(?:so|very|really|a bit|a little|kind of|kinda|quite|too|just|still|feeling|pretty|totally)",
    "{_FELT}": (
        "happy|glad|sad|proud|worried|anxious|scared|afraid|angry|upset|tired|exhausted|excited|nervous|stressed|lonely|"
        "ashamed|embarrassed|relieved|disappointed|frustrated|grateful|hurt|jealous|bored|overwhelmed|homesick|depressed|"
        "thrilled|devastated|in love|hopeful|guilty|better|worse|sick|ill"
    ),
    "{_KIN}": _KIN,
}


def _any(lines: str) -> re.Pattern[str]:
    """One alternative a line, of whole words; after `~` as it stands, for scripts that write without spaces."""
    for name, part in _PARTS.items():
        lines = lines.replace(name, part)
    alternatives = [line.strip() for line in lines.strip().splitlines()]
    whole = "|".join(one for one in alternatives if not one.startswith("~"))
    within = [one.removeprefix("~").strip() for one in alternatives if one.startswith("~")]
    return re.compile("|".join([rf"(?<!\w)(?:{whole})(?!\w)", *within]), re.I)


SIGNS: Mapping[str, re.Pattern[str]] = {
    "a preference": _any(
        r"""
        {_WHO}(?:'d| would| do| really| also| still| always| don'?t| never){0,3} {_TASTE}(?! to know| (?:you|me) to)
        can'?t stand|favou?rite|allergic|vegan|vegetarian|rather (?:than|not)|from now on|call me
        (?:always|never) (?:use|call|write|ask|answer|reply|say|put|do|add|make|give|keep|show|speak|include|commit|run)
        in (?:the )?future,? (?:please|use|call)
        mag|liebe|hasse|bevorzuge|lieblings\w*|am liebsten|(?:trinke|esse|nehme) lieber|immer auf (?:deutsch|englisch)
        je (?:préfère|déteste|adore|n'aime)|j'(?:aime|adore)|préféré\w*
        prefiero|me gustan?|me encantan?|odio|favorit[oa]
        preferisco|mi piace|mi piacciono|adoro|preferit[oa]
        prefiro|gosto de|odeio|preferid[oa]
        люблю|нравится|предпочитаю|ненавижу|обожаю
        ~好き|大好|嫌い|苦手|好み|の方がいい|喜欢|喜歡|讨厌|討厭|偏好|更愿意|爱吃|좋아(?:하|해)|싫어|선호
        """
    ),
    "a decision": _any(
        r"""
        decid(?:e|ed|ing)|decision|going with|instead of|it is settled
        let'?s (?:go with|use|take|do|keep|drop|postpone|move)
        we(?:'ll| will) (?:use|go with|take|keep|drop|build|buy|hire|launch|ship)
        {_WHO}(?:'ve| have)? (?:agreed|chose|chosen|picked|settled|opted|cancell?ed|accepted|rejected|signed|approved)
        entschieden|beschlossen|entscheidung|wir nehmen|abgemacht|vereinbart
        décidé\w*|décision|choisi|on part sur|convenu
        decid(?:í|imos|ido|ió)|decisión|elegid[oa]|acordado|quedamos
        deciso|decisione|scelto|concordato
        decidi(?:mos|u)?|decisão|escolh\w+|combinado
        решил[аи]?|решение|выбрал[аи]?|договорились
        ~決め|決定|ことにし|にします|决定|決定|选择了|就用|同意了|결정|정했|하기로
        """
    ),
    "a plan": _any(
        r"""
        {_WHO}(?:'m|'re|'s| am| are| is)? (?:planning|plans?|going|hoping|intend|wants?) to(?! know| ask| see)
        {_WHO}(?:'ll| will) (?!need|see|try|let|have a look)\w+
        appointment|deadline|due (?:on|by)|meeting (?:on|at|with)|flight|trip to|vacation|holiday in|wedding|interview
        exam|surgery|moving to|scheduled|booked|reserved
        habe vor|plane|werde|wollen|termin|urlaub|reise nach|hochzeit
        je vais|nous allons|on va|prévois|rendez-vous|vacances|mariage
        voy a|vamos a|planeo|cita|viaje a|boda
        ho intenzione|andrò|andremo|appuntamento|viaggio a|matrimonio
        vou|vamos|pretendo|consulta|viagem|casamento
        собираюсь|планирую|поеду|буду|встреча|свадьба
        ~予定|するつもり|に行きます|打算|计划|計劃|准备去|会议|約束|예정|계획|갈 거
        """
    ),
    "a feeling": _any(
        r"""
        (?:i|we)(?:'m|'re| am| are| feel| felt| was| were| have been|'ve been)(?: {_VERY}){0,3} (?:{_FELT})
        (?:makes?|made) me (?:feel|happy|sad|angry|cry|laugh)|i (?:miss|cried|regret|fear|dread)
        ich (?:bin|fühle|war) .{0,30}(?:froh|traurig|müde|glücklich|stolz|wütend|nervös|einsam|besorgt)
        habe angst|freue mich
        je (?:suis|me sens) .{0,20}(?:content|contente|heureu\w+|triste|fatigué\w*|fier|fière|inqui\w+|en colère)
        estoy (?:muy )?(?:feliz|triste|cansad\w|preocupad\w|content\w|nervios\w|orgullos\w)
        sono (?:molto )?(?:felice|triste|stanc\w|preoccupat\w|content\w)
        estou (?:muito )?(?:feliz|triste|cansad\w|preocupad\w)
        мне (?:грустно|страшно|радостно|плохо)|я (?:рад|рада|устал|устала|боюсь|горжусь)
        ~嬉しい|うれしい|悲しい|寂しい|怖い|疲れ(?:た|ました)|楽しかった|不安|难过|難過|开心|開心|高兴|伤心|害怕|担心|累了
        ~슬퍼|기뻐|행복|무서워|피곤
        """
    ),
    "a fact about a person": _any(
        r"""
        (?:my|our|his|her|their) (?:\w+ ){0,2}(?:{_KIN})
        i(?:'m| am) (?:a|an|from|the|\d+|born|married|divorced|pregnant|diabetic|working|living|called|based)
        i (?:live|lived|work|worked|study|studied|moved|grew up|was born|used to|own|bought|sold|quit|lost|met|adopted)
        i (?:started|got (?:a|an|married|fired|promoted|engaged)|retired|graduated|speak|play|teach|run a|drive)
        i have (?:a|an|two|three|four|\d+) (?!question|problem|bug|error|issue|look)\w+
        died|passed away|was born|got married|broke up
        ich heiße|mein name|ich (?:wohne|arbeite|lebe|studiere)
        meine? (?:frau|mann|sohn|tochter|mutter|vater|bruder|schwester|freund\w*|hund|katze|chef\w*|firma|geburtstag)
        je m'appelle|j'habite|je (?:travaille|vis)
        (?:mon|ma|mes) (?:femme|mari|fils|fille|mère|père|frère|sœur|ami\w*|chien|chat|patron\w*|anniversaire)
        me llamo|vivo en|trabajo (?:en|como|de)
        mi (?:esposa|mujer|marido|hij[oa]|madre|padre|herman[oa]|perr[oa]|gat[oa]|jef[ea]|cumpleaños)
        mi chiamo|abito|lavoro (?:a|in|come)|mi[oa] (?:moglie|marito|figli[oa]|madre|padre|fratello|sorella|cane|gatto)
        me chamo|meu nome|moro|trabalho (?:em|na|no|como)
        (?:meu|minha) (?:esposa|mulher|marido|filh[oa]|mãe|pai|irmão|irmã|cachorr[oa]|gat[oa])
        меня зовут|я (?:живу|работаю|учусь)|мо[йяи] (?:жена|муж|сын|дочь|мама|папа|брат|сестра|собака|кошка|дети)
        ~私の名前|名前は|と申します|に住んで|で働いて
        ~(?:妻|夫|息子|娘|母|父|兄|姉|弟|妹|犬|猫)(?:は|が|の|と)
        ~我叫|我的名字|我住在|我在.{1,12}工作
        ~我(?:的)?(?:妻子|老婆|丈夫|老公|儿子|女儿|妈妈|爸爸|哥哥|姐姐|弟弟|妹妹|狗|猫)
        ~제 이름|저는.{1,20}(?:살아요|삽니다|일해요)|(?:아내|남편|아들|딸|엄마|아빠)
        """
    ),
    "a correction": _any(
        r"""
        actually|i meant|correction|not \w+ but|(?:i was|we were) (?:wrong|mistaken)
        (?:that|this|it)(?:'s| is| was) (?:not (?:right|correct|true|what)|wrong|incorrect|false|outdated)
        you (?:got|have) (?:it|that|my) .{0,20}wrong
        eigentlich|stimmt nicht|ist falsch|ich meinte|sondern
        en fait|c'est faux|je voulais dire|pas \w+ mais
        en realidad|está mal|quise decir|es incorrecto
        in realtà|è sbagliato|intendevo
        na verdade|está errado|quis dizer
        на самом деле|неправильно|я имел[а]? в виду
        ~^(?:no|nope|not quite|wrong|nein|non|нет)[,.!:;]\s+\S+\s+\S+\s+\S+
        ~じゃなくて|ではなく|間違[いっえ]|違います|不对|不是.{1,12}(?:是|而是)|其实|錯了|错了|아니라|틀렸
        """
    ),
    "a lesson": _any(
        r"""
        next time|lessons?|learn(?:ed|t)|figured out|found out|reali[sz]ed|turns? out|never again
        note to self|keep in mind
        (?:the|root) (?:cause|fix|trick|problem|culprit|solution) (?:is|was)|should(?:n't| not)? have
        remember (?:that|to|this|my|me)|(?:do not|don'?t) (?:forget|ever)
        nächstes mal|gelernt|merk dir|nicht vergessen|lag daran
        la prochaine fois|appris|souviens-toi|n'oublie pas|retiens
        la próxima vez|aprendí|recuerda que|no olvides
        la prossima volta|imparato|ricorda che|non dimenticare
        da próxima vez|aprendi|lembr[ae] que|não esqueça
        в следующий раз|понял[а]?, что|запомни|не забудь
        ~次回(?:は|から)|覚えておいて|学びました|忘れないで|原因は|下次|记住|記住|教训|别忘|原来是
        ~다음에는|기억해|배웠|잊지 마
        """
    ),
}
"""In the order in which a reason is given; in questions and orders they count too."""

DAY = _any(
    r"""
    \d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|(?:at|by|until) \d{1,2}(?::\d{2})? ?(?:am|pm)
    \d{1,2}(?:st|nd|rd|th|\.)? (?:of )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*
    \d{1,2}\. (?:januar|februar|märz|mai|juni|juli|oktober|dezember)
    \d{1,2} (?:janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre)
    \d{1,2} de (?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|\w+)
    january|february|march|april|june|july|august|september|october|november|december
    (?:on|by|until|till|next|last|this|every|since) (?:mon|tues|wednes|thurs|fri|satur|sun)day
    tomorrow|yesterday|tonight|next (?:week|month|year)|last (?:night|week|month|year)
    morgen um|übermorgen|gestern|nächste[nrs]? (?:woche|monat|jahr|montag|freitag)
    am (?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)
    hier soir|après-demain|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche
    ayer|pasado mañana|el (?:lunes|martes|miércoles|jueves|viernes|sábado|domingo)
    завтра|вчера|послезавтра
    ~\d{1,2}月\d{1,2}|\d{4}年|[月火水木金土日]曜|明日|昨日|来週|先週|明天|昨天|下周|上周|星期[一二三四五六日天]
    ~내일|어제|다음 주|\d{1,2}월
    """
)

CONFIRMED = _any(
    r"""
    i(?:'ve| have)? (?:booked|reserved|scheduled|cancell?ed|ordered|sent|published|deployed)(?=.{0,200}(?:\d|[A-Z]))
    (?:we|you) (?:decided|agreed|settled)|i(?:'ll| will) remember|you(?:'re| are) right|my (?:mistake|error)
    i was wrong
    i should have|the root cause (?:is|was)|lesson|next time|turns? out
    """
)
"""What the assistant's answer may add: something done for good, or understood."""
