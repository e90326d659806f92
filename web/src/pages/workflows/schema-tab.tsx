import { api } from "../../api/client";
import type { SchemaView } from "../../api/types";
import { RawJson } from "../../model/json-text";
import { msOrNull } from "../../model/times";
import { useResource } from "../../state/resource";
import { namespace, segment } from "../../state/route";
import { Empty } from "../../ui/empty";
import { JsonTree } from "../../ui/json-tree";
import { Loaded } from "../../ui/loaded";
import { Time } from "../../ui/time";

/** The input, output and signals of a type, as its workers registered them. */
export function SchemaTab({ workflow }: { readonly workflow: string }) {
  const path = `/workflows/${segment(workflow)}/schema`;
  const schema = useResource(
    (abort) => api.get<SchemaView>(path, {}, { abort, raw: ["input_schema", "output_schema"] }),
    [path, namespace.value],
  );
  return (
    <Loaded of={schema}>
      {(found) => {
        const since = msOrNull(found.registered_at);
        if (since === null) return <Unknown />;
        return (
          <>
            {found.description && <p class="section workflow-description">{found.description}</p>}
            <p class="dim section">
              Version {found.version}, registered <Time ms={since} />
            </p>
            <div class="grid">
              <Schema title="Input" text={textOf(found.input_schema)} />
              <Schema title="Output" text={textOf(found.output_schema)} />
              {Object.entries(found.signal_schemas).map(([name, each]) => (
                <Schema key={name} title={`Signal ${name}`} text={JSON.stringify(each)} />
              ))}
            </div>
          </>
        );
      }}
    </Loaded>
  );
}

function Unknown() {
  return (
    <Empty title="No schema">
      <p>
        Workers register one for workflows with annotated input, output or signals. Without one, any value is accepted.
      </p>
    </Empty>
  );
}

function Schema({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      {text === "null" ? (
        <p class="dim">No schema. All values are accepted.</p>
      ) : (
        <JsonTree text={text} label={title} />
      )}
    </section>
  );
}

export function textOf(value: unknown): string {
  return value instanceof RawJson ? value.text : JSON.stringify(value ?? null);
}
