import { useState } from "preact/hooks";
import { Button } from "./button";

/** About two lines of a page. */
const SHORT_CHARACTERS = 240;

/** A text that somebody else wrote, which may be long: its begin, and the rest on demand. */
export function LongText({ text }: { readonly text: string }) {
  const [whole, setWhole] = useState(false);
  if (text.length <= SHORT_CHARACTERS) return <span>{text}</span>;
  return (
    <span class="long-text">
      {whole ? text : `${text.slice(0, SHORT_CHARACTERS).trimEnd()}…`}{" "}
      <Button kind="quiet" onClick={() => setWhole(!whole)}>
        {whole ? "less" : "more"}
      </Button>
    </span>
  );
}
