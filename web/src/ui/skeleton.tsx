/** Stands for what is being loaded. It appears after 150 ms: what comes sooner does not flicker. */
export function Skeleton({ rows = 5, label = "Loading" }: { readonly rows?: number; readonly label?: string }) {
  return (
    <div class="skeleton" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} class="skeleton-row" />
      ))}
    </div>
  );
}
