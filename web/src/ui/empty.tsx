import type { ComponentChildren } from "preact";
import { CodeBlock } from "./code-block";

interface EmptyProps {
  readonly title: string;
  /** Why there is nothing, and what changes it. */
  readonly children?: ComponentChildren;
  /** The very command that does. */
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
