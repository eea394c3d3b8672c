#!/bin/sh
# Generates default.txt from default.in. Needs uv; run it in this folder.
set -eu
{
    echo "# The lock of default.in; made by lock.sh. pygame-ce takes the place of mosaic-multigrid's pygame."
    echo "# stale pins: mosaic-multigrid"
    uv pip compile --quiet --override default.overrides --python-version 3.11 --generate-hashes --no-emit-index-url \
        --no-emit-find-links --no-header default.in
} > default.new
mv default.new default.txt
