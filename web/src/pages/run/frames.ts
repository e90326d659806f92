// Parses tracebacks and recognises user code.
export interface Frame {
  file: string;
  line: number;
  name: string;
  /** The source line below it, with the markers of Python 3.11. */
  code: string;
  own: boolean;
}

export interface TracebackPart {
  kind: "frame" | "text";
  text: string;
  frame?: Frame;
}

const FRAME = /^\s*File "(.*)", line (\d+)(?:, in (.*))?$/;
const LIBRARY = /site-packages|dist-packages|\/lib\/python\d|\/kagzi\/(?:sdk|core|engine|server|sync)\/|<frozen /;

/** Splits the text without loss: joined with line breaks the parts are the traceback again. */
export function partsOf(traceback: string): TracebackPart[] {
  const parts: TracebackPart[] = [];
  for (const line of traceback.split("\n")) {
    const match = FRAME.exec(line);
    const last = parts.at(-1);
    if (match !== null) {
      const file = match[1] ?? "";
      const frame = { file, line: Number(match[2]), name: match[3] ?? "", code: "", own: !LIBRARY.test(file) };
      parts.push({ kind: "frame", text: line, frame });
    } else if (last?.kind === "frame" && last.frame !== undefined && /^\s{4,}/.test(line)) {
      last.text += `\n${line}`;
      last.frame.code += `${last.frame.code === "" ? "" : "\n"}${line.trim()}`;
    } else if (last?.kind === "text") {
      last.text += `\n${line}`;
    } else {
      parts.push({ kind: "text", text: line });
    }
  }
  return parts;
}

/** Where user code failed: its innermost frame. */
export function ownFrame(traceback: string | null): Frame | null {
  if (traceback === null) return null;
  const own = partsOf(traceback).filter((part) => part.frame?.own === true);
  return own.at(-1)?.frame ?? null;
}

export function fileName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
