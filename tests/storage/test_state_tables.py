"""Public tables by name: answers, labels, groups; what is wrong with one is said in one line."""

from __future__ import annotations

import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.storage.state_tables import labels_by_state, listed_names, read_groups, space_of_answers


@pytest.fixture
def table(tmp_path):
    def write(text):
        (tmp_path / "t.csv").write_text(text)
        return str(tmp_path / "t.csv")

    return write


def test_names_and_labels_come_back_as_they_are_written(table):
    space = space_of_answers(table("name,x,y\n01,1,2\n'=b,0.5,3\n"))
    assert space.names == ("01", "=b") and space.answers.tolist() == [[1, 2], [0.5, 3]]
    assert labels_by_state(table("state,kind\n'=b,007\nother,x\n01,1e5\n"), space) == ["1e5", "007"]
    assert listed_names(table("state\n01\n'=b\n"), "names", "state") == ["01", "=b"]


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("state\na\n", "with names only"),
        ("state,x\n", "with no rows"),
        ("state,x\na,one\n", "one"),
    ],
)
def test_a_table_of_answers_is_refused_in_one_line(table, text, came):
    with pytest.raises(InvalidInput, match=came) as refused:
        space_of_answers(table(text))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("state,kind\na,1\n", "no label for state 'b'"),
        ("state,kind\na,1\na,2\nb,1\n", "two labels for state 'a'"),
        ("state,kind\na,\nb,1\n", "no label for state 'a'"),
        ("state,kind,more\na,1,2\nb,1,2\n", "2 columns beside the names"),
    ],
)
def test_every_state_has_one_label(table, text, came):
    with pytest.raises(InvalidInput, match=came) as refused:
        labels_by_state(table(text), dphmm.StateSpace.categories(["a", "b"]))
    assert refused.value.field == "labels"


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("subject,group\nann,\n", "an empty cell"),
        ("user,group\nann,one\nann,two\n", "a subject in two groups"),
        ("subject,family\nann,one\n", "columns subject, family"),
    ],
)
def test_a_subject_has_one_group(table, text, came):
    with pytest.raises(InvalidInput, match=came):
        read_groups(table(text))


def test_groups_are_read_by_name(table):
    assert read_groups(table("user,group\n'=ann,one\n007,one\n'=ann,one\n")) == {"=ann": "one", "007": "one"}
