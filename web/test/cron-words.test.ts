import assert from "node:assert/strict";
import { test } from "node:test";
import { cronWords } from "../src/pages/schedules/cron-words";

const WORDS: readonly (readonly [string, string])[] = [
  ["0 6 * * 1-5", "at 06:00, Monday to Friday"],
  ["30 2 * * *", "at 02:30, every day"],
  ["*/5 * * * *", "every 5 minutes, every day"],
  ["* * * * *", "every minute, every day"],
  ["15 * * * *", "every hour at :15, every day"],
  ["0 9,17 * * MON,WED", "at 09:00 and 17:00, Monday and Wednesday"],
  ["0 0 1 * *", "at 00:00, on the 1st"],
  ["0 0 1,15 JAN-MAR *", "at 00:00, on the 1st and 15th, in January to March"],
  ["0 0 L * *", "at 00:00, on the last day of the month"],
  ["*/10 9-17 * * 1-5", "every 10 minutes in the hours 09:00 to 17:00, Monday to Friday"],
  ["30 0 12 * * *", "at 12:00:30, every day"],
  ["@daily", "at 00:00, every day"],
  ["0 12 13 * 5", "at 12:00, on the 13th and every Friday"],
];

test("common expressions have words", () => {
  for (const [expression, words] of WORDS) assert.equal(cronWords(expression), words, expression);
});

test("what has no short words is left to its times", () => {
  for (const expression of ["", "a b c d e", "0 0 * * 5#2", "0 0 15W * *", "* *", "0 6 * * MON-FUN", "99 99"]) {
    assert.equal(cronWords(expression), null, expression);
  }
});

test("a long expression is not looked at", () => {
  assert.equal(cronWords(`${Array.from({ length: 59 }, (_, at) => at).join(",")} * * * *`), null);
});
