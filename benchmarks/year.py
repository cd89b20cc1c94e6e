"""A made-up year of daily sessions: what is told, what is asked again, what changes. Seeded; for `benchmarks.dynamics`.

Each day a session of a few facts worth keeping and much talk that nobody asks about again; in March and April, also
the conversation of `make demo`. A fact belongs to one of `HABITS`, which says when it is asked about; the question is
never worded as the fact was. Some facts change: what was told earlier is then wrong.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from examples.demo import read_conversation
from madeleine.memory.ingest.store import NewScene
from madeleine.memory.model import Scene

START = date(2026, 1, 1)
Habit = Literal["never", "once", "at random", "at growing intervals", "regularly"]
HABITS: Mapping[Habit, float] = {
    "never": 0.35, "once": 0.2, "at random": 0.2, "at growing intervals": 0.15, "regularly": 0.1
}  # fmt: skip
"""Shares of the facts."""
CHANGING = 0.15
"""Share of the facts that change, once, 10 to 120 days after they were told."""
FACTS_A_DAY = (1, 4)
NOISE_A_DAY = (6, 9)
ROUTINE = 0.1
"""Share of the noise that is said in the same words again and again."""
UNRATED = 0.4
"""Share of the memories whose teller gave no importance: they get the default, 0.5."""
IMPORTANCE_OF_FACT = (0.5, 0.6, 0.7, 0.8, 0.9)
IMPORTANCE_OF_NOISE = (0.1, 0.2, 0.3, 0.4)


@dataclass(frozen=True, slots=True)
class Kind:
    """`told`, `changed`: with {p}, a person, and {v}, a value. `asked`: with {p}."""

    told: str
    changed: str
    asked: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def word(self) -> str:
        """The longest that both texts have."""
        told, changed = (set(re.findall(r"[a-z]+", text.casefold())) for text in (self.told, self.changed))
        return str(max(sorted(told & changed), key=len))


@dataclass(frozen=True, slots=True)
class Fact:
    habit: Habit
    told: tuple[int, ...]
    """The day of each version; the last one is valid."""
    cues: tuple[tuple[int, str], ...]
    """(day, question), in the order of days; all after the day on which it was first told."""
    questions: tuple[str, ...]
    words: tuple[str, ...]
    """By which one who half remembers it would search: whom it is about, and a word that every version has."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something stored. `fact`: (number of the fact, number of the version), or None for noise."""

    scene: NewScene
    fact: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Day:
    at: datetime
    """Noon."""
    entries: tuple[Entry, ...]
    cues: tuple[tuple[int, str], ...]
    """(number of the fact, question), asked in the afternoon."""


@dataclass(frozen=True, slots=True)
class Year:
    facts: tuple[Fact, ...]
    days: tuple[Day, ...]


