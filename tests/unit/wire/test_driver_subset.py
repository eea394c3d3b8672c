"""The search worker's driver.proto is a part of mosaic.proto: what it has, it has under the same names and numbers."""

from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

from mosaic.wire import mosaic_pb2 as pb

WORKER = Path(__file__).parents[3] / "workers/search_worker"


def test_a_driver_and_the_daemon_mean_the_same_fields(tmp_path):
    out = tmp_path / "driver.bin"
    assert protoc.main(["", f"-I{WORKER}", f"--descriptor_set_out={out}", "search_worker/driver.proto"]) == 0
    part = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0]
    whole = descriptor_pb2.FileDescriptorProto()
    pb.DESCRIPTOR.CopyToProto(whole)

    for message in part.message_type:
        assert fields(message) <= fields(named(whole.message_type, message.name)), message.name
    assert values(part.enum_type[0]) == values(named(whole.enum_type, "State"))


def fields(message):
    return {(field.name, field.number, field.type, field.label) for field in message.field}


def values(enum):
    return {(value.name, value.number) for value in enum.value}


def named(found, name):
    return next(each for each in found if each.name == name)
