#!/usr/bin/env bash
# PostgreSQL's programs from Debian's package. The tests start a server of their own, so none is set up here.
set -euo pipefail

if command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    echo "postgres: initdb is there already"
    exit 0
fi
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

echo "postgres: installing Debian's package, without a server that starts by itself"
as_root mkdir -p /etc/postgresql-common
if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    echo "create_main_cluster = false" | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
fi
as_root apt-get update -qq
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o Dpkg::Options::=--force-confold postgresql >/dev/null
ls /usr/lib/postgresql/*/bin/initdb
