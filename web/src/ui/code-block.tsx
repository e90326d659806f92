import { Copy } from "./copy";

interface CodeBlockProps {
  readonly text: string;
  readonly copy?: boolean;
  readonly label?: string;
}

export function CodeBlock({ text, copy, label }: CodeBlockProps) {
  return (
    <div class="code-block">
      <pre tabIndex={0} role="region" aria-label={label ?? "Code"}>
        <code>{text}</code>
      </pre>
      {copy && <Copy text={text} label="Copy" />}
    </div>
  );
}
