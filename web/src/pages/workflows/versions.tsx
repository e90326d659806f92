import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Paged, VersionView } from "../../api/types";
import { groupThousands } from "../../model/durations";
import { toMs } from "../../model/times";
import { notice } from "../../state/notices";
import { useResource } from "../../state/resource";
import { href, namespace, route, segment, setQuery } from "../../state/route";
import { can } from "../../state/session";
import { A } from "../../ui/a";
import { Badge } from "../../ui/badge";
import { Button } from "../../ui/button";
import { ConfirmDialog } from "../../ui/dialog";
import { Empty } from "../../ui/empty";
import { Loaded } from "../../ui/loaded";
import { Pages } from "../../ui/pages";
import { Time } from "../../ui/time";

const ASK_S = 5;

type Change = "default" | "deprecate" | "undo" | "highest";

/** The versions of a type: the default for new runs, and deprecated ones. */
export function VersionsTab({ workflow }: { readonly workflow: string }) {
  const token = route.value.query.get("token");
  const path = `/workflows/${segment(workflow)}/versions`;
  const versions = useResource(
    (abort) => api.get<Paged<VersionView>>(path, { token, size: 50 }, { abort }),
    [path, token, namespace.value],
    { every: ASK_S },
  );
  const [asked, setAsked] = useState<{ readonly version: VersionView; readonly change: Change } | null>(null);
  return (
    <Loaded of={versions}>
      {(page) => (
        <>
          {page.rows.length === 0 ? (
            <Empty title="No versions yet" command="kagzi worker app.py">
              <p>Workers register the versions they serve.</p>
            </Empty>
          ) : (
            <Table rows={page.rows} onChange={(version, change) => setAsked({ version, change })} />
          )}
          <Pages next={page.next} prev={page.prev} onToken={(to) => setQuery({ token: to })} />
          {asked && <ChangeDialog {...asked} onClose={() => setAsked(null)} onChanged={versions.reload} />}
        </>
      )}
    </Loaded>
  );
}

interface TableProps {
  readonly rows: readonly VersionView[];
  readonly onChange: (version: VersionView, change: Change) => void;
}

function Table({ rows, onChange }: TableProps) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">Version</th>
          <th scope="col">State</th>
          <th scope="col" class="figure">Open runs</th>
          <th scope="col" class="figure">Workers</th>
          <th scope="col">First seen</th>
          {can("admin") && <th scope="col">Actions</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map((each) => (
          <tr key={each.version}>
            <td data-label="Version">
              <A href={href("/runs", { workflow: each.workflow, version: each.version })}>{each.version}</A>
            </td>
            <td data-label="State">
              <span class="row">
                {each.is_default && <Badge state="completed" word={each.is_set ? "default (set)" : "default"} />}
                {each.deprecated && <Badge state="cancelled" word="deprecated" />}
              </span>
            </td>
            <td data-label="Open runs" class="figure">
              {groupThousands(each.open_runs)}
              {each.open_is_capped && "+"}
            </td>
            <td data-label="Workers" class="figure">{each.workers}</td>
            <td data-label="First seen">
              <Time ms={toMs(each.first_seen_at)} />
            </td>
            {can("admin") && (
              <td data-label="Actions">
                <span class="row">
                  {!each.is_default && <Button onClick={() => onChange(each, "default")}>Make default</Button>}
                  {each.is_set && <Button onClick={() => onChange(each, "highest")}>Clear default</Button>}
                  <Button onClick={() => onChange(each, each.deprecated ? "undo" : "deprecate")}>
                    {each.deprecated ? "Undeprecate" : "Deprecate"}
                  </Button>
                </span>
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const WORDS: Readonly<Record<Change, { readonly title: string; readonly verb: string; readonly touches: string }>> = {
  default: {
    title: "Make this version the default",
    verb: "Make default",
    touches: "New runs that request no version get this one. Existing runs keep theirs.",
  },
  highest: {
    title: "Clear the default",
    verb: "Clear default",
    touches: "New runs that request no version get the highest one that is not deprecated.",
  },
  deprecate: {
    title: "Deprecate this version",
    verb: "Deprecate",
    touches: "It accepts no new runs. Existing runs finish.",
  },
  undo: { title: "Undeprecate this version", verb: "Undeprecate", touches: "It accepts new runs again." },
};

interface ChangeDialogProps {
  readonly version: VersionView;
  readonly change: Change;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

function ChangeDialog({ version, change, onClose, onChanged }: ChangeDialogProps) {
  const { title, verb, touches } = WORDS[change];
  const versions = `/workflows/${segment(version.workflow)}/versions`;
  const one = `${versions}/${segment(version.version)}`;
  const act = async (key: string): Promise<void> => {
    if (change === "highest") await api.send("DELETE", `${versions}/default`, undefined, { key });
    else if (change === "default") await api.send("POST", `${one}/default`, {}, { key });
    else await api.send("POST", `${one}/deprecate`, { undo: change === "undo" }, { key });
    onClose();
    notice(`Changed version ${version.version} of ${version.workflow}`);
    onChanged();
  };
  return (
    <ConfirmDialog
      title={`${title}: ${version.workflow} ${version.version}`}
      verb={verb}
      touches={touches}
      danger={change === "deprecate"}
      onConfirm={act}
      onClose={onClose}
    />
  );
}
