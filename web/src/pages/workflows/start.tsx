import { useMemo, useRef, useState } from "preact/hooks";
import { api, asProblem, newKey, type Problem } from "../../api/client";
import type { SchemaView, StartedView, WholeRunView, WorkflowTypeView } from "../../api/types";
import { checkSyntax, joinEnvelope, pretty, RawJson } from "../../model/json-text";
import { type Field, fieldsOf } from "../../model/schema-form";
import { notice } from "../../state/notices";
import { useResource } from "../../state/resource";
import { go, href, namespace, route, segment, setQuery } from "../../state/route";
import { can } from "../../state/session";
import { A } from "../../ui/a";
import { Button } from "../../ui/button";
import { Empty } from "../../ui/empty";
import { ErrorBox } from "../../ui/error-box";
import { JsonEditor } from "../../ui/json-editor";
import { Loaded } from "../../ui/loaded";
import { SchemaForm } from "../../ui/schema-form";
import { Tabs } from "../../ui/tabs";
import {
  bodyOf,
  type Draft,
  errorsOf,
  firstDraft,
  NO_OPTIONS,
  type Options,
  serverError,
  snippetOf,
  withForm,
  withText,
} from "./draft";
import { OptionFields } from "./options";
import { textOf } from "./schema-tab";
import { Snippets } from "./snippets";

/** Starts a run: a form for the workflow's input, and the same as JSON. */
export function StartPage() {
  const workflow = route.value.segments[1] ?? "";
  const version = route.value.query.get("version") ?? "";
  const from = route.value.query.get("from");
  const path = `/workflows/${segment(workflow)}`;
  const shown = useResource<Shown>(
    async (abort) => {
      const raw = ["input_schema", "output_schema"];
      const [schema, type, input] = await Promise.all([
        api.get<SchemaView>(`${path}/schema`, { version: version || null }, { abort, raw }),
        api.get<WorkflowTypeView>(path, {}, { abort }),
        from === null ? null : inputOf(from, abort),
      ]);
      return { schema, type, input };
    },
    [path, version, from, namespace.value],
  );
  // keeps what was typed when the version, and so the schema, changes
  const typed = useRef<Typed | null>(null);
  return (
    <>
      <div class="page-head">
        <h1>
          Start <A href={href(path)}>{workflow}</A>
        </h1>
      </div>
      {can("client") ? (
        <Loaded of={shown}>
          {({ schema, type, input }) => (
            <StartForm
              key={`${workflow} ${textOf(schema.input_schema)}`}
              workflow={workflow}
              version={version}
              schema={schema}
              type={type}
              input={input}
              typed={typed}
            />
          )}
        </Loaded>
      ) : (
        <Empty title="This key cannot start runs">
          <p>Starting runs needs the client scope.</p>
        </Empty>
      )}
    </>
  );
}

interface Shown {
  readonly schema: SchemaView;
  readonly type: WorkflowTypeView;
  /** Of the run to start again, as JSON; null: a new one. */
  readonly input: string | null;
}

async function inputOf(runId: string, abort: AbortSignal): Promise<string | null> {
  const run = await api.get<WholeRunView>(`/runs/${segment(runId)}`, {}, { abort, raw: ["input"] });
  return run.input instanceof RawJson ? pretty(run.input.text) : null;
}

interface Typed {
  readonly workflow: string;
  /** Null: nothing was typed. */
  readonly text: string | null;
  readonly options: Options;
}

interface StartFormProps extends Shown {
  readonly workflow: string;
  readonly version: string;
  readonly typed: { current: Typed | null };
}

