"""Keys that sign, made in a test's own folder: of ssh and of GnuPG, open or locked."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.conftest import need

ANN = "Ann <ann@example.org>"


def ssh_key(folder: Path, *, passphrase: str = "") -> dict[str, str]:
    """The settings with which git signs by a new ssh key, and knows its signatures."""
    need(shutil.which("ssh-keygen"), "openssh-client")
    folder.mkdir(parents=True, exist_ok=True)
    file, signers = folder / "key", folder / "signers"
    make = ("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "ann", "-f", str(file))
    subprocess.run(make, check=True, stdin=subprocess.DEVNULL)
    signers.write_text(f"ann@example.org {file.with_suffix('.pub').read_text()}")
    return {
        "gpg.format": "ssh",
        "user.signingkey": str(file),
        "gpg.ssh.allowedSignersFile": str(signers),
    }


@contextmanager
def gpg_key(folder: Path, *, passphrase: str = "") -> Iterator[dict[str, str]]:
    """The same with GnuPG. Its agent runs in this folder, and ends with the block."""
    need(shutil.which("gpg"), "gnupg")
    folder.mkdir(parents=True, mode=0o700)
    (folder / "gpg-agent.conf").write_text("s2k-count 65536\n")  # else it measures for seconds
    os.environ["GNUPGHOME"] = str(folder)
    make = ("gpg", "--batch", "-q", "--pinentry-mode", "loopback", "--passphrase", passphrase)
    key = ("--quick-gen-key", ANN, "ed25519", "sign", "never")
    try:
        subprocess.run((*make, *key), check=True, capture_output=True)
        _forget_passphrases()
        yield {"user.signingkey": ANN}
    finally:
        subprocess.run(("gpgconf", "--kill", "gpg-agent"), check=False, capture_output=True)
        del os.environ["GNUPGHOME"]


def unlock_gpg(passphrase: str) -> None:
    """What a person does who types the passphrase once."""
    sign = ("gpg", "--batch", "-q", "--pinentry-mode", "loopback", "--passphrase", passphrase)
    subprocess.run((*sign, "-o", os.devnull, "--yes", "-s"), input=b"x", check=True)


def _forget_passphrases() -> None:
    subprocess.run(("gpg-connect-agent", "reloadagent", "/bye"), check=True, capture_output=True)
