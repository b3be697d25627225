#!/bin/sh
# Installs what the tests use beside Python and git, where that is possible; else says its name.
sh "$(dirname "$0")/real_clis/install.sh"
missing() {
    command -v bwrap >/dev/null 2>&1 || echo bubblewrap
    command -v tmux >/dev/null 2>&1 || echo tmux
    command -v git-lfs >/dev/null 2>&1 || echo git-lfs
    command -v gpg >/dev/null 2>&1 || echo gnupg
    command -v ssh-keygen >/dev/null 2>&1 || echo openssh-client
    command -v man >/dev/null 2>&1 && command -v groff >/dev/null 2>&1 || echo man-db
}
[ -z "$(missing)" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    was=$(git config --system --get-regexp '^filter\.lfs\.' 2>/dev/null)
    (apt-get update -qq && apt-get install -y -qq --no-install-recommends $(missing)) >/dev/null 2>&1
    # Debian's package turns git-lfs on for all users of the machine.
    [ -n "$was" ] || git lfs uninstall --system --skip-repo >/dev/null 2>&1
fi
for name in $(missing); do
    echo "not installed: $name (tests that need it are skipped by name)" >&2
done
exit 0
