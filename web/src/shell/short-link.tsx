import { useEffect } from "preact/hooks";
import { api } from "../api/client";
import type { Paged, RunView } from "../api/types";
import { useResource } from "../state/resource";
import { go, href, route, segment } from "../state/route";
import { A } from "../ui/a";
import { Empty } from "../ui/empty";
import { ErrorBox } from "../ui/error-box";
import { Skeleton } from "../ui/skeleton";

/** `/r/{prefix}`: redirects to the run whose id begins so. */
export function ShortLinkPage() {
  const prefix = route.value.segments[1] ?? "";
  const found = useResource(
    (abort) => api.get<Paged<RunView>>("/runs", { id_prefix: prefix, size: 10 }, { abort }),
    [prefix],
  );
  const rows = found.value?.rows ?? [];
  const only = rows.length === 1 ? rows[0] : rows.find((run) => run.run_id === prefix);
  useEffect(() => {
    if (only) go(href(`/runs/${segment(only.run_id)}`), { replace: true });
  }, [only]);
  if (found.error) return <ErrorBox page problem={found.error} onRetry={found.reload} />;
  if (found.loading || only) return <Skeleton />;
  if (rows.length === 0) {
    return (
      <ErrorBox
        page
        problem={{ title: "Not Found", status: 404, detail: `No run has an id that begins with ${prefix}.` }}
      />
    );
  }
  return (
    <Empty title={`${rows.length} run ids begin with ${prefix}`}>
      <ul>
        {rows.map((run) => (
          <li key={run.run_id}>
            <A href={href(`/runs/${segment(run.run_id)}`)}>
              {run.workflow} {run.workflow_id} <code>{run.run_id}</code>
            </A>
          </li>
        ))}
      </ul>
    </Empty>
  );
}
