import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { NamespaceView, Paged } from "../../api/types";
import { formatDuration, groupThousands } from "../../model/durations";
import { useResource } from "../../state/resource";
import { href } from "../../state/route";
import { can } from "../../state/session";
import { A } from "../../ui/a";
import { Badge } from "../../ui/badge";
import { Button } from "../../ui/button";
import { Loaded } from "../../ui/loaded";
import { Menu } from "../../ui/menu";
import { DeleteNamespaceDialog, LIMITS, NamespaceForm } from "./namespace-form";

type Open = { readonly what: "new" | "edit" | "delete"; readonly of: NamespaceView | null } | null;

export function NamespacesTab() {
  const [open, setOpen] = useState<Open>(null);
  const shown = useResource((abort) => api.get<Paged<NamespaceView>>("/namespaces", { size: 200 }, { abort }), [], {
    every: 10,
  });
  const close = (): void => setOpen(null);
  const admin = can("admin", "*");
  return (
    <>
      {admin && (
        <p class="row section">
          <Button icon="plus" kind="primary" onClick={() => setOpen({ what: "new", of: null })}>
            New namespace
          </Button>
        </p>
      )}
      <Loaded of={shown}>
        {(page) => (
          <table class="table table-cards">
            <thead>
              <tr>
                <th scope="col">Namespace</th>
                <th scope="col">Status</th>
                <th scope="col">Limits</th>
                <th scope="col">Retention</th>
                <th scope="col">Stored</th>
                {admin && <th scope="col">Actions</th>}
              </tr>
            </thead>
            <tbody>
              {page.rows.map((row) => (
                <tr key={row.namespace}>
                  <td data-label="Namespace">
                    <A href={href("/runs", { namespace: row.namespace })}>{row.namespace}</A>
                  </td>
                  <td data-label="Status">
                    <Status row={row} />
                  </td>
                  <td data-label="Limits">{limitsText(row)}</td>
                  <td data-label="Retention">{retentionText(row)}</td>
                  <td data-label="Stored">{row.stored_bytes === null ? "not measured" : bytes(row.stored_bytes)}</td>
                  {admin && (
                    <td data-label="Actions">
                      <Menu
                        label={`Actions for ${row.namespace}`}
                        icon="menu"
                        iconOnly
                        kind="quiet"
                        align="end"
                        items={[
                          { label: "Edit…", onSelect: () => setOpen({ what: "edit", of: row }) },
                          {
                            label: "Delete…",
                            danger: true,
                            icon: "trash",
                            onSelect: () => setOpen({ what: "delete", of: row }),
                          },
                        ]}
                      />
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
      {open?.what === "new" && <NamespaceForm was={null} onClose={close} onDone={shown.reload} />}
      {open?.what === "edit" && <NamespaceForm was={open.of} onClose={close} onDone={shown.reload} />}
      {open?.what === "delete" && open.of && (
        <DeleteNamespaceDialog was={open.of} onClose={close} onDone={shown.reload} />
      )}
    </>
  );
}

function Status({ row }: { readonly row: NamespaceView }) {
  if (row.deleting) return <Badge state="failed" word="being deleted" />;
  return row.enabled ? <Badge state="completed" word="enabled" /> : <Badge state="paused" word="no new runs" />;
}

function limitsText(row: NamespaceView): string {
  const parts = LIMITS.filter(({ field }) => row[field] !== null).map(
    ({ field, label }) => `${label.toLowerCase()} ${groupThousands(row[field] ?? 0)}`,
  );
  return parts.join(", ") || "none";
}

function retentionText(row: NamespaceView): string {
  const parts = Object.entries(row.retention_seconds).map(([status, s]) => `${status} ${formatDuration(s * 1000)}`);
  return parts.join(", ") || "server default";
}

function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  if (count < 1024 ** 2) return `${Math.round(count / 1024)} KiB`;
  return count < 1024 ** 3 ? `${(count / 1024 ** 2).toFixed(1)} MiB` : `${(count / 1024 ** 3).toFixed(1)} GiB`;
}
