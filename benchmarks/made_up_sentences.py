"""Made-up sentences that can be paraphrased, or repeated with one fact changed. Seeded; no data set.

A sentence is stored as its facts: who did what to what, how much, when, where, with whom, why; or the state of
something. It can be paraphrased (synonyms, active and passive, another order, contractions, filler words) or repeated
in the same words with one fact changed. 72 actions with optional parts, and 30 states.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

T = TypeVar("T")

PEOPLE = (
    "Ada Bruno Chloe Dmitri Elena Farid Greta Hugo Ines Jonas Keiko Liam Mara Nils Olga Pavel Quinn Rosa Samir Tilda "
    "Viktor Wanda Xenia Yusuf Zoe Anton Beatriz Cyril Dora Emil Freya Gustav Hanna Ivo Judith Karim Leonie Marco Nadia"
).split()
PLACES = (
    "in the garage|in the kitchen|in the garden|at the office|at the library|in the basement|at the harbour"
    "|on the balcony|in the workshop|at the station|at the lake house|in the school yard|in the attic|at the market|behind the barn"
).split("|")
TOWNS = "Lisbon Kyoto Bergen Tartu Porto Graz Leeds Basel Ghent Riga Turin Cork Brno Lyon Malaga Oslo".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()  # fmt: skip
REASONS = (
    "the weather was awful|the guests were already waiting|nobody else had the patience|the old plan made no sense"
    "|the landlord had complained|the children kept asking|it was part of the agreement|the insurance demanded it"
    "|money was short|the neighbours needed help|the deadline was close|a storm was coming|it had been promised"
    "|the doctor advised it|the boss insisted|the last attempt went wrong"
).split("|")
DEEDS = tuple(
    tuple(line.split("|"))
    for line in """
