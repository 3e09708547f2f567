// Completion and changes of the text, without a browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { bundled, read, scenarios } from "./support.mjs";

const { SchemaOfScenarios } = await bundled("schema.ts");
const { difference, manifests, nameOf, replaceBehavior, replaceSignal } = await bundled("edit.ts");
const { readTable } = await bundled("csv.ts");
const { SETTINGS } = await bundled("settings.ts");

const schema = new SchemaOfScenarios(JSON.parse(read("schema/scenario.schema.json")));
const template = read("src/cli/init/template.yaml");

/** The labels at the mark `|` of a text. */
function labels(text) {
  const position = text.indexOf("|");
  const found = schema.complete(text.replace("|", ""), position);
  return found?.list.map((it) => it.label) ?? [];
}

const HPA = "hpa:\n  apiVersion: autoscaling/v2\n  kind: HorizontalPodAutoscaler\n  spec:\n";

for (const [name, text, included, excluded] of [
  ["fields at the top", "apiVersion: x\nwor|", ["workload", "until"], ["apiVersion", "replicas"]],
  ["fields of a spec", `${HPA}    min|`, ["minReplicas", "behavior"], ["kind", "targetCPUUtilizationPercentage"]],
  [
    "fields of an older version", `${HPA.replace("v2", "v1")}    t|`, ["targetCPUUtilizationPercentage"], ["behavior"],
  ],
  ["fields of a map in one line", "workload: {replicas: 1, con|}", ["containers"], ["replicas"]],
  ["fields before others", "workload:\n  sta|\n  replicas: 1\nuntil: 5m\n", ["startup"], ["replicas", "until"]],
  ["fields of an element", "timeline:\n  - {at: 5m}\n  - at: 1m\n    met|", ["metricsMissing"], ["at"]],
  ["fields of a new element", "timeline:\n  - |", ["at", "rollingUpdate"], []],
  ["an enumeration", `${HPA}    behavior:\n      scaleDown:\n        selectPolicy: |`, ["Max", "Min", "Disabled"], []],
  ["an enumeration in one line", `${HPA}    metrics: [{type: R|}]`, ["Resource", "External"], ["Utilization"]],
  ["a constant", "kind: S|", ["Scenario"], []],
  ["fields of a VPA", "kind: Scenario\nvpa:\n  spec:\n    up|", ["updatePolicy"], ["scaleTargetRef"]],
  ["nothing in a comment", "# wor|", [], ["workload"]],
]) {
  test(`completes ${name}`, () => {
    const found = labels(text);
    for (const label of included) assert.ok(found.includes(label), `${label}: ${found}`);
    for (const label of excluded) assert.ok(!found.includes(label), `${label}: ${found}`);
  });
}

test("fields of the template are described", () => {
  for (const [field, words] of [
    ["maxReplicas", /upper limit/i], ["averageUtilization", /percent of the request/i], ["ready:", /creation/], ["until", /end of the scenario/],
  ]) {
    const found = schema.describe(template, template.indexOf(field) + 2);
    assert.match(found?.text ?? "", words, field);
  }
});

const apply = (text, { from, to, insert }) => text.slice(0, from) + insert + text.slice(to);

test("each setting changes the behavior of every HPA in a scenario, and nothing else", () => {
  let changed = 0;
  for (const path of scenarios) {
    const text = read(path);
    const before = parse(text);
    const spec = before.hpa?.spec ?? before.hpas?.[0]?.spec;
    if (!spec) continue;
    for (const { title, behavior } of SETTINGS) {
      const after = parse(apply(text, replaceBehavior(text, behavior)));
      if (behavior) spec.behavior = behavior;
      else delete spec.behavior;
      assert.deepEqual(after, before, `${title} in ${path}`);
      changed += 1;
    }
  }
  assert.ok(changed > 1000, `${changed} changes`);
});

