import { useState } from "preact/hooks";
import { base } from "../../api/client";
import { asCli, asCurl, asPython, type Snippet } from "../../model/snippets";
import { namespace } from "../../state/route";
import { session } from "../../state/session";
import { CodeBlock } from "../../ui/code-block";
import { Tabs } from "../../ui/tabs";

const TABS = [
  { id: "cli", label: "CLI" },
  { id: "curl", label: "curl" },
  { id: "python", label: "Python" },
];

/** The same action from a shell and from code. */
export function Snippets({ of }: { readonly of: Snippet }) {
  const [tab, setTab] = useState("cli");
  const place = {
    origin: `${location.origin}${base.replace(/\/$/, "")}`,
    namespace: namespace.value,
    keys: session.value !== null && session.value.auth !== "off",
  };
  const text = tab === "curl" ? asCurl(of, place) : tab === "python" ? asPython(of, place) : asCli(of, place);
  return (
    <details class="card">
      <summary>As CLI, curl or Python</summary>
      <Tabs tabs={TABS} active={tab} onSelect={setTab} label="Language">
        <CodeBlock text={text} copy label={TABS.find((each) => each.id === tab)?.label ?? "Code"} />
      </Tabs>
    </details>
  );
}
