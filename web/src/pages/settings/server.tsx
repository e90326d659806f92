import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { connection } from "../../api/live";
import type { ServerView } from "../../api/types";
import { formatDuration } from "../../model/durations";
import { toMs } from "../../model/times";
import { skewMs } from "../../state/clock";
import { loadServer, server, session } from "../../state/session";
import { Copy } from "../../ui/copy";
import { ErrorBox } from "../../ui/error-box";
import { Skeleton } from "../../ui/skeleton";
import { Time } from "../../ui/time";

const STATES = { live: "live", asking: "polling every few seconds", lost: "lost" } as const;

/** Information about the server of this page. */
export function ServerTab() {
  useEffect(() => void loadServer().catch(() => {}), []);
  const facts = server.value;
  if (facts === null) return <Skeleton />;
  const skew = skewMs.value;
  const rows: [string, ComponentChildren][] = [
    ["Version", facts.version],
    ["API", `${facts.api_version}, for SDK ${facts.min_sdk_version} or newer`],
    ["Store", facts.store],
    ["Schema", facts.schema_version === null ? "in memory" : `version ${facts.schema_version}`],
    ["Latency", lagWords(facts)],
    ["Server ID", <Id text={facts.server_id} />],
    ["HTTP", facts.http_url ?? "not served"],
    ["WebSocket", facts.websocket_url ?? "not served"],
    ["Largest payload", `${Math.round(facts.max_payload_bytes / 1024)} KiB`],
    ["Server clock", <Time ms={toMs(facts.now)} style="datetime" />],
    [
      "Browser clock",
      Math.abs(skew) < 1000
        ? "within a second of the server"
        : `${formatDuration(Math.abs(skew))} ${skew > 0 ? "behind" : "ahead of"} the server`,
    ],
    ["Connection", STATES[connection.value.state]],
    ["Session", who()],
  ];
  return (
    <div class="card stack">
      {facts.store_problem !== null && (
        <ErrorBox problem={{ title: "The database is failing", detail: facts.store_problem }} />
      )}
      <dl class="facts">
        {rows.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ))}
      </dl>
      <details>
        <summary>{facts.supported_features.length} features</summary>
        <p class="dim">{facts.supported_features.join(", ")}</p>
      </details>
    </div>
  );
}

function lagWords(facts: ServerView): string {
  const store = facts.store_lag_ms === null ? "has not answered yet" : `answered its last poll in ${lag(facts.store_lag_ms)}`;
  return `the database ${store}; the server's event loop was delayed by ${lag(facts.loop_lag_ms)}`;
}

function lag(ms: number): string {
  return ms < 1 ? "less than 1ms" : formatDuration(ms);
}

function who(): string {
  const caller = session.value;
  if (caller === null) return "";
  if (caller.auth === "off") return "not needed: this server runs without API keys";
  return `${caller.name || caller.key_id}, scopes ${caller.scopes.join(", ")}, namespace ${caller.namespace}`;
}

function Id({ text }: { readonly text: string }) {
  return (
    <>
      <code>{text}</code> <Copy text={text} label="Copy server id" />
    </>
  );
}
