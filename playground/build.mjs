// Builds the page: one HTML file that contains the scripts, the style, the module and the examples.
//
// usage: node build.mjs MODULE.wasm OUTPUT.html

import { build } from "esbuild";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const repository = dirname(here);
const [wasm, output] = process.argv.slice(2);
if (!wasm || !output) throw new Error("usage: node build.mjs MODULE.wasm OUTPUT.html");

const page = (name) => readFile(join(here, "page", name), "utf8");
const ofRepository = (name) => readFile(join(repository, name), "utf8");
const packed = (bytes) => gzipSync(bytes, { level: 9 }).toString("base64");

/** The scenarios of `fixtures/` and `examples/`, and the files that they name. */
async function examples() {
  const files = {};
  for (const folder of ["fixtures", "examples"]) {
    const found = await readdir(join(repository, folder), { recursive: true, withFileTypes: true });
    for (const file of found) {
      const path = join(file.parentPath, file.name).slice(repository.length + 1).replaceAll("\\", "/");
      const isData = /\.(yaml|csv|json|txt)$/.test(path);
      if (file.isFile() && isData && !path.startsWith("fixtures/invalid/")) {
        files[path] = await ofRepository(path);
      }
    }
  }
  return Object.fromEntries(Object.entries(files).sort());
}

const options = { bundle: true, minify: true, format: "iife", target: "es2022", write: false, charset: "utf8" };

async function bundle(entry, modules) {
  const made = {
    name: "made",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^made:/ }, ({ path }) => ({ path, namespace: "made" }));
      onLoad({ filter: /.*/, namespace: "made" }, ({ path }) => modules[path.slice("made:".length)]);
    },
  };
  const result = await build({ ...options, entryPoints: [join(here, "page", entry)], plugins: [made] });
  return result.outputFiles[0].text;
}

const text = (contents) => ({ contents, loader: "text" });
const worker = await bundle("worker.ts", {});
const figure = await ofRepository("crates/report/src/html/figure.js");
const script = await bundle("main.ts", {
  worker: text(worker),
  examples: text(packed(JSON.stringify(await examples()))),
  template: text(await ofRepository("src/cli/init/template.yaml")),
  figure: { contents: `${figure}\nexport { activate, ticksOf };`, loader: "js" },
});
const style = (await ofRepository("crates/report/src/html/page.css")) + (await page("style.css"));
const parts = {
  STYLE: style,
  MODULE: packed(await readFile(wasm)),
  SCRIPT: script.replaceAll("</script", "<\\/script"),
};
let html = await page("index.html");
// One pass, and no patterns such as `$&` in the replacements.
html = html.replace(/\/\*(STYLE|MODULE|SCRIPT)\*\//g, (_, name) => parts[name]);
await writeFile(output, html);
