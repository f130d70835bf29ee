"""`_models/{model}.json`: what was learned of models, on every store."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from support.archive import archive_on

from compact.archive import Archive, Store
from compact.archive.factors import Growth, add_growth, read_growth
from compact.archive.records import trust_stored
from compact.errors import ArchiveError


@pytest.fixture
def archive(store: Store) -> Archive:
    return archive_on(store)


def test_sums_of_several_processes_add_up(reopen: Callable[[], Store]) -> None:
    for n in range(1, 4):
        found = add_growth(archive_on(reopen()), "claude", "claude", Growth(1_000, 1_123))
        assert found == Growth(1_000 * n, 1_123 * n)
    assert read_growth(archive_on(reopen()), "claude", "claude") == Growth(3_000, 3_369)


def test_a_factor_is_rounded_up_to_a_hundredth() -> None:
    assert Growth(1_000, 1_123).factor == 1.13
    assert Growth(100, 117).factor == 1.17


def test_large_sums_are_halved_so_that_a_change_shows(archive: Archive) -> None:
    found = add_growth(archive, "m", "m", Growth(3_000_000, 3_300_000))
    assert found == Growth(1_500_000, 1_650_000)


@pytest.mark.parametrize(
    "model", ["openrouter/anthropic/claude", "a" * 300, "con", "../x", "", "h-" + "0" * 64, "模型"]
)
def test_a_name_that_is_no_safe_file_name_is_hashed(archive: Archive, model: str) -> None:
    add_growth(archive, model, model, Growth(10, 11))
    assert read_growth(archive, model, model) == Growth(10, 11)
    (blob,) = archive.store.blobs("_models")
    assert blob.name.startswith("h-")
    assert len(blob.name) == len("h-.json") + 64


def test_a_name_with_a_secret_is_hashed_and_masked(archive: Archive) -> None:
    add_growth(archive, "ft-secret", "ft-<REDACTED>", Growth(10, 11))
    (blob,) = archive.store.blobs("_models")
    assert "secret" not in blob.name
    assert b"secret" not in (archive.store.read(blob.key) or b"")


def test_each_tenant_has_its_own(archive: Archive) -> None:
    add_growth(archive.for_tenant("acme"), "m", "m", Growth(10, 20))
    assert read_growth(archive, "m", "m") is None
    assert read_growth(archive.for_tenant("beta"), "m", "m") is None
    assert read_growth(archive.for_tenant("acme"), "m", "m") == Growth(10, 20)


DAMAGED = [
    b"",
    b"{",
    b"[]",
    b'{"format": 2}',
    b'{"format":1,"raw_tokens":0,"counted_tokens":5}',
    b"[" * 5_000,
    b"\xff",
]


@pytest.mark.parametrize("data", DAMAGED)
def test_a_damaged_file_is_an_error_a_defect_and_replaced_when_more_is_learned(
    archive: Archive, data: bytes
) -> None:
    add_growth(archive, "m", "m", Growth(10, 11))
    assert archive.verify() == []
    archive.store.replace("_models/m.json", trust_stored(data))
    with pytest.raises(ArchiveError) as caught:
        read_growth(archive, "m", "m")
    assert caught.value.reason == "damaged"
    assert [(defect.key, defect.code) for defect in archive.verify()] == [("_models/m.json", "damaged")]
    assert add_growth(archive, "m", "m", Growth(10, 11)) == Growth(10, 11)
    assert archive.verify() == []


def test_the_folder_is_no_session_and_a_stranger_in_it_is_reported(archive: Archive) -> None:
    add_growth(archive, "m", "m", Growth(10, 11))
    archive.store.replace("_models/notes.txt", trust_stored(json.dumps({}).encode()))
    assert archive.sessions() == []
    assert [(defect.key, defect.code) for defect in archive.verify()] == [("_models/notes.txt", "orphan")]
    assert not archive.folder("_models").startswith("_models"), (
        "a session of this name is stored under a hash"
    )
