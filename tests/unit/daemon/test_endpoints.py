"""Where the daemon listens."""

import asyncio
import os
import socket
import stat
from pathlib import Path

import grpc
import pytest

from mosaic.daemon.endpoints import MAX_SOCKET_PATH, OPTIONS, Endpoints, new_server, socket_path
from mosaic.model.durable import read_json
from mosaic.model.errors import AddressTaken, BadRoot
from mosaic.model.rundir import StateRoot


@pytest.fixture
def tmp_path(home):
    """A short path: one of pytest's leaves too little room for a socket."""
    return home


@pytest.fixture
def root(tmp_path, monkeypatch):
    root = StateRoot(tmp_path / "r")
    root.make()
    # In the root, or in a folder of the test if the path is too long for a socket: never in the real runtime folder.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(root.path))
    return root


@pytest.fixture
def far_root(tmp_path, monkeypatch):
    """A root whose path is too long for a socket, and a private folder for runtime files."""
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    return StateRoot(tmp_path / ("x" * 120))


def make_server(is_private):
    return grpc.aio.server(options=OPTIONS)


def test_a_short_root_has_its_socket_inside(tmp_path):
    root = StateRoot("/tmp/m")

    assert socket_path(root) == root.socket


def test_a_long_root_has_its_socket_in_the_users_runtime_folder(far_root, tmp_path):
    path = socket_path(far_root)

    assert path.parent == tmp_path / "run"
    assert socket_path(StateRoot(tmp_path / ("y" * 120))) != path
    assert len(os.fsencode(path)) <= max(MAX_SOCKET_PATH, len(os.fsencode(tmp_path)) + 40)


def test_a_missing_runtime_folder_is_created_private(far_root, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "new"))

    socket_path(far_root)

    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o707])
def test_a_runtime_folder_that_others_can_enter_is_refused(far_root, tmp_path, mode):
    (tmp_path / "run").chmod(mode)

    with pytest.raises(AddressTaken, match="not a private folder"):
        socket_path(far_root)


def test_a_runtime_folder_behind_another_users_link_is_refused(far_root, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(tmp_path / "run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "link"))
    assert socket_path(far_root).parent == tmp_path / "link"
    if os.getuid() != 0:
        pytest.skip("only root can give a link to another user")

    os.lchown(tmp_path / "link", 12345, 12345)

    with pytest.raises(AddressTaken, match="not a private folder"):
        socket_path(far_root)


def test_the_bound_addresses_are_in_daemon_addr_and_removed_at_close(root):
    root.pid.write_text(f"{os.getpid()}\n")

    async def open_and_close():
        endpoints = Endpoints(root, make_server)
        await endpoints.open_unix()
        tcp = await endpoints.open_tcp("127.0.0.1:0")
        again = await endpoints.open_tcp("127.0.0.1:1")
        written = read_json(root.address)["addresses"]
        await endpoints.close()
        return endpoints.unix, tcp, again, written

    unix, tcp, again, written = asyncio.run(open_and_close())

    assert written == [unix, tcp]
    assert tcp == again
    assert not tcp.endswith(":0")
    assert not root.address.exists()
    assert not socket_path(root).exists()


@pytest.mark.parametrize("name", ["address", "socket"])
def test_a_folder_in_the_place_of_a_file_is_named_and_nothing_listens(root, name):
    getattr(root, name).mkdir()
    root.pid.write_text(f"{os.getpid()}\n")
    endpoints = Endpoints(root, make_server)

    async def open_and_close():
        try:
            await endpoints.open_unix()
        finally:
            await endpoints.close()

    with pytest.raises(BadRoot, match=f"{getattr(root, name)} is .*Remove it"):
        asyncio.run(open_and_close())

    assert endpoints.addresses == []
    assert not root.pid.exists()


def test_the_files_of_another_daemon_in_the_same_root_are_left_alone(root):
    async def open_and_close():
        endpoints = Endpoints(root, make_server)
        await endpoints.open_unix()
        root.pid.write_text("1\n")
        await endpoints.close()

    asyncio.run(open_and_close())

    assert root.address.exists()
    assert root.pid.exists()


def test_a_port_in_use_is_refused_and_a_free_one_is_found(root, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr("mosaic.daemon.endpoints.DEFAULT_TCP", address)

        async def knock():
            endpoints = Endpoints(root, make_server)
            with pytest.raises(AddressTaken, match="cannot be bound"):
                await endpoints.open_tcp(address)
            found = await endpoints.open_any_tcp()
            await endpoints.close()
            return found

        assert asyncio.run(knock()) != address


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%41b", "a,b", "a:b"])
def test_a_root_whose_name_grpc_would_not_take_literally_has_its_socket_elsewhere(tmp_path, monkeypatch, name):
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))

    assert socket_path(StateRoot(f"/tmp/{name}")).parent == tmp_path / "run"


def test_a_runtime_folder_that_cannot_be_used_is_not(monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/a#b")

    assert socket_path(StateRoot("/tmp/a#b")).parent == Path(f"/tmp/mosaic-{os.getuid()}")


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: path.write_bytes(b"\xff"), lambda path: path.write_text("{}")]
)
def test_a_damaged_address_is_written_again(root, damage):
    async def scenario():
        endpoints = Endpoints(root, make_server)
        await endpoints.open_unix()
        before = read_json(root.address)
        damage(root.address)
        endpoints.repair_file()
        after = read_json(root.address)
        await endpoints.close()
        return before, after

    before, after = asyncio.run(scenario())

    assert before == after
    assert before["root"] == {"path": os.path.realpath(root.path), "inode": root.path.stat().st_ino}


@pytest.mark.parametrize(("for_nodes", "served"), [(False, 256), (True, 300)])
def test_every_run_of_a_cluster_has_room_for_its_connections(for_nodes, served):
    greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")

    class Nobody(grpc.aio.ServerInterceptor):
        async def intercept_service(self, continuation, details):
            return None

    async def is_answered(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(greeting)
        try:
            return bool(await reader.read(1)), writer
        except ConnectionError:
            return False, writer

    async def scene():
        server = new_server(Nobody(), is_private=False, for_nodes=for_nodes)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        found = [await is_answered(port) for _ in range(300)]
        for _, writer in found:
            writer.close()
        await server.stop(0)
        return sum(answered for answered, _ in found)

    assert asyncio.run(scene()) == served
