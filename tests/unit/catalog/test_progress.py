"""The output of uv as phases, and the part of its errors that is shown."""

from mosaic.catalog.progress import Narrator, Progress
from mosaic.catalog.uv import backend_error, explain

INSTALL = """\
Using Python 3.11.7 environment at: /x
Resolved 3 packages in 917ms
Downloading scipy (33.7MiB)
Downloading numpy (16.1MiB)
   Building gym==0.23.1
 Downloaded scipy
 Downloaded numpy
Prepared 3 packages in 1.34s
Installed 3 packages in 57ms
Bytecode compiled 1466 files in 15.37s
 + numpy==2.3.1
"""
BACKEND_BEFORE = """\
Building wheel...
gcc: fatal: no cuda.h
Traceback (most recent call last):
  File "<string>", line 4, in <module>
RuntimeError: the engine needs cuda.h, set CUDA_HOME
printed late, from a buffer
error: Failed to build `/tmp/source`
  cause: The build backend returned an error
  cause: Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)

hint: Build failures usually indicate a problem with the package or the build environment
"""
BACKEND_BELOW = """\
Resolved 1 package in 1ms
   Building bad-pkg @ file:///tmp/source
error: Failed to build `bad-pkg @ file:///tmp/source`
  cause: The build backend returned an error
  cause: Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)

         [stdout]
         connection refused by the compile server

         [stderr]
         ninja: build stopped: subcommand failed.

hint: Build failures usually indicate a problem with the package or the build environment
"""


class Recorder(Progress):
    def __init__(self):
        self.shown = []

    def phase(self, words):
        self.shown.append(words)

    def detail(self, words):
        self.shown.append(f"- {words}")


def test_an_install_reports_its_phases_and_downloads():
    recorder = Recorder()
    narrator = Narrator(recorder, "of requirements/default.txt")

    for line in INSTALL.splitlines():
        narrator.read(line)

    assert recorder.shown == [
        "Collecting 3 packages of requirements/default.txt",
        "- downloading scipy (34 MiB): 0 of 34 MiB done",
        "- downloading numpy (16 MiB): 0 of 50 MiB done",
        "- building gym==0.23.1",
        "- downloading numpy: 34 of 50 MiB done",
        "- downloaded: 50 of 50 MiB done",
        "Installing 3 packages",
        "Compiling 3 packages to bytecode",
    ]


def test_a_build_backends_own_error_is_found_wherever_uv_prints_it():
    before, below = BACKEND_BEFORE.splitlines(), BACKEND_BELOW.splitlines()

    assert explain(before) == "a package cannot be built (RuntimeError: the engine needs cuda.h, set CUDA_HOME)"
    assert explain(below) == "a package cannot be built (ninja: build stopped: subcommand failed.)"
    assert backend_error(INSTALL.splitlines()) == ""


def test_only_uvs_own_network_errors_count_and_not_those_that_a_build_prints():
    quoted = explain(BACKEND_BELOW.splitlines())
    own = explain(["error: Failed to fetch: `https://example.org/simple/x/`", "  cause: dns error: lookup failed"])

    assert "the package index cannot be reached" not in quoted
    assert own.startswith("the package index cannot be reached (Failed to fetch")
