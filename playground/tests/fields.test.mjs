// The fields of the settings, formulas and noise: changes of the text, without a browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { bundled, read, scenarios, yamlFiles } from "./support.mjs";

const { describeSignal, replaceSignal, setNoise, withFormula } = await bundled("edit.ts");
const { fieldsOf, messagesOf, setField } = await bundled("fields.ts");
const { FormulaError, sample } = await bundled("formula.ts");
const { timeLabels } = await bundled("load.ts");
const { removeValue, setValue } = await bundled("values.ts");

const template = read("src/cli/init/template.yaml");
const settings = {
  behavior: true,
  tolerance: true,
  defaults: { minReplicas: 1, cpuUtilization: 80, scaleUpWindow: 0, scaleDownWindow: 300, tolerance: 0.1 },
};
const apply = (text, { from, to, insert }) => text.slice(0, from) + insert + text.slice(to);
const field = (text, id, index = 0) => fieldsOf(text, index, settings).fields.find((it) => it.id === id);
const set = (text, id, value) => apply(text, setField(text, field(text, id), value));

test("the template has its values and the defaults", () => {
  const { names, fields } = fieldsOf(template, 0, settings);
  assert.deepEqual(names, ["web"]);
  assert.deepEqual(fields.map(({ id, value, byDefault }) => [id, value, byDefault]), [
    ["minReplicas", "2", "1"],
    ["maxReplicas", "10", undefined],
    ["metrics[0].resource.target.averageUtilization", "60", undefined],
    ["behavior.scaleUp.stabilizationWindowSeconds", undefined, "0"],
    ["behavior.scaleDown.stabilizationWindowSeconds", undefined, "300"],
    ["behavior.scaleUp.tolerance", undefined, "0.1"],
    ["behavior.scaleDown.tolerance", undefined, "0.1"],
  ]);
  assert.deepEqual([fields[2].label, fields[2].unit], ["cpu target", "%"]);
});

test("a changed value leaves everything else as it is", () => {
  assert.equal(set(template, "maxReplicas", "12"), template.replace("maxReplicas: 10", "maxReplicas: 12"));
  assert.equal(set(template, "metrics[0].resource.target.averageUtilization", "75"),
    template.replace("averageUtilization: 60", "averageUtilization: 75"));
  const quoted = "hpa:\n  spec: {maxReplicas: '10', minReplicas: \"2\"} # limits\n";
  assert.equal(set(set(quoted, "maxReplicas", "5"), "minReplicas", "1"),
    "hpa:\n  spec: {maxReplicas: '5', minReplicas: \"1\"} # limits\n");
  assert.equal(set(template, "maxReplicas", "ten: 1"), template.replace("maxReplicas: 10", 'maxReplicas: "ten: 1"'));
  assert.equal(set(template, "maxReplicas", "null"), template.replace("maxReplicas: 10", 'maxReplicas: "null"'));
});

test("absent values are inserted with the maps around them, and removed with them", () => {
  const window = "behavior.scaleDown.stabilizationWindowSeconds";
  const cpu = "        resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}\n";
  const down = "    behavior:\n      scaleDown:\n        stabilizationWindowSeconds: 60\n";
  const one = set(template, window, "60");
  assert.equal(one, template.replace(cpu, cpu + down));
  const both = set(one, "behavior.scaleUp.tolerance", "0.05");
  assert.equal(both, template.replace(cpu, `${cpu}${down}      scaleUp:\n        tolerance: 0.05\n`));
  assert.equal(set(both, "behavior.scaleUp.tolerance", ""), one);
  assert.equal(set(one, window, ""), template);
  const without = set(template, "minReplicas", "");
  assert.equal(without, template.replace("    minReplicas: 2\n", ""));
  assert.equal(set(without, "minReplicas", "2"), template, "before the upper limit");
  assert.equal(set(without, "minReplicas", ""), without, "nothing to remove");
});

/** A value without maps that are empty or only contain such maps. */
function withoutEmpty(value) {
  if (value === null) return undefined;
  if (typeof value !== "object" || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, withoutEmpty(inner)]);
  const kept = entries.filter(([, inner]) => inner !== undefined);
  return kept.length > 0 ? Object.fromEntries(kept) : undefined;
}

