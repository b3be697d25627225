"""Crew's own merges, signed with the person's key."""

import os
import subprocess
import time

import pytest

from crew.git.merges import signing
from crew.git.merges.merges import merge
from crew.git.merges.signing import CannotSign, check_signer, sign_merges, wants_signatures
from git.keys import gpg_key, ssh_key, unlock_gpg


def chain_of(repo, person, count=3):
    """Merges, each made on the one before it, as in a queue."""
    base = person.git("rev-parse", "HEAD")
    tip, made = base, []
    for number in range(count):
        person.git("switch", "-q", "-c", f"task-{number}", base)
        head = person.commit({f"new-{number}": "x\n"}, f"task {number}")
        tip = merge(
            repo, onto=tip, head=head, message=f"Merge {number}\n\nTask: {number}\n", at=7.0
        ).commit
        made.append(tip)
    person.git("switch", "-q", "main")
    return made


def use(person, settings):
    for key, value in settings.items():
        person.git("config", key, value)


def told(person, commit):
    return person.git("log", "-1", "--format=%T %an <%ae> %at %ct %B", commit)


def is_good(person, commit):
    verify = ["git", "verify-commit", commit]
    done = subprocess.run(verify, cwd=person.path, check=False, capture_output=True)
    return done.returncode == 0


@pytest.fixture(params=["ssh", "gpg"])
def signing_person(request, person, tmp_path):
    if request.param == "ssh":
        use(person, ssh_key(tmp_path / "keys"))
        yield person
    else:
        with gpg_key(tmp_path / "keys") as settings:
            use(person, settings)
            yield person


def test_what_lands_is_signed_and_the_rest_is_made_again_on_it(repo, signing_person):
    person = signing_person
    old = chain_of(repo, person)
    placed = sign_merges(repo, old, count=2)
    new = [placed[one] for one in old]
    assert [is_good(person, one) for one in new] == [True, True, False]
    assert [told(person, one) for one in new] == [told(person, one) for one in old]
    assert person.git("log", "-1", "--format=%cn <%ce>", new[0]) == "Ann <ann@example.org>"
    assert person.git("log", "-1", "--format=%cn <%ce>", new[2]) == "crew <crew@localhost>"
    parents = [person.git("log", "-1", "--format=%P", one).split() for one in new]
    before = [person.git("log", "-1", "--format=%P", one).split() for one in old]
    assert [one[1] for one in parents] == [one[1] for one in before]
    assert [one[0] for one in parents] == [before[0][0], new[0], new[1]]


def test_what_is_signed_stays_as_it_is_and_needs_no_key(repo, person, tmp_path):
    use(person, ssh_key(tmp_path / "keys"))
    old = chain_of(repo, person)
    placed = sign_merges(repo, old, count=2)
    (tmp_path / "keys" / "key").unlink()
    assert sign_merges(repo, [placed[one] for one in old], count=2) == {}
    with pytest.raises(CannotSign):
        sign_merges(repo, [placed[one] for one in old], count=3)


@pytest.mark.parametrize("kind", ["ssh", "gpg"])
def test_a_locked_key_is_told_at_once_and_signs_once_it_is_open(kind, repo, person, tmp_path):
    old = chain_of(repo, person, count=1)
    if kind == "ssh":
        use(person, ssh_key(tmp_path / "keys", passphrase="secret"))
        with pytest.raises(CannotSign, match=r"does not sign: .*passphrase"):
            sign_merges(repo, old, count=1)
        file = str(tmp_path / "keys" / "key")
        subprocess.run(["ssh-keygen", "-q", "-p", "-P", "secret", "-N", "", "-f", file], check=True)
        assert is_good(person, sign_merges(repo, old, count=1)[old[0]])
        return
    with gpg_key(tmp_path / "keys", passphrase="secret") as settings:
        use(person, settings)
        with pytest.raises(CannotSign, match="does not sign: gpg: signing failed"):
            sign_merges(repo, old, count=1)
        unlock_gpg("secret")
        assert is_good(person, sign_merges(repo, old, count=1)[old[0]])


def test_a_program_that_waits_is_ended_with_its_children(repo, person, tmp_path, monkeypatch):
    program = tmp_path / "slow"
    program.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\nsleep 100\n")
    program.chmod(0o755)
    use(person, {"gpg.program": str(program), "user.signingkey": "x"})
    monkeypatch.setattr(signing, "SIGNING_LIMIT_S", 0.5)
    with pytest.raises(CannotSign, match="slow took longer than"):
        sign_merges(repo, chain_of(repo, person, count=1), count=1)
    pid = int((tmp_path / "pid").read_text())
    assert _has_ended(pid)


def _has_ended(pid):
    ends_at = time.monotonic() + 30
    while time.monotonic() < ends_at:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_no_key_is_told_with_the_setting_that_names_one(repo, person):
    person.git("config", "user.email", "")
    with pytest.raises(CannotSign, match="knows no key"):
        sign_merges(repo, chain_of(repo, person, count=1), count=1)


def test_a_file_of_the_checkout_names_no_key_and_no_program(repo, person, tmp_path):
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/fired\n")
    program.chmod(0o755)
    person.write("shared", f"[gpg]\n\tprogram = {program}\n[user]\n\tsigningkey = evil\n")
    person.git("config", "include.path", "../shared")
    with pytest.raises(CannotSign):
        sign_merges(repo, chain_of(repo, person, count=1), count=1)
    assert not (tmp_path / "fired").exists()


def test_the_key_is_tried_without_a_trace_in_the_refs(repo, signing_person):
    before = signing_person.git("for-each-ref")
    assert check_signer(repo)
    assert signing_person.git("for-each-ref") == before


@pytest.mark.parametrize(("key", "value"), [("commit.gpgSign", "yes"), ("tag.gpgSign", "1")])
def test_whether_a_person_signs(repo, person, key, value):
    assert not wants_signatures(repo)
    person.git("config", key, value)
    assert wants_signatures(repo)
    person.git("config", key, "false")
    assert not wants_signatures(repo)
