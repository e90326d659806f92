import { href, namespace, route } from "../state/route";
import { prefs, setPrefs } from "../state/prefs";
import { logout, session } from "../state/session";
import { A } from "../ui/a";
import { Button } from "../ui/button";
import { Menu } from "../ui/menu";
import { Keys } from "../ui/shortcuts";
import { surroundings } from "../ui/surroundings";
import { inboxCount, shownCount } from "./inbox-count";
import { SECTIONS } from "./sections";

/** The header of the frame: the current section, links and the search. */
export function Navigation({ section, onSearch }: { readonly section: string; readonly onSearch: () => void }) {
  return (
    <header class="head">
      <A class="brand" href={href("/runs")}>
        kagzi
      </A>
      <nav class="nav" aria-label="Pages">
        {SECTIONS.map((each) => (
          <A key={each.id} class="nav-link" href={href(each.path)} current={each.id === section}>
            <span class="nav-word" data-word={each.label}>
              {each.label}
            </span>
            {each.id === "inbox" && <InboxCount />}
          </A>
        ))}
      </nav>
      <div class="head-tools">
        <NamespaceMenu />
        <Button local icon="search" class="search-button" onClick={onSearch} title="Search and commands">
          <span class="search-word">Search</span> <Keys keys="Ctrl+k" />
        </Button>
        <ThemeSwitch />
        <SessionMenu />
      </div>
    </header>
  );
}

function InboxCount() {
  const waiting = inboxCount.value;
  if (waiting === 0) return null;
  return (
    <span class="nav-count" title={`${shownCount(waiting)} waiting for a person`}>
      <span aria-hidden="true">{shownCount(waiting)}</span>
      <span class="visually-hidden">, {shownCount(waiting)} waiting</span>
    </span>
  );
}

function NamespaceMenu() {
  const here = namespace.value;
  const names = new Set([here, ...surroundings.namespaces.value]);
  const section = route.value.segments[0] ?? "runs";
  const items = [...names].map((name) => ({
    label: name,
    href: href(`/${section}`, { namespace: name }),
    ...(name === here ? { icon: "check" as const, hint: "shown" } : {}),
  }));
  return <Menu kind="quiet" label={here} items={items} align="end" />;
}

const THEMES = { system: "light", light: "dark", dark: "system" } as const;
const THEME_WORDS = { system: "system", light: "light", dark: "dark" } as const;

function ThemeSwitch() {
  const theme = prefs.value.theme;
  return (
    <Button
      kind="quiet"
      icon="moon"
      label={`Theme: ${THEME_WORDS[theme]}. Switch to ${THEME_WORDS[THEMES[theme]]}.`}
      title={`Theme: ${THEME_WORDS[theme]}`}
      onClick={() => setPrefs({ theme: THEMES[theme] })}
    />
  );
}

function SessionMenu() {
  const who = session.value;
  if (who === null || who.auth === "off") return null;
  return (
    <Menu
      kind="quiet"
      icon="key"
      label={who.name || who.key_id}
      align="end"
      items={[{ label: "Log out", hint: `Scopes: ${who.scopes.join(", ")}`, onSelect: () => void logout() }]}
    />
  );
}
