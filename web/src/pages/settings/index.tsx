import { route, setQuery } from "../../state/route";
import { can } from "../../state/session";
import { Tabs } from "../../ui/tabs";
import { KeysTab } from "./keys";
import { NamespacesTab } from "./namespaces";
import { PreferencesTab } from "./preferences";
import { ServerTab } from "./server";

/** The settings. Tabs that the key does not permit are hidden. */
export function SettingsPage() {
  const tabs = [
    { id: "preferences", label: "Preferences" },
    { id: "server", label: "Server" },
    ...(can("read", "*") ? [{ id: "namespaces", label: "Namespaces" }] : []),
    ...(can("admin") ? [{ id: "keys", label: "Keys" }] : []),
  ];
  const wanted = route.value.query.get("tab") ?? "preferences";
  const active = tabs.some((tab) => tab.id === wanted) ? wanted : "preferences";
  return (
    <>
      <div class="page-head">
        <h1>Settings</h1>
      </div>
      <Tabs
        tabs={tabs}
        active={active}
        label="Settings"
        onSelect={(tab) => setQuery({ tab: tab === "preferences" ? null : tab })}
      >
        {active === "preferences" && <PreferencesTab />}
        {active === "server" && <ServerTab />}
        {active === "namespaces" && <NamespacesTab />}
        {active === "keys" && <KeysTab />}
      </Tabs>
    </>
  );
}
