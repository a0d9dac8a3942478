"""The graph: facts both ways, sets of values, head entities, and its sources."""

from datetime import date, timedelta

import pytest

from nbcore.search.graph import Fact, Graph, Step, heads, informativeness, of_folder, of_passages, of_table, of_triples

WORLD = Graph(
    frozenset(
        Fact(*words.split())
        for words in ("A capital B", "A neighbour C", "C neighbour A", "C capital D", "B mayor E", "D mayor F", "A river G", "C river G")
    ),
    updated={"A": date(2026, 11, 1), "C": date(2026, 1, 1), "B": date(2026, 12, 3)},
)


def test_a_way_leads_to_a_set_forwards_and_back():
    assert WORLD.follow({"A"}, [Step("capital"), Step("mayor")]) == {"E"}
    assert WORLD.follow({"G"}, [Step("river", back=True), Step("capital")]) == {"B", "D"}
    assert WORLD.follow({"A"}, [Step("mayor")]) == set()


def test_a_way_without_one_of_its_facts_breaks():
    way = [Step("neighbour"), Step("capital")]
    assert WORLD.follow({"A"}, way) == {"D"}
    assert WORLD.follow({"A"}, way, without=Fact("C", "capital", "D")) == set()
    assert WORLD.follow({"A"}, way, without=Fact("A", "capital", "B")) == {"D"}


def test_conditions_single_out_what_fits_all_of_them():
    assert WORLD.fitting([(Step("river"), "G")]) == {"A", "C"}
    assert WORLD.fitting([(Step("river"), "G"), (Step("capital"), "D")]) == {"C"}
    assert WORLD.fitting([(Step("capital", back=True), "A")]) == {"B"}
    with pytest.raises(ValueError, match="at least one condition"):
        WORLD.fitting([])


def test_variety_makes_informative_not_number_alone():
    many = {Fact("X", "diplomatic relation", f"c{i}") for i in range(50)}
    monotone = Graph(frozenset(many | {Fact("Y", f"r{i}", f"v{i}") for i in range(8)}))
    assert informativeness(monotone, "Y") > informativeness(monotone, "X") > informativeness(monotone, "c1")
    assert informativeness(monotone, "nobody") == 0.0
    assert heads(monotone, 2) == ["Y", "X"]


def test_recent_heads_are_those_updated_within_the_window():
    today = date(2026, 12, 3)
    assert set(heads(WORLD, 9, today)) == {"A", "B"}
    assert set(heads(WORLD, 9, today, timedelta(days=7))) == {"B"}
    assert set(heads(WORLD, 9, date(2026, 11, 5))) == {"A"}  # B's page is of the future, C's half a year and more old
    assert len(heads(WORLD, 3)) == 3


def test_a_table_and_a_file_of_triples_are_the_same_graph(tmp_path):
    path = tmp_path / "facts.tsv"
    path.write_text("A\tcapital\tB\nB\tmayor\tÉva Nagy\n", encoding="utf-8")
    assert of_triples(path).facts == of_table({"A": {"capital": "B"}, "B": {"mayor": "Éva Nagy"}}).facts


@pytest.mark.parametrize(("text", "said"), [("A\tcapital\tB\nA capital\n", "line 2"), ("A\t\tB\n", "line 1"), ("", "no triples")])
def test_a_broken_file_of_triples_is_told_with_its_line(tmp_path, text, said):
    path = tmp_path / "facts.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        of_triples(path)


def test_passages_link_by_whole_titles_the_longest_first():
    graph = of_passages({"York": "A city.", "New York": "Larger than York, Yorkshire or (Boston).", "(Boston)": "See New York."})
    assert {(f.head, f.tail) for f in graph.facts} == {("New York", "York"), ("New York", "(Boston)"), ("(Boston)", "New York")}
    assert of_passages({}).entities == []


def test_a_folder_of_passages_has_days(tmp_path):
    (tmp_path / "Velmar.txt").write_text("Its capital is Tosk.")
    (tmp_path / "Tosk.md").write_text("A town.")
    graph = of_folder(tmp_path)
    assert graph.facts == {Fact("Velmar", "links to", "Tosk")} and graph.updated["Tosk"] == date.today()
    with pytest.raises(ValueError, match=r"no \.txt or \.md"):
        of_folder(tmp_path / "nothing")
