#!/bin/sh
# Installs the agent CLIs that the tests here run, at the versions they were tested with; needs npm.
# Nothing is logged in and no key is needed: the tests talk to a scripted model on loopback.
clis="${1:-$(dirname "$0")/../../.venv/clis}"
claude_version=2.1.325
[ "$("$clis/node_modules/.bin/claude" --version 2>/dev/null)" = "$claude_version (Claude Code)" ] && exit 0
if ! command -v npm >/dev/null 2>&1; then
    echo "not installed: claude, for want of npm (its tests are skipped by name; CREW_REQUIRE_ALL=1 fails them)" >&2
    exit 0
fi
mkdir -p "$clis" && npm install --silent --no-fund --no-audit --no-save --prefix "$clis" \
    "@anthropic-ai/claude-code@$claude_version" >/dev/null 2>&1 ||
    echo "not installed: claude (npm could not fetch it; its tests are skipped by name)" >&2
exit 0
