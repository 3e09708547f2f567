// The page in Chromium, opened as a file.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { pathToFileURL } from "node:url";
import { deflateRawSync } from "node:zlib";
import puppeteer from "puppeteer-core";
import { browserPath, instance, playground, read, repository } from "./support.mjs";

const executablePath = browserPath();
const skip = executablePath ? false : "there is no Chromium";
const address = pathToFileURL(join(playground, "dist/index.html")).href;
/** Pictures that are only looked at. */
const pictures = join(playground, "dist/screenshots");
const shots = process.env.UPDATE_DOCS ? join(repository, "docs/images") : pictures;

let browser;
let context;
let page;
/** What must not happen: errors of the page, and requests. */
let wrong = [];

before(async () => {
  if (skip) return;
  mkdirSync(pictures, { recursive: true });
  browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"] });
});

after(async () => browser?.close());

/** A page of its own storage; its clipboard is a list of texts. */
async function open(fragment = "") {
  page = await context.newPage();
  await page.setViewport({ width: 1400, height: 900 });
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => {
    if (["error", "warn"].includes(message.type())) wrong.push(message.text());
  });
  page.on("request", (request) => {
    const url = request.url();
    const isOwn = url.startsWith(address) || url.startsWith("blob:") || url.startsWith("data:");
    if (!isOwn) wrong.push(`request: ${url}`);
  });
  await page.evaluateOnNewDocument(() => {
    window.copied = [];
    const writeText = async (text) => {
      if (window.noClipboard) throw new Error("denied");
      window.copied.push(text);
    };
    Object.defineProperty(navigator, "clipboard", { value: { writeText } });
  });
  await page.goto(address + fragment);
  await updated(0);
}

beforeEach(async () => {
  if (skip) return;
  wrong = [];
  await context?.close();
  context = await browser.createBrowserContext();
  await open();
});

const updates = () => page.evaluate(() => Number(document.documentElement.dataset.updates ?? 0));
const updated = (before) =>
  page.waitForFunction((count) => Number(document.documentElement.dataset.updates ?? 0) > count, {}, before);
const text = (selector) => page.$eval(selector, (element) => element.textContent);
const count = (selector) => page.$$eval(selector, (elements) => elements.length);
const scenario = () => page.$eval("#editor", (editor) => editor.querySelector(".cm-content").cmTile.root.view.state.doc.toString());

/** Does something that changes the results, and waits for them. */
async function change(action) {
  const before = await updates();
  await action();
  await updated(before);
}

/** Replaces the whole scenario, as a user does. */
async function type(scenario) {
  await page.focus(".cm-content");
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  await page.keyboard.sendCharacter(scenario);
}

const choose = (id, value) => page.select(`#${id}`, value);

async function openExample(words) {
  await page.click("#examples");
  await page.type("#dialog input[type=search]", words);
  // The words may also be in the requirement of another example.
  await change(() => page.$$eval("#dialog .entries button", (entries, name) => {
    const named = entries.find((entry) => entry.querySelector("b")?.textContent === name);
    (named ?? entries[0]).click();
  }, words));
}

const option = (name, run) => test(name, { skip, timeout: 120_000 }, async (context) => {
  await run(context);
  assert.deepEqual(wrong, []);
});

const template = read("src/cli/init/template.yaml");

option("the page shows the template and loads nothing", async () => {
  assert.equal(await scenario(), template);
  assert.equal(await text("#summary"), "101 ticks, 4 changes of the replicas");
  assert.ok(await count("#timelines svg") >= 4);
  assert.equal(await count("#problems li"), 0);
  assert.equal(await text(".panel li"), "The target has 2 replicas; 2 to 10 are allowed.");
});

option("an edit changes the timeline", async () => {
  await change(() => type(template.replace("maxReplicas: 10", "maxReplicas: 5")));
  assert.match(await text("#timelines"), /min 2, max 5/);
  const log = await text("#log");
  assert.match(log, /4 → 5/);
});

option("an error is shown at its line with a hint", async () => {
  await type(template.replace("maxReplicas: 10", "maxReplica: 10"));
  await page.waitForSelector("#problems li");
  assert.match(await text("#problems li"), /^Line 13.*"spec\.maxReplica".*Hint: did you mean `maxReplicas`\?$/s);
  await page.waitForSelector(".cm-lintRange-error");
  const marked = await page.$eval(".cm-lintRange-error", (element) => element.textContent);
  assert.equal(marked, "maxReplica");
  assert.equal(await count("#timelines.stale"), 1);
  await page.click("#problems button");
  const line = await page.$eval(".cm-activeLine", (element) => element.textContent);
  assert.equal(line.trim(), "maxReplica: 10");
  await change(() => type(template));
  assert.equal(await count("#problems li") + await count("#timelines.stale"), 0);
});

