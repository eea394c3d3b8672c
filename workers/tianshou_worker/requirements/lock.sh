#!/bin/sh
# Generates default.txt from default.in. Needs uv; run it in this folder.
set -eu
for variant in default; do
    {
        echo "# The lock of $variant.in; made by lock.sh. Without torch's hash: its builds differ (cpu, cu128 …)."
        uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
            --no-annotate --no-header "$variant.in" |
            awk '/^torch==/ { print "torch==2.13.0"; skip = 1; next } skip && /^    --hash/ { next } { skip = 0; print }'
    } > "$variant.new"
    mv "$variant.new" "$variant.txt"
done
