const TAIL = 8;

/** An id that is cut in the middle where it has no room: ids that are made at the same time differ at their end. */
export function ShortId({ id }: { readonly id: string }) {
  if (id.length < 3 * TAIL) return <>{id}</>;
  return (
    <span class="short-id">
      <span>{id.slice(0, -TAIL)}</span>
      <span>{id.slice(-TAIL)}</span>
    </span>
  );
}
