import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { Paged, WorkflowTypeView } from "../api/types";
import { namespace } from "./route";

/** The names of the workflow types, for suggestions: loaded once `wanted`. Without them, the rest still works. */
export function useWorkflowNames(wanted: boolean): readonly string[] {
  const [names, setNames] = useState<readonly string[]>([]);
  const space = namespace.value;
  useEffect(() => {
    if (!wanted) return;
    const abort = new AbortController();
    api
      .get<Paged<WorkflowTypeView>>("/workflows", { size: 200 }, { abort: abort.signal })
      .then((page) => setNames(page.rows.map((each) => each.workflow)))
      .catch(() => {});
    return () => abort.abort();
  }, [wanted, space]);
  return names;
}
