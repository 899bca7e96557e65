#!/bin/sh
# Installs the Debian packages Snug is built with, and those named behind it, when missing; says which. Does nothing
# when none is missing. usage: tools/packages.sh [--command] [PACKAGE...]; --command: what the command `snug` needs, no more
set -eu
wanted="gcc cmake ninja-build pkg-config libdnnl-dev libjansson-dev libjpeg62-turbo-dev libpng-dev zlib1g-dev libcmocka-dev"
if [ "${1:-}" = --command ]; then
    shift
else
    wanted="$wanted python3 python3-dev python3-numpy liblapack3 libblas3"
fi
wanted="$wanted $*"
missing=""
command -v dpkg-query >/dev/null || { echo "snug: no dpkg here; install by hand: $wanted" >&2; exit 0; }
for p in $wanted; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q "install ok installed" || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo"
echo "snug: installing$missing" >&2
$as_root apt-get update -qq >/dev/null
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
