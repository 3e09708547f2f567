// What the tests share: the module, the fixtures, and Chromium.

import { build } from "esbuild";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const playground = dirname(dirname(fileURLToPath(import.meta.url)));
export const repository = dirname(playground);
export const read = (path) => readFileSync(join(repository, path), "utf8");

/** A module of the page. */
export async function bundled(name) {
  const entryPoints = [join(playground, "page", name)];
  const result = await build({ entryPoints, bundle: true, format: "esm", write: false });
  const source = Buffer.from(result.outputFiles[0].contents).toString("base64");
  return import(`data:text/javascript;base64,${source}`);
}

const { Instance } = await bundled("instance.ts");

export const instance = () => Instance.create(readFileSync(join(playground, "dist/module.wasm")));

/** The YAML files in a folder of the repository, by their paths. */
export function yamlFiles(folder) {
  const all = readdirSync(join(repository, folder), { recursive: true, withFileTypes: true });
  const files = all.filter((file) => file.isFile() && file.name.endsWith(".yaml"));
  const paths = files.map((file) => relative(repository, join(file.parentPath, file.name)));
  return paths.map((path) => path.replaceAll("\\", "/")).sort();
}

const valid = yamlFiles("fixtures").filter((path) =>
  !path.startsWith("fixtures/invalid/") && /^kind: Scenario$/m.test(read(path)));

/** The scenarios of HPAs among the fixtures that are valid. */
export const scenarios = valid.filter((path) => /^hpas?:/m.test(read(path)));

/** The scenarios of VPAs among the fixtures that are valid. */
// A scenario with an HPA and a VPA runs on releases of Kubernetes.
export const vpaScenarios = valid.filter((path) =>
  /^(vpas?|script):/m.test(read(path)) && !/^hpas?:/m.test(read(path)));

/** The files that a scenario names. */
export function filesOf(path) {
  const files = {};
  for (const [, name] of read(path).matchAll(/\b(?:file|csv|prometheus|openMetrics):\s*"?([\w./-]+)/g)) {
    const place = posix.join(posix.dirname(path), name);
    try {
      files[place] = read(place);
    } catch {
      // Some invalid fixtures name files that do not exist.
    }
  }
  return files;
}

/** The path of Chromium or a relative of it; undefined if there is none. */
export function browserPath() {
  const names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
  for (const name of names) {
    try {
      return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    } catch {
      // The next one, perhaps.
    }
  }
  return undefined;
}
