"""Words for the relations of Wikidata, and questions from such facts that can be read. Paper section 6; all of it is our choice [C].

The corpus is closed: a question is right by the facts of the file, which are few and of some past day. A place of birth, a headquarters
or the continent of a country is the only one in the world too. That one label, university, citizenship, language or spouse is *the* one
of somebody, and that a description fits one alone, holds for the file only. `STEPS` and `TELLING` leave out what would be too far from
the world or too vague. What a person suffers from or believes, and which people somebody is of, do not serve at all.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from nbcore.search.graph import Graph, Step
from nbcore.search.questions import Question, Wording, obfuscate, say, walk

# Relation, step, step back, condition, condition back, question. What a step is of stands at its end: a description is read in one piece.
WORDINGS = {relation: Wording(*forms) for relation, *forms in (
    ("diplomatic relation", "a partner of {of}", "a partner of {of}", "with an embassy from {value}", "with an embassy in {value}"),
    ("occupation", "the occupation of {of}", "the working {of}", "whose occupations include {value}", "that is an occupation of {value}"),
    ("genre", "the genre of {of}", "the one in the genre {of}", "whose genres include {value}", "that is a genre of {value}"),
    ("member of", "the organization of {of}", "the member of {of}", "whose memberships include {value}", "whose members include {value}"),
    ("country of citizenship", "the country of citizenship of {of}", "the citizen of {of}", "who is or was a citizen of {value}",
     "of which {value} is or was a citizen", "Which country is the country of citizenship of {of}?"),
    ("languages spoken, written, or signed", "the language of {of}", "the speaker of {of}", "whose languages include {value}",
     "that is a language of {value}", "Which language is known to {of}?"),
    ("record label", "the record label of {of}", "the artist of {of}", "whose record labels include {value}",
     "whose artists include {value}", "Which record label has or had as its artist {of}?"),
    ("instrument", "the instrument of {of}", "the player of {of}", "whose instruments include {value}", "that is played by {value}",
     "Which instrument is played by {of}?"),
    ("influenced by", "the person who influenced {of}", "the person influenced by {of}", "who was influenced by {value}",
     "who influenced {value}", "Who influenced {of}?"),
    ("continent", "the continent of {of}", "the place on the continent {of}", "that lies in {value}", "on which {value} lies",
     "On which continent lies {of}?"),
    ("ethnic group", "the people of {of}", "the one of the {of}", "whose ethnic groups include {value}", "to whom {value} belongs"),
    ("religion", "the religion of {of}", "the follower of {of}", "whose religion or worldview is {value}", "that is followed by {value}"),
    ("official language", "the official language of {of}", "the place that speaks {of}", "whose official languages include {value}",
     "that is an official language of {value}", "Which language is the official language of {of}?"),
    ("residence", "the place of residence of {of}", "the resident of {of}", "who lives or lived in {value}",
     "where {value} lives or lived", "Which place is or was the residence of {of}?"),
    ("place of birth", "the birthplace of {of}", "the person born in {of}", "who was born in {value}", "where {value} was born",
     "Which place is the birthplace of {of}?"),
    ("educated at", "the university or school attended by {of}", "the person who studied at {of}", "who studied at {value}",
     "where {value} studied", "Which university or school was attended by {of}?"),
    ("cause of death", "the cause of death of {of}", "the person who died of {of}", "who died of {value}",
     "that was a cause of the death of {value}", "What was the cause of death of {of}?"),
    ("member of political party", "the political party of {of}", "the member of the {of}", "who is or was a member of the {value}",
     "whose members include {value}", "Which political party has or had as a member {of}?"),
    ("place of death", "the place of death of {of}", "the person who died in {of}", "who died in {value}", "where {value} died",
     "Which place is the place of death of {of}?"),
    ("country", "the country of {of}", "the place or organization in {of}", "that is or was in {value}",
     "to which {value} belongs or belonged", "Which country is home to {of}?"),
    ("employer", "the employer of {of}", "the person employed by {of}", "who worked for {value}", "that employed {value}",
     "Who employed {of}?"),
    ("field of work", "the field of {of}", "the one in the field {of}", "whose fields include {value}", "that is a field of {value}"),
    ("part of", "the whole that includes {of}", "the part of {of}", "that is part of {value}", "that includes {value}"),
    ("spouse", *["the spouse of {of}"] * 2, *["who is or was married to {value}"] * 2, "Who is or was married to {of}?"),
    ("headquarters location", "the place of the headquarters of {of}", "the organization with its headquarters in {of}",
     "whose headquarters are in {value}", "where {value} has its headquarters", "Which place holds the headquarters of {of}?"),
    ("unmarried partner", "the partner of {of}", "the partner of {of}", *["whose unmarried partners include {value}"] * 2),
    ("time period", "the time of {of}", "the one of the {of}", "whose time is the {value}", "that is the time of {value}"),
    ("medical condition", "the illness of {of}", "the person with {of}", "who has or had {value}", "that is an illness of {value}"),
    ("sibling", "the sibling of {of}", "the sibling of {of}", *["whose siblings include {value}"] * 2, "Who is a sibling of {of}?"),
    ("head of state", "the head of state of {of}", "the country whose head of state is {of}", "whose head of state is {value}",
     "who is the head of state of {value}", "Who is the head of state of {of}?"),
    ("movement", "the movement of {of}", "the follower of {of}", "who belongs to the movement {value}", "to which {value} belongs"),
    ("parent organization", "the parent company of {of}", "the subsidiary of {of}", "whose parent company is {value}",
     "whose subsidiaries include {value}", "Which company is the parent company of {of}?"),
    ("location of formation", "the place where began {of}", "what began in {of}", "that began in {value}", "where {value} began"),
    ("cast member", "the actor in {of}", "the film with {of}", "in which {value} plays", "who plays in {value}", "Who plays in {of}?"),
    ("child", "the child of {of}", "the parent of {of}", "whose children include {value}", "whose parents include {value}",
     "Who is a child of {of}?"),
    ("place of burial", "the place of burial of {of}", "the person buried in {of}", "who is buried in {value}", "where {value} is buried",
     "Which place is the place of burial of {of}?"),
    ("founded by", "the founder of {of}", "what {of} founded", "that {value} founded", "who founded {value}", "Who founded {of}?"),
    ("country of origin", "the country of origin of {of}", "the work from {of}", "that comes from {value}", "where {value} comes from"),
    ("practiced by", "the people that practices {of}", "the practice of {of}", "that is practiced by {value}", "that practices {value}"),
    ("narrative location", "the scene of {of}", "the work set in {of}", "that is set in {value}", "where {value} is set"),
    ("named after", "what gave its name to {of}", "what is named after {of}", "that is named after {value}", "that gave {value} its name"),
)}  # fmt: skip

# Steps of a walk: forwards, since few inverses have one value in the world. `walk` sees to it that they have one in the file.
STEPS = {
    "place of birth", "place of death", "place of burial", "country of citizenship", "country", "continent", "official language",
    "headquarters location", "parent organization", "founded by", "head of state", "cause of death", "member of political party",
    "educated at", "record label", "spouse",
}  # fmt: skip
TELLING = set(WORDINGS) - {
    "diplomatic relation", "languages spoken, written, or signed", "ethnic group", "medical condition", "time period", "named after",
    "practiced by", "location of formation", "field of work", "movement", "part of", "religion", "residence",
}  # fmt: skip
ALONE = {"place of birth", "place of death", "headquarters location", "parent organization", "founded by", "spouse"}
# Values that narrower ones fit too, as Brooklyn is in New York City and a lyricist writes: not for descriptions.
BROAD = set(
    "actor|writer|author|musician|songwriter|composer|artist|scientist|teacher|professor|poet|guitarist|pianist|keyboardist|film producer|"
    "guitar|piano|percussion instrument|keyboard instrument|cancer|New York City|England|rock music|pop music|heavy metal music|poetry|"
    "dance music|blues|rhythm and blues|novel|short story|Warner Music Group|Universal Music Group|Sony Music Entertainment".split("|"))
ODD = {("Russian Empire", "continent"), ("Egypt", "continent")}  # of two continents or more, the file has the least likely
KINDS = (  # what a thing is, by the first kind of fact that it has
    ("person", {Step("occupation"), Step("place of birth"), Step("place of death"), Step("educated at"), Step("spouse")}),
    ("record label", {Step("record label", True)}),
    ("country", {Step("diplomatic relation"), Step("country of citizenship", True)}),
    ("place", {Step("place of birth", True), Step("place of death", True), Step("residence", True)}),
)  # fmt: skip
_ARTICLE = (
    r"United (?:Nat|Sta|Kin)|Soviet|Commonw|Counc|Organi|North Atl|World Tr|Asian Dev|African (?:Un|Dev)|African, |American (?:A|Ph)"
    r"|Weimar|Royal Soc|Juilliard|University of|Holy Roman|Kingdom of|\w+ Empire|Netherl|Philipp|(?:\w+ |\w+'s )?Republic\b|Middle East"
)


def kind(graph: Graph, entity: str) -> str | None:
    """`person`, `country` and so on; None for what is not fit to begin at."""
    return next((noun for noun, steps in KINDS if steps.intersection(graph.steps(entity))), None)


def questions(
    graph: Graph, rng: random.Random, *, visits: Mapping[str, int] | None = None, draws: int = 8, chance: float = 0.5, tries: int = 200_000,
) -> Iterator[Question]:  # fmt: skip
    """Questions of two to four hops with a described start, unscreened. visits: as for `walk`, counted by the caller.

    Of `draws` descriptions the most telling is taken, which the fewest would fit by chance, and only if fewer than `chance` of its kind
    would; no relation stands in it twice. A condition that fits the start alone is used only if it would in the world too (`ALONE`).
    """
    kinds = {entity: noun for entity in graph.entities if (noun := kind(graph, entity))}
    starts, sizes = sorted(kinds), Counter(kinds.values())

    def usable(step: Step, value: str) -> bool:
        one = step.relation in ALONE and (step.back or step.relation == "spouse")
        return step.relation in TELLING and value not in BROAD and (one or len(graph.fitting([(step, value)])) > 1)

    for _ in range(tries):
        start, found = rng.choice(starts), []
        made = walk(graph, rng, start, rng.choices((1, 2, 3), (1, 3, 9))[0], visits=visits, most_visits=60,
                    steps=lambda step: step.relation in STEPS and not step.back)  # fmt: skip
        if made is None or any((f.head, f.relation) in ODD or f.relation == kinds.get(f.head) for f in made.facts):
            continue  # such as the country of a country
        plain = Question(say(made, wordings=WORDINGS), made.entities[-1], made)
        for _ in range(draws if all(step.relation != "head of state" for step in made.way[:-1]) else 0):  # nothing beyond a monarch
            one = obfuscate(graph, plain, rng, 3, WORDINGS, noun=kinds[start], usable=usable)
            told = [step.relation for step, _ in one.conditions] if one else []
            if one and len(set(told)) == len(told) and ("influenced by" not in told or kinds[start] == "person"):
                fit = sizes[kinds[start]] * math.prod(len(graph.fitting([c])) / sizes[kinds[start]] for c in one.conditions)
                found += [(fit, one.text, one)] if fit < chance or len(one.conditions) == 1 else []
        if found:
            one = min(found, key=lambda f: f[:2])[2]
            yield replace(one, text=re.sub(rf"(?<![Tt]he )\b({_ARTICLE})", r"the \1", one.text))