option("fields are completed and described from the schema", async () => {
  await type(`${template}\ntimeline:\n  - {at: 5m, met`);
  await page.waitForSelector(".cm-tooltip-autocomplete li");
  const options = await page.$$eval(".cm-tooltip-autocomplete .cm-completionLabel", (all) => all.map((it) => it.textContent));
  assert.ok(options.includes("metricsMissing"), options.join(" "));
  await page.waitForSelector(".cm-completionInfo");
  assert.notEqual(await text(".cm-completionInfo"), "");
  await page.keyboard.press("Escape");
  await type("hpa:\n  spec:\n    behavior:\n      scaleDown:\n        selectPolicy: D");
  await page.waitForFunction(() => document.querySelector(".cm-completionLabel")?.textContent === "Disabled");
  // The editor ignores keys for a moment, so that nobody accepts what they have not seen.
  await new Promise((resolve) => setTimeout(resolve, 300));
  await page.keyboard.press("Enter");
  assert.match(await scenario(), /selectPolicy: Disabled$/);
  await type(template);
  await page.evaluate(() => document.querySelector(".cm-scroller").scrollTo(0, 0));
  const names = await page.$$(".cm-line span");
  for (const name of names) {
    if (await name.evaluate((element) => element.textContent) === "minReplicas") await name.hover();
  }
  await page.waitForSelector(".describes");
  assert.match(await text(".describes"), /^minReplicas: integer.*lower limit/);
});

/** The box of the chart of the load, in view. */
async function loadBox() {
  const area = await page.$("#load-area");
  await area.evaluate((element) => element.scrollIntoView({ block: "center" }));
  return area.boundingBox();
}

option("a drawn load replaces the old one, and nothing else", async () => {
  const { x, y, width, height } = await loadBox();
  await change(async () => {
    await page.mouse.move(x + 2, y + height * 0.9);
    await page.mouse.down();
    await page.mouse.move(x + width * 0.5, y + height * 0.2, { steps: 12 });
    await page.mouse.move(x + width - 2, y + height * 0.9, { steps: 12 });
    await page.mouse.up();
  });
  await page.waitForFunction(() => !document.querySelector("#summary").textContent.startsWith("101 ticks, 4 "));
  const drawn = await scenario();
  const [start, end] = template.split(/load: \{steps.*?\}\]\}/);
  assert.ok(drawn.startsWith(start) && drawn.endsWith(end), drawn);
  assert.ok((drawn.match(/\{at: /g) ?? []).length > 20, drawn);
  assert.match(drawn, /value: 4/);
  // However long it took, the stroke is one step of undo.
  const press = (key) => change(async () => {
    await page.keyboard.down("Control");
    await page.keyboard.press(key);
    await page.keyboard.up("Control");
  });
  await page.focus(".cm-content");
  await press("z");
  assert.equal(await scenario(), template);
  await press("y");
  assert.equal(await scenario(), drawn);
});

