"""A catalog and its answers for many configs at once: every file is looked at once, not once for each config."""

from mosaic.catalog.answers import Answers
from mosaic.catalog.descriptor import Descriptor
from mosaic.catalog.environment import Environment
from mosaic.catalog.inspector import Inspector
from mosaic.catalog.workers import Catalog, Worker
from mosaic.model.rundir import StateRoot


class OneLook(Catalog):
    """The environments as they are when they are first asked for. Only for one batch: it never looks again."""

    def __init__(self, root: StateRoot) -> None:
        super().__init__(root)
        self._environments: list[Environment] = []
        self._modules: dict[tuple[str, str, str], Worker] = {}

    def environments(self) -> list[Environment]:
        self._environments = self._environments or super().environments()
        return self._environments

    def for_module(self, module: str, variant: str = "", name: str = "") -> Worker:
        key = (module, variant, name)
        if key not in self._modules:
            self._modules[key] = super().for_module(module, variant, name)
        return self._modules[key]


class OneAnswer(Answers):
    """What each worker answered when it was first asked for."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(answers.folder)
        self._known: dict[Worker, Descriptor] = {}

    def remembered(self, worker: Worker) -> Descriptor | None:
        if worker not in self._known and (found := super().remembered(worker)):
            self._known[worker] = found
        return self._known.get(worker)


def inspector_of_batch(catalog: Catalog, answers: Answers) -> Inspector:
    return Inspector(catalog, OneAnswer(answers))
