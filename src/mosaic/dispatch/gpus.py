"""Which GPUs this machine has, and which of them are free for a run."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Gpu:
    uuid: str
    name: str


class Gpus:
    """The machine's GPUs as NVML reports them, or a number of fake ones instead (for tests)."""

    def __init__(self, fake: int | None = None) -> None:
        self._nvml: Any = None if fake is not None else _load_nvml()
        if fake is not None:
            self.all = [Gpu(f"GPU-fake-{n}", "fake GPU") for n in range(fake)]
        else:
            self.all = self._found()

    def free(self, owners: Mapping[str, str], drained: Collection[str], is_ours: Callable[[int], bool]) -> list[str]:
        """UUIDs of free GPUs in a stable order, without those that a process outside MOSAIC computes on."""
        open_ones = [gpu.uuid for gpu in self.all if gpu.uuid not in owners and gpu.uuid not in drained]
        return [uuid for uuid in open_ones if not self.foreign_pids(uuid, is_ours)]

    def foreign_pids(self, uuid: str, is_ours: Callable[[int], bool]) -> list[int]:
        """Processes that compute on this GPU and do not belong to a run of this daemon."""
        if self._nvml is None:
            return []
        try:
            handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
            pids = [process.pid for process in self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)]
        except self._nvml.NVMLError as error:
            # A GPU that fell off the bus must not be granted; pid 0 stands for an unknown process.
            log.warning("GPU %s does not respond: %s", uuid, error)
            return [0]
        return [pid for pid in pids if not is_ours(pid)]

    def _found(self) -> list[Gpu]:
        if self._nvml is None:
            return []
        handles = (self._nvml.nvmlDeviceGetHandleByIndex(n) for n in range(self._nvml.nvmlDeviceGetCount()))
        return [Gpu(self._nvml.nvmlDeviceGetUUID(h), self._nvml.nvmlDeviceGetName(h)) for h in handles]


def _load_nvml() -> Any:
    """The initialised NVML module, or None on a machine without the driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        log.info("No NVIDIA driver is available (%s): runs get no GPUs on this machine.", error)
        return None
    return pynvml
