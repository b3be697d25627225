"""After the commands of docs/uninstall.md a repository looks as if crew had never been there."""

from crew.system.processes.ownership import owned_processes
from docs.pages import blocks, section
from docs.shell import shell

CHANGED_BY_COMMITS = ("objects", "logs", "index", "COMMIT_EDITMSG", "refs/heads")


def traces(scene):
    """Everything in and around the repository that a merge does not explain."""
    folder = scene.root / ".git"
    files = {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
    kept = {name: text for name, text in files.items() if not name.startswith(CHANGED_BY_COMMITS)}
    neighbours = sorted(entry.name for entry in scene.root.parent.iterdir())
    return kept, neighbours, scene.git("worktree", "list").count("\n")


def refs(scene):
    return scene.git("for-each-ref", "--format=%(refname)").split()


def test_after_the_commands_of_the_page_nothing_is_left(with_terminals):
    scene = with_terminals
    (scene.root / ".git/info/exclude").write_text("*.mine\n.env\n")
    (scene.root / ".env").write_text("KEY=1\n")
    before = traces(scene)
    scene.ok("init")
    agent = scene.folder / "agent.sh"
    agent.write_text("echo 1 > $CREW_TASK_ID; git add -A; git commit -qm one; echo DONE\n")
    (scene.root / ".crew/config.toml").write_text(
        f'[agents]\nworker_default = "sh"\n[agents.sh]\ncommand_template = "sh {agent}"\n'
        '[worktree]\ncopy = [".env"]\n'
    )
    scene.git("config", "crew.defaultBranch", "main")
    scene.ok("new", "--title", "merged")
    scene.ok("run", "--agents", "1", "--drain")
    scene.ok("new", "--title", "not merged")
    scene.ok("start", "2")
    tree = scene.git("rev-parse", "HEAD^{tree}")  # a branch of the user's own, not merged
    scene.git("branch", "crew-cut", scene.git("commit-tree", tree, "-p", "HEAD", "-m", "mine"))
    assert "refs/heads/crew-2" in refs(scene)
    assert "refs/crew/landed/main" in refs(scene)
    assert traces(scene) != before

    (scene.root.parent / "my repo-worktrees/2/note").write_text("mine\n")
    listing = blocks(section("uninstall.md", "Look first"), "sh")[0]
    first, *others = blocks(section("uninstall.md", "From a repository"), "sh")
    terminal = owned_processes("pane/")
    shell(first, scene.root)
    assert terminal
    assert not {*terminal} & {*owned_processes("pane/")}
    listed = shell(listing, scene.root).stdout
    assert all(word in listed for word in ("not merged", "crew-2", "refs/crew/checkpoints/2/1"))
    for commands in [first, *others]:
        shell(commands, scene.root)
        shell(commands, scene.root)  # "Each may be repeated"
    assert traces(scene) == before
    assert refs(scene) == ["refs/heads/crew-cut", "refs/heads/main"]
    assert sorted(entry.name for entry in scene.root.iterdir()) == [".env", ".git", "1", "readme"]


def test_after_the_commands_of_the_page_the_account_has_no_trace(bare_scene, tmp_path):
    home = tmp_path / "account"
    (home / ".local/share/man/man1").mkdir(parents=True)
    before = {path for path in home.rglob("*") if path.is_file()}
    for name in ("crew.1", "crew-new.1", "git-crew.1"):
        (home / ".local/share/man/man1" / name).symlink_to("/nowhere")
    account = {"HOME": str(home), "SHELL": "/bin/bash"}
    bare_scene.ok("init")
    bare_scene.ok("config", "set", "run.agents", "2", "--user", **account)
    bare_scene.ok("completion", "--install", **account)
    (commands,) = blocks(section("uninstall.md", "From your account"), "sh")
    here = "\n".join(line for line in commands.splitlines() if not line.startswith("uv "))
    shell(here, bare_scene.root, **account)
    assert {path for path in home.rglob("*") if not path.is_dir()} == before
