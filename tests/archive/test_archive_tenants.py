"""A tenant has a root of its own in every store, and sees nothing beside it."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.archive import SECRET, NoRedactor, add_step, archive_on, fs_archive, make_bucket
from support.s3 import faulty_server

from compact.archive import Archive, Store, backend_archive, keys
from compact.archive.recall import recall_tools
from compact.archive.stores.files import FsStore
from compact.archive.stores.memory import MemoryStore
from compact.archive.stores.objects import open_s3
from compact.archive.stores.spool import SpooledStore
from compact.archive.stores.tenants import tenant_store
from compact.errors import ArchiveError, ConfigError
from compact.events import session_trace
from compact.events.session_key import SessionKey


def put(archive: Archive, text: str, session_id: str = "s") -> str:
    return archive.put_output(session_id, text, tool_name="read", tool_call_id="c1").path


def everything(archive: Archive, session_id: str = "s") -> str:
    return "\n".join(archive.read_text(session_id, info.path) for info in archive.files(session_id))


# --- every store


def test_the_same_id_under_two_tenants_is_two_sessions(reopen: Callable[[], Store]) -> None:
    archive = archive_on(reopen())
    parts = {None: archive, "acme": archive.for_tenant("acme"), "beta": archive.for_tenant("beta")}
    for name, part in parts.items():
        put(part, f"the words of {name}")
        add_step(part, "s", [{"role": "user", "content": f"I am {name}"}], whose=str(name))
    add_step(parts["acme"], "s", [{"role": "user", "content": "I am acme"}])
    put(parts["beta"], "only here", "t")

    later = archive_on(reopen())
    for name, part in {
        None: later,
        "acme": later.for_tenant("acme"),
        "beta": later.for_tenant("beta"),
    }.items():
        assert part.sessions() == (["s", "t"] if name == "beta" else ["s"])
        assert part.steps("s") == ([1, 2] if name == "acme" else [1])
        assert part.restore("s", 1).messages == [{"role": "user", "content": f"I am {name}"}]
        assert f"the words of {name}" in everything(part)
        assert everything(part).count("the words of") == 1
        assert f"the words of {name}" in recall_tools(part, "s")["grep"]("the words of")
        assert {event.trace_id for event in part.events("s")} == {session_trace("s", name).trace_id}
        assert part.verify() == []
    assert later.tenants() == ["acme", "beta"]


def test_the_layout_is_that_of_a_root(store: Store) -> None:
    part = archive_on(store).for_tenant("acme")
    put(part, "words")
    add_step(part, "s")
    names = {blob.name for blob in part.store.blobs("s")}
    assert {"session.json", "state-001.json", "transcript-pre-compact-001.jsonl"} <= names
    assert {blob.key for blob in store.blobs("_tenants/acme/s")} == {
        f"_tenants/acme/s/{name}" for name in names
    }
    assert store.folders() == []
    assert store.folders("_tenants/") == ["acme"]
    assert part.address().endswith("_tenants/acme")


def test_pruning_and_resetting_leave_other_tenants_alone(store: Store) -> None:
    archive = archive_on(store)
    acme, beta = archive.for_tenant("acme"), archive.for_tenant("beta")
    for part in (acme, beta):
        add_step(part, "s")
        add_step(part, "s")
    assert {pruned.step for pruned in acme.prune(timedelta(seconds=-1))} == {1}
    acme.forget_state("s")
    assert acme.is_forgotten("s", 2)
    assert not beta.is_forgotten("s", 2)
    assert beta.restore("s", 1).messages == beta.restore("s", 2).messages
    with pytest.raises(ArchiveError, match="pruned"):
        acme.restore("s", 1)


# --- names


@pytest.mark.parametrize(
    "tenant",
    [
        "a/b",
        "..",
        ".hidden",
        "_tenants",
        "_Tenants",
        "tenant.",
        "con",
        "x" * 129,
        "a\0b",
        "ａｃｍｅ",
        "h-" + "0" * 64,
    ],
)
def test_a_name_that_is_no_safe_file_name_is_hashed_and_kept_in_a_record(tenant: str) -> None:
    store = MemoryStore()
    archive = archive_on(store, redactor=NoRedactor())
    put(archive.for_tenant(tenant), "words")
    (folder,) = store.folders("_tenants/")
    assert folder.startswith("h-")
    assert len(folder) == 66
    assert archive.tenants() == [tenant]
    assert archive.for_tenant(tenant).sessions() == ["s"]
    assert archive.sessions() == []


def test_a_tenant_whose_name_holds_a_secret_is_hashed_and_masked() -> None:
    store = MemoryStore()
    archive = archive_on(store)
    put(archive.for_tenant(SECRET), "words")
    assert store.folders("_tenants/")[0].startswith("h-")
    assert all(SECRET.encode() not in (store.read(key) or b"") for key in [f"_tenants/{store.folders('_tenants/')[0]}/{keys.TENANT}"])  # fmt: skip
    assert SECRET not in archive.tenants()[0]


@pytest.mark.parametrize(
    "session_id", ["_tenants", "_TENANTS", "_tenants/acme", "_tenants/acme/s", "_models"]
)
def test_no_session_reaches_into_the_tenants(session_id: str, tmp_path: Path) -> None:
    archive = fs_archive(tmp_path)
    put(archive.for_tenant("acme"), "theirs")
    put(archive, "mine", session_id)
    assert everything(archive, session_id) == "mine"
    assert archive.folder(session_id).startswith("h-")
    assert archive.sessions() == [session_id]
    assert archive.verify() == []


def test_names_that_differ_only_in_case_are_refused_where_a_filesystem_ignores_case() -> None:
    class Folding(MemoryStore):
        def create(self, key: str, record: Any) -> Any:
            return super().create(key.casefold(), record)

        def read(self, key: str) -> bytes | None:
            return super().read(key.casefold())

    archive = archive_on(Folding())
    put(archive.for_tenant("acme"), "words")
    with pytest.raises(ArchiveError, match="belongs to another tenant: 'acme'"):
        put(archive.for_tenant("Acme"), "others")


@pytest.mark.parametrize("tenant", ["", "  ", None, 7, b"acme", ["acme"], "\ud800"])
def test_what_is_no_name_is_refused(tenant: Any) -> None:
    archive = archive_on(MemoryStore())
    with pytest.raises(ConfigError, match=r"^tenant must") as refused:
        archive.for_tenant(tenant)
    assert refused.value.path == "tenant"


def test_a_tenant_has_no_tenants() -> None:
    archive = archive_on(MemoryStore())
    with pytest.raises(ConfigError, match="tenant 'acme' has no tenants"):
        archive.for_tenant("acme").for_tenant("beta")
    assert archive.for_tenant("acme").tenants() == []


def test_two_normal_forms_of_a_name_are_two_tenants() -> None:
    archive = archive_on(MemoryStore())
    composed = unicodedata.normalize("NFC", "café")
    put(archive.for_tenant(composed), "one")
    put(archive.for_tenant(unicodedata.normalize("NFD", composed)), "other")
    assert everything(archive.for_tenant(composed)) == "one"


# --- the walls


@pytest.mark.parametrize("place", ["_tenants", "_tenants/acme"])
def test_a_link_in_place_of_a_tenants_folder_is_never_followed(place: str, tmp_path: Path) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "archive"
    put(fs_archive(elsewhere), "not for you")
    (root / place).parent.mkdir(parents=True)
    (root / place).symlink_to(elsewhere, target_is_directory=True)
    part = fs_archive(root).for_tenant("acme")
    with pytest.raises(ArchiveError):
        part.read_text("s", "/tool_outputs/read_c1_x.txt")
    with pytest.raises(ArchiveError):
        put(part, "words")
    assert not [path for path in elsewhere.rglob("*") if "acme" in path.name]


@pytest.mark.parametrize("key", ["../beta/s/session.json", "s/../../beta/x", "", "./s", "s//x", "/s/x"])
def test_no_key_leads_out_of_a_tenants_root(key: str, tmp_path: Path) -> None:
    inner = FsStore(tmp_path)
    for store in (tenant_store(inner, "_tenants/acme/"), tenant_store(MemoryStore(), "_tenants/acme/")):
        with pytest.raises(ArchiveError, match="not a key"):
            store.read(key)
        with pytest.raises(ArchiveError, match="not a key"):
            store.blobs(key)
        with pytest.raises(ArchiveError, match="not a key"):
            store.delete([key])


def test_what_a_tenants_archive_tells_stays_with_its_own_listeners() -> None:
    heard: dict[str, list[SessionKey]] = {"all": [], "acme": []}
    archive = archive_on(MemoryStore(), listener=lambda key, _: heard["all"].append(key))
    archive.for_tenant("acme").listen(lambda key, _: heard["acme"].append(key))
    for part in (archive, archive.for_tenant("acme"), archive.for_tenant("beta")):
        put(part, "words")
    assert heard == {"all": [SessionKey("s"), SessionKey("s", "acme"), SessionKey("s", "beta")], "acme": [SessionKey("s", "acme")]}  # fmt: skip


def test_an_archive_from_before_there_were_tenants_is_read_as_it_is(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path)
    add_step(archive, "s")
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    put(fs_archive(tmp_path).for_tenant("acme"), "words")
    after = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert [path for path in after if "_tenants" not in path.parts] == before
    assert fs_archive(tmp_path).restore("s").step == 1
    assert fs_archive(tmp_path).verify() == []


def test_folders_are_made_again_where_somebody_removed_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A store remembers which folders are durable, and not more of them than it may."""
    monkeypatch.setattr("compact.archive.recent.MOST_SESSIONS", 4)
    archive = fs_archive(tmp_path, redactor=NoRedactor())
    for name in ("a", "b", "c", "a"):
        put(archive.for_tenant(name), f"of {name}")
    shutil.rmtree(tmp_path / "_tenants")
    with pytest.raises(ArchiveError, match="removed meanwhile"):
        put(archive.for_tenant("a"), "again")
    put(archive.for_tenant("a"), "again")
    assert "again" in everything(fs_archive(tmp_path).for_tenant("a"))


