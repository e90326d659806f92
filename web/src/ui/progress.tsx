interface ProgressProps {
  /** From 0 to 1; null: unknown. */
  readonly value: number | null;
  readonly label?: string;
}

export function Progress({ value, label = "Progress" }: ProgressProps) {
  const share = value === null ? undefined : Math.min(1, Math.max(0, value));
  return (
    <span class="progress-row">
      <progress class="progress" max={1} value={share} aria-label={label} />
      {share !== undefined && <span class="progress-text">{Math.floor(share * 100)}%</span>}
    </span>
  );
}
