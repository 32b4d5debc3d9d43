"""Git repositories in: files as pages, commits as changes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.files.history import CHANGED, CREATED, REMOVED, ChangeHistory, open_history

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="the command git is not installed: not tested")

DAY = 86_400
START = 1_600_000_000


class Repository:
    """A repository whose clock is ours."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *command: str, day: float = 0.0) -> None:
        """Run git on a day."""
        date = f"@{START + int(day * DAY)} +0000"
        settings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        settings |= {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "GIT_CONFIG_GLOBAL": os.devnull}
        identity = ("-c", "user.name=Someone", "-c", "user.email=someone@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(
            ("git", *identity, *command), cwd=self.folder, env=settings, check=True, stdout=subprocess.DEVNULL
        )

    def commit(self, day: float, **files: str | None) -> None:
        """Write files (None: remove), `__` for a slash in the name, and commit them on a day."""
        for name, text in files.items():
            self.put(name.replace("__", "/"), text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=something", day=day)

    def put(self, name: str, text: str | None) -> None:
        """Write or remove a file."""
        path = self.folder / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty repository."""
    return Repository(tmp_path / "site")


def told(history: ChangeHistory) -> list[tuple[float, int, str]]:
    """Day, kind and name of each event."""
    events = history.events
    return [
        ((time - START) / DAY, kind, history.page_names[page])
        for page, time, kind in zip(events.page.tolist(), events.time.tolist(), events.kind.tolist(), strict=True)
    ]


def test_commits_create_change_and_remove_files(repository: Repository) -> None:
    """Each file of each commit is an event at the committer's time; a commit without files is none."""
    repository.commit(0, a="1", docs__b="1")
    repository.commit(1, a="2")
    repository.commit(2)
    repository.commit(3, docs__b=None)
    repository.commit(5, docs__b="again")
    history = open_history(repository.folder)
    assert told(history) == [
        (0, CREATED, "a"),
        (0, CREATED, "docs/b"),
        (1, CHANGED, "a"),
        (3, REMOVED, "docs/b"),
        (5, CREATED, "docs/b"),
    ]
    assert history.name == "site"
    assert history.importance is None
    assert history.days == 5.0


def test_a_folder_of_a_repository(repository: Repository) -> None:
    """Only its files count, named from there."""
    repository.commit(0, a="1", docs__b="1", docs__deep__c="1")
    repository.commit(1, a="2")
    repository.commit(2, docs__deep__c="2")
    history = open_history(repository.folder / "docs")
    assert told(history) == [(0, CREATED, "b"), (0, CREATED, "deep/c"), (2, CHANGED, "deep/c")]
    assert history.name == "docs"


def test_a_change_counts_when_it_is_merged(repository: Repository) -> None:
    """On the line of first parents a branch appears at its merge; the other branches of HEAD do not matter."""
    repository.commit(0, a="1")
    repository.git("checkout", "--quiet", "-b", "draft")
    repository.commit(1, a="2")
    repository.commit(2, b="new")
    repository.git("checkout", "--quiet", "main")
    repository.commit(3, c="1")
    repository.git("merge", "--quiet", "--no-ff", "draft", "--message=merge", day=4)
    repository.git("checkout", "--quiet", "-b", "unmerged")
    repository.commit(5, d="1")
    repository.git("checkout", "--quiet", "main")
    assert told(open_history(repository.folder)) == [
        (0, CREATED, "a"),
        (3, CREATED, "c"),
        (4, CHANGED, "a"),
        (4, CREATED, "b"),
    ]


def test_a_rename_is_a_removal_and_a_creation(repository: Repository) -> None:
    """An address that moved is gone for a crawler."""
    repository.commit(0, old="same text\n" * 20)
    repository.git("mv", "old", "new")
    repository.commit(1)
    assert sorted(told(open_history(repository.folder))[1:]) == [(1, CREATED, "new"), (1, REMOVED, "old")]


def test_submodules_are_left_out(repository: Repository) -> None:
    """They are no pages, but other repositories."""
    repository.commit(0, a="1")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},library")
    repository.put("b", "1")
    repository.git("add", "b")
    repository.git("commit", "--quiet", "--message=something", day=1)
    assert open_history(repository.folder).page_names == ("a", "b")


def test_odd_file_names_arrive_whole(repository: Repository) -> None:
    """Spaces, quotes, umlauts, what looks like a header or a letter of git; a line break becomes one sign."""
    names = ["with space.md", 'quo"te.md', "ümläut.md", "commit 123", "A", "-n", ":(top)x"]
    for name in [*names, "line\nbreak"]:
        repository.put(name, "1")
    repository.commit(0)
    repository.commit(1, A="2")
    history = open_history(repository.folder)
    assert set(names) | {"line\N{REPLACEMENT CHARACTER}break"} == set(history.page_names)
    assert told(history)[-1] == (1, CHANGED, "A")