test("values are inserted into maps of every style", () => {
  const up = "behavior.scaleUp.stabilizationWindowSeconds";
  for (const [before, after] of [
    ["hpa: {spec: {maxReplicas: 5}}", "hpa: {spec: {maxReplicas: 5, behavior: {scaleUp: {stabilizationWindowSeconds: 30}}}}"],
    ["hpa: {spec: {behavior: {}, maxReplicas: 5}}", "hpa: {spec: {behavior: {scaleUp: {stabilizationWindowSeconds: 30}}, maxReplicas: 5}}"],
    ["hpa: {spec: {behavior: , maxReplicas: 5}}", "hpa: {spec: {behavior: {scaleUp: {stabilizationWindowSeconds: 30}} , maxReplicas: 5}}"],
    [
      "hpa:\n  spec:\n    behavior:   # none yet\n    maxReplicas: 5\n",
      "hpa:\n  spec:\n    behavior:   # none yet\n      scaleUp:\n        stabilizationWindowSeconds: 30\n    maxReplicas: 5\n",
    ],
    [
      "hpa:\n  spec:\n    behavior: null # none yet\n    maxReplicas: 5\n",
      "hpa:\n  spec:\n    behavior: # none yet\n      scaleUp:\n        stabilizationWindowSeconds: 30\n    maxReplicas: 5\n",
    ],
    [
      "hpa:\n  spec:\n    behavior:\n      scaleUp:\n        policies:\n          - {type: Pods, value: 1, periodSeconds: 60}   # slowly\n\n    maxReplicas: 5",
      "hpa:\n  spec:\n    behavior:\n      scaleUp:\n        policies:\n          - {type: Pods, value: 1, periodSeconds: 60}   # slowly\n        stabilizationWindowSeconds: 30\n\n    maxReplicas: 5",
    ],
    [
      "hpa:\n  spec:\n    behavior: {scaleUp: {selectPolicy: Max}}\n    maxReplicas: 5\n",
      "hpa:\n  spec:\n    behavior: {scaleUp: {selectPolicy: Max, stabilizationWindowSeconds: 30}}\n    maxReplicas: 5\n",
    ],
    [
      "hpas:\n- metadata: {name: web}\n  spec:\n    maxReplicas: 5",
      "hpas:\n- metadata: {name: web}\n  spec:\n    maxReplicas: 5\n    behavior:\n      scaleUp:\n        stabilizationWindowSeconds: 30",
    ],
  ]) {
    assert.equal(set(before, up, "30"), after);
    assert.deepEqual(withoutEmpty(parse(set(after, up, ""))), withoutEmpty(parse(before)));
  }
  assert.equal(set("hpa:\n  spec:\n    maxReplicas:   # soon\n", "maxReplicas", "5"), "hpa:\n  spec:\n    maxReplicas: 5   # soon\n");
  assert.throws(() => setValue("a: [1]", ["a", "b"], "1"), /can't be changed here/);
  assert.throws(() => setValue("a: {b: {c: 1}}", ["a", "b"], "1"), /not written as a single value/);
  assert.throws(() => setValue("a: [", ["a"], "1"), /Correct the errors/);
  assert.equal(apply("- a: 1\n  b: 2\n", removeValue("- a: 1\n  b: 2\n", [0, "a"], 0)), "- b: 2\n");
});

/** Sets a value of a parsed scenario, as the fields do. */
function setIn(value, path, to) {
  const [key, ...rest] = path;
  if (rest.length === 0) value[key] = to;
  else setIn(value[key] ??= {}, rest, to);
}

test("each field of a fixture changes its own value, and nothing else", () => {
  let changed = 0;
  let inserted = 0;
  // Every third one: all of them take long.
  for (const path of scenarios.filter((_, index) => index % 3 === 0)) {
    const text = read(path);
    for (let index = 0; index < fieldsOf(text, 0, settings).names.length; index += 1) {
      for (const field of fieldsOf(text, index, settings).fields) {
        const isWhole = field.entry === "whole";
        const value = isWhole ? "7" : field.entry === "fraction" ? "0.25" : "7500m";
        const after = apply(text, setField(text, field, value));
        const expected = parse(text);
        if (field.written) setIn(expected, field.path, parse(field.written(value)));
        else setIn(expected, field.path, /^["']/.test(field.value ?? "") ? value : parse(value));
        // A value in quotes stays in quotes.
        const plain = (it) => JSON.parse(JSON.stringify(it).replaceAll(/"(7|0\.25)"/g, "$1"));
        assert.deepEqual(plain(parse(after)), plain(expected), `${field.id} in ${path}`);
        const comments = (it) => it.split("\n").map((line) => /(^|\s)#.*/.exec(line)?.[0].trim()).filter(Boolean);
        assert.deepEqual(comments(after), comments(text), `${field.id} in ${path}`);
        const again = fieldsOf(after, index, settings).fields.find((it) => it.label === field.label);
        assert.equal(again?.value, value, `${field.id} in ${path}`);
        if (field.value === undefined && !field.written) {
          const removed = parse(apply(after, setField(after, again, "")));
          // Empty maps around the value are removed with it.
          assert.deepEqual(withoutEmpty(removed), withoutEmpty(parse(text)), `${field.id} in ${path}`);
          inserted += 1;
        }
        changed += 1;
      }
    }
  }
  assert.ok(changed > 700 && inserted > 350, `${changed} changes, ${inserted} insertions`);
});

test("each version of the API has its targets", () => {
  const hpa = (version, metrics) => `hpa:\n  apiVersion: autoscaling/${version}\n  spec:\n    maxReplicas: 5\n${metrics}`;
  const targets = (version, metrics) => fieldsOf(hpa(version, metrics), 0, settings).fields
    .filter((it) => /arget/.test(it.label)).map((it) => [it.label, it.value ?? `default ${it.byDefault}`]);
  assert.deepEqual(targets("v1", "    targetCPUUtilizationPercentage: 70\n"), [["cpu target", "70"]]);
  assert.deepEqual(targets("v1", ""), [["cpu target", "default 80"]]);
  assert.deepEqual(targets("v2", ""), [["cpu target", "default 80"]]);
  assert.deepEqual(targets("v2beta1", "    metrics: [{type: Resource, resource: {name: cpu, targetAverageUtilization: 50}}, {type: Pods, pods: {metricName: rps, targetAverageValue: 10}}]\n"),
    [["cpu target", "50"], ["rps target (average)", "10"]]);
  assert.deepEqual(targets("v2", "    metrics: [{type: ContainerResource, containerResource: {name: memory, container: app, target: {type: AverageValue, averageValue: 200Mi}}}, {type: External, external: {metric: {name: queue}, target: {type: Value, value: 30}}}]\n"),
    [["memory target of app (average)", "200Mi"], ["queue target", "30"]]);
  const cpu = (version, id) => parse(set(hpa(version, ""), id, "55")).hpa.spec;
  assert.equal(cpu("v1", "targetCPUUtilizationPercentage").targetCPUUtilizationPercentage, 55);
  assert.deepEqual(cpu("v2", "metrics").metrics, [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 55 } } }]);
  assert.deepEqual(cpu("v2beta1", "metrics").metrics, [{ type: "Resource", resource: { name: "cpu", targetAverageUtilization: 55 } }]);
});

test("fields that a version or a release lacks are left out, unless the text has them", () => {
  const behaviors = (text, release = settings) =>
    fieldsOf(text, 0, release).fields.filter((it) => it.id.startsWith("behavior")).map((it) => it.id.replace("behavior.", ""));
  assert.equal(behaviors(template).length, 4);
  assert.deepEqual(behaviors(template.replace("autoscaling/v2", "autoscaling/v1")), []);
  assert.equal(behaviors(template.replace("autoscaling/v2", "autoscaling/v2beta2")).length, 2);
  assert.deepEqual(behaviors(template, { ...settings, behavior: false, tolerance: false }), []);
  const without = { ...settings, tolerance: false };
  assert.equal(behaviors(template, without).length, 2);
  assert.deepEqual(behaviors(set(template, "behavior.scaleUp.tolerance", "0.2"), without).at(-1), "scaleUp.tolerance");
});

test("one of several HPAs is chosen, and an HPA elsewhere has a note", () => {
  const path = scenarios.find((it) => (parse(read(it)).hpas?.length ?? 0) > 1 && !parse(read(it)).hpas[1].file);
  const text = read(path);
  const { names } = fieldsOf(text, 1, settings);
  assert.deepEqual(names, parse(text).hpas.map((it) => it.metadata.name));
  const after = apply(text, setField(text, field(text, "maxReplicas", 1), "33"));
  assert.equal(parse(after).hpas[1].spec.maxReplicas, 33);
  assert.deepEqual(parse(after).hpas[0], parse(text).hpas[0]);
  assert.match(fieldsOf("hpa: {file: mine.yaml}", 0, settings).note, /in the file mine\.yaml/);
  assert.match(fieldsOf("until: 5m", 0, settings).note, /no HPA/);
});

test("problems belong to the field at their place or with their name", () => {
  const { fields } = fieldsOf(template, 0, settings);
  const line = template.split("\n").findIndex((it) => it.includes("averageUtilization")) + 1;
  const column = template.split("\n")[line - 1].indexOf("60") + 1;
  const spec = template.split("\n").findIndex((it) => it === "  spec:") + 1;
  const found = messagesOf(template, fields, [
    { line, column, what: "not a number", hint: "did you mean 60?" },
    { line: spec, column: 3, what: "the API server rejects this HPA: spec.maxReplicas: Required value" },
    { line: spec, column: 3, what: "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 7200" },
    { line: 1, column: 1, what: "spec.minReplicas is elsewhere" },
    { file: "load.csv", line, column, what: "in another file" },
  ]);
  assert.deepEqual([...found], [
    ["metrics[0].resource.target.averageUtilization", ["not a number (hint: did you mean 60?)"]],
    ["maxReplicas", ["Required value"]],
    ["behavior.scaleDown.stabilizationWindowSeconds", ["Invalid value: 7200"]],
  ]);
});

const at = (formula, seconds, end = 600) => sample(formula, end).find(([it]) => it === seconds)?.[1];

for (const [formula, value] of [
  ["2 + 3 * 4", 14], ["(2 + 3) * 4", 20], ["2 ^ 3 ^ 2", 512], ["8 - 3 - 2", 3], ["-2 ^ 2 + 5", 1], ["2 * -3 + 7", 1],
  ["16 / 4 / 2", 2], ["7 % 3", 1], ["-1 % 3", 2], ["500m", 0.5], ["2Ki", 2048], ["1.5e3", 1500], [".5", 0.5],
  ["min(3, 1, 2)", 1], ["max(3, 7)", 7], ["abs(-4)", 4], ["sqrt(9)", 3], ["round(2.6)", 3], ["exp(0) + log(e)", 2],
  ["sin(pi / 2)", 1], ["2 < 3 ? 4 : 5", 4], ["2 >= 3 ? 4 : 1 > 0 ? 6 : 7", 6], ["minute + hour / day", 60 + 3600 / 86_400],
  ["end", 600], ["t", 0], ["-5", 0],
]) {
  test(`the formula ${formula} is ${value}`, () => {
    assert.ok(Math.abs(at(formula, 0) - value) < 1e-9, String(at(formula, 0)));
  });
}

for (const [formula, message] of [
  ["2 +", "Expected a number, a name or ( at character 4, where the formula ends."],
  ["2 3", "Expected an operator at character 3, where it contains 3."],
  ["2t", "The formula can't contain 2t (character 1): write a product with *, for example 2*t."],
  ["(2", "Expected ) at character 3, where the formula ends."],
  ["1 ? 2", "Expected : at character 6, where the formula ends."],
  ["2 $ 3", "The formula can't contain $ (character 3)."],
  ["sin(1, 2)", "sin has one argument."],
  ["sin 1", "Expected ( at character 5, where it contains 1."],
  ["1 / t", "The formula has no value at t=0."],
  ["", "Expected a number, a name or ( at character 1, where the formula ends."],
  ["(".repeat(200), "The formula has too many parentheses."],
  ["1".repeat(501), "The formula has more than 500 characters."],
]) {
  test(`the formula ${formula.slice(0, 12)} is refused`, () => {
    assert.throws(() => sample(formula, 600), (error) => error instanceof FormulaError && error.message === message);
  });
}

test("names in formulas are only those of the page", () => {
  for (const name of ["constructor", "toString", "hasOwnProperty", "alert", "window"]) {
    assert.throws(() => sample(`${name}(1)`, 600), /Names are t, end, pi/);
  }
});

test("a formula becomes few points that follow it", () => {
  assert.deepEqual(sample("2 + t / 600", 600), [[0, 2], [600, 3]]);
  assert.deepEqual(sample("4", 600), [[0, 4], [600, 4]]);
  assert.deepEqual(sample("t < 300 ? 1 : 5", 600), [[0, 1], [299, 1], [300, 5], [600, 5]]);
  for (const [formula, end] of [["3 + 2 * sin(2 * pi * t / 600)", 3600], ["5 * (t % minute < 10)", 1500], ["3 + sin(2 * pi * t / day)", 691_200]]) {
    const points = sample(formula, end);
    assert.ok(points.length <= 240 && points.length > 2, `${points.length} points`);
    assert.deepEqual([points[0][0], points.at(-1)[0]], [0, end]);
  }
  assert.throws(() => sample("3 + sin(t)", 691_200), /changes too often: 240 points can't follow it until t=691200/);
  const wave = sample("3 + 2 * sin(2 * pi * t / 600)", 3600);
  for (let seconds = 0; seconds <= 3600; seconds += 7) {
    const next = Math.max(1, wave.findIndex(([it]) => it >= seconds));
    const [[from, low], [to, high]] = [wave[next - 1], wave[next]];
    const between = low + (high - low) * (seconds - from) / (to - from);
    assert.ok(Math.abs(between - (3 + 2 * Math.sin(2 * Math.PI * seconds / 600))) < 0.1, `at ${seconds}`);
  }
});

const LOAD = ["metrics", "resource", 0, "load"];

test("a formula is kept beside its points", () => {
  const signal = withFormula("{points: [\n{at: 0s, value: 1}, {at: 25m, value: 2}]}", "1 + t/end $& #2");
  const text = apply(template, replaceSignal(template, LOAD, signal));
  assert.deepEqual(parse(text).metrics.resource[0].load, { points: [{ at: "0s", value: 1 }, { at: "25m", value: 2 }] });
  assert.equal(describeSignal(text, LOAD).formula, "1 + t/end $& #2");
  assert.equal(describeSignal(template, LOAD).formula, "");
  const drawn = apply(text, replaceSignal(text, LOAD, "3"));
  assert.equal(describeSignal(drawn, LOAD).formula, "");
});

test("noise is put around a signal, changed and removed", () => {
  const noisy = apply(template, setNoise(template, LOAD, "10"));
  const [, load] = /^ +load: (.*)\n/m.exec(template);
  assert.equal(noisy, template.replace(load, `{noise: 10%, of: ${load}}`));
  assert.equal(describeSignal(noisy, LOAD).noise, "10");
  assert.equal(apply(noisy, setNoise(noisy, LOAD, "25")), noisy.replace("10%", "25%"));
  assert.equal(apply(noisy, setNoise(noisy, LOAD, "")), template);
  assert.equal(apply(template, setNoise(template, LOAD, "")), template);
  assert.equal(apply(noisy, replaceSignal(noisy, LOAD, "3")), template.replace(load, "{noise: 10%, of: 3}"), "the noise remains");
  const block = "metrics:\n  resource:\n    - name: cpu\n      load:\n        steps: # drawn\n          - {at: 0s, value: 1}\n      limit: 2\n";
  const inBlock = apply(block, setNoise(block, LOAD, "5"));
  assert.equal(inBlock, "metrics:\n  resource:\n    - name: cpu\n      load:\n        noise: 5%\n        of:\n          steps: # drawn\n            - {at: 0s, value: 1}\n      limit: 2\n");
  assert.equal(apply(inBlock, setNoise(inBlock, LOAD, "")), block);
});

test("noise is set and removed in every fixture with a load", () => {
  let changed = 0;
  for (const path of yamlFiles("fixtures").filter((it) => scenarios.includes(it))) {
    const text = read(path);
    const before = parse(text);
    for (const [index, { load }] of (before.metrics?.resource ?? []).entries()) {
      if (load === undefined || load.noise !== undefined) continue;
      const place = ["metrics", "resource", index, "load"];
      const noisy = apply(text, setNoise(text, place, "10"));
      assert.deepEqual(parse(noisy).metrics.resource[index].load, { noise: "10%", of: load }, path);
      assert.equal(apply(noisy, setNoise(noisy, place, "")), text, path);
      changed += 1;
    }
  }
  assert.ok(changed > 20, `${changed} loads`);
});

test("a load has labels at the same times as a timeline", () => {
  // As in the test of crates/report/src/scale.rs.
  const texts = (seconds) => timeLabels(seconds).map(({ text }) => text).join(" ");
  assert.equal(texts(60), "0s 10s 20s 30s 40s 50s 1m");
  assert.equal(texts(16 * 60), "0s 2m 4m 6m 8m 10m 12m 14m 16m");
  assert.equal(texts(86_400), "0s 3h 6h 9h 12h 15h 18h 21h 24h");
  assert.equal(texts(2 * 86_400), "0s 6h 12h 18h 1d 1d6h 1d12h 1d18h 2d");
  assert.equal(texts(8 * 86_400), "0s 1d 2d 3d 4d 5d 6d 7d 8d");
  assert.ok(texts(30 * 86_400).split(" ").length <= 9);
  assert.equal(texts(0), "0s 1s");
});
