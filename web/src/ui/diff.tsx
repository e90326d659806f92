/** The result of `diffLines` of the model. */
export interface ShownDiffLine {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
}

const MARKS = { same: " ", added: "+", removed: "-" } as const;
const WORDS = { same: "", added: "Added: ", removed: "Removed: " } as const;

/** Added and removed lines, by sign, word and colour. */
export function Diff({ lines, label }: { readonly lines: readonly ShownDiffLine[]; readonly label?: string }) {
  return (
    <pre class="diff" tabIndex={0} role="region" aria-label={label ?? "Difference"}>
      {lines.map((line, index) => (
        <span key={index} class={`diff-line diff-${line.kind}`}>
          <span aria-hidden="true">{MARKS[line.kind]} </span>
          <span class="visually-hidden">{WORDS[line.kind]}</span>
          {line.text}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