PEOPLE = (
    "Ada Bruno Chloe Dmitri Elena Farid Greta Hugo Ingrid Jonas Keiko Liam Mara Nils Olga Pavel Quinn Rosa Samir "
    "Tilda Uma Viktor Wanda Xenia Yusuf Zoe Anselm Bettina Cosmo Dagmar Ezra Fiona Gustav Hedda Ivo Jette Kaspar "
    "Lorenz Mirja Noor"
).split()
KINDS = (
    Kind(
        "{p} is allergic to {v}.",
        "The doctor has tested {p} again: it is {v} that {p} is allergic to.",
        ("What must {p} not be served?", "Which thing does the body of {p} not tolerate?"),
        ("hazelnuts", "shellfish", "soy", "sesame", "celery", "strawberries", "bee stings", "lupins"),
    ),
    Kind(
        "In the morning {p} drinks nothing but {v}.",
        "{p} has switched to {v} in the morning.",
        ("What should I make {p} for breakfast to drink?", "With which beverage does {p} begin the day?"),
        ("jasmine tea", "black coffee", "hot chocolate", "carrot juice", "oat milk", "rooibos", "cold water", "mate"),
    ),
    Kind(
        "{p} works as a {v}.",
        "{p} has changed careers and works as a {v} now.",
        ("What does {p} do for a living?", "Which profession does {p} have?"),
        ("carpenter", "nurse", "tax adviser", "pilot", "beekeeper", "translator", "bridge engineer", "pharmacist"),
    ),
    Kind(
        "{p} lives in {v}.",
        "{p} has moved house and lives in {v} now.",
        ("Where is the home of {p}?", "In which town should I visit {p}?"),
        ("Bergen", "Tartu", "Porto", "Graz", "Leeds", "Ghent", "Riga", "Turin", "Brno"),
    ),
    Kind(
        "{p} keeps {v} at home.",
        "{p} has given the animals away and keeps {v} at home now.",
        ("What pet does {p} have?", "Which animal would greet me at the door of {p}?"),
        (
            "two ferrets",
            "a grey parrot",
            "an old dachshund",
            "a tortoise",
            "three hens",
            "a blind cat",
            "stick insects",
        ),
    ),
    Kind(
        "{p} plays the {v}.",
        "{p} has taken up the {v} and plays nothing else any more.",
        ("Which musical instrument does {p} practise?", "What could {p} bring to the orchestra?"),
        ("oboe", "cello", "accordion", "trombone", "harp", "banjo", "viola", "marimba"),
    ),
    Kind(
        "The dentist of {p} is Dr. {v}.",
        "{p} has found another dentist, Dr. {v}.",
        ("Who looks after the teeth of {p}?", "Whom should {p} call about a toothache?"),
        ("Achterberg", "Bellini", "Cardoso", "Dvořák", "Eklund", "Fournier", "Grabowski", "Horváth"),
    ),
    Kind(
        "The key to the flat of {p} hangs {v}.",
        "{p} has moved the key to the flat: it hangs {v} now.",
        ("How do I get into the apartment of {p}?", "Where is what opens the door of {p}?"),
        ("behind the boiler", "under the red pot", "in the bicycle shed", "at the neighbour's", "inside the lantern"),
    ),
    Kind(
        "{p} holds the weekly meeting on {v}.",
        "{p} has shifted the weekly meeting to {v}.",
        ("When does the team of {p} come together?", "At what time each week should I join {p}?"),
        ("Monday at nine", "Tuesday at four", "Wednesday at noon", "Thursday at ten", "Friday at eight"),
    ),
    Kind(
        "The project of {p} is due on {v}.",
        "The date for the project of {p} was put off to {v}.",
        ("What is the deadline that {p} has?", "By when does {p} have to deliver?"),
        ("3 March", "17 April", "9 June", "30 July", "12 September", "1 November", "20 December"),
    ),
    Kind(
        "{p} may spend {v} euros on the project.",
        "The funds of {p} were changed: {v} euros for the project.",
        ("How large is the budget of {p}?", "How much money does {p} have available?"),
        ("4,200", "7,900", "12,500", "18,000", "26,400", "31,000", "55,000"),
    ),
    Kind(
        "{p} writes every program in {v}.",
        "{p} has given that up and writes every program in {v}.",
        ("Which programming language does {p} use?", "What does {p} code in?"),
        ("Rust", "Haskell", "Fortran", "Kotlin", "Elixir", "Prolog", "Ada 95", "OCaml"),
    ),
    Kind(
        "{p} eats {v}.",
        "{p} eats differently since last week: {v}.",
        ("Which diet does {p} follow?", "What kind of meals suit {p}?"),
        ("vegan only", "without gluten", "kosher", "halal", "no sugar at all", "fish but no meat", "raw food only"),
    ),
    Kind(
        "The book that {p} loves most is {v}.",
        "{p} has found a new book to love most: {v}.",
        ("Which novel is the favourite of {p}?", "What does {p} like to read above all?"),
        ("Middlemarch", "Dead Souls", "The Leopard", "Kokoro", "Beloved", "Austerlitz", "Orlando", "The Waves"),
    ),
    Kind(
        "In Vienna {p} always stays at {v}.",
        "In Vienna {p} stays at {v} from now on.",
        ("Which hotel should I book for {p}?", "Where does {p} sleep on trips to Austria?"),
        ("the Kaiserhof", "the Altstadt", "the Beethoven", "the Regina", "the Urania", "the Stefanie"),
    ),
    Kind(
        "{p} takes {v} against high blood pressure.",
        "The doctor has put {p} on {v} against high blood pressure.",
        ("Which medicine is {p} on?", "What was {p} prescribed for the heart?"),
        ("ramipril", "amlodipine", "losartan", "bisoprolol", "valsartan", "indapamide"),
    ),
    Kind(
        "{p} is training for {v}.",
        "{p} has dropped that plan and is training for {v}.",
        ("For which race does {p} prepare?", "What sporting goal does {p} have?"),
        (
            "a marathon in Oslo",
            "the Channel swim",
            "an alpine tour",
            "a rowing regatta",
            "the Vasaloppet",
            "a triathlon",
        ),
    ),
    Kind(
        "{p} drives {v}.",
        "{p} has sold the car and drives {v} now.",
        ("What vehicle does {p} own?", "In what will {p} pick me up?"),
        ("a yellow Beetle", "an electric van", "a Volvo estate", "a rusty Lada", "a convertible", "an old Renault 4"),
    ),
    Kind(
        "The daughter of {p} goes to {v}.",
        "The daughter of {p} has changed schools and goes to {v}.",
        ("Where is the child of {p} taught?", "Which school does the girl of {p} attend?"),
        ("the Montessori school", "Saint Anne's", "the harbour school", "the music gymnasium", "the French lycée"),
    ),
    Kind(
        "{p} has an account with {v}.",
        "{p} has closed the old account and opened one with {v}.",
        ("Which bank does {p} use?", "Where does {p} keep the savings?"),
        ("Triodos", "the Sparkasse", "Nordea", "Caixa", "the Postbank", "Raiffeisen", "Handelsbanken"),
    ),
    Kind(
        "{p} speaks {v} with the grandparents.",
        "{p} has learnt {v} and speaks it with the grandparents now.",
        ("Which language is used in the family of {p}?", "In what tongue does {p} talk to grandma?"),
        ("Basque", "Ladino", "Welsh", "Frisian", "Sorbian", "Maltese", "Romansh", "Yiddish"),
    ),
    Kind(
        "{p} is afraid of {v}.",
        "{p} got over the old fear and is afraid of {v} instead.",
        ("What frightens {p}?", "Which phobia does {p} suffer from?"),
        ("lifts", "thunderstorms", "spiders", "deep water", "bridges", "crowds", "the dark"),
    ),
    Kind(
        "{p} collects {v}.",
        "{p} has sold the collection and collects {v} these days.",
        ("What would be a gift for the hobby of {p}?", "Which things does {p} hunt for at flea markets?"),
        ("fountain pens", "sea maps", "tin toys", "typewriters", "matchboxes", "fossils", "music boxes"),
    ),
    Kind(
        "{p} wears shoes in size {v}.",
        "{p} was measured anew: the shoes have to be size {v}.",
        ("How big are the feet of {p}?", "Which slippers would fit {p}?"),
        ("36", "37", "38", "39", "41", "42", "43", "45"),
    ),
    Kind(
        "{p} grows {v} on the balcony.",
        "{p} has cleared the balcony and grows {v} there now.",
        ("What does {p} plant?", "Which harvest does {p} hope for this summer?"),
        ("chillies", "runner beans", "figs", "sage", "cherry tomatoes", "sweet peas", "strawberry mint"),
    ),
    Kind(
        "{p} sings in {v}.",
        "{p} has left and sings in {v} now.",
        ("Which choir is {p} a member of?", "Where can I hear the voice of {p}?"),
        ("the cathedral choir", "the Bach society", "a shanty crew", "a gospel group", "the opera chorus"),
    ),
)
_TALK = (
    "{p} was {n} minutes late because {r}.",
    "Had {f} for lunch with {p}; {o}.",
    "{p} and {q} talked about the weather: {w}.",
    "The printer in {l} jammed again, and {p} hit it {n} times.",
    "{p} forwarded a video of {a} to {q}; {o}.",
    "{p} asked {q} whether anybody had seen the {t}.",
    "There was {f} in the canteen, {p} had two helpings.",
    "{p} cancelled the call at {n} past three because {r}.",
    "Somebody left the {t} in {l}; {p} took it away.",
    "{p} yawned through the whole talk about {a} and said {o}.",
    "On the way to {l}, {p} met {q}, and {w}.",
    "{p} spilled {f} over the {t}, {o}.",
)
_ROUTINE = (
    "Good morning, nothing new today.",
    "The usual stand-up, everybody is busy.",
    "Coffee break, some small talk about the weekend.",
    "Went through the mail, nothing that needs an answer.",
    "Said goodnight and see you tomorrow.",
    "The backup ran without errors.",
)
_WORDS: Mapping[str, Sequence[str]] = {
    "p": PEOPLE,
    "q": PEOPLE,
    "n": [str(number) for number in range(3, 41)],
    "r": (
        "the tram was stuck,the alarm had not rung,of a flat tyre,of the snow,the lift was full,of a parade,"
        "the queue was long,of a power cut"
    ).split(","),
    "f": ("lentil soup,noodles,a cheese roll,risotto,leftover pizza,pea stew,pancakes,a salad,dumplings,ramen").split(
        ","
    ),
    "o": (
        "it was fine,nobody minded,we laughed,it was over quickly,it was nothing special,everybody agreed,"
        "that was all,nothing came of it"
    ).split(","),
    "w": ("it may rain,it is too warm,the fog is thick,the wind has turned,it smells of snow,the sun came out").split(
        ","
    ),
    "l": "the hall,the kitchen,room 12,the basement,the lobby,the archive,the garage,the corner shop".split(","),
    "a": ("sleepy pandas,new office chairs,a singing dog,parking rules,the old logo,a juggling act,desk plants").split(
        ","
    ),
    "t": "stapler,umbrella,blue mug,extension lead,ladder,tape measure,whiteboard pen,trolley".split(","),
}


