import type { StateName } from "../model/statuses";

interface SparklineProps {
  readonly values: readonly number[];
  /** A description with its figures, for screen readers. */
  readonly label: string;
  readonly width?: number;
  readonly height?: number;
}

/** A small line of counts. */
export function Sparkline({ values, label, width = 120, height = 24 }: SparklineProps) {
  const most = Math.max(1, ...values);
  const step = values.length > 1 ? width / (values.length - 1) : width;
  const points = values.map((value, index) => `${(index * step).toFixed(1)},${y(value, most, height)}`).join(" ");
  return (
    <svg
      class="sparkline"
      role="img"
      aria-label={label}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
    >
      <title>{label}</title>
      <polyline points={points} />
    </svg>
  );
}

function y(value: number, most: number, height: number): string {
  return (height - 1.5 - (value / most) * (height - 3)).toFixed(1);
}

export interface BarPart {
  readonly state: StateName;
  readonly value: number;
}

export interface Bar {
  readonly key: string;
  /** Its time, and what it counts. */
  readonly label: string;
  readonly parts: readonly BarPart[];
}

interface BarsProps {
  readonly bars: readonly Bar[];
  readonly label: string;
  readonly height?: number;
  readonly onSelect?: (key: string) => void;
  readonly selected?: ReadonlySet<string>;
}

/** Stacked counts by state. A hidden table has the same data for screen readers. */
export function Bars({ bars, label, height = 48, onSelect, selected }: BarsProps) {
  const most = Math.max(1, ...bars.map(total));
  const width = bars.length * 10;
  return (
    <figure class="bars">
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        height={height}
        width="100%"
        aria-hidden="true"
        focusable="false"
      >
        {bars.map((bar, index) => (
          <g
            key={bar.key}
            class={`bar ${onSelect ? "bar-action" : ""} ${selected?.has(bar.key) ? "bar-selected" : ""}`}
            onClick={() => onSelect?.(bar.key)}
          >
            <title>{bar.label}</title>
            <rect class="bar-ground" x={index * 10} y={0} width={10} height={height} />
            <Stack bar={bar} x={index * 10} most={most} height={height} />
          </g>
        ))}
      </svg>
      {/* a table is as wide as its words, whatever its style says */}
      <div class="visually-hidden">
        <table>
          <caption>{label}</caption>
          <tbody>
            {bars
              .filter((bar) => total(bar) > 0)
              .map((bar) => (
                <tr key={bar.key}>
                  <th scope="row">{bar.label}</th>
                  <td>{bar.parts.map((part) => `${part.value} ${part.state}`).join(", ")}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

function total(bar: Bar): number {
  return bar.parts.reduce((sum, part) => sum + part.value, 0);
}

function Stack({
  bar,
  x,
  most,
  height,
}: {
  readonly bar: Bar;
  readonly x: number;
  readonly most: number;
  readonly height: number;
}) {
  let top = height;
  return (
    <>
      {bar.parts
        .filter((part) => part.value > 0)
        .map((part) => {
          const size = Math.max(1, (part.value / most) * (height - 2));
          top -= size;
          return (
            <rect key={part.state} data-state={part.state} class="bar-part" x={x + 1} y={top} width={8} height={size} />
          );
        })}
    </>
  );
}
