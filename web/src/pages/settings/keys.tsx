import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { KeyView, MadeKey, Paged } from "../../api/types";
import { msOrNull } from "../../model/times";
import { useResource } from "../../state/resource";
import { namespace, route, setQuery } from "../../state/route";
import { can } from "../../state/session";
import { Badge } from "../../ui/badge";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { Empty } from "../../ui/empty";
import { Loaded } from "../../ui/loaded";
import { Menu } from "../../ui/menu";
import { Pages } from "../../ui/pages";
import { Since, Time } from "../../ui/time";
import { serverNow } from "../../state/clock";
import { NewKeyDialog, RevokeDialog, RotateDialog } from "./key-dialogs";

type Open = { readonly what: "new" | "rotate" | "revoke"; readonly of: KeyView | null } | null;

export function KeysTab() {
  const query = route.value.query;
  const everywhere = query.get("keys") === "all" && can("admin", "*");
  const token = query.get("token");
  const within = everywhere ? "*" : namespace.value;
  const [open, setOpen] = useState<Open>(null);
  const [made, setMade] = useState<MadeKey | null>(null);
  const shown = useResource(
    (abort) => api.get<Paged<KeyView>>("/keys", { token, size: 50 }, { abort, namespace: within }),
    [within, token],
  );
  const close = (): void => setOpen(null);
  const onMade = (key: MadeKey): void => {
    close();
    setMade(key);
    shown.reload();
  };
  return (
    <>
      <div class="row section">
        <Chip selected={!everywhere} onClick={() => setQuery({ keys: null, token: null })}>
          {namespace.value}
        </Chip>
        {can("admin", "*") && (
          <Chip selected={everywhere} onClick={() => setQuery({ keys: "all", token: null })}>
            all namespaces
          </Chip>
        )}
        <Button kind="primary" icon="key" onClick={() => setOpen({ what: "new", of: null })}>
          New key
        </Button>
      </div>
      <Loaded of={shown}>
        {(page) => (
          <>
            {page.rows.length === 0 ? <NoKeys /> : <Table rows={page.rows} onOpen={setOpen} />}
            <Pages next={page.next} prev={page.prev} onToken={(to) => setQuery({ token: to })} />
          </>
        )}
      </Loaded>
      {open?.what === "new" && <NewKeyDialog within={within} onClose={close} onMade={onMade} />}
      {open?.what === "rotate" && open.of && (
        <RotateDialog of={open.of} within={within} onClose={close} onMade={onMade} />
      )}
      {open?.what === "revoke" && open.of && (
        <RevokeDialog of={open.of} within={within} onClose={close} onDone={shown.reload} />
      )}
      {made && <Secret made={made} onClose={() => setMade(null)} />}
    </>
  );
}

function NoKeys() {
  return (
    <Empty title="No keys" command="kagzi keys create ci --scope client">
      <p>A server started with --auth keys requires one. Create one here, or with:</p>
    </Empty>
  );
}

/** The secret cannot be shown again: the server only stores its digest. */
function Secret({ made, onClose }: { readonly made: MadeKey; readonly onClose: () => void }) {
  return (
    <Dialog
      title={`Key ${made.name}`}
      onClose={onClose}
      actions={
        <Button kind="primary" local onClick={onClose}>
          I have saved it
        </Button>
      }
    >
      <div class="stack">
        <p>This key is shown only once. Save it now.</p>
        <div class="code-block">
          <pre>
            <code data-secret>{made.secret}</code>
          </pre>
          <Copy text={made.secret} label="Copy key" />
        </div>
      </div>
    </Dialog>
  );
}

function Table({ rows, onOpen }: { readonly rows: readonly KeyView[]; readonly onOpen: (open: Open) => void }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Scopes</th>
          <th scope="col">Status</th>
          <th scope="col">Created</th>
          <th scope="col">Last used</th>
          <th scope="col">Expires</th>
          <th scope="col">Actions</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Row key={row.key_id} row={row} onOpen={onOpen} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ row, onOpen }: { readonly row: KeyView; readonly onOpen: (open: Open) => void }) {
  const [used, expires] = [msOrNull(row.last_used_at), msOrNull(row.expires_at)];
  const good = row.revoked_at === null && (expires === null || expires > serverNow());
  return (
    <tr>
      <td data-label="Name">
        <span>
          {row.name} <code class="dim">{row.key_id}</code>
        </span>
      </td>
      <td data-label="Scopes">{row.scopes.join(", ")}</td>
      <td data-label="Status">
        {good ? (
          <Badge state="completed" word="valid" />
        ) : (
          <Badge state="cancelled" word={row.revoked_at ? "revoked" : "expired"} />
        )}
      </td>
      <td data-label="Created">
        <Since ms={msOrNull(row.created_at) ?? 0} />
      </td>
      <td data-label="Last used">{used === null ? <span class="dim">never</span> : <Since ms={used} />}</td>
      <td data-label="Expires">{expires === null ? <span class="dim">never</span> : <Time ms={expires} />}</td>
      <td data-label="Actions">
        {good && (
          <Menu
            label={`Actions for ${row.name}`}
            icon="menu"
            iconOnly
            kind="quiet"
            align="end"
            items={[
              { label: "Rotate…", hint: "Replace its secret", onSelect: () => onOpen({ what: "rotate", of: row }) },
              { label: "Revoke…", danger: true, onSelect: () => onOpen({ what: "revoke", of: row }) },
            ]}
          />
        )}
      </td>
    </tr>
  );
}