# --- the spool, and a host's filesystem


@pytest.mark.server
@pytest.mark.usefixtures("aws")
def test_what_waits_in_the_spool_goes_to_its_own_tenant(moto: str, tmp_path: Path) -> None:
    make_bucket(moto, "tenants-spool")
    with faulty_server(moto) as faults:
        remote = open_s3(
            bucket="tenants-spool", endpoint_url=faults.address, timeout_s=1.0, step_timeout_s=2.0, retries=0
        )
        store = SpooledStore(remote, tmp_path / "spool", retry_s=60.0, close_s=0.5)
        archive = archive_on(store, redactor=NoRedactor())
        faults.always("503")
        for name in ("acme", "beta"):
            put(archive.for_tenant(name), f"the words of {name}")
            assert everything(archive.for_tenant(name)) == f"the words of {name}"
        waiting = store.waiting()
        assert {key.split("/")[1] for key in waiting} == {"acme", "beta"}
        assert all(key.startswith("_tenants/") for key in waiting)
        faults.never()
        assert store.drain()
        assert store.waiting() == []
        for name in ("acme", "beta"):
            assert everything(archive.for_tenant(name)) == f"the words of {name}"
        store.close()


class Disk:
    """A host's filesystem."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def write_file(self, path: str, content: str) -> None:
        self.files[path] = content

    def read_file(self, path: str) -> str:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]


def test_on_a_hosts_filesystem_a_tenants_files_lie_below_its_own_root() -> None:
    disk = Disk()
    archive = backend_archive(disk)
    paths = {name: put(archive.for_tenant(name), "the same words") for name in ("acme", "beta")}
    plain = put(archive, "the same words")
    assert archive.for_tenant("acme").address() == "memory://_tenants/acme"
    assert archive.store.address("s") == "memory://s"
    for name, path in paths.items():
        assert path == f"/_tenants/{name}{plain}"
        assert disk.files[path] == "the same words"
        part = archive.for_tenant(name)
        add_step(part, "s", [{"role": "user", "content": f"I am {name}"}])
        assert part.read_text("s", path) == "the same words"
        assert all(info.path.startswith(f"/_tenants/{name}/") for info in part.files("s"))
        assert "the same words" in recall_tools(part, "s")["read_file"](path)
        assert path in recall_tools(part, "s")["ls"]("/tool_outputs")
    with pytest.raises(ArchiveError, match="no file"):
        archive.for_tenant("acme").read_text("s", paths["beta"])

    later = backend_archive(disk)
    assert later.steps("s") == []
    for name, path in paths.items():
        part = later.for_tenant(name)
        assert part.restore("s").messages == [{"role": "user", "content": f"I am {name}"}]
        assert part.read_text("s", path) == "the same words"
