"""What a run, or a part of one, asks for: `resources` of a config."""

from mosaic.model.machine import MAX_CPUS, MAX_MEMORY_MB
from mosaic.model.run import GpuRequest, ResourceRequest
from mosaic.submit.section import Section

MAX_GPUS = 64


def read_gpus(section: Section) -> GpuRequest:
    return GpuRequest(section.whole("requested", 0, MAX_GPUS), section.flag("mandatory"))


def read_resources(section: Section) -> ResourceRequest:
    cpus = section.number("cpus", MAX_CPUS)
    # submit/needs.py fills in what the config leaves out.
    return ResourceRequest(ResourceRequest.cpus if cpus is None else cpus, section.whole("memory_mb", 0, MAX_MEMORY_MB))
