// The module answers every request with the same bytes as the same code on this machine, and as the
// command.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { filesOf, instance, read, repository, scenarios, vpaScenarios, yamlFiles } from "./support.mjs";

const run = promisify(execFile);
const folder = process.env.CARGO_TARGET_DIR ?? join(repository, "target");
const program = join(folder, "debug/examples/native");

let module;
let native;
let answers;

before(async () => {
  module = await instance();
  native = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
  answers = createInterface({ input: native.stdout })[Symbol.asyncIterator]();
});

after(() => {
  native.stdin.end();
});

/** Compares the answers to requests, some at a time, so that both sides have work. */
async function compare(requests) {
  let bytes = 0;
  for (let start = 0; start < requests.length; start += 16) {
    const some = requests.slice(start, start + 16);
    const texts = some.map((request) => JSON.stringify(request));
    native.stdin.write(texts.map((text) => `${text}\n`).join(""));
    for (const [index, text] of texts.entries()) {
      const answer = module.answer(text);
      const { value } = await answers.next();
      const { method, path, release, tick } = some[index];
      assert.ok(answer === value, `${method} of ${path} on ${release}, tick ${tick}, differs`);
      bytes += answer.length;
    }
  }
  return bytes;
}

const about = async () => JSON.parse(module.answer(JSON.stringify({ method: "about" })));
const subject = (path, release) => ({ path, text: read(path), files: filesOf(path), release });

/** A scenario of a VPA on a release. */
const ofVpa = (path, vpaRelease) => ({ ...subject(path, "1.37"), vpaRelease });

test("the releases and the schema are those of the native code", async () => {
  await compare([{ method: "about" }]);
  const { schema } = await about();
  assert.equal(`${JSON.stringify(schema, null, 2)}\n`, read("schema/scenario.schema.json"));
});

test("every fixture has the same trace on every release", async (context) => {
  const { releases } = await about();
  assert.ok(releases.length >= 32 && scenarios.length > 300, "fixtures and releases were found");
  const requests = releases.flatMap((release) =>
    scenarios.map((path) => ({ method: "trace", ...subject(path, release) })));
  const bytes = await compare(requests);
  assert.ok(bytes > 10_000_000, `${bytes} bytes are too few`);
  context.diagnostic(`${requests.length} traces with ${bytes} bytes are equal`);
});

test("every fixture has the same page, ticks, CSV and derivations", async (context) => {
  const { releases } = await about();
  const newest = releases.at(-1);
  const requests = scenarios.flatMap((path, index) => {
    const it = subject(path, newest);
    // Each fixture also on one other release, so that all releases occur.
    const other = subject(path, releases[index % releases.length]);
    return [
      { method: "predict", ...it },
      { method: "predict", ...other },
      { method: "csv", ...it },
      { method: "explain", ...it, tick: 1 + index % 5 },
      { method: "compare", ...it, with: releases[index % releases.length] },
    ];
  });
  const bytes = await compare(requests);
  context.diagnostic(`${requests.length} answers with ${bytes} bytes are equal`);
});

