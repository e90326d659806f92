// Two files instead of one: app.js is what a first visit needs, pages.js the other pages. What both need is in app.js
// only; pages.js takes it from there. Other ways to split make a request more, or names that a balanced server may not
// know during a deploy.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";

const PLACE_OF_BUILD = "0000000000000000";
const FROM_APP = "from-app";

/** Writes both files and answers what they were made of. `options`: those of the build, `out` included. */
export async function split(here, options) {
  const common = { ...options, define: { ...options.define, KAGZI_BUILD: JSON.stringify(PLACE_OF_BUILD) } };
  const app = await build({ ...common, entryPoints: { app: "src/main.tsx" }, write: false });
  const pages = await build({ ...common, entryPoints: { pages: "src/pages.ts" }, write: false });
  const needed = intersection(Object.keys(app.metafile.inputs), Object.keys(pages.metafile.inputs));
  const exported = await exportsOf(needed, common);
  const first = await build({ ...common, entryPoints: { app: "entry" }, plugins: [appEntry(here, needed)] });
  const rest = await build({
    ...common,
    entryPoints: { pages: "src/pages.ts" },
    plugins: [fromApp(here, needed, exported)],
  });
  await writeBuild(options.outdir);
  return [...Object.keys(first.metafile.inputs), ...Object.keys(rest.metafile.inputs)];
}

function intersection(one, other) {
  const both = new Set(other);
  return one.filter((path) => both.has(path)).sort();
}

/** By module the names it exports. */
async function exportsOf(paths, options) {
  const entryPoints = paths.map((path, number) => ({ in: path, out: `m${number}` }));
  const { metafile } = await build({ ...options, entryPoints, write: false, sourcemap: false, minify: false });
  const names = new Map();
  for (const output of Object.values(metafile.outputs)) {
    if (output.entryPoint) names.set(output.entryPoint, output.exports);
  }
  return names;
}

/** The application, and its modules for those who come later. */
function appEntry(here, needed) {
  const lines = needed.map((path, number) => `export * as m${number} from ${JSON.stringify(`./${path}`)};`);
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
function fromApp(here, needed, exported) {
  const numbers = new Map(needed.map((path, number) => [path, number]));
  return {
    name: FROM_APP,
    setup(plugin) {
      plugin.onResolve({ filter: /^\.\/app\.js$/ }, ({ namespace }) =>
        namespace === FROM_APP ? { path: "./app.js", external: true } : null,
      );
      plugin.onResolve({ filter: /.*/ }, async (args) => {
        if (args.pluginData === FROM_APP || args.namespace === FROM_APP) return null;
        const { path, resolveDir, importer, kind } = args;
        const found = await plugin.resolve(path, { resolveDir, importer, kind, pluginData: FROM_APP });
        const name = relative(here, found.path).split(sep).join("/");
        return numbers.has(name) ? { path: name, namespace: FROM_APP } : found;
      });
      plugin.onLoad({ filter: /.*/, namespace: FROM_APP }, ({ path }) => {
        const names = exported.get(path).filter((name) => name !== "default");
        const own = `m${numbers.get(path)}`;
        return {
          contents: `import { ${own} } from "./app.js";\nexport const { ${names.join(", ")} } = ${own};`,
          resolveDir: here,
        };
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
