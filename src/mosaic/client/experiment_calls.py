"""Calls about experiments: named groups of runs, see `mosaic.model.experiment`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mosaic.client.request_text import config_text
from mosaic.client.run import Run
from mosaic.client.run_calls import RunCalls
from mosaic.model.experiment import Experiment
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.convert import experiment_from_wire

if TYPE_CHECKING:
    from mosaic.client.experiments import Continued, ExperimentRuns


class ExperimentCalls(RunCalls):
    async def put_experiment(self, name: str, document: Mapping[str, Any], note: str | None = None) -> Experiment:
        """Create an experiment, or add the seeds and axis values of `document` to it; see `mosaic.model.experiment`.

        ExperimentDiffers if the name belongs to an experiment with another worker, base or axes.
        """
        request = pb.PutExperimentRequest(name=name, document_json=config_text(document), note=note)
        return experiment_from_wire(await self._ask(self._stub.PutExperiment, request))

    async def experiment(self, name: str) -> Experiment:
        """One experiment with the number of its runs in each state; `list_runs(experiment=name)` has the runs."""
        return experiment_from_wire(await self._ask(self._stub.GetExperiment, pb.ExperimentRequest(name=name)))

    async def experiments(self) -> list[Experiment]:
        """All experiments, newest first."""
        reply = await self._ask(self._stub.ListExperiments, pb.ListExperimentsRequest())
        return [experiment_from_wire(wire) for wire in reply.experiments]

    async def delete_experiment(self, name: str) -> None:
        """Delete an experiment that has no runs any more."""
        await self._ask(self._stub.DeleteExperiment, pb.ExperimentRequest(name=name))

    async def run_experiment(
        self,
        name: str,
        document: Mapping[str, Any],
        *,
        retry_faulted: bool = False,
        is_new: bool = False,
        is_dry_run: bool = False,
    ) -> "ExperimentRuns":
        """Submit the runs of the document's grid that the experiment does not have yet, in one call.

        `retry_faulted`: also those whose newest run is FAULTED. `is_new`: the name must be unused.
        """
        from mosaic.client.experiments import plan_experiment

        plan = await plan_experiment(self, self._root, name, document, retry_faulted, is_new)
        submitted = await self._submit_all(
            [each.config for each in plan.todo],
            [each.key for each in plan.todo],
            name,
            plan.document,
            is_new_experiment=is_new,
            is_dry_run=is_dry_run,
        )
        return plan.begun(submitted)

    async def resume_experiment(self, name: str, runs: Sequence[Run]) -> "list[Continued]":
        """Continue these runs of an experiment, from their checkpoints, or from the beginning where there is none."""
        from mosaic.client.experiments import resume_runs

        return await resume_runs(self, self._root, await self.experiment(name), runs)
