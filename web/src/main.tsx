import { computed, effect } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { asking, connection } from "./api/live";
import { LoginPage } from "./pages/login";
import { RunsPage } from "./pages/runs";
import { Frame } from "./shell/frame";
import { askInboxCount } from "./shell/inbox-count";
import { loadNamespaces } from "./shell/namespaces";
import { Later } from "./shell/later";
import { findPage, type PageRoute } from "./shell/routes";
import { ShortLinkPage } from "./shell/short-link";
import { minuteNow, secondNow } from "./state/clock";
import { prefs } from "./state/prefs";
import { go, href, namespace, patched, route } from "./state/route";
import { loadServer, loadSession, session } from "./state/session";
import { A } from "./ui/a";
import { Empty } from "./ui/empty";
import { onKey } from "./ui/shortcuts";
import { surroundings } from "./ui/surroundings";

declare const KAGZI_BUILD: string;

const later = new Later<typeof import("./pages")>((attempt) => {
  if (KAGZI_BUILD === "") return import("./pages");
  const address = new URL(`./pages.js?v=${KAGZI_BUILD}&attempt=${attempt}`, import.meta.url).href;
  return import(address) as Promise<typeof import("./pages")>;
});

const PAGES: readonly PageRoute[] = [
  { pattern: "/runs", page: RunsPage, title: "Runs", section: "runs" },
  { pattern: "/runs/:run", page: later.page("RunPage"), title: "Run", section: "runs" },
  { pattern: "/runs/:a/compare/:b", page: later.page("ComparePage"), title: "Compare", section: "runs" },
  { pattern: "/runs/:a/compare", page: later.page("ComparePage"), title: "Compare", section: "runs" },
  { pattern: "/r/:prefix", page: ShortLinkPage, title: "Run", section: "runs" },
  { pattern: "/workflows", page: later.page("WorkflowsPage"), title: "Workflows", section: "workflows" },
  { pattern: "/workflows/:type", page: later.page("WorkflowPage"), title: "Workflow", section: "workflows" },
  { pattern: "/workflows/:type/start", page: later.page("StartPage"), title: "Start", section: "workflows" },
  { pattern: "/schedules", page: later.page("SchedulesPage"), title: "Schedules", section: "schedules" },
  { pattern: "/schedules/:schedule", page: later.page("SchedulePage"), title: "Schedule", section: "schedules" },
  { pattern: "/workers", page: later.page("WorkersPage"), title: "Workers", section: "workers" },
  { pattern: "/workers/:worker", page: later.page("WorkerPage"), title: "Worker", section: "workers" },
  { pattern: "/inbox", page: later.page("InboxPage"), title: "Inbox", section: "inbox" },
  { pattern: "/operations", page: later.page("OperationsPage"), title: "Operations", section: "operations" },
  { pattern: "/operations/:operation", page: later.page("OperationPage"), title: "Operation", section: "operations" },
  { pattern: "/settings", page: later.page("SettingsPage"), title: "Settings", section: "settings" },
  { pattern: "/login", page: LoginPage, title: "Log in", section: "" },
];

const INBOX_S = 5;
const SERVER_S = 60;
const SESSION_S = 5;
const atLogin = computed(() => route.value.segments[0] === "login");

function App() {
  const { segments } = route.value;
  const page = findPage(PAGES, segments);
  const login = atLogin.value;
  const known = session.value !== null;
  useEffect(() => (login || !known ? undefined : askAround()), [login, known, namespace.value]);
  const Page = page?.page ?? NotFoundPage;
  const name = segments.length > 1 ? `${segments[1]} · ${page?.title ?? ""}` : (page?.title ?? "Not found");
  return (
    <Frame section={page?.section ?? ""} title={name} bare={login}>
      <Page />
    </Frame>
  );
}

/** Loads what the frame shows of the server, after the page has requested its own data. */
function askAround(): () => void {
  const stops: (() => void)[] = [];
  const timer = setTimeout(() => {
    void loadNamespaces().catch(() => {}); // the namespace menu then contains only the current one
    stops.push(asking(INBOX_S, askInboxCount), asking(SERVER_S, loadServer));
  }, 200);
  return () => {
    clearTimeout(timer);
    for (const stop of stops) stop();
  };
}

function NotFoundPage() {
  return (
    <Empty title="Page not found">
      <p>
        The dashboard has no page <code>{route.value.path}</code>. Go to <A href={href("/runs")}>all runs</A>, or
        press <kbd>Ctrl</kbd>+<kbd>K</kbd> to search.
      </p>
    </Empty>
  );
}

function connectState(): void {
  surroundings.go = go;
  surroundings.second = secondNow;
  surroundings.minute = minuteNow;
  surroundings.namespace = namespace;
  surroundings.inNamespace = (name) => {
    const query = patched(route.peek().query, { namespace: name });
    return href(route.peek().path, query);
  };
  effect(() => {
    const { theme, density, zone, singleKeys } = prefs.value;
    const root = document.documentElement;
    if (theme === "system") delete root.dataset["theme"];
    else root.dataset["theme"] = theme;
    root.dataset["density"] = density;
    surroundings.zone.value = zone;
    surroundings.singleKeys.value = singleKeys;
  });
  effect(() => {
    surroundings.offline.value = connection.value.state === "lost";
  });
}

connectState();
document.addEventListener("keydown", onKey);
// The client redirects to /login without a session; without a response the frame says so and retries.
effect(() => (session.value !== null || atLogin.value ? undefined : asking(SESSION_S, loadSession)));
later.loadAtFirstUse();
effect(() => {
  if (route.value.segments.length === 0) go(href("/runs", route.value.query), { replace: true }); // before anything is rendered
});
const root = document.getElementById("app");
if (root) render(<App />, root);
