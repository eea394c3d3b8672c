"""Which GPUs this machine has and which of them may be handed out."""

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
    """The machine's GPUs through NVML, or pretended ones that replace them."""

    def __init__(self, fake: int | None = None) -> None:
        self._nvml: Any = None if fake is not None else _load_nvml()
        if fake is not None:
            self.all = [Gpu(f"GPU-fake-{n}", "pretended GPU") for n in range(fake)]
        else:
            self.all = self._found()

    def free(self, owners: Mapping[str, str], drained: Collection[str], is_ours: Callable[[int], bool]) -> list[str]:
        """UUIDs nobody holds, in a stable order; what a stranger's process computes on is left out."""
        open_ones = [gpu.uuid for gpu in self.all if gpu.uuid not in owners and gpu.uuid not in drained]
        return [uuid for uuid in open_ones if not self.strangers(uuid, is_ours)]

    def strangers(self, uuid: str, is_ours: Callable[[int], bool]) -> list[int]:
        """Pids that compute on this GPU and belong to no run of ours."""
        if self._nvml is None:
            return []
        try:
            handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
            pids = [process.pid for process in self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)]
        except self._nvml.NVMLError as error:
            # A GPU that fell off the bus must not be handed out; pid 0 stands for "nobody can say".
            log.warning("GPU %s does not answer: %s", uuid, error)
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
        log.info("No NVIDIA driver answers (%s): this machine has no GPUs to hand out.", error)
        return None
    return pynvml
