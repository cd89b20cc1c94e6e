"""What is said in the simulated year: fact templates, small talk, and the facts of the demo conversation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FactTemplate:
    """`statement`, `changed_statement`: with {p}, a person, and {v}, a value. `questions`: with {p}."""

    statement: str
    changed_statement: str
    questions: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def shared_word(self) -> str:
        """The longest word that both statements contain."""
        before, after = (
            set(re.findall(r"[a-z]+", text.casefold())) for text in (self.statement, self.changed_statement)
        )
        return str(max(sorted(before & after), key=len))


@dataclass(frozen=True, slots=True)
class DemoFact:
    """A fact of the demo conversation. `markers`: words of each turn that states it, the valid one last."""

    markers: tuple[str, ...]
    questions: tuple[str, ...]
    search_words: tuple[str, ...]


PEOPLE = (
    "Ada Bruno Chloe Dmitri Elena Farid Greta Hugo Ingrid Jonas Keiko Liam Mara Nils Olga Pavel Quinn Rosa Samir "
    "Tilda Uma Viktor Wanda Xenia Yusuf Zoe Anselm Bettina Cosmo Dagmar Ezra Fiona Gustav Hedda Ivo Jette Kaspar "
    "Lorenz Mirja Noor"
).split()
FACT_TEMPLATES = (
    FactTemplate(
        "{p} is allergic to {v}.",
        "The doctor has tested {p} again: it is {v} that {p} is allergic to.",
        ("What must {p} not be served?", "Which thing does the body of {p} not tolerate?"),
        ("hazelnuts", "shellfish", "soy", "sesame", "celery", "strawberries", "bee stings", "lupins"),
    ),
    FactTemplate(
        "In the morning {p} drinks nothing but {v}.",
        "{p} has switched to {v} in the morning.",
        ("What should I make {p} for breakfast to drink?", "With which beverage does {p} begin the day?"),
        ("jasmine tea", "black coffee", "hot chocolate", "carrot juice", "oat milk", "rooibos", "cold water", "mate"),
    ),
    FactTemplate(
        "{p} works as a {v}.",
        "{p} has changed careers and works as a {v} now.",
        ("What does {p} do for a living?", "Which profession does {p} have?"),
        ("carpenter", "nurse", "tax adviser", "pilot", "beekeeper", "translator", "bridge engineer", "pharmacist"),
    ),
    FactTemplate(
        "{p} lives in {v}.",
        "{p} has moved house and lives in {v} now.",
        ("Where is the home of {p}?", "In which town should I visit {p}?"),
        ("Bergen", "Tartu", "Porto", "Graz", "Leeds", "Ghent", "Riga", "Turin", "Brno"),
    ),
    FactTemplate(
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
    FactTemplate(
        "{p} plays the {v}.",
        "{p} has taken up the {v} and plays nothing else any more.",
        ("Which musical instrument does {p} practise?", "What could {p} bring to the orchestra?"),
        ("oboe", "cello", "accordion", "trombone", "harp", "banjo", "viola", "marimba"),
    ),
    FactTemplate(
        "The dentist of {p} is Dr. {v}.",
        "{p} has found another dentist, Dr. {v}.",
        ("Who looks after the teeth of {p}?", "Whom should {p} call about a toothache?"),
        ("Achterberg", "Bellini", "Cardoso", "Dvořák", "Eklund", "Fournier", "Grabowski", "Horváth"),
    ),
    FactTemplate(
        "The key to the flat of {p} hangs {v}.",
        "{p} has moved the key to the flat: it hangs {v} now.",
        ("How do I get into the apartment of {p}?", "Where is what opens the door of {p}?"),
        ("behind the boiler", "under the red pot", "in the bicycle shed", "at the neighbour's", "inside the lantern"),
    ),
    FactTemplate(
        "{p} holds the weekly meeting on {v}.",
        "{p} has shifted the weekly meeting to {v}.",
        ("When does the team of {p} come together?", "At what time each week should I join {p}?"),
        ("Monday at nine", "Tuesday at four", "Wednesday at noon", "Thursday at ten", "Friday at eight"),
    ),
    FactTemplate(
        "The project of {p} is due on {v}.",
        "The date for the project of {p} was put off to {v}.",
        ("What is the deadline that {p} has?", "By when does {p} have to deliver?"),
        ("3 March", "17 April", "9 June", "30 July", "12 September", "1 November", "20 December"),
    ),
    FactTemplate(
        "{p} may spend {v} euros on the project.",
        "The funds of {p} were changed: {v} euros for the project.",
        ("How large is the budget of {p}?", "How much money does {p} have available?"),
        ("4,200", "7,900", "12,500", "18,000", "26,400", "31,000", "55,000"),
    ),
    FactTemplate(
        "{p} writes every program in {v}.",
        "{p} has given that up and writes every program in {v}.",
        ("Which programming language does {p} use?", "What does {p} code in?"),
        ("Rust", "Haskell", "Fortran", "Kotlin", "Elixir", "Prolog", "Ada 95", "OCaml"),
    ),
    FactTemplate(
        "{p} eats {v}.",
        "{p} eats differently since last week: {v}.",
        ("Which diet does {p} follow?", "What kind of meals suit {p}?"),
        ("vegan only", "without gluten", "kosher", "halal", "no sugar at all", "fish but no meat", "raw food only"),
    ),
    FactTemplate(
        "The book that {p} loves most is {v}.",
        "{p} has found a new book to love most: {v}.",
        ("Which novel is the favourite of {p}?", "What does {p} like to read above all?"),
        ("Middlemarch", "Dead Souls", "The Leopard", "Kokoro", "Beloved", "Austerlitz", "Orlando", "The Waves"),
    ),
    FactTemplate(
        "In Vienna {p} always stays at {v}.",
        "In Vienna {p} stays at {v} from now on.",
        ("Which hotel should I book for {p}?", "Where does {p} sleep on trips to Austria?"),
        ("the Kaiserhof", "the Altstadt", "the Beethoven", "the Regina", "the Urania", "the Stefanie"),
    ),
    FactTemplate(
        "{p} takes {v} against high blood pressure.",
        "The doctor has put {p} on {v} against high blood pressure.",
        ("Which medicine is {p} on?", "What was {p} prescribed for the heart?"),
        ("ramipril", "amlodipine", "losartan", "bisoprolol", "valsartan", "indapamide"),
    ),
    FactTemplate(
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
    FactTemplate(
        "{p} drives {v}.",
        "{p} has sold the car and drives {v} now.",
        ("What vehicle does {p} own?", "In what will {p} pick me up?"),
        ("a yellow Beetle", "an electric van", "a Volvo estate", "a rusty Lada", "a convertible", "an old Renault 4"),
    ),
    FactTemplate(
        "The daughter of {p} goes to {v}.",
        "The daughter of {p} has changed schools and goes to {v}.",
        ("Where is the child of {p} taught?", "Which school does the girl of {p} attend?"),
        ("the Montessori school", "Saint Anne's", "the harbour school", "the music gymnasium", "the French lycée"),
    ),
    FactTemplate(
        "{p} has an account with {v}.",
        "{p} has closed the old account and opened one with {v}.",
        ("Which bank does {p} use?", "Where does {p} keep the savings?"),
        ("Triodos", "the Sparkasse", "Nordea", "Caixa", "the Postbank", "Raiffeisen", "Handelsbanken"),
    ),
    FactTemplate(
        "{p} speaks {v} with the grandparents.",
        "{p} has learnt {v} and speaks it with the grandparents now.",
        ("Which language is used in the family of {p}?", "In what tongue does {p} talk to grandma?"),
        ("Basque", "Ladino", "Welsh", "Frisian", "Sorbian", "Maltese", "Romansh", "Yiddish"),
    ),
    FactTemplate(
        "{p} is afraid of {v}.",
        "{p} got over the old fear and is afraid of {v} instead.",
        ("What frightens {p}?", "Which phobia does {p} suffer from?"),
        ("lifts", "thunderstorms", "spiders", "deep water", "bridges", "crowds", "the dark"),
    ),
    FactTemplate(
        "{p} collects {v}.",
        "{p} has sold the collection and collects {v} these days.",
        ("What would be a gift for the hobby of {p}?", "Which things does {p} hunt for at flea markets?"),
        ("fountain pens", "sea maps", "tin toys", "typewriters", "matchboxes", "fossils", "music boxes"),
    ),
    FactTemplate(
        "{p} wears shoes in size {v}.",
        "{p} was measured anew: the shoes have to be size {v}.",
        ("How big are the feet of {p}?", "Which slippers would fit {p}?"),
        ("36", "37", "38", "39", "41", "42", "43", "45"),
    ),
    FactTemplate(
        "{p} grows {v} on the balcony.",
        "{p} has cleared the balcony and grows {v} there now.",
        ("What does {p} plant?", "Which harvest does {p} hope for this summer?"),
        ("chillies", "runner beans", "figs", "sage", "cherry tomatoes", "sweet peas", "strawberry mint"),
    ),
    FactTemplate(
        "{p} sings in {v}.",
        "{p} has left and sings in {v} now.",
        ("Which choir is {p} a member of?", "Where can I hear the voice of {p}?"),
        ("the cathedral choir", "the Bach society", "a shanty crew", "a gospel group", "the opera chorus"),
    ),
)
SMALL_TALK = (
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
ROUTINE_TALK = (
    "Good morning, nothing new today.",
    "The usual stand-up, everybody is busy.",
    "Coffee break, some small talk about the weekend.",
    "Went through the mail, nothing that needs an answer.",
    "Said goodnight and see you tomorrow.",
    "The backup ran without errors.",
)
FILL_WORDS: Mapping[str, Sequence[str]] = {
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
DEMO_FACTS = (
    DemoFact(
        ("Simão is allergic to walnuts",),
        ("What must Rita's son not eat?", "Is there a dish that harms Simão?"),
        ("Simão", "allergic"),
    ),
    DemoFact(
        ("I am going to say yes and take the job", "I wrote to Van Aken tonight and declined"),
        ("Is Ines going to work for Van Aken?", "What did Ines decide about Rotterdam?"),
        ("job", "Rotterdam"),
    ),
    DemoFact(("chronic kidney disease, stage 2",), ("What illness does the cat Bolota have?",), ("Bolota", "disease")),
    DemoFact(
        ("Moinho da Pedra agreed: 350 kilos",), ("What did the bakery agree with the mill?",), ("agreed", "flour")
    ),
    DemoFact(("gave me the blue tureen",), ("What did Ines get from Avó Lurdes at Easter?",), ("Lurdes", "gave")),
    DemoFact(("first cello lesson",), ("Who teaches Ines to play the cello?",), ("cello", "lesson")),
    DemoFact(("2.5 millilitres of phosphate binder",), ("Which medicine does Bolota get?",), ("Bolota", "morning")),
    DemoFact(("Then I buy the oven",), ("How does Tomás pay for the oven of the bakery?",), ("oven", "loan")),
)
