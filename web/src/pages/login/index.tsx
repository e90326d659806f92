import { useState } from "preact/hooks";
import { asProblem, type Problem } from "../../api/client";
import { addressFrom, DEFAULT_NAMESPACE, go, href, route } from "../../state/route";
import { login, returnPath, session } from "../../state/session";
import { Button } from "../../ui/button";
import { ErrorBox } from "../../ui/error-box";
import { Field, TextInput } from "../../ui/field";

/** Logs a browser in with a key, once. The session is a cookie that scripts cannot read. */
export function LoginPage() {
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (busy || key.trim() === "") return;
    setBusy(true);
    setProblem(null);
    try {
      await login(key.trim());
      goOn();
    } catch (error) {
      const failed = asProblem(error);
      // a server that requires no keys has no login
      if (failed.code === "precondition_failed") goOn();
      else setProblem(failed);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="login">
      <form class="card stack" onSubmit={(event) => void submit(event)}>
        <h1>Log in to Kagzi</h1>
        <Field label="API key" help="Sent once. You stay logged in for 12 hours.">
          <TextInput
            type="password"
            value={key}
            onText={setKey}
            mono
            autoFocus
            autoComplete="current-password"
            required
          />
        </Field>
        {problem && <ErrorBox problem={problem} />}
        <Button kind="primary" type="submit" busy={busy}>
          Log in
        </Button>
        <p class="dim">
          Create a key for the dashboard: <code class="nowrap">kagzi keys create me --scope client</code>
        </p>
      </form>
    </div>
  );
}

/** Continues to the requested page, in a namespace that the key covers. */
function goOn(): void {
  const next = new URL(returnPath(route.peek().query.get("next")), location.origin);
  const own = session.peek()?.namespace ?? "*";
  if (own !== "*" && own !== (next.searchParams.get("namespace") ?? DEFAULT_NAMESPACE)) {
    next.searchParams.set("namespace", own);
  }
  const base = addressFrom(href("/", { namespace: DEFAULT_NAMESPACE }), next.pathname, [...next.searchParams]);
  go(base, { replace: true });
}
