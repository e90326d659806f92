import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { KeyView, MadeKey } from "../../api/types";
import { parseDuration } from "../../model/durations";
import { toUtc } from "../../model/times";
import { serverNow } from "../../state/clock";
import { notice } from "../../state/notices";
import { segment } from "../../state/route";
import { ConfirmDialog } from "../../ui/dialog";
import { Checkbox, Field, TextInput } from "../../ui/field";

type Scope = KeyView["scopes"][number];

const SCOPES: readonly { readonly scope: Scope; readonly what: string }[] = [
  { scope: "read", what: "read: view runs, schedules, workers and everything else" },
  { scope: "client", what: "client: start, signal, cancel and change runs and schedules; includes read" },
  { scope: "worker", what: "worker: execute runs and report their results" },
  { scope: "admin", what: "admin: change workflow types, limits, namespaces and keys; includes all other scopes" },
];

interface NewKeyProps {
  readonly within: string;
  readonly onClose: () => void;
  readonly onMade: (key: MadeKey) => void;
}

export function NewKeyDialog({ within, onClose, onMade }: NewKeyProps) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["client"]);
  const [lasts, setLasts] = useState("");
  const lastsMs = lasts.trim() === "" ? 0 : parseDuration(lasts);
  const make = async (key: string): Promise<void> => {
    const expires_at = lastsMs ? toUtc(serverNow() + lastsMs) : null;
    onMade(
      await api.send<MadeKey>("POST", "/keys", { name: name.trim(), scopes, expires_at }, { key, namespace: within }),
    );
  };
  return (
    <ConfirmDialog
      title="New key"
      verb="Create"
      onConfirm={make}
      onClose={onClose}
      disabled={name.trim() === "" || scopes.length === 0 || lastsMs === null}
      touches={within === "*" ? "Valid in every namespace, including future ones." : `Valid in the namespace ${within}.`}
    >
      <Field label="Name" help="Who or what uses it." required>
        <TextInput value={name} onText={setName} required />
      </Field>
      <fieldset class="fields">
        <legend>Scopes</legend>
        {SCOPES.map(({ scope, what }) => (
          <Checkbox
            key={scope}
            checked={scopes.includes(scope)}
            onCheck={(on) => setScopes(on ? [...scopes, scope] : scopes.filter((each) => each !== scope))}
          >
            {what}
          </Checkbox>
        ))}
      </fieldset>
      <Field
        label="Valid for"
        help="Example: 90d. Leave empty for no expiry."
        error={lastsMs === null ? "Enter a duration, such as 90d." : null}
      >
        <TextInput value={lasts} onText={setLasts} />
      </Field>
    </ConfirmDialog>
  );
}

export function RotateDialog({ of, within, onClose, onMade }: NewKeyProps & { readonly of: KeyView }) {
  const [grace, setGrace] = useState("1h");
  const rotate = async (key: string): Promise<void> => {
    const body = grace.trim() === "" ? {} : { grace: grace.trim() };
    onMade(await api.send<MadeKey>("POST", `/keys/${segment(of.key_id)}/rotate`, body, { key, namespace: within }));
  };
  return (
    <ConfirmDialog
      title={`Rotate ${of.name}?`}
      verb="Rotate"
      onConfirm={rotate}
      onClose={onClose}
      touches="The key gets a new secret, which is shown once. Replace the old secret before the grace period ends."
    >
      <Field label="Grace period" help="How long the old secret stays valid. Leave empty to end it now.">
        <TextInput value={grace} onText={setGrace} />
      </Field>
    </ConfirmDialog>
  );
}

interface RevokeProps {
  readonly of: KeyView;
  readonly within: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function RevokeDialog({ of, within, onClose, onDone }: RevokeProps) {
  const revoke = async (key: string): Promise<void> => {
    await api.send("DELETE", `/keys/${segment(of.key_id)}`, {}, { key, namespace: within });
    notice(`Revoked ${of.name}`);
    onClose();
    onDone();
  };
  return (
    <ConfirmDialog
      title={`Revoke ${of.name}?`}
      verb="Revoke"
      danger
      onConfirm={revoke}
      onClose={onClose}
      touches={
        <p>
          Within 10 s every server refuses <strong>{of.name}</strong> ({of.scopes.join(", ")}) and closes what it has
          open. This cannot be undone.
        </p>
      }
    />
  );
}