def test_a_file_name_that_is_no_text(repository: Repository) -> None:
    """Bytes that are not UTF-8 are shown as such, and two such files stay two pages."""
    try:
        for byte in (b"\xff", b"\xfe"):
            Path(os.fsdecode(os.fsencode(repository.folder) + b"/x" + byte)).write_text("1")
    except OSError:
        pytest.skip("this file system has only names in Unicode")
    repository.commit(0)
    repository.commit(1, y="1")
    assert len(open_history(repository.folder)) == 3


def test_wrong_clocks_do_not_turn_time_back(repository: Repository) -> None:
    """No commit is before its parent or after HEAD."""
    repository.commit(10, a="1")
    repository.commit(3, a="2")
    repository.commit(5000, a="3")
    repository.commit(12, a="4")
    assert [day for day, _, _ in told(open_history(repository.folder))] == [10, 10, 12, 12]


@pytest.mark.parametrize("since", [START + 2 * DAY, "2020-09-15T12:26:40", "2020-09-15T12:26:40+00:00"])
def test_a_history_may_begin_later(repository: Repository, since: float | str) -> None:
    """It begins with the files that exist at that time, changed later or not."""
    repository.commit(0, a="1", gone="1", quiet="1")
    repository.commit(1, gone=None, a="2")
    repository.commit(3, a="3")
    repository.commit(4, new="1")
    history = open_history(repository.folder, since=since)
    assert told(history) == [(2, CREATED, "a"), (2, CREATED, "quiet"), (3, CHANGED, "a"), (4, CREATED, "new")]
    assert history.start == START + 2 * DAY


@pytest.mark.parametrize("since", ["yesterday", "", float("nan"), -5.0])
def test_a_beginning_that_is_no_date_is_refused(repository: Repository, since: float | str) -> None:
    """Unlike git, which takes any word for now."""
    repository.commit(0, a="1")
    with pytest.raises(InvalidInput, match=r"^since is "):
        open_history(repository.folder, since=since)


def test_bare_repositories_can_be_read(repository: Repository) -> None:
    """What a server has."""
    repository.commit(0, a="1")
    repository.commit(1, a="2")
    bare = repository.folder.with_name("bare.git")
    repository.git("clone", "--quiet", "--bare", ".", str(bare))
    assert told(open_history(bare)) == [(0, CREATED, "a"), (1, CHANGED, "a")]


def test_the_environment_does_not_redirect(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As inside a git hook, where GIT_DIR names another repository."""
    other = Repository(tmp_path / "other")
    other.commit(0, x="1")
    repository.commit(0, a="1")
    repository.commit(1, a="2")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert open_history(repository.folder).page_names == ("a",)


def test_many_commits_stream_whole(repository: Repository) -> None:
    """Names that are cut by the blocks in which git's answer is read are put together again."""
    for index in range(1500):
        repository.put(f"folder/{index:05d}-{'x' * 90}", "1")
    repository.commit(0)
    repository.commit(1, a="1")
    history = open_history(repository.folder)
    assert len(history) == 1501
    assert len({len(name) for name in history.page_names[:1500]}) == 1


def refusal(path: Path, since: str | None = None) -> str:
    """The sentence that a bad repository ends in."""
    with pytest.raises(InvalidFile) as caught:
        open_history(path, since=since)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")


def test_what_is_no_repository_is_named(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain folder, one without commits, one without files, one with a single commit, one that ended long ago."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    plain = tmp_path / "plain"
    plain.mkdir()
    assert refusal(plain) == "is neither a git repository, or a folder in one, nor a folder with a trace"
    assert refusal(repository.folder) == "is a git repository without commits"
    repository.commit(0)
    assert refusal(repository.folder) == "has no history: no file was ever committed there"
    repository.commit(1, a="1")
    assert refusal(repository.folder) == "has everything at one time: a history needs at least two times"
    assert refusal(repository.folder, "2024-01-01") == "has no history: nothing changed since then: begin earlier"
    (repository.folder / "empty").mkdir()
    assert refusal(repository.folder / "empty") == "has no history: no file was ever committed there"


def test_a_damaged_repository_is_named(repository: Repository) -> None:
    """Git's own words, in one sentence."""
    repository.commit(0, a="1")
    repository.commit(1, a="2")
    for path in (repository.folder / ".git" / "objects").glob("??/*"):
        path.chmod(0o644)
        path.write_bytes(b"")
    assert "git" in refusal(repository.folder)


def test_a_machine_without_git_is_told(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says what to install."""
    repository.commit(0, a="1")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(InvalidInput, match="the command git was not found: install it"):
        open_history(repository.folder)
