"""Wheels of a few bytes, for tests of installs."""

import zipfile


def write_wheel(folder, name, version, files, needs=()):
    """Writes the wheel into `folder` and returns its path. `files` are the package's, by path."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {need}\n" for need in needs)
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for place, text in files.items():
            wheel.writestr(place, text)
        wheel.writestr(f"{info}/RECORD", "".join(f"{place},,\n" for place in [*files, f"{info}/RECORD"]))
    return path
