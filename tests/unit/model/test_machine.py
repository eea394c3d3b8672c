import os

import pytest

from mosaic.model.machine import Machine, detect, format_cpus, format_memory, parse_cpus, parse_memory

AFFINITY = float(len(os.sched_getaffinity(0)))


@pytest.fixture
def kernel(tmp_path):
    """A fake /proc and /sys/fs/cgroup with 16 GB of memory, and what is detected in them."""

    def found(membership="0::/\n", **files):
        proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
        (proc / "self").mkdir(parents=True)
        (proc / "meminfo").write_text("MemTotal:       16777216 kB\nMemFree: 1 kB\n")
        (proc / "self" / "cgroup").write_text(membership)
        for name, text in files.items():
            path = cgroups / name.replace("__", "/").replace("_DOT_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return detect(proc, cgroups)

    return found


def test_without_a_cgroup_the_affinity_and_the_memory_of_the_machine_count(kernel):
    assert kernel() == Machine(AFFINITY, 16384)


def test_a_cgroup_of_version_2_or_one_above_it_may_allow_less(kernel):
    files = {"user__cpu_DOT_max": "max 100000\n", "user__me__cpu_DOT_max": "100000 100000\n"}
    files |= {"user__memory_DOT_max": "4294967296\n", "user__me__memory_DOT_max": "max\n"}

    assert kernel("0::/user/me\n", **files) == Machine(1.0, 4096)


def test_a_cgroup_of_version_1_may_allow_less(kernel):
    files = {"cpu__box__cpu_DOT_cfs_quota_us": "100000\n", "cpu__box__cpu_DOT_cfs_period_us": "100000\n"}
    files |= {"memory__memory_DOT_limit_in_bytes": "2147483648\n"}

    assert kernel("4:memory:/a/host/path\n3:cpu,cpuacct:/box\n0::/\n", **files) == Machine(1.0, 2048)


def test_a_quota_of_less_than_one_cpu_still_lets_one_run_start(kernel):
    assert kernel(cpu_DOT_max="20000 100000\n").cpus == 1.0


def test_a_cgroup_without_a_limit_changes_nothing(kernel):
    files = {"memory__memory_DOT_limit_in_bytes": "9223372036854771712\n", "cpu__cpu_DOT_cfs_quota_us": "-1\n"}

    assert kernel("2:memory:/\n1:cpu:/\n", **files) == Machine(AFFINITY, 16384)


def test_amounts_are_parsed_as_users_write_them():
    assert [parse_cpus(text) for text in ("4", "0.5", " 0 ")] == [4.0, 0.5, 0.0]
    assert [parse_memory(text) for text in ("4G", "512M", "1.5g", "2 GiB", "1T")] == [4096, 512, 1536, 2048, 1048576]


@pytest.mark.parametrize("text", ["", "-1", "four", "1e3", "nan", "99999", "1,5"])
def test_an_invalid_number_of_cpus_is_refused(text):
    with pytest.raises(ValueError, match="not a valid number of CPUs, such as 4 or"):
        parse_cpus(text)


@pytest.mark.parametrize("text", ["", "4", "-1G", "4K", "much", "999999T"])
def test_an_invalid_amount_of_memory_is_refused(text):
    with pytest.raises(ValueError, match="not a valid amount of memory, such as 512M or 4G"):
        parse_memory(text)


def test_amounts_are_formatted_for_users():
    assert [format_cpus(cpus) for cpus in (1.0, 0.5, 12.0)] == ["1 CPU", "0.5 CPUs", "12 CPUs"]
    assert [format_memory(mb) for mb in (512, 1024, 15974)] == ["512 MB", "1 GB", "15.6 GB"]
