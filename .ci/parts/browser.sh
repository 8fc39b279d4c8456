#!/usr/bin/env bash
# Chromium from Debian's package, for the tests that label in a real browser. Playwright itself comes with pip
# (extra "browser") and uses this one: nothing else is downloaded.
set -euo pipefail

if command -v chromium >/dev/null; then
    echo "browser: $(command -v chromium) is there already"
    exit 0
fi
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

echo "browser: installing Debian's chromium"
as_root apt-get update -qq
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-inter >/dev/null
command -v chromium
