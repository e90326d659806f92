import { Button } from "./button";

interface PagesProps {
  readonly next: string | null;
  readonly prev: string | null;
  readonly onToken: (token: string | null) => void;
}

/** Buttons for the next and previous page of a list. */
export function Pages({ next, prev, onToken }: PagesProps) {
  if (next === null && prev === null) return null;
  return (
    <nav class="row pages-nav" aria-label="Newer and older">
      <Button disabled={prev === null} onClick={() => onToken(prev)}>
        Newer
      </Button>
      <Button disabled={next === null} onClick={() => onToken(next)}>
        Older
      </Button>
    </nav>
  );
}
