#!/bin/sh
# Installs the agent CLIs that the tests here run, at the versions they were tested with; needs npm.
# Nothing is logged in and no key is needed: the tests talk to a scripted model on loopback.
clis="${1:-$(dirname "$0")/../../.venv/clis}"
claude_version=2.1.325
codex_version=0.166.0

version_of() {
    "$clis/node_modules/.bin/$1" --version 2>/dev/null
}
wanted() {
    [ "$(version_of claude)" = "$claude_version (Claude Code)" ] || echo "@anthropic-ai/claude-code@$claude_version"
    [ "$(version_of codex)" = "codex-cli $codex_version" ] || echo "@openai/codex@$codex_version"
}
[ -z "$(wanted)" ] && exit 0
if ! command -v npm >/dev/null 2>&1; then
    echo "not installed: claude and codex, for want of npm (their tests are skipped by name; CREW_REQUIRE_ALL=1 fails them)" >&2
    exit 0
fi
# All at once: npm removes what it was not asked for.
mkdir -p "$clis" && npm install --silent --no-fund --no-audit --no-save --prefix "$clis" \
    "@anthropic-ai/claude-code@$claude_version" "@openai/codex@$codex_version" >/dev/null 2>&1
for missing in $(wanted); do
    echo "not installed: $missing (npm could not fetch it; its tests are skipped by name)" >&2
done
exit 0
