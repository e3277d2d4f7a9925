"""Answers against what is known: folding, numbers, symbols, and questions that have no answer."""

import pytest

from cartoolkit.evaluation.matching import abstains, contains_answer, grade, is_exactly
from cartoolkit.retrieval import LabelledQuestion


def question(*answers, kind="single", start=""):
    return LabelledQuestion("q", "What?", answers, kind, "capital", (), "test", start)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The capital of Brazil is Brasilia.", "Brasília"),
        ("THE CAPITAL IS BRASÍLIA!", "Brasília"),
        ("It is called Reykjavi\u0301k.", "Reykjavík"),  # a combining accent
        ("The capital is N’Djamena.", "N'Djamena"),
        ("The capital is Ndjamena.", "N'Djamena"),
        ("Kabul's river", "Kabul"),
        ("Doyle’s Delight is the highest.", "Doyle's Delight"),
        ("It is Port au Prince", "Port-au-Prince"),
        ("the  Port-au-\nPrince area", "Port-au-Prince"),
        ("Mount Fogo", "Mt. Fogo"),
        ("St. Pierre", "Saint-Pierre"),
        ("Tromso", "Tromsø"),
        ("Lodz is in Poland", "Łódź"),
        ("They pay with króna.", "krona"),
    ],
)
def test_spelling_that_is_no_difference_is_none(text, answer):
    assert contains_answer(text, answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Kabuls", "Kabul"),
        ("Romeo", "Rome"),
        ("The dinar of Algeria", "Algerian dinar"),
        ("dinar Algerian", "Algerian dinar"),
        ("", "Kabul"),
        ("Kabul", ""),
        ("Kabul", "..."),
    ],
)
def test_only_whole_words_in_order_count(text, answer):
    assert not contains_answer(text, answer)


@pytest.mark.parametrize(
    ("text", "answer", "there"),
    [
        ("discovered in 1,766 by", "1766", True),
        ("discovered in 1766.", "1,766", True),
        ("8\u202f849 m", "8849", True),
        ("8,849m", "8849", False),  # a unit without a space is another word
        ("8,849m", "8", False),
        ("112", "12", False),
        ("120", "12", False),
        ("12.5", "12", False),
        ("12.0", "12", True),
        ("012", "12", True),
        ("the 12th place", "12", True),
        ("It is 12.", "12", True),
        ("12,5", "12", True),  # no thousands: two numbers
        ("1766,1767", "1766", True),
        ("the 1760s", "1760", False),
        ("H12", "12", False),
        ("0", "0", True),
        ("x² is", "2", False),
    ],
)
def test_numbers_are_compared_as_numbers(text, answer, there):
    assert contains_answer(text, answer) is there


@pytest.mark.parametrize(
    ("text", "answer", "there"),
    [
        ("The symbol is Al.", "Al", True),
        ("The symbol is AL.", "Al", False),
        ("Aluminum", "Al", False),
        ("all of them", "ALL", False),
        ("The lek (ALL)", "ALL", True),
        ("It is 'Cu'", "Cu", True),
        ("H2O holds it", "H", False),
        ("I", "I", True),
        ("The symbol of iodine is I.", "I", True),
        ("I do not know.", "I", False),
        ("It is no gas.\nI think so.", "I", False),
        ("In 1863 it was found.", "In", False),
        ("It was found in 1863. The symbol is In.", "In", True),
        ("In.", "In", True),
        ("At first: no.", "At", False),
    ],
)
def test_a_symbol_keeps_its_case_and_is_no_word_at_the_start_of_a_sentence(text, answer, there):
    assert contains_answer(text, answer) is there


def test_exact_means_nothing_else_but_an_article_and_punctuation():
    assert is_exactly("The Euro.", "euro")
    assert is_exactly("euro", "the euro")
    assert is_exactly("1,766", "1766")
    assert not is_exactly("It is the euro.", "euro")
    assert not is_exactly("al", "Al")
    assert not is_exactly("", "euro")
    assert not is_exactly("The", "euro")


@pytest.mark.parametrize(
    "text",
    [
        "", " \n", "I don't know.", "I’m not sure which one.", "The passages do not mention it.",
        "Its symbol is not given.", "There is no information on that.", "It is unknown.", "I'm sorry, but",
        "I cannot answer this.", "The text doesn't say.",
    ],
)  # fmt: skip
def test_saying_that_one_does_not_know_is_abstaining(text):
    assert abstains(text)


@pytest.mark.parametrize(
    "text", ["Kabul.", "It is not Kabul but Herat.", "No, it is Kabul.", "I think Kabul."]
)
def test_a_guess_is_not_abstaining(text):
    assert not abstains(text)


def test_every_known_form_counts_as_right():
    asked = question("Bulgarian lev", "leva", "BGN")
    assert grade("They pay in leva.", asked).match
    assert grade("BGN", asked).exact
    assert not grade("lev", asked).match


def test_an_answer_is_not_found_in_the_start_that_was_given():
    asked = question("Algiers", start="Algiers is the capital of")
    assert not grade("Algiers is the capital of Algeria.", asked).match
    assert grade(" Algiers is the capital of Algeria, and Algiers is large.", asked).match


@pytest.mark.parametrize(
    ("text", "match", "abstained", "made_up"),
    [
        ("The symbol is Ox.", False, False, True),
        ("I don't know.", False, True, False),
        ("The symbol is O.", True, False, False),
        ("I don't know, perhaps O", True, False, False),
    ],
)
def test_an_unanswerable_question_can_be_made_up_declined_or_guessed(text, match, abstained, made_up):
    graded = grade(text, question("O", kind="unanswerable"))
    assert (graded.match, graded.abstained, graded.made_up) == (match, abstained, made_up)


def test_a_wrong_answer_to_an_answerable_question_is_not_called_made_up():
    assert not grade("The symbol is Ox.", question("O")).made_up
