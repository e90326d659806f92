// Parses and writes API messages: user values inside them stay text.

/** A value in a response or request, as text that is kept to the byte. */
export class RawJson {
  constructor(readonly text: string) {}
}

// Maps with user-defined keys: a label called `input` is a label.
const USER_KEYED = new Set(["labels", "metadata", "facts", "signal_schemas", "outputs"]);

const SPACE = /[ \t\n\r]*/y;
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/y;
const SCALAR = /[^\s,\]}]+/y;

/** `JSON.parse`, but the values of the named fields, at any depth, become `RawJson`. Throws SyntaxError. */
export function splitEnvelope(text: string, rawFields: ReadonlySet<string>): unknown {
  return new Reader(text, rawFields).read();
}

class Reader {
  private at = 0;

  constructor(
    private readonly text: string,
    private readonly raw: ReadonlySet<string>,
  ) {}

  read(): unknown {
    const value = this.value(true);
    this.skip(SPACE);
    if (this.at < this.text.length) this.refuse();
    return value;
  }

  /** `named`: the keys of objects in it are defined by the API. */
  private value(named: boolean): unknown {
    this.skip(SPACE);
    const first = this.text[this.at];
    if (first === "{") return this.object(named);
    if (first === "[") return this.array(named);
    const start = this.at;
    this.skip(first === '"' ? STRING : SCALAR);
    return JSON.parse(this.text.slice(start, this.at)) as unknown;
  }

  private object(named: boolean): unknown {
    const made: Record<string, unknown> = {};
    this.at += 1;
    for (let first = true; !this.closes("}", first); first = false) {
      const start = this.at;
      this.skip(STRING);
      const key = JSON.parse(this.text.slice(start, this.at)) as string;
      this.skip(SPACE);
      if (this.text[this.at] !== ":") this.refuse();
      this.at += 1;
      const value = named && this.raw.has(key) ? this.rawValue() : this.value(named && !USER_KEYED.has(key));
      // A key such as __proto__ is plain data.
      Object.defineProperty(made, key, { value, writable: true, enumerable: true, configurable: true });
    }
    return made;
  }

  private array(named: boolean): unknown[] {
    const made: unknown[] = [];
    this.at += 1;
    for (let first = true; !this.closes("]", first); first = false) made.push(this.value(named));
    return made;
  }

  /** Skips to the next member, and returns whether there are no more. */
  private closes(bracket: string, first: boolean): boolean {
    this.skip(SPACE);
    const here = this.text[this.at];
    if (here === bracket) {
      this.at += 1;
      return true;
    }
    if (!first) {
      if (here !== ",") this.refuse();
      this.at += 1;
      this.skip(SPACE);
    }
    return false;
  }

  private rawValue(): RawJson {
    this.skip(SPACE);
    const start = this.at;
    let depth = 0;
    do {
      this.skip(SPACE);
      const here = this.text[this.at];
      if (here === "{" || here === "[") depth += 1;
      if (here === "}" || here === "]") depth -= 1;
      if (here === '"') this.skip(STRING);
      else if (here !== undefined && "{}[],:".includes(here)) this.at += 1;
      else this.skip(SCALAR);
    } while (depth > 0);
    return new RawJson(this.text.slice(start, this.at));
  }

  private skip(pattern: RegExp): void {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.text)) this.refuse();
    this.at = pattern.lastIndex;
  }

  private refuse(): never {
    throw new SyntaxError(`the answer is not JSON at character ${this.at}`);
  }
}

/** `JSON.stringify`, but `RawJson` values, at any depth, are written unchanged. */
export function joinEnvelope(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map(joinEnvelope).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .map(([key, each]) => `${JSON.stringify(key)}:${joinEnvelope(each)}`);
    return `{${members.join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}
