#!/usr/bin/env bash
# Label Studio from PyPI in a virtual environment of its own: its pins do not mix with ours (about 1 GB).
# Tests find it in .label-studio/, or where TAILOR_LABEL_STUDIO names the executable.
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-$(command -v python3.11 || command -v python3.12 || command -v python3)}
VERSION=${LABEL_STUDIO_VERSION:-1.23.2}
FOLDER=.label-studio
if [ -n "${TAILOR_LABEL_STUDIO:-}" ]; then
    echo "Label Studio: $TAILOR_LABEL_STUDIO, as TAILOR_LABEL_STUDIO says"
    exit 0
fi
if [ "$(cat $FOLDER/.installed 2>/dev/null)" != "$VERSION" ]; then
    echo "Label Studio $VERSION: installing it into $FOLDER"
    rm -rf $FOLDER
    "$PYTHON" -m venv $FOLDER
    $FOLDER/bin/python -m pip install -qq --disable-pip-version-check "label-studio==$VERSION"
    echo "$VERSION" > $FOLDER/.installed
fi
echo "Label Studio $VERSION is in $FOLDER"
