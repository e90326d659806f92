import type { ComponentChildren } from "preact";
import { CodeBlock } from "./code-block";

interface EmptyProps {
  readonly title: string;
  /** Why it is empty, and what changes that. */
  readonly children?: ComponentChildren;
  /** The command that changes it. */
  readonly command?: string;
}

export function Empty({ title, children, command }: EmptyProps) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <div class="empty-why">{children}</div>}
      {command && <CodeBlock text={command} copy />}
    </div>
  );
}
