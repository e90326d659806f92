"""How paths name a run: by its id, or as `workflow_id:x`, the latest run with that workflow id."""

from typing import Any, TypedDict

from .route import ApiRequest

BY_WORKFLOW_ID = "workflow_id:"


class RunOf(TypedDict):
    namespace: str
    run_id: str
    workflow_id: str


def run_of(request: ApiRequest[Any, Any]) -> RunOf:
    name = request.path["run"]
    if name.startswith(BY_WORKFLOW_ID):
        return {
            "namespace": request.namespace,
            "run_id": "",
            "workflow_id": name.removeprefix(BY_WORKFLOW_ID),
        }
    return {"namespace": request.namespace, "run_id": name, "workflow_id": ""}


async def run_id_of(request: ApiRequest[Any, Any]) -> str:
    """For handlers that need the run id. Raises NotFound."""
    named = run_of(request)
    if named["run_id"]:
        return named["run_id"]
    return (await request.data.engine.runs.get(**named)).run.run_id
