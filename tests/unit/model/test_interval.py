import pytest

from mosaic.model.interval import mean_and_interval


@pytest.mark.parametrize(
    ("values", "mean", "half"),
    [
        ([5.0], 5.0, None),
        ([1.0, 3.0], 2.0, 12.706),  # one degree of freedom, a standard error of 1
        ([1.0, 2.0, 3.0, 4.0, 5.0], 3.0, 1.9632),
        ([float(i % 2) for i in range(100)], 0.5, 0.0997),  # t is 1.9842 with 99 degrees of freedom
    ],
)
def test_the_interval_uses_students_t(values, mean, half):
    found, width = mean_and_interval(values)

    assert found == mean
    assert width == (None if half is None else pytest.approx(half, rel=1e-3))
