import type { ComponentChildren } from "preact";
import { A } from "./a";
import { Button } from "./button";
import { Copy } from "./copy";
import { Icon } from "./icon";
import { surroundings } from "./surroundings";

/** The fields of a `Problem` of the API. */
export interface ShownProblem {
  readonly title: string;
  readonly detail: string;
  readonly status?: number;
  readonly code?: string;
  readonly remedy?: string | null;
  readonly instance?: string | null;
  readonly field?: string | null;
  readonly limit?: string | null;
}

interface ErrorBoxProps {
  readonly problem: ShownProblem;
  readonly onRetry?: () => void;
  /** Shown instead of the page, and so with its heading. */
  readonly page?: boolean;
  readonly children?: ComponentChildren;
}

/** An error, its remedy, and its incident number in the server's log. */
export function ErrorBox({ problem, onRetry, page, children }: ErrorBoxProps) {
  const Title = page ? "h1" : "p";
  const incident = problem.instance?.replace(/^urn:kagzi:incident:/, "") ?? "";
  const said = problem.remedy && problem.detail.endsWith(problem.remedy);
  const detail = said ? problem.detail.slice(0, -(problem.remedy?.length ?? 0)).trim() : problem.detail;
  return (
    <div class="error-box" role="alert">
      <Title class="error-title">
        <Icon name="warning" /> <strong>{problem.title}</strong>
      </Title>
      <p class="error-detail">{detail}</p>
      {problem.remedy && <p class="error-remedy">{problem.remedy}</p>}
      {problem.limit && <p class="dim">Limit: {problem.limit}</p>}
      {problem.status === 404 && <Elsewhere />}
      {incident !== "" && (
        <p class="dim">
          Incident <code>{incident}</code> <Copy text={incident} label="Copy the incident number" />
        </p>
      )}
      {children}
      {onRetry && (
        <Button icon="refresh" local onClick={onRetry}>
          Retry
        </Button>
      )}
    </div>
  );
}

/** Suggests that it may be in another namespace, or deleted. */
function Elsewhere() {
  const here = surroundings.namespace.value;
  const others = surroundings.namespaces.value.filter((name) => name !== here);
  const retention = surroundings.retention.value;
  return (
    <>
      <p>
        Searched in the namespace <strong>{here}</strong>.{" "}
        {retention || "Ended runs are deleted after their retention period."}
      </p>
      {others.length > 0 && (
        <p class="row">
          Look in{" "}
          {others.slice(0, 20).map((name) => (
            <A key={name} class="chip" href={surroundings.inNamespace(name)}>
              {name}
            </A>
          ))}
        </p>
      )}
    </>
  );
}
