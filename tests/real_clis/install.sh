#!/bin/sh
# Installs the agent CLIs that the tests here run, at the versions they were tested with; needs npm.
# Nothing is logged in and no key is needed: the tests talk to a scripted model on loopback.
# With CREW_CLIS=all also an agent with ACP and the newer node that it needs, for `make clis`.
clis="${1:-$(dirname "$0")/../../.venv/clis}"
packages="
claude @anthropic-ai/claude-code@2.1.325
codex @openai/codex@0.166.0
opencode opencode-ai@1.18.33
gemini @google/gemini-cli@0.61.0
"
[ "$CREW_CLIS" = all ] && packages="$packages
node node@22.23.3
claude-agent-acp @agentclientprotocol/claude-agent-acp@0.99.0
"

wanted() {
    echo "$packages" | while read -r program package; do
        [ -z "$program" ] ||
            "$clis/node_modules/.bin/$program" --version 2>/dev/null </dev/null | grep -qF "${package##*@}" ||
            echo "$package"
    done
}
[ -z "$(wanted)" ] && exit 0
if ! command -v npm >/dev/null 2>&1; then
    echo "not installed: claude, codex, opencode and gemini, for want of npm (their tests are skipped by name; CREW_REQUIRE_ALL=1 fails them)" >&2
    exit 0
fi
# All at once: npm removes what it was not asked for.
mkdir -p "$clis" && npm install --silent --no-fund --no-audit --no-save --prefix "$clis" \
    $(echo "$packages" | cut -s -d' ' -f2) >/dev/null 2>&1
for missing in $(wanted); do
    echo "not installed: $missing (npm could not fetch it; its tests are skipped by name)" >&2
done
exit 0
