"""MOSAIC finds its SDK where nobody installed it."""

import subprocess
import sys


def test_a_lone_install_of_the_platform_takes_the_sdk_of_its_checkout():
    code = (
        "import sys; sys.path[:] = [p for p in sys.path if not p.rstrip('/').endswith('sdk/src')]\n"
        "import importlib.util; assert importlib.util.find_spec('mosaic_sdk') is None, 'the test hides it badly'\n"
        "import mosaic.daemon.server, mosaic_sdk; print(mosaic_sdk.__file__)"
    )

    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert told.stdout.strip().endswith("sdk/src/mosaic_sdk/__init__.py"), told.stderr
