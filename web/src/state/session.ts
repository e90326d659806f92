import { signal, type Signal } from "@preact/signals";
import { api, forgetAnswers, place } from "../api/client";
import type { ServerView, SessionView } from "../api/types";
import { learnTime } from "./clock";
import { go, href, namespace, route } from "./route";

export type Scope = "read" | "client" | "worker" | "admin";

/** Null: not loaded yet. If no keys are required, the page itself says so, which saves a request. */
export const session: Signal<SessionView | null> = signal(asksForKeys() ? null : everybody());
export const server: Signal<ServerView | null> = signal(null);

const INCLUDES: Readonly<Record<string, readonly Scope[]>> = {
  read: ["read"],
  client: ["client", "read"],
  worker: ["worker"],
  admin: ["read", "client", "worker", "admin"],
};

/** Whether the caller's key has this scope, in the current namespace or in `within`. What it lacks is not rendered; the
 * server refuses it anyway. While the key is unknown, nothing is allowed. */
export function can(scope: Scope, within: string = namespace.value): boolean {
  return allows(session.value, scope, within);
}

export function allows(who: SessionView | null, scope: Scope, within: string): boolean {
  if (who === null) return false;
  if (who.auth === "off") return true;
  if (who.namespace !== "*" && who.namespace !== within) return false;
  return who.scopes.some((each) => INCLUDES[each]?.includes(scope) ?? false);
}

function asksForKeys(): boolean {
  if (typeof document === "undefined") return true;
  return document.querySelector<HTMLMetaElement>("meta[name=kagzi-auth]")?.content !== "off";
}

function everybody(): SessionView {
  return { auth: "off", key_id: "", name: "", namespace: "*", scopes: [], expires_at: null };
}

export async function loadSession(): Promise<void> {
  session.value = await api.get<SessionView>("/session");
}

/** Also learns the server's clock. */
export async function loadServer(): Promise<void> {
  const asked = Date.now();
  const facts = await api.get<ServerView>("/server");
  learnTime(Date.parse(facts.now), asked, Date.now());
  server.value = facts;
}

/** Throws Problem if the key is not valid. */
export async function login(key: string): Promise<void> {
  session.value = await api.send<SessionView>("POST", "/session", { key });
  forgetAnswers();
}

export async function logout(): Promise<void> {
  await api.send<void>("DELETE", "/session");
  session.value = null;
  forgetAnswers();
  go(href("/login"));
}

/** Where to continue after the login: only a page of this dashboard. */
export function returnPath(next: string | null): string {
  return next !== null && /^\/(?![/\\])/.test(next) && !next.startsWith("/login") ? next : "/runs";
}

place.namespace = () => namespace.peek();
place.unauthorized = () => {
  const at = route.peek();
  if (at.segments[0] === "login") return;
  session.value = null;
  const query = at.query.toString();
  go(href("/login", { next: `${at.path}${query ? `?${query}` : ""}` }), { replace: true });
};