option("a load is drawn with the keyboard", async () => {
  await page.focus("#load-area");
  for (const key of ["ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
  await change(() => page.keyboard.press("ArrowUp"));
  // The third of 60 parts of 25 minutes, one of 40 levels of 5 CPUs above 500m.
  assert.match(await scenario(), /\{at: 50s, value: 625m\}, \{at: 1m15s, value: 500m\}/);
  const value = await page.$eval("#load-area", (area) => area.getAttribute("aria-valuetext"));
  assert.equal(value, "cpu, shared by the ready pods: 0.625 at 50s");
});

option("shapes of loads and common settings are written into the scenario", async () => {
  await change(() => choose("load-shape", "5"));
  assert.match(await scenario(), /load: \{sine: \{mean: 2500m, amplitude: 2, period: 12m30s\}\}/);
  await change(() => choose("settings", "7"));
  const changed = await scenario();
  assert.match(changed, /\n {4}behavior:\n {6}scaleDown:\n {8}selectPolicy: Disabled\n/);
  assert.ok(changed.includes("# the target of the HPA"), "comments remain");
  await change(() => choose("settings", "9"));
  assert.doesNotMatch(await scenario(), /behavior/);
});

option("a pasted CSV is the load", async () => {
  await page.click("#load-csv");
  await page.focus("#dialog textarea");
  await page.keyboard.sendCharacter("0,0.5\n60,3\n120,3\n180,1\n");
  await change(() => page.evaluate(() => [...document.querySelectorAll("#dialog button")].find((it) => it.textContent === "Use as load").click()));
  assert.match(await scenario(), /load: \{csv: load.csv, time: "time", value: "value"\}/);
  assert.match(await text("#files"), /load\.csv/);
  assert.match(await text("#timelines"), /load\.csv: no sample from/);
  await page.click("#load-csv");
  await page.focus("#dialog textarea");
  await page.keyboard.sendCharacter("time,value\n0,1\nnoon,3\n");
  await page.evaluate(() => [...document.querySelectorAll("#dialog button")].find((it) => it.textContent === "Use as load").click());
  await page.waitForSelector("#problems li");
  assert.match(await text("#problems li"), /^load-2\.csv, line 3|load-2\.csv:3/, await text("#problems"));
});

option("a link with a release that the page lacks says so", async () => {
  const work = { path: "scenario.yaml", text: template, files: {}, release: "1.99", other: "1.98" };
  const packed = deflateRawSync(JSON.stringify(work)).toString("base64url");
  await change(() => page.evaluate((fragment) => { location.hash = fragment; }, `#1.${packed}`));
  await page.waitForFunction(() => document.querySelector("#message").textContent !== "");
  assert.match(await text("#message"), /The link is for release 1\.99, which this page does not have: it shows 1\.37\./);
  assert.match(await text("#message"), /compares with release 1\.98/);
});

option("a link contains the scenario, its files and the releases", async () => {
  await openExample("the-load-is-a-csv-file");
  await change(() => choose("release", "1.30"));
  await change(() => choose("other", "1.20"));
  await page.click("#share");
  await page.waitForFunction(() => window.copied.length > 0);
  const [link] = await page.evaluate(() => window.copied);
  const shown = async () => [
    await scenario(), await text("#figures"), await text("#files"), await text("#timelines .div"),
    ...await page.$$eval(".charts", (all) => all.map((it) => it.textContent)),
  ];
  const before = await shown();
  assert.equal(before.length, 6, "two timelines");
  const fragment = new URL(link).hash;
  assert.ok(fragment.length < 4000, `${fragment.length} characters`);
  await context.close();
  context = await browser.createBrowserContext();
  await open(fragment);
  assert.deepEqual(await shown(), before);
  const releases = await page.$$eval("#release, #other", (all) => all.map((it) => it.value));
  assert.deepEqual(releases, ["1.30", "1.20"]);
});

option("a damaged link is an error, and the page still works", async () => {
  await context.close();
  context = await browser.createBrowserContext();
  await open("#1.abc");
  assert.equal(await text("#message"), "This link is incomplete or damaged.");
  assert.equal(await scenario(), template);
});

option("without a clipboard, the link is shown", async () => {
  await page.evaluate(() => {
    window.noClipboard = true;
  });
  await page.click("#share");
  await page.waitForSelector("#dialog[open] textarea");
  const shown = await page.$eval("#dialog textarea", (area) => area.value);
  assert.equal(shown, page.url());
});

option("the work survives a reload", async () => {
  await change(() => type(template.replace("maxReplicas: 10", "maxReplicas: 7")));
  await page.reload();
  await updated(0);
  assert.match(await scenario(), /maxReplicas: 7/);
});

option("the manifest of the HPA is copied as written", async () => {
  await page.click("#copy-hpa");
  await page.waitForFunction(() => window.copied.length > 0);
  const [manifest] = await page.evaluate(() => window.copied);
  assert.match(manifest, /^apiVersion: autoscaling\/v2\nkind: HorizontalPodAutoscaler\nmetadata: \{name: web\}\nspec:\n {2}scaleTargetRef/);
  assert.match(manifest, /averageUtilization: 60/);
  assert.doesNotMatch(manifest, /workload|metrics:\n {2}resource/);
});

option("the scenario and its ticks are downloaded", async () => {
  const folder = mkdtempSync(join(tmpdir(), "playground-"));
  try {
    const session = await browser.target().createCDPSession();
    const { browserContextId } = (await page.target().createCDPSession()
      .then((it) => it.send("Target.getTargetInfo"))).targetInfo;
    await session.send("Browser.setDownloadBehavior", { behavior: "allow", browserContextId, downloadPath: folder });
    const file = async (id, name) => {
      await page.click(`#${id}`);
      for (let tries = 0; tries < 100 && !readdirSync(folder).includes(name); tries += 1) {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return readFileSync(join(folder, name), "utf8");
    };
    assert.equal(await file("download", "web.yaml"), template);
    const module = await instance();
    const request = { method: "csv", path: "scenario.yaml", text: template, release: "1.37" };
    const expected = JSON.parse(module.answer(JSON.stringify(request))).text;
    assert.equal(await file("csv", "web-ticks.csv"), expected);
    assert.equal(expected.trimEnd().split("\n").length, 102);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const selectedTick = async () => Number((await text("#log .selected td")).trim());

option("ticks are stepped through, played and explained", async () => {
  assert.equal(await selectedTick(), 9, "the first change of the replicas");
  await openExample("docs-walkthrough-php-apache");
  assert.equal(await selectedTick(), 1, "also of another scenario");
  await openExample("template");
  await page.click("#first");
  assert.equal(await selectedTick(), 1);
  await page.click("#forward");
  await page.click("#forward");
  assert.equal(await selectedTick(), 3);
  assert.match(await text(".panel .head"), /tick 3/);
  await choose("speed", "60");
  await page.click("#play");
  assert.equal(await text("#play"), "Pause");
  const isHidden = await page.$eval(".future", (it) => getComputedStyle(it).display === "block");
  assert.ok(isHidden, "what follows is covered while playing");
  await page.waitForFunction(() => Number(document.querySelector("#log .selected td").textContent) > 12);
  await page.click("#play");
  const tick = await selectedTick();
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(await selectedTick(), tick, "the pause holds");
  await page.click("#play");
  await page.waitForFunction(() => document.querySelector("#play").textContent === "Play", { timeout: 20_000 });
  assert.equal(await selectedTick(), 101, "it ends at the last tick");
  await page.focus(".cur");
  await page.keyboard.press("Home");
  assert.equal(await selectedTick(), 1);
  await page.evaluate(() => [...document.querySelectorAll("#log button")].find((it) => it.textContent === "9").click());
  assert.match(await text(".panel .head"), /tick 9/);
  await page.click("#details");
  await page.waitForSelector("#dialog[open] pre");
  const explained = await text("#dialog pre");
  assert.match(explained, /^Written$/m);
  assert.match(explained, /SuccessfulRescale/);
});

option("two releases are compared, and the change is explained", async () => {
  await openExample("docs-walkthrough-php-apache");
  await change(() => choose("other", "1.36"));
  assert.equal(await count("#timelines .fig"), 2);
  assert.match(await text("#timelines"), /Since 1\.37: /);
  assert.equal(await count("#figures tbody tr"), 2);
  await page.click("#last");
  const cursors = await page.$$eval(".cur", (all) => all.map((it) => it.style.getPropertyValue("--p")));
  assert.equal(cursors[0], cursors[1], "both timelines show the same time");
  assert.equal(await text(".panel .head b"), `tick ${await selectedTick()}`);
  await change(() => choose("other", "1.37"));
  assert.equal(await count("#timelines .fig"), 1);
  await change(() => choose("other", ""));
});

option("examples of manifests and pasted manifests become scenarios", async () => {
  await openExample("examples/orders");
  assert.match(await scenario(), /queue_messages_ready/);
  assert.ok(await count("#timelines svg") >= 3);
  await page.click("#manifests");
  const manifests = `${read("examples/php-apache/hpa.yaml")}---\n${read("examples/php-apache/deployment.yaml")}`;
  await page.focus("#dialog textarea");
  await page.keyboard.sendCharacter(manifests.replace("maxReplicas: 10", "maxReplicas: ten"));
  await page.evaluate(() => [...document.querySelectorAll("#dialog button")].find((it) => it.textContent === "Make a scenario").click());
  await page.waitForFunction(() => document.querySelector("#dialog .bad-text").textContent !== "");
  assert.match(await text("#dialog .bad-text"), /^Line 12: /);
  await page.$eval("#dialog textarea", (area, value) => {
    area.value = value;
  }, manifests);
  await change(() => page.evaluate(() => [...document.querySelectorAll("#dialog button")].find((it) => it.textContent === "Make a scenario").click()));
  assert.match(await scenario(), /name: php-apache/);
  assert.match(await text("#message"), /^The scenario is made from the manifests\./);
  await type(manifests);
  await page.waitForSelector("#problems > button");
  await change(() => page.click("#problems > button"));
  assert.match(await scenario(), /^kind: Scenario$/m);
});

option("every example can be opened", async () => {
  await page.click("#examples");
  const names = await page.$$eval("#dialog .entries b", (all) => all.map((it) => it.textContent));
  await page.click("#dialog-close");
  assert.ok(names.length > 300);
  // Every twentieth in the page; the other test runs all of them on the module.
  const both = names.filter((name) => name.startsWith("hpa-and-vpa/"));
  assert.ok(both.length >= 10, "scenarios with an HPA and a VPA are among them");
  for (const name of [...both, ...names.filter((_, index) => index % 20 === 3)]) {
    await openExample(name);
    assert.equal(await count("#problems li"), 0, name);
  }
});

option("an hour of ticks is updated in less than 50 ms while typing", async (context) => {
  await change(() => type(template.replace("until: 25m", "until: 60m")));
  assert.match(await text("#summary"), /^241 ticks/);
  await page.keyboard.down("Control");
  await page.keyboard.press("End");
  await page.keyboard.up("Control");
  await change(() => page.keyboard.type("#"));
  const times = [];
  // A busy machine makes single updates slow, hence the median, and another try.
  for (let round = 0; round < 3; round += 1) {
    times.length = 0;
    for (let index = 0; index < 40; index += 1) {
      await change(() => page.keyboard.type("x"));
      times.push(Number(await page.evaluate(() => document.documentElement.dataset.took)));
    }
    times.sort((one, other) => one - other);
    if (times[20] < 50) break;
  }
  context.diagnostic(`from the edit to the new page: median ${times[20]} ms, 90% within ${times[36]} ms`);
  assert.ok(times[20] < 50, `median ${times[20]} ms`);
});

option("a prediction that takes long is replaced by the next one", async () => {
  await type(template.replace("until: 25m", "until: 4000h"));
  await new Promise((resolve) => setTimeout(resolve, 500));
  await change(() => type(template));
  assert.equal(await text("#summary"), "101 ticks, 4 changes of the replicas");
});

option("nothing is wider than the screen, and everything has a name", async () => {
  for (const width of [360, 768, 1400]) {
    await page.setViewport({ width, height: 900 });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `${overflow} pixels at ${width}`);
  }
  const unnamed = await page.$$eval("button, input, select, textarea, [role=slider]", (all) =>
    all.filter((it) => !(it.textContent.trim() || it.ariaLabel || it.labels?.length || it.getAttribute("aria-labelledby")))
      .map((it) => it.outerHTML));
  assert.deepEqual(unnamed, []);
});

option("screenshots", async () => {
  await openExample("docs-walkthrough-php-apache");
  for (const [name, width, height, scheme] of [
    ["playground", 1320, 900, "light"],
    ["playground-tablet", 820, 1100, "light"],
    ["playground-phone", 390, 844, "dark"],
  ]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.setViewport({ width, height });
    // Below the editor on narrow screens.
    await page.evaluate((isNarrow) => {
      document.activeElement?.blur();
      if (isNarrow) document.querySelector("#timeline-title").scrollIntoView();
      else scrollTo(0, 0);
    }, width < 1000);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const picture = await page.screenshot({ type: "webp", quality: 85 });
    writeFileSync(join(shots, `${name}.webp`), picture);
    assert.ok(picture.length < 100_000, `${name} has ${picture.length} bytes`);
  }
});

const OOM = "fixtures/vpa/oom/before-the-end-of-the-interval.yaml";

option("a scenario of a VPA has its charts, releases, decisions and errors", async () => {
  await change(() => choose("release", "1.30"));
  await openExample("before-the-end-of-the-interval");
  assert.equal(await scenario(), read(OOM));
  const captions = await page.$$eval("#timelines .cap b", (caps) => caps.map((cap) => cap.textContent));
  assert.deepEqual(captions.slice(0, 2), ["app cpu", "app memory"]);
  assert.ok(await count("#timelines path.band") >= 2);
  assert.match(await text("#summary"), /^\d+ ticks$/);
  assert.equal(await count("#figures table"), 0);
  const releases = await page.$$eval("#release option", (options) => options.map((it) => it.value));
  assert.deepEqual([releases[0], releases.at(-1)], ["vpa-1.8", "vpa-0.10"]);
  assert.match(await text("#log tbody tr:first-child"), /^11h.*app cpu .*, memory .*RecommendationProvided=True/);
  // The usage can be drawn.
  assert.match(await text("#load-metric"), /cpu of each pod/);
  await page.click("#details");
  await page.waitForFunction(() => document.querySelector("#dialog").textContent.includes("target.cpu: the 0.9 percentile"));
  await page.click("#dialog-close");
  assert.equal(await text("#copy-hpa"), "Copy VPA");
  await page.click("#copy-hpa");
  await page.waitForFunction(() => window.copied.length > 0);
  assert.match((await page.evaluate(() => window.copied)).at(-1), /^apiVersion: autoscaling.k8s.io\/v1\nkind: VerticalPodAutoscaler/);
  // Both releases, with the change that explains the difference.
  await change(() => choose("other", "vpa-1.7"));
  assert.match(await text("#timelines"), /Changed: tick .*Since vpa-1\.8: /);
  assert.equal(await count("#timelines .fig"), 2);
  await change(() => choose("other", ""));
  // An error is at its line.
  await type(read(OOM).replace("targetRef:", "targetref:"));
  await page.waitForSelector("#problems li");
  const line = read(OOM).split("\n").findIndex((it) => it.includes("targetRef:")) + 1;
  assert.match(await text("#problems li"), new RegExp(`^Line ${line}unknown field \`targetref\`.*did you mean \`targetRef\``));
  // The release of HPAs is kept.
  await change(() => type(template));
  assert.equal(await page.$eval("#release", (select) => select.value), "1.30");
});

option("a scenario with an HPA and a VPA has the charts, decisions and explanations of both", async () => {
  await openExample("hpa-and-vpa/both-on-cpu-feed-back");
  const figures = () => page.$$eval("#timelines .fig", (all) => all.map((it) => it.className));
  assert.deepEqual(await figures(), ["fig hpa", "fig vpa"]);
  const captions = await page.$$eval("#timelines .fig.vpa .cap b", (caps) => caps.map((cap) => cap.textContent));
  assert.deepEqual(captions.slice(0, 1), ["app cpu"]);
  assert.ok(await count("#timelines .fig.vpa path.band") >= 1);
  assert.match(await text("#summary"), /^\d+ ticks, \d+ changes of the replicas$/);
  assert.equal(await count("#figures table"), 1);
  assert.equal(await count("#log table"), 2, "the ticks of the HPA and the runs of the recommender");
  assert.match(await text("#log table:last-of-type tbody"), /app cpu /);
  // Both timelines show the same time.
  await page.evaluate(() => [...document.querySelectorAll("#log table:last-of-type button")].at(-1).click());
  const run = Number(await page.$eval("#log table:last-of-type tr:last-child button", (it) => it.textContent));
  assert.equal(await text(".fig.vpa .panel .head b"), `tick ${run}`);
  const places = await page.$$eval(".cur", (all) => all.map((it) => Number(it.style.getPropertyValue("--p"))));
  assert.ok(Math.abs(places[0] - places[1]) < 0.01, places.join(" "));
  await page.click("#details");
  await page.waitForSelector("#dialog[open] pre");
  const explained = await text("#dialog pre");
  assert.match(explained, /^Decision$/m);
  assert.match(explained, /of the recommender, t=/);
  assert.match(explained, /target\.cpu: the 0\.9 percentile/);
  await page.click("#dialog-close");
  assert.equal(await text("#copy-hpa"), "Copy HPA and VPA");
  await page.click("#copy-hpa");
  await page.waitForFunction(() => window.copied.length > 0);
  const copied = (await page.evaluate(() => window.copied)).at(-1);
  assert.match(copied, /^kind: HorizontalPodAutoscaler$/m);
  assert.match(copied, /^---\napiVersion: autoscaling.k8s.io\/v1\nkind: VerticalPodAutoscaler$/m);
  // Older releases of Kubernetes replace pods instead of resizing them; both have both timelines.
  await change(() => choose("other", "1.30"));
  const compared = await figures();
  assert.ok(compared.length === 2 || compared.length === 4, compared.join(", "));
  await change(() => choose("other", ""));
  await page.screenshot({ path: join(pictures, "playground-hpa-and-vpa.png"), fullPage: true });
});

option("manifests of a VPA become a scenario of eight days", async (context) => {
  await openExample("examples/hamster");
  assert.match(await scenario(), /^vpa:$/m);
  assert.equal(await text("#summary"), "11520 ticks");
  assert.ok(await count("#log tbody tr") > 10);
  const took = await page.evaluate(() => Number(document.documentElement.dataset.took));
  context.diagnostic(`eight days of ticks each minute are shown after ${took} ms`);
  await page.screenshot({ path: join(pictures, "playground-vpa.png"), fullPage: true });
});
