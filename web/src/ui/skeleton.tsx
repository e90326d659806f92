/** A placeholder while loading. Appears after 150 ms, so that fast responses do not flicker. */
export function Skeleton({ rows = 5, label = "Loading" }: { readonly rows?: number; readonly label?: string }) {
  return (
    <div class="skeleton" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} class="skeleton-row" />
      ))}
    </div>
  );
}
