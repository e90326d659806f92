import { api } from "../api/client";
import type { NamespaceView, Paged } from "../api/types";
import { formatDuration } from "../model/durations";
import { namespace, DEFAULT_NAMESPACE } from "../state/route";
import { session } from "../state/session";
import { surroundings } from "../ui/surroundings";

/** Loads the namespaces that the key permits, and the retention of the current one. */
export async function loadNamespaces(): Promise<void> {
  const who = session.peek();
  if (who !== null && who.auth !== "off" && who.namespace !== "*") {
    surroundings.namespaces.value = [who.namespace];
    return;
  }
  const page = await api.get<Paged<NamespaceView>>("/namespaces", { size: 200 });
  const names = page.rows.filter((each) => !each.deleting).map((each) => each.namespace);
  surroundings.namespaces.value = names.includes(DEFAULT_NAMESPACE) ? names : [DEFAULT_NAMESPACE, ...names];
  const shown = page.rows.find((each) => each.namespace === namespace.peek());
  surroundings.retention.value = shown ? retentionText(shown) : "";
}

export function retentionText(shown: Pick<NamespaceView, "retention_seconds">): string {
  const parts = Object.entries(shown.retention_seconds).map(([status, s]) => `${status} ${formatDuration(s * 1000)}`);
  return parts.length > 0 ? `Ended runs are kept for a limited time: ${parts.join(", ")}.` : "";
}
