// Bundles the dashboard into the Python package: `node build.mjs [--watch | --tests]`. scripts/web.py calls it.
import { build, context } from "esbuild";
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { split } from "./split.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = join(here, "../src/kagzi/server/http/static");
const budget = 60 * 1024; // of a first visit; a test fails above it

const shared = {
  absWorkingDir: here,
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
};
const style = { style: "src/styles/index.css" };
const bundled = {
  ...shared,
  define: { KAGZI_BUILD: '""' },
  outdir: out,
  sourcemap: "linked",
  metafile: true,
};

async function bundle() {
  await rm(out, { recursive: true, force: true }); // a name that went away is not served any more
  await copyPages();
  await build({ ...bundled, entryPoints: style, minify: true });
  const inputs = await split(here, { ...bundled, minify: true });
  await writeFile(join(out, "licenses.txt"), await licenses(inputs));
  let first = 0;
  let all = 0;
  for (const name of (await readdir(out)).sort()) {
    const zipped = gzipSync(await readFile(join(out, name)), { level: 9 });
    if (name !== "index.html") await writeFile(join(out, `${name}.gz`), zipped); // that one is filled in when it is served
    if (!/\.(js|css|html|svg)$/.test(name)) continue;
    all += zipped.length;
    if (name !== "pages.js") first += zipped.length;
  }
  const kb = (size) => `${(size / 1024).toFixed(1)} KB`;
  console.log(
    `the dashboard is built: ${kb(first)} compressed for a first visit, of ${budget / 1024}; ${kb(all)} with all pages`,
  );
}

async function watch() {
  await rm(out, { recursive: true, force: true }); // compressed files would be older than what is built from now on
  await copyPages();
  await (await context({ ...bundled, entryPoints: { app: "src/main.tsx", ...style }, logLevel: "info" })).watch();
}

async function copyPages() {
  await mkdir(out, { recursive: true });
  for (const name of ["index.html", "icon.svg"]) await copyFile(join(here, name), join(out, name));
}

/** What is in the bundle and not ours, with the texts of its licences. */
async function licenses(inputs) {
  const names = inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path.split(sep).join("/"))?.[1]);
  const texts = [];
  for (const name of [...new Set(names)].filter(Boolean).sort()) {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${name} has no licence file`);
    const text = await readFile(join(folder, file), "utf8");
    texts.push(`${name} ${about.version} (${about.license})\n\n${text.trim()}\n`);
  }
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

/** One file a test, whatever folder it is in: `node --test build/test/*.test.js`. */
async function tests() {
  const from = join(here, "test");
  const to = join(here, "build/test");
  await rm(to, { recursive: true, force: true });
  const files = await readdir(from, { recursive: true }).catch(() => []);
  const paths = files.filter((path) => /\.test\.tsx?$/.test(path));
  const entryPoints = paths.map((path) => ({
    in: join(from, path),
    out: path.split(sep).join("-").replace(/\.tsx?$/, ""),
  }));
  if (paths.length > 0) await build({ ...shared, entryPoints, outdir: to, platform: "node" });
}

const [mode = "--bundle"] = process.argv.slice(2);
await { "--bundle": bundle, "--tests": tests, "--watch": watch }[mode]();
