/** Describes cron expressions in words. Unusual ones have no description: their preview suffices. */

const LONGEST = 100;
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS = [
  "",
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const SHORTHANDS: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};

/** `0 6 * * 1-5` is `at 06:00, Monday to Friday`. Null: too long, or without a short description. */
export function cronWords(expression: string): string | null {
  const text = expression.trim();
  if (text.length > LONGEST) return null;
  const fields = (SHORTHANDS[text.toLowerCase()] ?? text).split(/\s+/);
  const [second, rest] = fields.length === 6 ? [fields[0] ?? "0", fields.slice(1)] : ["0", fields];
  if (rest.length !== 5) return null;
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = rest;
  const parts = [clockWords(second, minute, hour), dayWords(day, weekday), monthWords(month)];
  if (parts.some((part) => part === null)) return null;
  return parts.filter((part) => part !== "").join(", ");
}

function clockWords(second: string, minute: string, hour: string): string | null {
  const seconds = second === "0" ? "" : isNumber(second) ? `:${pad(second)}` : null;
  if (isNumber(minute) && seconds !== null) {
    const hours = numbers(hour, 0, 23);
    if (hour === "*") return `every hour at :${pad(minute)}${seconds}`;
    if (hours !== null && hours.length <= 6) {
      return `at ${listed(hours.map((each) => `${pad(String(each))}:${pad(minute)}${seconds}`))}`;
    }
  }
  const minutes =
    second === "0"
      ? everyWords(minute, "minute")
      : second === "*" && minute === "*"
        ? "every second"
        : everySeconds(second, minute);
  if (minutes === null) return null;
  const hours = hour === "*" ? "" : spanWords(hour, (each) => `${pad(each)}:00`, "hour");
  if (hours === null) return null;
  return hours === "" ? minutes : `${minutes} in the hours ${hours}`;
}

function everySeconds(second: string, minute: string): string | null {
  return minute === "*" ? everyWords(second, "second") : null;
}

/** A single field: `*`, `*` with a step, or a list. */
function everyWords(field: string, unit: string): string | null {
  if (field === "*") return `every ${unit}`;
  const step = /^(?:\*|0-59)\/(\d{1,2})$/.exec(field);
  if (step) return step[1] === "1" ? `every ${unit}` : `every ${step[1]} ${unit}s`;
  const all = numbers(field, 0, 59);
  return all !== null && all.length <= 6
    ? `at ${unit}s ${listed(all.map(String))} of every ${unit === "minute" ? "hour" : "minute"}`
    : null;
}

function dayWords(day: string, weekday: string): string | null {
  const any = (field: string): boolean => field === "*" || field === "?";
  const days = any(day) ? "" : monthDayWords(day);
  const names = any(weekday)
    ? ""
    : spanWords(named(weekday, WEEKDAYS, 0), (each) => WEEKDAYS[Number(each)] ?? "", "day");
  if (days === null || names === null) return null;
  if (days !== "" && names !== "") return `${days} and every ${names}`;
  if (days === "" && names === "") return "every day";
  return days !== "" ? days : names;
}

function monthDayWords(day: string): string | null {
  if (day.toUpperCase() === "L") return "on the last day of the month";
  const words = spanWords(day, ordinal, "day");
  return words === null ? null : words.startsWith("every") ? words : `on the ${words}`;
}

function monthWords(month: string): string | null {
  if (month === "*" || month === "?") return "";
  const words = spanWords(named(month, MONTHS, 1), (each) => MONTHS[Number(each)] ?? "", "month");
  return words === null ? null : words.startsWith("every") ? words : `in ${words}`;
}

/** `1-5` is `Monday to Friday`; also lists and steps. */
function spanWords(field: string, word: (number: string) => string, unit: string): string | null {
  const step = /^\*\/(\d{1,2})$/.exec(field);
  if (step) return `every ${step[1]} ${unit}s`;
  const parts = field.split(",").map((part) => {
    const span = /^(\d{1,2})-(\d{1,2})$/.exec(part);
    if (span) return `${word(span[1] ?? "")} to ${word(span[2] ?? "")}`;
    return isNumber(part) ? word(part) : "";
  });
  return parts.some((part) => part === "" || /undefined|^ to | to $/.test(part)) ? null : listed(parts);
}

/** Replaces the names of days and months with numbers. */
function named(field: string, names: readonly string[], first: number): string {
  return field.replace(/[A-Za-z]{3}/g, (name) => {
    const at = names.findIndex(
      (each, index) => index >= first && each.slice(0, 3).toLowerCase() === name.toLowerCase(),
    );
    return at < 0 ? name : String(at);
  });
}

function numbers(field: string, least: number, most: number): number[] | null {
  const all: number[] = [];
  for (const part of field.split(",")) {
    const step = /^\*\/(\d{1,2})$/.exec(part);
    const every = Number(step?.[1] ?? 0);
    if (step && every > 0) for (let each = least; each <= most; each += every) all.push(each);
    else if (isNumber(part) && Number(part) <= most) all.push(Number(part));
    else return null;
  }
  return all;
}

function isNumber(text: string): boolean {
  return /^\d{1,2}$/.test(text);
}

function pad(text: string): string {
  return text.padStart(2, "0");
}

function ordinal(day: string): string {
  const number = Number(day);
  const end =
    number % 10 === 1 && number !== 11
      ? "st"
      : number % 10 === 2 && number !== 12
        ? "nd"
        : number % 10 === 3 && number !== 13
          ? "rd"
          : "th";
  return `${number}${end}`;
}

function listed(words: readonly string[]): string {
  const last = words[words.length - 1] ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} and ${last}`;
}
