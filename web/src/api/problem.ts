/** An error of a request: from the server (RFC 9457), or from the browser when there was no response. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly kind: string;
  readonly title: string;
  readonly detail: string;
  readonly instance: string | null;
  readonly field: string | null;
  readonly limit: string | null;
  readonly remedy: string | null;
  readonly retryAfterMs: number | null;
  readonly metadata: Readonly<Record<string, string>>;

  constructor(fields: Partial<Omit<Problem, "name" | "message" | "stack" | "cause">>) {
    super(fields.detail ?? fields.title ?? "The request failed.");
    this.name = "Problem";
    this.status = fields.status ?? 0;
    this.code = fields.code ?? "unknown";
    this.kind = fields.kind ?? "permanent";
    this.title = fields.title ?? "The request failed";
    this.detail = fields.detail ?? this.title;
    this.instance = fields.instance ?? null;
    this.field = fields.field ?? null;
    this.limit = fields.limit ?? null;
    this.remedy = fields.remedy ?? null;
    this.retryAfterMs = fields.retryAfterMs ?? null;
    this.metadata = fields.metadata ?? {};
  }
}

/** There was no response: the server or the network is down. */
export function unreachable(): Problem {
  return new Problem({
    status: 0,
    code: "unreachable",
    kind: "transient",
    title: "No answer",
    detail: "The server is not responding. The page keeps retrying.",
  });
}

/** Whether the server is unavailable, or the outcome of the request is unknown; includes the statuses of proxies. */
export function isAway(problem: Problem): boolean {
  return problem.code === "unreachable" || problem.status === 502 || problem.status === 504;
}

export function problemFrom(status: number, body: unknown): Problem {
  if (typeof body !== "object" || body === null) {
    return new Problem({ status, title: `HTTP ${status}`, detail: `The server returned ${status} without an explanation.` });
  }
  const fields = body as Readonly<Record<string, unknown>>;
  const text = (name: string): string | null => (typeof fields[name] === "string" ? (fields[name] as string) : null);
  const retryAfter = fields["retry_after_ms"];
  return new Problem({
    status,
    code: text("code") ?? "unknown",
    kind: text("kind") ?? "permanent",
    title: text("title") ?? `HTTP ${status}`,
    detail: text("detail") ?? text("title") ?? `HTTP ${status}`,
    instance: text("instance"),
    field: text("field"),
    limit: text("limit"),
    remedy: text("remedy"),
    retryAfterMs: typeof retryAfter === "number" ? retryAfter : null,
    metadata: texts(fields["metadata"]),
  });
}

function texts(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, String(each)]));
}

/** Converts any thrown value to a problem that can be shown. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new Problem({ code: "page", title: "Something went wrong on this page", detail });
}