@dataclass(frozen=True, slots=True)
class Told:
    """Of the demonstration's conversation: words of each turn that tells it, the valid one last."""

    told: tuple[str, ...]
    asked: tuple[str, ...]
    words: tuple[str, ...]


OF_THE_DEMO = (
    Told(
        ("Simão is allergic to walnuts",),
        ("What must Rita's son not eat?", "Is there a dish that harms Simão?"),
        ("Simão", "allergic"),
    ),
    Told(
        ("I am going to say yes and take the job", "I wrote to Van Aken tonight and declined"),
        ("Is Ines going to work for Van Aken?", "What did Ines decide about Rotterdam?"),
        ("job", "Rotterdam"),
    ),
    Told(("chronic kidney disease, stage 2",), ("What illness does the cat Bolota have?",), ("Bolota", "disease")),
    Told(("Moinho da Pedra agreed: 350 kilos",), ("What did the bakery agree with the mill?",), ("agreed", "flour")),
    Told(("gave me the blue tureen",), ("What did Ines get from Avó Lurdes at Easter?",), ("Lurdes", "gave")),
    Told(("first cello lesson",), ("Who teaches Ines to play the cello?",), ("cello", "lesson")),
    Told(("2.5 millilitres of phosphate binder",), ("Which medicine does Bolota get?",), ("Bolota", "morning")),
    Told(("Then I buy the oven",), ("How does Tomás pay for the oven of the bakery?",), ("oven", "loan")),
)


