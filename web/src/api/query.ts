export type QueryValue = string | number | boolean | readonly (string | number)[] | null | undefined;

/** Parameters of a request or an address. Null and undefined are left out; lists are repeated. */
export type Query = Readonly<Record<string, QueryValue>> | readonly (readonly [string, string])[] | URLSearchParams;

export function pairsOf(query: Query | undefined): [string, string][] {
  if (query === undefined) return [];
  if (query instanceof URLSearchParams) return [...query.entries()];
  if (Array.isArray(query))
    return (query as readonly (readonly [string, string])[]).map(([name, value]) => [name, value]);
  const pairs: [string, string][] = [];
  for (const [name, value] of Object.entries(query as Readonly<Record<string, QueryValue>>)) {
    if (value === null || value === undefined) continue;
    for (const each of Array.isArray(value) ? value : [value]) pairs.push([name, String(each)]);
  }
  return pairs;
}
