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

const STATES = { live: "live, by a stream", asking: "asking every few seconds", lost: "lost" } as const;

/** What this page talks to. */
export function ServerTab() {
  useEffect(() => void loadServer().catch(() => {}), []);
  const facts = server.value;
  if (facts === null) return <Skeleton />;
  const skew = skewMs.value;
  const rows: [string, ComponentChildren][] = [
    ["Version", facts.version],
    ["API", `${facts.api_version}, for SDKs from ${facts.min_sdk_version} on`],
    ["Store", facts.store],
    ["Schema", facts.schema_version === null ? "in memory, made with the server" : `version ${facts.schema_version}`],
    ["Lag", lagWords(facts)],
    ["Server", <Id text={facts.server_id} />],
    ["Pages", facts.http_url ?? "not served"],
    ["WebSocket", facts.websocket_url ?? "not served"],
    ["Largest payload", `${Math.round(facts.max_payload_bytes / 1024)} KiB`],
    ["Its clock", <Time ms={toMs(facts.now)} style="datetime" />],
    [
      "This clock",
      Math.abs(skew) < 1000
        ? "agrees within a second"
        : `is ${formatDuration(Math.abs(skew))} ${skew > 0 ? "behind" : "ahead"}`,
    ],
    ["Connection", STATES[connection.value.state]],
    ["Logged in", who()],
  ];
  return (
    <div class="card stack">
      {facts.store_problem !== null && (
        <ErrorBox problem={{ title: "The database does not do what it is asked", detail: facts.store_problem }} />
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
  return `the database ${store}; the server itself was held up for ${lag(facts.loop_lag_ms)}`;
}

function lag(ms: number): string {
  return ms < 1 ? "less than 1ms" : formatDuration(ms);
}

function who(): string {
  const caller = session.value;
  if (caller === null) return "";
  if (caller.auth === "off") return "nobody has to: this server asks for no keys";
  return `${caller.name || caller.key_id}, scopes ${caller.scopes.join(", ")}, namespace ${caller.namespace}`;
}

function Id({ text }: { readonly text: string }) {
  return (
    <>
      <code>{text}</code> <Copy text={text} label="Copy the server's id" />
    </>
  );
}
