#!/bin/sh
# The HTML pages in headless Chromium (Debian: chromium), in `make test-all`: no console errors,
# nothing off screen, sorting, keyboard, contrast. What needs no browser is in test_html.c.
set -u
here=$(cd "$(dirname "$0")" && pwd)
MOESOL=$(realpath "${MOESOL:-build/moesol}")
export MOESOL
skip() {
    echo "skipped: $*"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
[ "${MOESOL_TEST_ALL:-}" = 1 ] || skip "pages in a browser: make test-all looks at them"
command -v python3 >/dev/null || skip "no python3 in PATH"
command -v gnuplot >/dev/null || skip "no gnuplot in PATH"
for name in chromium chromium-browser google-chrome; do
    if command -v $name >/dev/null; then
        PYTHONDONTWRITEBYTECODE=1 exec python3 "$here/html_browser.py"
    fi
done
skip "no Chromium in PATH; apt-get install chromium brings it"
