"""What a screen says about the program in it, as real CLIs draw it."""
# ruff: noqa: RUF001 - their marks are no ASCII

import pytest

from crew.agents.terminal.terminal_screen import read_dialog, read_input, text_at_prompt

RULE = "─" * 60
DASHES = "╌" * 60

CLAUDE_DIALOG = f"""
❯ Task 1: one

● Write(/etc/outside.txt)

{RULE}
 Create file
 ../../etc/outside.txt
{DASHES}
  1 x
{DASHES}
 Do you want to create outside.txt?
 ❯ 1. Yes
   2. Yes, and always allow access to /etc for this session (shift+tab)
   3. No

 Esc to cancel · Tab to amend


"""
CLAUDE_PROMPT = f"""
❯ no, do not do that

● ok then

✻ Crunched for 0s
{RULE}
❯\u00a0
{RULE}
  ⏵⏵ accept edits on (shift+tab to cycle)
"""
CODEX_DIALOG = """
› Task 1: one

• Running touch /etc/outside.txt

  Would you like to run the following command?

  Reason: I need it

  $ touch /etc/outside.txt

› 1. Yes, proceed (y)
  2. Yes, and don't ask again for commands that start with `touch` (p)
  3. No, and tell Codex what to do differently (esc)

  Press enter to confirm or esc to cancel
"""
CODEX_TRUST = """
  Trust this folder? Codex can read, edit, and run files here.

› 1. Trust and continue
  2. Quit

  enter continue · esc quit
"""
CODEX_PROMPT = """
• I would do two things:
  1. read
  2. write

› Ask Codex to do anything

  fake-1 default · /worktrees/1
  ? for shortcuts
"""
GEMINI_DIALOG = """
╭──────────────────────────────────────────╮
│ ?  Shell touch new.txt                   │
│                                          │
│ Allow execution of: 'touch'?             │
│                                          │
│ ● 1. Allow once                          │
│   2. Allow for this session              │
│   3. No, suggest changes (esc)           │
│                                          │
╰──────────────────────────────────────────╯
"""


@pytest.mark.parametrize(
    ("screen", "question", "choices", "marked"),
    [
        (
            CLAUDE_DIALOG,
            "Do you want to create outside.txt?",
            ("Yes", "Yes, and always allow access to /etc for this session", "No"),
            0,
        ),
        (
            CODEX_DIALOG,
            "Would you like to run the following command?",
            (
                "Yes, proceed",
                "Yes, and don't ask again for commands that start with `touch`",
                "No, and tell Codex what to do differently",
            ),
            0,
        ),
        (
            CODEX_TRUST.replace("› 1.", "  1.").replace("  2.", "› 2."),
            "Trust this folder? Codex can read, edit, and run files here.",
            ("Trust and continue", "Quit"),
            1,
        ),
        (
            GEMINI_DIALOG,
            "Allow execution of: 'touch'?",
            ("Allow once", "Allow for this session", "No, suggest changes"),
            0,
        ),
        ("Overwrite x? [y/N] ", "Overwrite x? [y/N]", ("yes", "no"), None),
        ("Welcome!\nPress Enter to continue…\n", "Press Enter to continue…", ("continue",), 0),
    ],
)
def test_a_dialog_is_read_with_its_choices(screen, question, choices, marked):
    found = read_dialog(screen)
    assert (found.dialog.question, found.dialog.choices) == (question, choices)
    assert found.marked == marked
    seen = read_input(screen, has_known_prompt=True)
    assert (seen.takes_text, seen.dialog) == (False, found.dialog)


def test_the_context_of_a_dialog_is_what_its_program_says_about_it():
    assert read_dialog(CLAUDE_DIALOG).dialog.context.splitlines() == [
        "Create file",
        "../../etc/outside.txt",
        "1 x",
        "Do you want to create outside.txt?",
    ]


OPENCODE = """
› Task 1: one

When everything is finished and committed, run `crew complete`.

ok then
▣ Build · Model default · 5.3s

 BUILD                                      110 (0%) · $0.00 · ctrl+p cmd
"""
OPENCODE_BUSY = "› Task 1: one\n\n BUILD  ⬝⬝⬝⬝⬝⬝⬝⬝ esc interrupt        ctrl+p cmd\n"
OPENCODE_DIALOG = """
$ touch made.txt

  △ Permission required
   # Shell command
  $ touch made.txt
   Allow once   Allow always   Reject          ⇆ select  enter confirm  esc reject
"""


def test_a_dialog_whose_mark_cannot_be_read_is_left_to_a_person():
    dialog = read_dialog(OPENCODE_DIALOG).dialog
    assert (dialog.question, dialog.choices) == ("Permission required", ())
    assert "touch made.txt" in dialog.context
    assert not read_input(OPENCODE_DIALOG, has_known_prompt=True).takes_text


def test_a_program_that_shows_no_prompt_while_it_works_takes_no_text_then():
    assert not read_input(OPENCODE_BUSY, has_known_prompt=True).takes_text


def test_a_prompt_far_above_is_a_message_of_the_past():
    assert not read_input("❯ hello\n" + "text\n" * 12, has_known_prompt=True).takes_text


@pytest.mark.parametrize("screen", [CLAUDE_PROMPT, CODEX_PROMPT, OPENCODE])
def test_a_prompt_takes_text(screen):
    assert read_dialog(screen) is None
    assert read_input(screen, has_known_prompt=True).takes_text


@pytest.mark.parametrize(
    ("screen", "text"),
    [
        (CLAUDE_PROMPT, ""),
        (CODEX_PROMPT, "Ask Codex to do anything"),  # its hint
        (CODEX_PROMPT.replace("Ask Codex to do anything", "hello"), "hello"),
        (" > Task 1\n\n > hello there\n workspace\n", "hello there"),
        ("no prompt", ""),
    ],
)
def test_what_is_left_at_a_prompt_is_seen(screen, text):
    assert text_at_prompt(screen) == text


@pytest.mark.parametrize("screen", ["", "\n\n", "loading…\n"])
def test_a_screen_without_a_prompt_takes_no_text_of_a_program_that_has_one(screen):
    assert not read_input(screen, has_known_prompt=True).takes_text
    assert read_input(screen, has_known_prompt=False).takes_text


@pytest.mark.parametrize(
    "screen",
    [
        "1. read\n2. write\n",  # a list, of which no entry is marked
        "● 1. read\n2. write\n\n❯ \n",  # above a prompt
        "> 1. read\n",  # one choice is none
        "> 2. read\n3. write\n",  # the first is not there
        "> 1. a\n> 2. b\n",  # two marks
        "> 1. a\n2. b\n" + "more text\n" * 8,  # long ago
    ],
)
def test_a_list_in_the_text_of_an_agent_is_no_dialog(screen):
    assert read_dialog(screen) is None
