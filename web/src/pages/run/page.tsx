// /runs/{run}: the state of a run and its reason, its steps, and the possible actions.
import { useEffect, useMemo } from "preact/hooks";
import { asProblem } from "../../api/client";
import { prefs } from "../../state/prefs";
import { go, href, route, setQuery } from "../../state/route";
import { RunStore } from "../../state/run-store";
import { ErrorBox } from "../../ui/error-box";
import { Skeleton } from "../../ui/skeleton";
import { Split } from "../../ui/split";
import { Tabs } from "../../ui/tabs";
import { closeDialog, Dialogs } from "./dialogs";
import { Header } from "./header";
import { History } from "./history";
import { Inspector } from "./inspector";
import { RunState } from "./run-state";
import { RunValues } from "./run-values";
import { useSelection } from "./selection";
import { Timeline } from "./timeline";
import { view } from "./view";
import { Why } from "./why";
import { ForgottenSteps } from "../../state/forgotten-steps";
import { ChildRuns } from "../../state/run-children";

export function RunPage() {
  const name = route.value.segments[1];
  return <OneRun key={name} runId={name ?? ""} />;
}

function OneRun({ runId }: { runId: string }) {
  const store = useMemo(() => new RunStore(runId), [runId]);
  const children = useMemo(() => new ChildRuns(), [runId]);
  const forgotten = useMemo(() => new ForgottenSteps(runId), [runId]);
  useEffect(() => {
    void store.open(view.peek().within === null ? view.peek().step : null);
    return () => {
      store.close();
      children.close();
      closeDialog();
    };
  }, [store]);
  const run = store.run.value;
  const problem = store.problem.value;
  useEffect(() => {
    // a link with a workflow id leads to the latest run
    if (run !== null && run.run_id !== runId) go(href(`/runs/${run.run_id}`, route.peek().query), { replace: true });
  }, [run?.run_id]);
  if (run === null) {
    if (problem !== null) return <ErrorBox page problem={asProblem(problem)} onRetry={() => void store.open(null)} />;
    return <Skeleton rows={8} />;
  }
  return <Loaded store={store} childRuns={children} forgotten={forgotten} />;
}

function Loaded(props: { store: RunStore; childRuns: ChildRuns; forgotten: ForgottenSteps }) {
  const { store, childRuns, forgotten } = props;
  const run = store.run.value;
  const selection = useSelection(store, childRuns, forgotten);
  const { page } = view.value;
  if (run === null) return null;
  const own = selection !== null && selection.runId === run.run_id && selection.retrySeq === null ? selection.row : null;
  const problem = store.problem.value;
  const tabs = [
    { id: "timeline", label: "Timeline" },
    { id: "history", label: "History" },
    { id: "values", label: "Input and result" },
  ];
  return (
    <div class="run-page">
      <Header store={store} selected={own} />
      <Why store={store} />
      <RunState run={run} />
      {problem !== null ? <ErrorBox problem={asProblem(problem)} onRetry={() => void store.reload()} /> : null}
      <Tabs
        tabs={tabs}
        active={page}
        label="About the run"
        onSelect={(id) => setQuery({ view: id === "timeline" ? null : id })}
      />
      <Split
        label="the step"
        width={prefs.value.inspector}
        onWidth={(inspector) => (prefs.value = { ...prefs.value, inspector })}
        main={
          page === "history" ? (
            <History store={store} />
          ) : page === "values" ? (
            <RunValues run={run} />
          ) : (
            <Timeline store={store} run={run} childRuns={childRuns} forgotten={forgotten} />
          )
        }
        side={
          selection !== null ? (
            <Inspector
              key={`${selection.runId}/${selection.retrySeq}/${selection.row.step_id}`}
              store={store}
              selection={selection}
            />
          ) : null
        }
      />
      <p class="key-hints dim" aria-hidden="true">
        <kbd>j</kbd> <kbd>k</kbd> step · <kbd>!</kbd> next failure · <kbd>/</kbd> filter · <kbd>r</kbd> rerun ·{" "}
        <kbd>?</kbd> all keys
      </p>
      <Dialogs store={store} run={run} />
    </div>
  );
}