repair|repaired|repaired|fixed|fixed|the old bicycle|the old bike
paint|painted|painted|coated|coated|the garden fence|the fence of the garden
sell|sold|sold|got rid of|sold off|the leather sofa|the leather couch
buy|bought|bought|purchased|purchased|a used car|a second-hand car
write|wrote|written|drafted|drafted|the letter to the tax office|the letter for the tax office
clean|cleaned|cleaned|scrubbed|scrubbed|the greasy oven|the oven that was greasy
book|booked|booked|reserved|reserved|a table at the restaurant|a restaurant table
cook|cooked|cooked|prepared|prepared|mushroom soup for the family|mushroom soup for the whole family
build|built|built|constructed|constructed|a wooden shelf|a shelf made of wood
sign|signed|signed|put a signature on|signed|the rental contract|the lease
translate|translated|translated|rendered into English|rendered into English|the user manual|the manual for the users
photograph|photographed|photographed|took pictures of|captured in pictures|the stone bridge|the bridge made of stone
deliver|delivered|delivered|brought|brought|the heavy parcels|the heavy packages
organise|organised|organised|arranged|arranged|the farewell party|the goodbye party
borrow|borrowed|borrowed|was lent|borrowed|the electric drill|the power drill
hide|hid|hidden|concealed|concealed|the spare key|the extra key
throw away|threw away|thrown away|discarded|discarded|the broken printer|the printer that was broken
invite|invited|invited|asked over|asked over|the new colleagues|the new co-workers
test|tested|tested|tried out|tried out|the backup generator|the emergency generator
record|recorded|recorded|taped|taped|the piano concert|the concert for piano
plant|planted|planted|put into the ground|put into the ground|the young apple trees|the small apple trees
measure|measured|measured|took the measure of|measured|the living room|the lounge
present|presented|presented|showed|shown|the quarterly figures|the figures of the quarter
steal|stole|stolen|took without asking|taken without asking|the office coffee machine|the coffee machine of the office
prepare|prepared|prepared|got ready|got ready|the exam papers|the papers for the exam
rescue|rescued|rescued|saved|saved|the injured owl|the owl that was hurt
move|moved|moved|shifted|shifted|the team meeting|the meeting of the team
explain|explained|explained|described in detail|described in detail|the new billing system|the new invoicing system
pack|packed|packed|filled|filled|the blue suitcase|the suitcase that is blue
find|found|found|discovered|discovered|the missing passport|the lost passport
install|installed|installed|set up|set up|the security cameras|the surveillance cameras
feed|fed|fed|gave food to|given food|the neighbour's cats|the cats of the neighbour
print|printed|printed|ran off|run off|the wedding invitations|the invitations to the wedding
check|checked|checked|examined|examined|the smoke detectors|the smoke alarms
pay|paid|paid|settled|settled|the electricity bill|the bill for electricity
teach|taught|taught|gave|given|the evening pottery class|the pottery class in the evening
close|closed|closed|shut down|shut down|the savings account|the account for savings
visit|visited|visited|went to see|visited|the retired teacher|the teacher who has retired
break|broke|broken|smashed|smashed|the antique mirror|the old mirror
restore|restored|restored|brought back|brought back|the customer database|the database of the customers
design|designed|designed|created|created|the book cover|the cover of the book
rent|rented|rented|hired|hired|a small van|a little van
lead|led|led|guided|guided|the city tour|the tour of the city
knit|knitted|knitted|made|made|a woollen scarf|a scarf of wool
wash|washed|washed|laundered|laundered|the curtains of the hall|the hall curtains
hang|hung|hung|put up|put up|the large mirror|the big mirror
edit|edited|edited|revised|revised|the travel report|the report on the journey
water|watered|watered|gave water to|given water|the tomato plants|the tomatoes
catch|caught|caught|got hold of|caught|the escaped parrot|the runaway parrot
copy|copied|copied|duplicated|duplicated|the video files|the files with the videos
inspect|inspected|inspected|looked over|looked over|the leaking roof|the roof that leaks
interview|interviewed|interviewed|questioned|questioned|the job applicants|the candidates for the job
bake|baked|baked|made|made|a lemon cake|a cake with lemon
assemble|assembled|assembled|put together|put together|the kitchen cupboard|the cupboard for the kitchen
count|counted|counted|tallied|tallied|the donation money|the money from donations
publish|published|published|released|released|the open letter|the letter to the public
rehearse|rehearsed|rehearsed|practised|practised|the theatre play|the stage play
order|ordered|ordered|sent for|ordered|the winter tyres|the tyres for winter
lock|locked|locked|bolted|bolted|the back door|the rear door
draw|drew|drawn|sketched|sketched|the floor plan|the plan of the floor
tune|tuned|tuned|adjusted|adjusted|the old violin|the ancient violin
return|returned|returned|gave back|given back|the library books|the books from the library
approve|approved|approved|gave the go-ahead for|given the go-ahead|the holiday request|the request for leave
dig|dug|dug|excavated|excavated|a pond for the ducks|a duck pond
sharpen|sharpened|sharpened|honed|honed|the kitchen knives|the knives in the kitchen drawer
train|trained|trained|coached|coached|the swimming team|the team of swimmers
answer|answered|answered|replied to|answered|the angry complaints|the furious complaints
cut|cut|cut|trimmed|trimmed|the long hedge|the hedge that is long
scan|scanned|scanned|digitised|digitised|the family photos|the photographs of the family
update|updated|updated|refreshed|refreshed|the web server|the server for the web
review|reviewed|reviewed|went through|gone through|the insurance policy|the policy of the insurance
carry|carried|carried|hauled|hauled|the washing machine|the laundry machine
""".strip().splitlines()
)
"""Infinitive, past, participle, the same two of a synonym, object, the object in other words."""
AMOUNTS = (
    "for {n}0 euros|in {n} hours|with {n} helpers|{n} times|within {n} days|for the {n}th time|after {n} phone calls"
).split("|")
STATES = tuple(
    tuple(line.split("|"))
    for line in """
{who} is allergic to {n} kinds of nuts.|{who} is not allergic to {n} kinds of nuts.|{who} has an allergy to {n} kinds of nuts.
{who} lives on floor {n} of a tower in {town}.|{who} does not live on floor {n} of a tower in {town}.|The home of {who} is on floor {n} of a tower in {town}.
{who} prefers trains to planes for trips to {town}.|{who} does not prefer trains to planes for trips to {town}.|For trips to {town}, {who} likes trains better than planes.
{who} works at the bakery in {town} on {day}.|{who} does not work at the bakery in {town} on {day}.|On {day}, {who} has a shift at the bakery in {town}.
The office in {town} has {n} meeting rooms.|The office in {town} does not have {n} meeting rooms.|There are {n} meeting rooms in the {town} office.
{who} speaks {n} languages fluently.|{who} does not speak {n} languages fluently.|{who} is fluent in {n} languages.
The backup of the {town} server runs at {n} o'clock.|The backup of the {town} server does not run at {n} o'clock.|At {n} o'clock the {town} server is backed up.
{who} has {n} younger cousins in {town}.|{who} does not have {n} younger cousins in {town}.|In {town}, {who} has got {n} cousins who are younger.
{who} is afraid of dogs since a holiday in {town}.|{who} is not afraid of dogs since a holiday in {town}.|Since a holiday in {town}, dogs frighten {who}.
{who} is going to marry in {town} in {month}.|{who} is not going to marry in {town} in {month}.|The wedding of {who} will be in {town} in {month}.
The project of {who} is {n} weeks behind schedule.|The project of {who} is not {n} weeks behind schedule.|{who}'s project is running {n} weeks late.
{who} takes {n} tablets every morning.|{who} does not take {n} tablets every morning.|Every morning, {who} swallows {n} tablets.
The choir of {town} rehearses on {day}.|The choir of {town} does not rehearse on {day}.|On {day} the {town} choir has its rehearsal.
{who} owns a boat with {n} cabins.|{who} does not own a boat with {n} cabins.|A boat with {n} cabins belongs to {who}.
{who} is responsible for the customers in {town}.|{who} is not responsible for the customers in {town}.|The customers in {town} are the responsibility of {who}.
The train to {town} leaves from platform {n}.|The train to {town} does not leave from platform {n}.|From platform {n} the train for {town} departs.
{who} is learning the cello with a teacher from {town}.|{who} is not learning the cello with a teacher from {town}.|A teacher from {town} is teaching {who} the cello.
{who} keeps {n} beehives behind the house.|{who} does not keep {n} beehives behind the house.|Behind the house, {who} has {n} hives of bees.
{who} wants to move to {town} in {month}.|{who} does not want to move to {town} in {month}.|In {month}, {who} would like to relocate to {town}.
The contract with the firm in {town} ends in {month}.|The contract with the firm in {town} does not end in {month}.|In {month} the contract with the {town} firm expires.
{who} has been a vegetarian for {n} years.|{who} has not been a vegetarian for {n} years.|For {n} years, {who} has eaten vegetarian food.
{who} is the owner of the cinema in {town}.|{who} is not the owner of the cinema in {town}.|The cinema in {town} is owned by {who}.
The password of the {town} wifi changes every {n} weeks.|The password of the {town} wifi does not change every {n} weeks.|Every {n} weeks the wifi password in {town} is changed.
{who} has an appointment with the dentist on {day}.|{who} does not have an appointment with the dentist on {day}.|On {day}, {who} has got a dentist's appointment.
{who} earns {n}000 euros a month.|{who} does not earn {n}000 euros a month.|The monthly salary of {who} is {n}000 euros.
The museum in {town} is closed on {day}.|The museum in {town} is not closed on {day}.|On {day} the {town} museum is shut.
{who} was born in {town} in {month}.|{who} was not born in {town} in {month}.|{town} is where {who} was born, in {month}.
{who} grows {n} sorts of potatoes near {town}.|{who} does not grow {n} sorts of potatoes near {town}.|Near {town}, {who} cultivates {n} kinds of potatoes.
{who} likes the coffee of the station in {town}.|{who} does not like the coffee of the station in {town}.|The coffee at {town} station is something that {who} enjoys.
The test of the engine takes {n} hours in {town}.|The test of the engine does not take {n} hours in {town}.|In {town} it takes {n} hours to test the engine.
""".strip().splitlines()
)
"""The statement, its negation, and a paraphrase."""
OPENINGS = (
    "By the way, ",
    "Well, ",
    "As it happens, ",
    "Actually, ",
    "You know, ",
    "So, ",
    "Oh, and ",
    "Just so you know, ",
)
TAILS = (", you know", ", as it happens", ", in the end", ", so to speak", ", by the way", ", actually")


@dataclass(frozen=True, slots=True)
class ActionSentence:
    """An action and its circumstances. Parts that are "" are left out."""

    who: str
    deed: int
    number: int
    amount: str
    weekday: str
    date: str
    place: str
    town: str
    companion: str
    reason: str
    negated: bool = False

    @property
    def topic(self) -> tuple[object, ...]:
        return DEEDS[self.deed], self.who

    @property
    def subject(self) -> str:
        return f"{self.who} and {self.companion}" if self.companion else self.who

    def text(self) -> str:
        """The sentence in the active voice, its parts in their usual order."""
        infinitive, past, *_ = DEEDS[self.deed]
        verb = f"did not {infinitive}" if self.negated else past
        because = f"because {self.reason}" if self.reason else ""
        return _joined(self.subject, verb, DEEDS[self.deed][5], self._amount, self._where, self._when, because)

    @property
    def _amount(self) -> str:
        return self.amount.format(n=self.number)

    @property
    def _when(self) -> str:
        return " ".join(
            part for part in (self.weekday and f"on {self.weekday}", self.date and f"on {self.date}") if part
        )

    @property
    def _where(self) -> str:
        return " ".join(part for part in (self.place, self.town and f"in {self.town}") if part)

    def paraphrased(self, rng: random.Random) -> str:
        """The same facts in other words: four random rules, of which at least two apply."""
        rules = set(rng.sample(("verb", "object", "passive", "order", "contraction", "filler", "reason"), 4))
        infinitive, past, participle, other_past, other_participle, what, other_what = DEEDS[self.deed]
        if "object" in rules:
            what = other_what
        was = "were" if _plural(what) else "was"
        if self.negated:
            negation = "didn't" if "contraction" in rules else "did not"
            verb = f"{negation} {infinitive}"
            passive = f"{was}n't" if "contraction" in rules else f"{was} not"
        else:
            verb = other_past if "verb" in rules else past
            passive = was
        by = f"by {self.subject}"
        if "passive" in rules:
            core = [what, passive, other_participle if "verb" in rules and not self.negated else participle, by]
        else:
            core = [self.subject, verb, what]
        core.append(self._amount)
        when, where = self._when, self._where
        because = f"because {self.reason}" if self.reason else ""
        if "reason" in rules and because:
            because = f"as {self.reason}" if "order" in rules else f"since {self.reason}"
        sentence = _joined(*core, where, when, because)
        if "order" in rules and when:
            sentence = f"{_capitalised(when)}, {_uncapitalised(_joined(*core, where, because), self)}"
        elif "order" in rules and because:
            sentence = f"{_capitalised(because)}, {_uncapitalised(_joined(*core, where, when), self)}"
        if "filler" in rules:
            sentence = (
                f"{rng.choice(OPENINGS)}{_uncapitalised(sentence, self)}"
                if rng.random() < 0.6
                else f"{sentence[:-1]}{rng.choice(TAILS)}."
            )
        return sentence

    def with_changed(self, change: str, rng: random.Random) -> ActionSentence:
        """A copy with one fact changed."""
        match change:
            case "digit":
                return replace(self, number=_different(range(4, 10), self.number, rng))
            case "name":
                return replace(self, who=_different([p for p in PEOPLE if p != self.companion], self.who, rng))
            case "date" if self.date:
                day, month = self.date.split()
                if rng.random() < 0.5:
                    return replace(self, date=f"{_different(range(1, 29), int(day), rng)} {month}")
                return replace(self, date=f"{day} {_different(MONTHS, month, rng)}")
            case "date":
                return replace(self, weekday=_different(WEEKDAYS, self.weekday, rng))
            case _:
                return replace(self, negated=not self.negated)


@dataclass(frozen=True, slots=True)
class StateSentence:
    """The state of something."""

    form: int
    who: str
    n: int
    town: str
    day: str
    month: str
    negated: bool = False

    @property
    def topic(self) -> tuple[object, ...]:
        form = STATES[self.form][0]
        return self.form, self.who if "{who}" in form else self.town

    def text(self) -> str:
        return self._filled(STATES[self.form][1 if self.negated else 0])

    def paraphrased(self, rng: random.Random) -> str:
        if self.negated or rng.random() < 0.3:
            sentence = self.text().replace(" does not ", " doesn't ").replace(" is not ", " isn't ")
            sentence = sentence.replace(" is going to ", " will ").replace(" has been ", "'s been ")
        else:
            sentence = self._filled(STATES[self.form][2])
        if rng.random() < 0.5 or sentence == self.text():
            keeps = sentence.startswith((self.who, self.town, *WEEKDAYS))
            sentence = rng.choice(OPENINGS) + (sentence if keeps else sentence[0].lower() + sentence[1:])
        return sentence

    def with_changed(self, change: str, rng: random.Random) -> StateSentence:
        form = STATES[self.form][0]
        if change == "digit" and "{n}" in form:
            return replace(self, n=_different(range(2, 10), self.n, rng))
        if change == "name" and "{who}" in form:
            return replace(self, who=_different(PEOPLE, self.who, rng))
        if change == "name":
            return replace(self, town=_different(TOWNS, self.town, rng))
        if change == "date" and "{day}" in form:
            return replace(self, day=_different(WEEKDAYS, self.day, rng))
        if change == "date" and "{month}" in form:
            return replace(self, month=_different(MONTHS, self.month, rng))
        return replace(self, negated=not self.negated)

    def _filled(self, form: str) -> str:
        return form.format(who=self.who, n=self.n, town=self.town, day=self.day, month=self.month)


CHANGES = ("digit", "name", "date", "negation")


def sentences(seed: int) -> Iterator[ActionSentence | StateSentence]:
    """Yield random sentences, a fifth of them states, no two on the same topic. There are 3,700 topics."""
    rng = random.Random(seed)
    seen: set[tuple[object, ...]] = set()
    while True:
        sentence = any_sentence(rng)
        if sentence.topic not in seen:
            seen.add(sentence.topic)
            yield sentence


def any_sentence(rng: random.Random) -> ActionSentence | StateSentence:
    return _state_sentence(rng) if rng.random() < 0.2 else _action_sentence(rng)


def _state_sentence(rng: random.Random) -> StateSentence:
    return StateSentence(
        form=rng.randrange(len(STATES)),
        who=rng.choice(PEOPLE),
        n=rng.randrange(2, 10),
        town=rng.choice(TOWNS),
        day=rng.choice(WEEKDAYS),
        month=rng.choice(MONTHS),
    )


def _action_sentence(rng: random.Random) -> ActionSentence:
    who, companion = rng.sample(PEOPLE, 2)
    dated = rng.random() < 0.5
    return ActionSentence(
        who=who,
        deed=rng.randrange(len(DEEDS)),
        number=rng.randrange(4, 10),
        amount=rng.choice(AMOUNTS),
        weekday="" if dated else rng.choice(WEEKDAYS),
        date=f"{rng.randrange(1, 29)} {rng.choice(MONTHS)}" if dated else "",
        place=rng.choice(PLACES) if rng.random() < 0.5 else "",
        town=rng.choice(TOWNS) if rng.random() < 0.5 else "",
        companion=companion if rng.random() < 0.4 else "",
        reason=rng.choice(REASONS) if rng.random() < 0.5 else "",
        negated=rng.random() < 0.15,
    )


def _joined(*parts: str) -> str:
    return _capitalised(" ".join(part for part in parts if part)) + "."


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def _uncapitalised(sentence: str, source: ActionSentence) -> str:
    """Start with a small letter, unless the first word is a name or a weekday."""
    keeps = sentence.startswith((source.who, *WEEKDAYS))
    return sentence if keeps else sentence[0].lower() + sentence[1:]


def _plural(what: str) -> bool:
    """Whether the head noun (the word before the first preposition or clause) is plural."""
    head = re.split(r" (?:of|for|with|from|that|who|to|on|in|at|made) ", what)[0].removesuffix(" of")
    return head.endswith("s") and not head.endswith("class")


def _different(choices: Iterable[T], excluded: T, rng: random.Random) -> T:
    return rng.choice([choice for choice in choices if choice != excluded])
