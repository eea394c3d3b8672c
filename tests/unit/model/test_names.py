import pytest
from mosaic_sdk.files import as_file_name, is_file_name

from mosaic.model.names import is_environment_name, is_operator_name, is_worker_name

ODD = ("", ".", "..", "../x", "../../x", "/etc", "a/b", "-rf", ".hidden", "a\0b", "a\n", "a b", "\x1b[2J", "x" * 101)


@pytest.mark.parametrize("name", ODD)
def test_a_name_that_leads_out_of_its_folder_is_refused(name):
    assert not is_worker_name(name)
    assert not is_environment_name(name)


@pytest.mark.parametrize("name", ["a@b@c", "@jax", "toy@", "toy@../x", "toy@.."])
def test_an_environment_has_one_worker_and_at_most_one_variant(name):
    assert not is_environment_name(name)


@pytest.mark.parametrize("name", ["toy", "cleanrl@jax", "my-worker.2", "_x", "größe"])
def test_ordinary_names_are_valid(name):
    assert is_environment_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a" * 41, "a\n"])
def test_an_operators_name_is_the_name_of_a_file(name):
    assert not is_operator_name(name)


@pytest.mark.parametrize("text", [*ODD, "agent_0", "x" * 300, "\ud800", "a/../../b"])
def test_any_text_becomes_the_name_of_a_file(text):
    made = as_file_name(text)

    assert is_file_name(made)
    assert "/" not in made
    assert len(made) <= 80


def test_different_texts_become_different_names():
    texts = ["a/b", "a-b", "a b", "a.b", "", ".", "..", "unnamed"]

    assert len({as_file_name(text) for text in texts}) == len(texts)
