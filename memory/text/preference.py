"""Whether a text states a preference (spec L1, steps 4 and 5): what somebody likes, always does, wants to have done."""

from __future__ import annotations

import re

_SIGNALS = re.compile(
    # The spec's four, and what is said in their place. "I'd like to order" is a wish of the moment, no preference.
    r"\bI(?:'d|’d)? (?:(?:really|much|still|also|generally|usually|strongly|absolutely|just) )?"
    r"(?:prefer|always|hate|love|dislike|detest|adore|never|usually|can(?:'|’)?t stand|cannot stand|rather)\b"
    r"|\bI (?:(?:really|also|still) )?(?:do not|don['’]?t|never) (?:really )?(?:like|want|enjoy|eat|drink|use)\b"
    r"|\bI (?:(?:really|also|still) )?(?:like|enjoy)\b"
    r"|\b(?:my|his|her|their|our|[A-Z]\w+['’]s) (?:all-time )?(?:favou?rite|preferred|preference)"
    r"|\b(?:user|she|he|they|[A-Z][a-z]+) (?:strongly |always |really |much )?(?:prefers?|hates|loves|likes|dislikes"
    r"|can['’]?t stand|insists on|refuses to|avoids)\b"
    r"|\b(?:please )?(?:always|never) (?:use|write|answer|reply|call|ask|send|show|give|explain|include|tell|add|format"
    r"|start|end|put|keep|speak|address|assume)\b"
    r"|\b(?:communication|coding|writing|response|answer) (?:style|preferences?)\b"
    # German, French, Spanish, Portuguese, Italian, Russian.
    r"|\b(?:ich|er|sie) (?:bevorzuge?t?|hasse?t?|liebe?t?|mag|vermeidet?)\b|\bam liebsten\b|\blieblings\w+|\bmag ich\b"
    r"|\bich (?:\w+ )?(?:immer|nie(?:mals)?)\b"
    r"|\bje (?:préfère|déteste|hais|veux toujours|ne supporte pas)\b|\bj['’](?:adore|aime|évite)\b"
    r"|\b(?:mon|ma|mes) \w* ?(?:préféré|favori)"
    r"|\b(?:prefiero|odio|me (?:gusta|encanta)n?|detesto|mis? \w+ favorit|prefiro|adoro|odeio|meus? \w+ favorit)"
    r"|\b(?:preferisco|mi piac(?:e|ciono)|il mio \w+ preferit)"
    r"|\bя (?:предпочитаю|люблю|ненавижу|всегда|никогда)|\bмо[йяё] любим",
    re.IGNORECASE,
)
_WITHOUT_SPACES = re.compile(
    # Japanese, Chinese, Korean, Thai.
    "好き|好み|嫌い|苦手|お気に入り|(?:私|僕|俺|わたし)は(?:いつも|必ず|絶対)|いつも[^。]{0,20}(?:ています|ている|ます)"
    "|我(?:更|最|很|不|非常|特别)?喜欢|我(?:讨厌|偏好|总是|從不|从不|最愛|最爱)|偏好|更喜歡|喜歡"
    "|좋아(?:해|하|합)|싫어(?:해|하|합)|선호|저는 항상|나는 항상"
    "|ผมชอบ|ฉันชอบ|ไม่ชอบ"
)


_CUES = (
    "prefer always hate love dislike detest adore never usual stand rather like want enjoy don eat drink use favo "
    "insist refuse avoid style bevorzug hasse liebe liebst mag vermeid lieblings immer nie préfère détest hais aime "
    "évite favori odio gusta encanta prefi odei adoro piac preferi предпочитаю люблю ненавижу всегда никогда любим"
).split()
"""One of them is in whatever `_SIGNALS` finds; looking for them is a hundred times faster."""


def states_preference(text: str) -> bool:
    low = text.lower()
    if any(cue in low for cue in _CUES) and _SIGNALS.search(text):
        return True
    return not text.isascii() and bool(_WITHOUT_SPACES.search(text))
