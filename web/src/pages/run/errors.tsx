// A complete error: its text, its traceback with user code in bold, and its cause.
import type { ErrorView } from "../../api/types";
import { Copy } from "../../ui/copy";
import { partsOf, type TracebackPart } from "./frames";

export function ErrorText({ error, notRetried }: { error: ErrorView; notRetried?: string | null }) {
  return (
    <div class="error-text">
      <p class="error-headline">
        {error.text}
        <Copy text={wholeText(error)} label="Copy error" />
      </p>
      {notRetried != null ? <p class="dim">{notRetried}</p> : null}
      {error.exhausted ? <p class="dim">All attempts were used.</p> : null}
      {Object.entries(error.metadata).map(([name, value]) => (
        <p key={name} class="dim">
          {name}: <code>{value}</code>
        </p>
      ))}
      {error.traceback !== null ? <Traceback text={error.traceback} /> : null}
      {error.cause !== null && error.cause !== undefined ? (
        <div class="error-cause">
          <p class="dim">caused by</p>
          <ErrorText error={error.cause} />
        </div>
      ) : null}
    </div>
  );
}

export function wholeText(error: ErrorView): string {
  const own = `${error.traceback ?? ""}${error.text}`;
  return error.cause ? `${wholeText(error.cause)}\n\nwhich caused\n\n${own}` : own;
}

function Traceback({ text }: { text: string }) {
  return <pre class="traceback">{folded(partsOf(text.replace(/\n$/, "")))}</pre>;
}

/** Consecutive library frames are folded into one line that can be expanded. */
function folded(parts: readonly TracebackPart[]) {
  const shown = [];
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at];
    if (part === undefined) continue;
    if (part.frame === undefined || part.frame.own) {
      shown.push(<span key={at} class={part.frame ? "frame-own" : ""}>{`${part.text}\n`}</span>);
      continue;
    }
    const begin = at;
    while (parts[at + 1]?.frame !== undefined && parts[at + 1]?.frame?.own === false) at++;
    const group = parts.slice(begin, at + 1);
    shown.push(
      <details key={begin} class="frames-library">
        <summary>{`${group.length} library ${group.length === 1 ? "frame" : "frames"}`}</summary>
        {group.map((each) => `${each.text}\n`).join("")}
      </details>,
    );
  }
  return shown;
}
