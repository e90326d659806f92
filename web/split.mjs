// Two files instead of one: app.js is what a first visit needs, pages.js the other pages. What both need is in app.js
// only; pages.js takes it from there, by its name. Other ways to split make a request more, or names that a balanced
// server may not know during a deploy.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";

const PLACE_OF_BUILD = "0000000000000000";
const SHARED = "shared";
const APP = "./app.js";

/** Writes both files and answers what they were made of. `options`: those of the build, `out` included. */
export async function split(here, options) {
  const common = { ...options, define: { ...options.define, KAGZI_BUILD: JSON.stringify(PLACE_OF_BUILD) } };
  const pagesEntry = { entryPoints: { pages: "src/pages.ts" } };
  const app = await build({ ...common, entryPoints: { app: "src/main.tsx" }, write: false });
  const pages = await build({ ...common, ...pagesEntry, write: false });
  const shared = intersection(Object.keys(app.metafile.inputs), Object.keys(pages.metafile.inputs));
  const named = await namesTaken(here, { ...common, ...pagesEntry }, shared);
  const first = await build({ ...common, entryPoints: { app: "entry" }, plugins: [appEntry(here, named)] });
  const rest = await build({ ...common, ...pagesEntry, plugins: [fromApp(here, named)] });
  await writeBuild(options.outdir);
  return [...Object.keys(first.metafile.inputs), ...Object.keys(rest.metafile.inputs)];
}

function intersection(one, other) {
  const both = new Set(other);
  return one.filter((path) => both.has(path)).sort();
}

/** By module what the pages use of it, and what that is called in app.js. */
async function namesTaken(here, options, shared) {
  const outside = redirect(here, new Set(shared), (path) => ({ path: `${SHARED}:${path}`, external: true }));
  const plain = { minify: false, minifySyntax: true, sourcemap: false, write: false };
  const { outputFiles } = await build({ ...options, ...plain, plugins: [outside] });
  const named = new Map(shared.map((path) => [path, new Map()]));
  let count = 0;
  for (const [, names, path] of outputFiles[0].text.matchAll(/^import \{([^}]*)\} from "shared:([^"]+)";$/gm)) {
    for (const each of names.split(",")) {
      const [name] = each.trim().split(" as ");
      if (name && !named.get(path).has(name)) named.get(path).set(name, `a${(count++).toString(36)}`);
    }
  }
  return named;
}

/** Modules that app.js has are another matter. */
function redirect(here, paths, to) {
  return {
    name: SHARED,
    setup(plugin) {
      plugin.onResolve({ filter: /.*/ }, async (args) => {
        if (args.pluginData === SHARED || args.namespace === SHARED) return null;
        const { path, resolveDir, importer, kind } = args;
        const found = await plugin.resolve(path, { resolveDir, importer, kind, pluginData: SHARED });
        const name = relative(here, found.path).split(sep).join("/");
        return paths.has(name) ? to(name) : found;
      });
    },
  };
}

/** The application, and what it has for those who come later. */
function appEntry(here, named) {
  const lines = [...named]
    .filter(([, names]) => names.size > 0)
    .map(([path, names]) => {
      const list = [...names].map(([name, short]) => `${name} as ${short}`);
      return `export { ${list.join(", ")} } from ${JSON.stringify(`./${path}`)};`;
    });
  return {
    name: "entry",
    setup(plugin) {
      plugin.onResolve({ filter: /^entry$/ }, () => ({ path: "entry", namespace: "entry" }));
      plugin.onLoad({ filter: /.*/, namespace: "entry" }, () => ({
        contents: ['import "./src/main.tsx";', ...lines].join("\n"),
        resolveDir: here,
      }));
    },
  };
}

/** Modules that app.js has are taken from it. */
function fromApp(here, named) {
  const redirected = redirect(here, named, (path) => ({ path, namespace: SHARED, sideEffects: false }));
  return {
    name: "from-app",
    setup(plugin) {
      plugin.onResolve({ filter: /^\.\/app\.js$/ }, ({ namespace }) =>
        namespace === SHARED ? { path: APP, external: true } : null,
      );
      redirected.setup(plugin);
      plugin.onLoad({ filter: /.*/, namespace: SHARED }, ({ path }) => {
        const list = [...named.get(path)].map(([name, short]) => `${short} as ${name}`);
        return { contents: `export { ${list.join(", ")} } from "${APP}";`, resolveDir: here };
      });
    },
  };
}

/** Which build it is, by what is in it: a server that has another one does not answer with its own. */
async function writeBuild(out) {
  const texts = await Promise.all(["app.js", "pages.js"].map((name) => readFile(join(out, name), "utf8")));
  const build = createHash("sha256").update(texts.join()).digest("hex").slice(0, PLACE_OF_BUILD.length);
  await writeFile(join(out, "app.js"), texts[0].replace(PLACE_OF_BUILD, build));
  await writeFile(join(out, "build.txt"), `${build}\n`);
}
