#!/bin/sh
# Installs the Debian/Ubuntu packages that are missing; through sudo where not root.
set -eu
missing=""
for package in make gcc gnuplot-nox libjansson-dev libopenblas-dev libcmocka-dev; do
    state=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
    [ "$state" = "install ok installed" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
fail() {
    echo "moesol: packages are missing:$missing; $1" >&2
    exit 1
}
command -v apt-get >/dev/null || fail "install them (this is not Debian or Ubuntu)"
sudo=""
if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || [ -t 0 ] || fail "run: sudo apt-get install$missing"
    sudo=sudo
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing$missing" >&2
# shellcheck disable=SC2086
if ! { $sudo apt-get install -y --no-install-recommends $missing ||
    { $sudo apt-get update && $sudo apt-get install -y --no-install-recommends $missing; }; } \
    >"$log" 2>&1; then
    tail -5 "$log" >&2
    fail "apt-get could not install them; run: sudo apt-get install$missing"
fi
