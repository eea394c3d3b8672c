"""MLflow: log_metric, log_metrics, and parameters as settings."""

from types import ModuleType
from typing import Any, Dict

from mosaic_sdk.observe.observer import Observer
from mosaic_sdk.observe.seam import call_after

_METRIC, _PARAM = "mlflow.log_metric", "mlflow.log_param"


def listen(module: ModuleType, observer: Observer) -> None:
    params: Dict[str, Any] = {}

    def log_metric(_: Any, key: str, value: Any, step: Any = None, *args: Any, **kwargs: Any) -> None:
        observer.metric(key, value, step, _METRIC)

    def log_metrics(_: Any, metrics: Any, step: Any = None, *args: Any, **kwargs: Any) -> None:
        observer.metrics(metrics, step, _METRIC)

    def log_param(_: Any, key: str, value: Any, *args: Any, **kwargs: Any) -> None:
        params[key] = value
        observer.settings(params, _PARAM)

    def log_params(_: Any, values: Any, *args: Any, **kwargs: Any) -> None:
        params.update(values)
        observer.settings(params, _PARAM)

    for listener, by in ((log_metric, _METRIC), (log_metrics, _METRIC), (log_param, _PARAM), (log_params, _PARAM)):
        call_after(module, listener.__name__, observer.guarded(listener, by))