test("each timeline of an HPA has its proposals", async () => {
  let several = 0;
  for (const path of scenarios) {
    const { body, proposals } = JSON.parse(module.answer(JSON.stringify({ method: "predict", ...subject(path, "1.37") })));
    const count = body.match(/class="fig hpa"/g)?.length ?? 0;
    const names = [...body.matchAll(/aria-label="Timeline of ([^;]*);/g)].map(([, name]) => name);
    assert.deepEqual(proposals.map(({ hpa }) => hpa), names.slice(0, count), path);
    if (count > 1) several += 1;
  }
  assert.ok(several > 10, `${several} scenarios with several HPAs`);
});

test("every fixture of a VPA has the same trace, page, CSV and derivations on every release", async (context) => {
  const { vpaReleases } = await about();
  assert.ok(vpaReleases.length >= 2 && vpaScenarios.length > 80, "fixtures and releases were found");
  assert.equal(scenarios.length + vpaScenarios.length, new Set([...scenarios, ...vpaScenarios]).size);
  const [oldest] = vpaReleases;
  const newest = vpaReleases.at(-1);
  const requests = vpaScenarios.flatMap((path, index) => [
    ...vpaReleases.flatMap((release) => ["trace", "predict"].map((method) => ({ method, ...ofVpa(path, release) }))),
    { method: "csv", ...ofVpa(path, newest) },
    { method: "explain", ...ofVpa(path, newest), tick: 1 + index % 2 },
    { method: "compare", ...ofVpa(path, newest), with: "", vpaWith: oldest },
  ]);
  const bytes = await compare(requests);
  assert.ok(bytes > 1_000_000, `${bytes} bytes are too few`);
  context.diagnostic(`${requests.length} answers with ${bytes} bytes are equal`);
});

test("every invalid fixture has the same errors, which are those of the command", async () => {
  const hasMessage = (path) => existsSync(join(repository, path.replace(/yaml$/, "txt")));
  const invalid = yamlFiles("fixtures/invalid").filter((path) => hasMessage(path));
  assert.ok(invalid.length > 100, "invalid fixtures were found");
  await compare(invalid.map((path) => ({ method: "predict", ...subject(path, "1.37") })));
  for (const path of invalid) {
    const request = { method: "predict", ...subject(path, "1.37") };
    const { problems } = JSON.parse(module.answer(JSON.stringify(request)));
    const lines = problems.map(({ file, line, column, what, hint }) =>
      `${file ?? path}:${line}:${column}: ${what}${hint ? `\n  hint: ${hint}` : ""}`);
    const expected = read(path.replace(/yaml$/, "txt")).trimEnd();
    // A message about a missing file ends with the error of the system.
    if (/cannot be read|can't be read|No such file/.test(expected)) continue;
    assert.equal(lines.join("\n"), expected);
  }
});

/** The scenarios with a search. */
const searches = yamlFiles("fixtures/search");

/** Manifests of a folder as one text. */
const manifestsOf = (folder, names) => names.map((name) => read(`${folder}/${name}.yaml`)).join("---\n");

/** Manifests with several findings. */
const SHOP = manifestsOf("examples/shop", ["deployments", "hpas"]);

/** Manifests with a load, for searches of the differences between two releases. */
const WALKTHROUGH = { folder: "examples/php-apache", load: ["cpu=total:steps(0s:100m,2m:2,15m:100m)"] };

const ask = (request) => JSON.parse(module.answer(JSON.stringify(request)));

/** The request for the differences of those manifests. */
function upgrade() {
  const { text } = ask({ method: "draft", manifests: manifestsOf(WALKTHROUGH.folder, ["hpa", "deployment"]), load: WALKTHROUGH.load });
  return { method: "upgrade", path: "scenario.yaml", text, files: {}, release: "1.22", with: "1.37", ticks: 4000 };
}

const checks = () => searches.map((path) => ({ method: "check", ...subject(path, "1.37"), states: 5000 }));

test("searches and findings are the same", async (context) => {
  const requests = [
    ...checks(),
    upgrade(),
    { method: "lint", manifests: SHOP, load: [], release: "1.37" },
    { method: "tune", ...subject("src/cli/init/template.yaml", "1.37"), objective: "", settings: 30 },
  ];
  const bytes = await compare(requests);
  context.diagnostic(`${requests.length} answers with ${bytes} bytes are equal`);
});

const command = process.env.KUBE_LOCKSTEP;
const skip = command ? false : "KUBE_LOCKSTEP does not name the command";

/** The lines of JSON that the command prints. Findings are an exit code, not an error here. */
async function printed(...arguments_) {
  const { stdout } = await run(command, [...arguments_, "--format", "json"], { cwd: repository }).catch((error) => error);
  return stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
}

test("a search for choices has the same result as the command", { skip }, async () => {
  const outcomes = new Set();
  for (const request of checks()) {
    const { checked } = ask(request);
    const [{ formatVersion, scenario, release, ...expected }] = await printed("check", request.path, "--no-confirm", "--states", "5000");
    assert.deepEqual([scenario, release], [request.path.slice("fixtures/".length, -".yaml".length), "1.37"]);
    assert.deepEqual(checked, expected);
    outcomes.add(checked.outcome);
  }
  assert.ok(outcomes.has("counterexample") && outcomes.size > 1, [...outcomes].join());
});

test("the differences between releases are those of the command", { skip }, async () => {
  const load = WALKTHROUGH.load.flatMap((load) => ["--load", load]);
  const { release, with: to, ticks } = upgrade();
  const releases = ["--from", release, "--to", to, "--ticks", String(ticks)];
  const expected = await printed("upgrade", "-f", WALKTHROUGH.folder, ...load, ...releases, "--no-confirm");
  const own = ask(upgrade()).lines.trimEnd().split("\n").map((line) => JSON.parse(line));
  // The place is that in the scenario.
  for (const subject of [own[0], expected[0]]) for (const name of ["file", "line"]) delete subject[name];
  assert.deepEqual(own, expected);
  assert.ok(own.filter(({ change }) => change?.scenario).length > 2, "there are examples");
});

test("the findings in manifests are those of the command", { skip }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "playground-"));
  const path = join(folder, "manifests.yaml");
  writeFileSync(path, SHOP);
  const expected = await printed("lint", "-f", path);
  rmSync(folder, { recursive: true });
  const { findings } = ask({ method: "lint", manifests: SHOP, load: [], release: "1.37" });
  const own = findings.map(({ rule, level, what, hint, line, column }) => [rule, level, what, hint, line, column]);
  const named = (text) => text.replaceAll(path, "the manifests");
  assert.deepEqual(own, expected.slice(0, -1).map(({ rule, evidence, level, message, hint, line, column }) =>
    [`${rule}, ${evidence}`, level, named(message), hint, line, column]));
  assert.ok(own.length > 1, `${own.length} findings`);
});

test("every fixture has the same lines as the command predicts", { skip }, async (context) => {
  const { releases } = await about();
  let lines = 0;
  const one = async ([path, release]) => {
    const arguments_ = ["predict", path, "--format", "json", "--release", release];
    const options = { cwd: repository, maxBuffer: 1 << 28 };
    // An unmet expectation or a run that ends early is an exit code, not an error here.
    const { stdout } = await run(command, arguments_, options).catch((error) => error);
    const it = release.startsWith("vpa-") ? ofVpa(path, release) : subject(path, release);
    const answer = JSON.parse(module.answer(JSON.stringify({ method: "predict", ...it })));
    // Of a long run of a VPA, the answer contains only the summary.
    const isLong = answer.kind === "vpa" && answer.lines.split("\n").length < stdout.split("\n").length;
    const expected = isLong ? `${stdout.trimEnd().split("\n").at(-1)}\n` : stdout;
    assert.ok(!isLong || stdout.split("\n").length > 1000, `${path} is not long`);
    assert.equal(answer.lines, expected, `${path} on ${release}`);
    lines += stdout.split("\n").length;
  };
  const pairs = scenarios.flatMap((path, index) =>
    [[path, releases.at(-1)], [path, releases[index % (releases.length - 1)]]]);
  const { vpaReleases } = await about();
  pairs.push(...vpaScenarios.flatMap((path) => vpaReleases.map((release) => [path, release])));
  for (let start = 0; start < pairs.length; start += 4) {
    await Promise.all(pairs.slice(start, start + 4).map(one));
  }
  context.diagnostic(`${lines} lines of ${pairs.length} predictions are equal`);
});
