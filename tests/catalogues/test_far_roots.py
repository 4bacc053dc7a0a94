"""Records of ranks and hosts below a URL are found, followed, and only read."""

from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.catalogues.finding.place import RecordLocation
from notebook_probe.home import home
from notebook_probe.record import RecordWriter
from notebook_probe.record.store.location import Location, RemoteStore
from tests.catalogues.build import log, recorded, writing
from tests.record.store.s3_server import BUCKET, s3_server


def inside(bucket: RemoteStore, name: str) -> RemoteStore:
    return RemoteStore(f"{bucket.store}/{name}", bucket.options, bucket.spool, 0.1)


@pytest.mark.s3
def test_what_ranks_shipped_to_a_bucket_is_found_and_followed(tmp_path: Path) -> None:
    with s3_server() as endpoint:
        options = {"endpoint": endpoint, "region": "us-east-1"}
        keys = {"access_key_id": "test", "secret_access_key": "test"}
        bucket = RemoteStore(f"s3://{BUCKET}/runs", {**options, **keys}, tmp_path / "spool")
        follow(bucket)
        with nbp.catalogue("sqlite://", root=bucket) as cat:
            assert cat.refresh().added == 3
            assert cat.refresh().changed == 0, "what lies there as it was is not read again"


def test_what_ranks_shipped_to_a_folder_is_found_and_followed(tmp_path: Path) -> None:
    follow(RemoteStore((tmp_path / "bucket").as_uri(), spool=tmp_path / "spool"))


def follow(bucket: RemoteStore) -> None:
    for rank in range(2):
        recorded_at(inside(bucket, f"job.zarr/rank_{rank:05d}"))
    for note in (home() / "records").iterdir():
        note.unlink()  # they were written on other machines
    with nbp.catalogue("sqlite://", root=bucket) as cat:
        (job,) = cat.runs("state == 'finished'")
        assert (str(job["run"]).rpartition("/")[2], job["ranks"]) == ("job.zarr", 2)
        assert cat.runs("rank >= 0", ranks=True, sort="rank")["rank"] == [0, 1]
        with writing(inside(bucket, "host-b/live.zarr"), [3.0]) as writer:
            assert writer.flush()
            (row,) = cat.runs("state == 'running'")
            assert (row["name"], row["last.loss"]) == ("live", 3.0)
            log(writer, [1.5])
            assert writer.flush()
            assert cat.runs("state == 'running'")["last.loss"] == [1.5]
        assert len(cat.runs("state == 'finished'", ranks=True)) == 3


def recorded_at(place: Location) -> None:
    with writing(place, title="rank"):
        pass


def test_a_folder_that_is_shipped_to_is_found_as_one_of_this_machine(tmp_path: Path) -> None:
    recorded(tmp_path / "shared" / "a.zarr")
    place = (tmp_path / "shared").as_uri()
    with nbp.catalogue("sqlite://", root=place) as cat:
        assert cat.runs()["name"] == ["a"]


def test_a_bucket_that_does_not_answer_is_told_and_keeps_nothing_away(tmp_path: Path) -> None:
    recorded(tmp_path / "mine.zarr")
    with nbp.catalogue("sqlite://", root="nothing://like/this") as cat:
        assert cat.runs()["name"] == ["mine"]
        assert [*cat.refresh().unreadable] == ["nothing://like/this"]


def test_a_store_that_cannot_be_asked_has_not_lost_its_records() -> None:
    assert not RecordLocation("nothing://like/this").is_gone()


def test_a_record_in_memory_is_followed_by_its_lease() -> None:
    url = "memory://followed"
    with RecordWriter(url, title="m", modules=[]) as writer:
        log(writer, [1.0])
        assert writer.flush()
        assert nbp.open_run(url).is_written
    assert not nbp.open_run(url).is_written
