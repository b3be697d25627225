#!/bin/sh
# Installs what the tests use beside Python and git, where that is possible; else says its name.
missing=""
command -v bwrap >/dev/null 2>&1 || missing="bubblewrap"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    (apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing) >/dev/null 2>&1
fi
command -v bwrap >/dev/null 2>&1 && exit 0
echo "not installed: $missing (tests that need it are skipped by name; CREW_REQUIRE_ALL=1 fails them)" >&2
exit 0
