from mosaic.model.errors import LONGEST_FIELD, BadConfig


def test_the_reason_comes_soon_after_a_long_field():
    field = "metadata.worker.config." + "x" * 20_000

    error = BadConfig(field, "there is no such field.")

    assert str(error).startswith("metadata.worker.config.xxx")
    assert str(error).endswith("…: there is no such field.")
    assert len(str(error)) < LONGEST_FIELD + 40
    assert error.field == field
