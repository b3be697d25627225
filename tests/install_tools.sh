#!/bin/sh
# Installs what the tests use beside Python and git, where that is possible; else says its name.
sh "$(dirname "$0")/real_clis/install.sh"
command -v bwrap >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    (apt-get update -qq && apt-get install -y -qq --no-install-recommends bubblewrap) >/dev/null 2>&1
fi
command -v bwrap >/dev/null 2>&1 ||
    echo "not installed: bubblewrap (tests that need it are skipped by name)" >&2
exit 0