function StartForm({ workflow, version, schema, type, input, typed }: StartFormProps) {
  const field = useMemo(() => fieldsOf(textOf(schema.input_schema)), []);
  const before = useMemo(() => (typed.current?.workflow === workflow ? typed.current : null), []);
  const [draft, setDraft] = useState<Draft>(() => draftFrom(field, before?.text ?? input));
  const [options, setOptions] = useState<Options>(before?.options ?? NO_OPTIONS);
  typed.current = { workflow, text: draft.text === firstDraft(field).text ? null : draft.text, options };
  const [asked, setAsked] = useState(false);
  const { busy, problem, send } = useStart(workflow);
  const named = problem && serverError(problem);
  const errors = [...errorsOf(field, draft, asked), ...(named ? [named] : [])];
  const syntax = checkSyntax(draft.text);
  const submit = (event: Event): void => {
    event.preventDefault();
    setAsked(true);
    if (checkSyntax(draft.text) !== null || errorsOf(field, draft, true).length > 0) return focusFirstError();
    void send(bodyOf(workflow, version, draft, options));
  };
  const known = errorsOf(field, draft, true);
  return (
    <form class="start stack" onSubmit={submit} noValidate>
      {schema.description && <p class="workflow-description">{schema.description}</p>}
      <Input field={field} draft={draft} errors={errors} onDraft={setDraft} />
      <OptionFields options={options} version={version} type={type} onOptions={setOptions} />
      {problem && <ErrorBox problem={problem} />}
      {asked && known.length > 0 && (
        <p class="field-error" role="status">
          {known.length === 1 ? "A field needs" : `${known.length} fields need`} a different value.
        </p>
      )}
      <p class="row">
        <Button kind="primary" type="submit" icon="play" busy={busy}>
          Start
        </Button>
        {asked && known.length > 0 && syntax === null && (
          // code may accept more than its schema says; the server decides
          <Button onClick={() => void send(bodyOf(workflow, version, draft, options))}>Start anyway</Button>
        )}
      </p>
      <Snippets of={snippetOf(workflow, version, draft, options)} />
    </form>
  );
}

function draftFrom(field: Field, text: string | null): Draft {
  const first = firstDraft(field);
  return text === null ? first : withText(field, first, text);
}

interface InputProps {
  readonly field: Field;
  readonly draft: Draft;
  readonly errors: readonly { readonly path: string; readonly message: string }[];
  readonly onDraft: (change: (was: Draft) => Draft) => void;
}

/** The form and the JSON tab share one state. */
function Input({ field, draft, errors, onDraft }: InputProps) {
  const formless = field.kind === "json";
  const tab = route.value.query.get("tab") === "json" || formless ? "json" : "form";
  const syntax = checkSyntax(draft.text);
  const tabs = [
    ...(formless ? [] : [{ id: "form", label: "Form" }]),
    { id: "json", label: "JSON" },
  ];
  const first = errors[0];
  return (
    <section aria-label="Input">
      <Tabs
        tabs={tabs}
        active={tab}
        label="Input format"
        onSelect={(id) => setQuery({ tab: id === "json" ? "json" : null }, { replace: true })}
      >
        {tab === "form" ? (
          <>
            {draft.behind && (
              <p class="field-error">The JSON is not complete, and the form shows what was there before: {syntax}</p>
            )}
            {field.kind === "null" ? (
              <p class="dim">This workflow takes no input.</p>
            ) : (
              <SchemaForm
                field={field}
                value={draft.form}
                errors={errors}
                label="input"
                onChange={(form) => onDraft(() => withForm(field, form))}
              />
            )}
          </>
        ) : (
          <JsonEditor
            label="Input as JSON"
            text={draft.text}
            rows={Math.min(30, Math.max(8, draft.text.split("\n").length + 1))}
            onText={(text) => onDraft((was) => withText(field, was, text))}
            error={first ? `${first.path ? `${first.path}: ` : ""}${first.message}` : null}
          />
        )}
      </Tabs>
    </section>
  );
}

function focusFirstError(): void {
  requestAnimationFrame(() => document.querySelector<HTMLElement>(".start [aria-invalid=true]")?.focus());
}

/** Sends a start once: with the same key if the response was lost, with a new key after an edit. */
function useStart(workflow: string) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const acting = useRef(false);
  const sent = useRef({ body: "", key: "" });
  const send = async (body: Record<string, unknown>): Promise<void> => {
    if (acting.current) return;
    acting.current = true;
    setBusy(true);
    setProblem(null);
    const text = joinEnvelope(body);
    if (sent.current.body !== text) sent.current = { body: text, key: newKey() };
    try {
      const started = await api.send<StartedView>("POST", "/runs", body, { key: sent.current.key });
      const page = href(`/runs/${segment(started.run_id)}`);
      if (!started.created) notice(`${started.workflow_id} already exists`, { href: page });
      else notice(started.warning ?? `Started ${workflow}`, { href: page });
      go(page);
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      acting.current = false;
      setBusy(false);
    }
  };
  return { busy, problem, send };
}
