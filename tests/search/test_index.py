"""The index: what is searched is found, pages are read by their titles, and what is not there is said."""

import sqlite3

import pytest

from nbcore.chat.toolcalls import ToolCall
from nbcore.search.index import Index, build
from nbcore.search.tools import NOTHING, Toolbox

PAGES = {
    "Lima": "Lima is the capital of Peru.",
    "Peru": "Peru is a country in South America. Its capital is Lima, its currency the sol.",
    "Sol (currency)": "The sol is the currency of Peru.",
    "Étretat": "Étretat is a village in Normandy.",
}


@pytest.fixture
def pages(tmp_path):
    build(tmp_path / "pages.db", PAGES)
    opened = Index(tmp_path / "pages.db")
    yield opened
    opened.close()


def test_a_title_counts_more_than_the_text(pages):
    assert pages.search("Lima")[0].title == "Lima"
    assert {hit.title for hit in pages.search("Lima")} == {"Lima", "Peru"}


def test_accents_and_case_do_not_matter(pages):
    assert [hit.title for hit in pages.search("ETRETAT")] == ["Étretat"]


def test_scores_fall_and_no_more_pages_come_than_were_asked_for(pages):
    hits = pages.search("capital currency Peru", 2)
    assert len(hits) == 2 and hits[0].score >= hits[1].score


@pytest.mark.parametrize("query", ["", "   ", "?!", '"', "NEAR(", "title:", "a AND", "*", "zebra", "\x00", "(" * 50, "-Lima OR", "^"])
def test_no_query_is_a_syntax_error(pages, query):
    assert isinstance(pages.search(query), list)


def test_a_query_of_a_thousand_words_is_answered(pages):
    assert pages.search("Lima " + " ".join(f"word{i}" for i in range(1000)))[0].title == "Lima"


def test_words_that_stand_nearly_everywhere_count_only_when_there_are_no_others(tmp_path):
    build(tmp_path / "many.db", {f"Page {i}": f"the same words and number{i}" for i in range(100)})
    many = Index(tmp_path / "many.db")
    assert [hit.title for hit in many.search("the same number7")] == ["Page 7"]
    assert len(many.search("the same")) == 5


def test_the_tools_give_text_and_an_unknown_page_names_the_nearest(pages):
    box = Toolbox(pages.tools())
    assert box(ToolCall("search", {"query": "capital of Peru"})).text.startswith("1. ")
    assert box(ToolCall("search", {"query": "zebra"})).text == NOTHING
    assert box(ToolCall("visit", {"title": "Peru"})).text == PAGES["Peru"]
    missed = box(ToolCall("visit", {"title": "Limaa"}))
    assert missed.error == "no such page" and "Near: Lima." in missed.text
    assert box(ToolCall("visit", {"title": ""})).error == "no such page"


def test_an_index_can_be_read_by_two_processes_and_written_by_none(pages, tmp_path):
    other = Index(tmp_path / "pages.db")
    assert other.search("Lima") == pages.search("Lima")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        other._store.execute("DELETE FROM page")


def test_an_index_that_is_there_is_not_overwritten_and_one_that_is_not_says_how_to_make_it(tmp_path, pages):
    with pytest.raises(FileExistsError, match="Remove it"):
        build(tmp_path / "pages.db", PAGES)
    with pytest.raises(FileNotFoundError, match="index.build"):
        Index(tmp_path / "none.db")


def test_a_build_that_fails_leaves_no_index(tmp_path):
    with pytest.raises(sqlite3.Error):
        build(tmp_path / "bad.db", {"a": object()})
    assert not (tmp_path / "bad.db").exists()
    build(tmp_path / "bad.db", {"a": "b"})  # what was left aside does no harm


@pytest.mark.external
def test_titles_of_real_passages_find_their_page(external, tmp_path):
    passages = external("multihop_qa/2wiki_corpus.json")
    build(tmp_path / "wiki.db", {p["title"]: p["text"] for p in passages})
    found = Index(tmp_path / "wiki.db")
    titles = [p["title"] for p in passages][::12]
    hits = sum(title in {hit.title for hit in found.search(title, 5)} for title in titles)
    assert len(passages) == 6119 and hits / len(titles) >= 0.98
