"""Checkpoints on S3, against a server of the tests' own."""

from collections.abc import Iterator

import pytest

import notebook_probe as nbp
from notebook_probe.train import Checkpoints
from tests.record.store.s3_server import BUCKET, s3_server
from tests.train.checkpoints.kinds import loop_of, same_state

pytestmark = pytest.mark.s3


@pytest.fixture(scope="module")
def bucket() -> Iterator[nbp.RemoteStore]:
    with s3_server() as endpoint:
        options = {
            "endpoint": endpoint,
            "region": "us-east-1",
            "access_key_id": "any",
            "secret_access_key": "any",
        }
        yield nbp.RemoteStore(f"s3://{BUCKET}/kept", options=options)


def test_a_training_goes_on_from_a_bucket(bucket: nbp.RemoteStore) -> None:
    loop, data = loop_of("conv")
    loop.add(Checkpoints(bucket, every=2, keep_last=2))
    loop.run_epochs(data, 2)
    assert [one.path for one in loop.checkpoints] == [
        f"s3://{BUCKET}/kept/step_00000006.pt",
        f"s3://{BUCKET}/kept/step_00000008.pt",
    ]
    resumed, data = loop_of("conv", seed=1)
    resumed.load_checkpoint(bucket, 6)
    resumed.run_epochs(data, 2)
    assert same_state(resumed.trainer.state_dict(), loop.trainer.state_dict())