def year(days: int, *, seed: int) -> Year:
    """The same for the same arguments."""
    chance = random.Random(seed)
    told: list[list[Entry]] = [[] for _ in range(days)]
    facts: list[Fact] = []
    for scene, day, what in _demo(days):
        number = next((i for i, fact in enumerate(facts) if what and fact.questions == what.asked), len(facts))
        if what is None:
            told[day].append(Entry(scene))
            continue
        earlier = facts[number].told if number < len(facts) else ()
        fact = _fact(chance, (*earlier, day), what.asked, what.words, days)
        facts[number : number + 1] = [fact]
        told[day].append(Entry(scene, (number, len(earlier))))
    pairs = [(person, kind) for person in PEOPLE for kind in KINDS]
    chance.shuffle(pairs)
    for day in range(days):
        for _ in range(chance.randint(*FACTS_A_DAY)):
            if not pairs:
                break
            person, kind = pairs.pop()
            fact, entries = _told(chance, person, kind, day=day, days=days)
            for version, (when, scene) in enumerate(entries):
                told[when].append(Entry(scene, (len(facts), version)))
            facts.append(fact)
        for _ in range(chance.randint(*NOISE_A_DAY)):
            told[day].append(Entry(_noise(chance, day)))
    asked_on: list[list[tuple[int, str]]] = [[] for _ in range(days)]
    for number, fact in enumerate(facts):
        for day, question in fact.cues:
            asked_on[day].append((number, question))
    for of_day in told:
        chance.shuffle(of_day)
    noon = datetime(START.year, START.month, START.day, 12, tzinfo=UTC)
    return Year(
        tuple(facts),
        tuple(
            Day(noon + timedelta(days=day), tuple(told[day]), tuple(asked_on[day])) for day in range(days)
        ),
    )  # fmt: skip