test("a signal takes the place of another", () => {
  const change = replaceSignal(template, ["metrics", "resource", 0, "load"], "{steps: [\n{at: 0s, value: 1}]}");
  const after = apply(template, change);
  assert.deepEqual(parse(after).metrics.resource[0], { name: "cpu", load: { steps: [{ at: "0s", value: 1 }] }, limit: "1" });
  const blocks = "metrics:\n  resource:\n    - name: cpu\n      load:\n        steps:\n          - {at: 0s, value: 1}\n      limit: 2\n";
  const flow = apply(blocks, replaceSignal(blocks, ["metrics", "resource", 0, "load"], "3"));
  assert.deepEqual(parse(flow).metrics.resource[0], { name: "cpu", load: 3, limit: 2 });
  const series = "metrics: {external: [{name: queue, series: [{value: 5}]}]}";
  const queue = replaceSignal(series, ["metrics", "external", 0, "value"], "7");
  assert.equal(apply(series, queue), series.replace("5", "7"));
  assert.throws(() => replaceSignal("a: [", ["a"], "1"), /Correct the errors/);
  assert.throws(() => replaceSignal("a: 1", ["b"], "1"), /can't be changed here/);
});

test("manifests are copied from the text, a list and a file", () => {
  const none = () => undefined;
  const one = "hpa:\n  kind: A # a comment\n  spec:\n    text: |\n      two\n        lines\nuntil: 5m\n";
  assert.equal(manifests(one, none), "kind: A # a comment\nspec:\n  text: |\n    two\n      lines\n");
  assert.equal(manifests("hpas:\n  - {kind: A}\n  - kind: B\n    spec: {}\n", none), "{kind: A}\n---\nkind: B\nspec: {}\n");
  assert.equal(manifests("hpa: {file: my.yaml}", (name) => `# ${name}`), "# my.yaml\n");
  assert.throws(() => manifests("hpa: {file: my.yaml}", none), /my.yaml is not in the playground/);
  assert.throws(() => manifests("until: 5m", none), /no HPA/);
  assert.equal(manifests("vpas:\n  - {kind: A}\n  - {kind: B}\n", none), "{kind: A}\n---\n{kind: B}\n");
  assert.equal(nameOf("vpa: {metadata: {name: web}}"), "web");
});

test("names of files are the name of the HPA", () => {
  assert.deepEqual([template, "hpa: {metadata: {name: ../x}}", "["].map(nameOf), ["web", "scenario", "scenario"]);
});

test("a text is changed by its smallest difference", () => {
  assert.deepEqual(difference("abcdef", "abXef"), { from: 2, to: 4, insert: "X" });
  assert.deepEqual(difference("aa", "aaa"), { from: 2, to: 2, insert: "a" });
});

for (const [name, pasted, columns, csv] of [
  ["CSV", "time,cpu\n0,0.5\n", ["time", "cpu"], "time,cpu\n0,0.5\n"],
  ["CSV without a header", "0,0.5\n60,2\n", ["time", "value"], "time,value\n0,0.5\n60,2\n"],
  ["tabs", "t\tcpu, cores\n0\t1\n", ["t", "cpu, cores"], 't,"cpu, cores"\n0,1\n'],
  ["tabs and decimal commas", "t\tcpu\r\n0\t0,125\r\n60\t1.234,5\r\n", ["t", "cpu"], "t,cpu\n0,0.125\n60,1234.5\n"],
  ["semicolons and decimal commas", "0;0,5\n60;2\n", ["time", "value"], "time,value\n0,0.5\n60,2\n"],
  ["groups of digits", "t\tusers\n0\t1,234\n60\t999.5\n", ["t", "users"], "t,users\n0,1234\n60,999.5\n"],
  ["quoted cells", 't,"a ""b"", c"\n0,"1"\n', ["t", 'a "b", c'], 't,"a ""b"", c"\n0,1\n'],
  ["comments", "# from a spreadsheet\nt,v\n0,1\n", ["t", "v"], "t,v\n0,1\n"],
]) {
  test(`a pasted table: ${name}`, () => {
    assert.deepEqual(readTable(pasted), { text: csv, columns });
  });
}

test("a pasted table that is not clear is not used", () => {
  assert.match(readTable("t\tv\n0\t1,234\n").problem, /whether 1,234 means 1\.234 or 1234/);
  assert.match(readTable("t\n0\n").problem, /fewer than two columns/);
});