def _told(
    chance: random.Random, person: str, kind: Kind, *, day: int, days: int
) -> tuple[Fact, list[tuple[int, NewScene]]]:
    """A fact that is first told on that day, and its versions, each with its day."""
    values = chance.sample(kind.values, 2)
    on = [day]
    later = day + chance.randint(10, 120)
    if chance.random() < CHANGING and later < days:
        on.append(later)
    importance = _importance(chance, IMPORTANCE_OF_FACT)
    entries = [
        (when, _scene(text.format(p=person, v=value), when, actors=(person,), importance=importance))
        for when, text, value in zip(on, (kind.told, kind.changed), values, strict=False)
    ]
    questions = tuple(text.format(p=person) for text in kind.asked)
    return _fact(chance, tuple(on), questions, (person, kind.word), days), entries


def _fact(
    chance: random.Random, told: tuple[int, ...], questions: tuple[str, ...], words: tuple[str, ...], days: int
) -> Fact:
    [habit] = chance.choices(list(HABITS), weights=list(HABITS.values()))
    cues = [(day, chance.choice(questions)) for day in asked_again(habit, told[0], days, chance)]
    return Fact(habit, told, tuple(cues), questions, words)


def asked_again(habit: Habit, told: int, days: int, chance: random.Random) -> list[int]:
    """The days, in order, on which a fact that was told on day `told` is asked about, within the year."""
    schedules: Mapping[Habit, Callable[[], Iterator[int]]] = {
        "never": lambda: iter(()),
        "once": lambda: _anywhere(1, told, days, chance),
        "at random": lambda: _anywhere(chance.randint(2, 5), told, days, chance),
        "at growing intervals": lambda: _after(told, (2 << step for step in range(days.bit_length()))),
        "regularly": lambda: _after(told, (chance.randint(7, 21) for _ in range(days))),
    }
    return sorted({day for day in schedules[habit]() if told < day < days})


def _anywhere(times: int, told: int, days: int, chance: random.Random) -> Iterator[int]:
    return (chance.randint(told + 1, days) for _ in range(times))


def _after(told: int, intervals: Iterator[int]) -> Iterator[int]:
    for interval in intervals:
        told += interval
        yield told


def _noise(chance: random.Random, day: int) -> NewScene:
    if chance.random() < ROUTINE:
        return _scene(chance.choice(_ROUTINE), day, importance=_importance(chance, IMPORTANCE_OF_NOISE))
    words = {name: chance.choice(choices) for name, choices in _WORDS.items()}
    text = chance.choice(_TALK).format(**words)
    return _scene(text, day, actors=(words["p"],), importance=_importance(chance, IMPORTANCE_OF_NOISE))


def _importance(chance: random.Random, rated: Sequence[float]) -> float | None:
    return None if chance.random() < UNRATED else chance.choice(rated)


def _scene(text: str, day: int, *, actors: tuple[str, ...] = (), importance: float | None) -> NewScene:
    when = (START + timedelta(days=day)).isoformat()
    return NewScene(
        scene=Scene(action=text, actors=actors, when=(when,)), importance=importance, session_id=f"day-{day}"
    )


def _demo(days: int) -> Iterator[tuple[NewScene, int, Told | None]]:
    """(scene, day, the fact that it tells of), in the order of days."""
    for turn in read_conversation():
        day = (date.fromisoformat(turn["when"][:10]) - START).days
        if day >= days:
            return
        scene = NewScene(
            scene=Scene(action=turn["text"], actors=(turn["speaker"],), when=(turn["when"],)),
            feeling=turn.get("feeling", ""),
            importance=turn.get("importance"),
            themes=tuple(turn.get("themes", ())),
            session_id=f"demo-{turn['session']}",
        )
        of = (told for told in OF_THE_DEMO if any(words in turn["text"] for words in told.told))
        yield scene, day, next(of, None)
