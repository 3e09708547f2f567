// The playground: connects the editor, the load, the model and the results.

import { fromBase64, inflate } from "./bytes.ts";
import * as dialogs from "./dialogs.ts";
import { button, byId, download, make, option } from "./dom.ts";
import { difference, kindsOf, manifests, nameOf, namesOf, replaceBehavior, replaceInSpec, replaceSignal } from "./edit.ts";
import { Editor, type Place } from "./editor.ts";
import { Form } from "./form.ts";
import { Library, resolve, TEMPLATE } from "./library.ts";
import { Load } from "./load.ts";
import { Releases } from "./releases.ts";
import {
  type About, type Comparison, Failed, type Finding, type Found, type Kind, Model, type Prediction, type Problem, Refused, type Subject,
  Superseded, type Tuned,
} from "./model.ts";
import { Results } from "./results.ts";
import { type Path, type Schema, SchemaOfScenarios } from "./schema.ts";
import { SETTINGS } from "./settings.ts";
import { fromFragment, isWork, toFragment, type Work } from "./share.ts";
import { CantChange, type Change } from "./values.ts";

/** The key of the work in the storage of the browser, which survives a reload. */
const STORED = "kube-lockstep-playground";

/** The largest number of settings that a search predicts. */
const MOST_SETTINGS = 300;

/** The number of ticks that a search for differences predicts, which takes some seconds. */
const TICKS = 300_000;

/** The largest number of states of a search: each needs about 4 kB of memory. */
const MOST_STATES = 100_000;

/** The name of a scenario that is from nowhere else. */
const UNNAMED = "scenario.yaml";

class Page {
  private readonly model: Model;
  /** The model of searches. */
  private readonly searching: Model;
  private readonly library: Library;
  private readonly editor: Editor;
  private readonly form: Form;
  private readonly load: Load;
  private readonly results: Results;
  private readonly releases: Releases;
  /** When the text was changed that is not shown yet. */
  private changedAt: number | undefined;
  private isScheduled = false;
  /** The stroke with which a load is drawn, or a value is dragged or typed, and the text before it. */
  private stroke: { by: string; before: string } | undefined;

  constructor(model: Model, searching: Model, library: Library, about: About) {
    this.model = model;
    this.searching = searching;
    this.library = library;
    this.releases = new Releases(about, { changed: () => this.changed() });
    const schema = about.schema as Schema;
    this.editor = new Editor(byId("editor"), new SchemaOfScenarios(schema), {
      changed: (isStroke) => {
        // A stroke would go on from the text before it.
        if (!isStroke) this.stroke = undefined;
        this.changed();
      },
      moved: () => this.showScenario(),
    });
    this.form = new Form({
      changed: (field, change, isOpen) => this.draw(field, change, isOpen),
      ended: () => this.endStroke(),
    });
    this.load = new Load({
      changed: (by, change, isOpen) => this.draw(by, change, isOpen),
      ended: () => this.endStroke(),
      pasteCsv: (path) => this.pasteCsv(path),
    });
    this.results = new Results({ explain: (tick) => void this.explain(tick) });
    this.listen();
  }

  /** Everything that the page depends on. */
  get work(): Work {
    const { path, files } = this.editor.place;
    return { path, text: this.editor.text, files, ...this.releases.chosen };
  }

  set work(work: Work) {
    this.endStroke();
    this.releases.chosen = work;
    this.editor.open(work.text, { path: work.path, files: { ...work.files } });
    this.showScenario();
  }

  /** Another scenario is in the editor. */
  private showScenario(): void {
    this.results.reset();
    this.form.reset();
    this.showFiles();
    this.changed();
  }

  private get subject(): Subject {
    const { path, text, files, release, vpaRelease } = this.work;
    return { path, text, files, release, vpaRelease: vpaRelease ?? "" };
  }

  /** Shows a scenario without other files. */
  private open(text: string, path = UNNAMED, files: Record<string, string> = {}): void {
    this.work = { ...this.work, text, path, files };
  }

  private listen(): void {
    const on = (id: string, action: () => void | Promise<void>): void => {
      byId(id).addEventListener("click", () => void this.attempt(action));
    };
    byId("bar").addEventListener("submit", (event) => event.preventDefault());
    const settings = byId<HTMLSelectElement>("settings");
    settings.append(...SETTINGS.map(({ title }, index) => option(String(index), title)));
    settings.addEventListener("change", () => {
      const setting = SETTINGS[Number(settings.value)];
      if (setting) this.edit((text) => replaceBehavior(text, setting.behavior));
      settings.value = "";
    });
    on("examples", () => this.chooseExample());
    on("manifests", () => this.askManifests());
    on("share", () => this.share());
    on("tune", () => this.findSettings());
    on("upgrade", () => this.findChanges());
    on("check", () => this.findCounterexample());
    on("copy-hpa", () => this.copyHpa());
    on("download", () => this.download());
    on("csv", async () => {
      const { text } = await this.model.csv(this.subject);
      download(`${nameOf(this.editor.text)}-ticks.csv`, text, "text/csv");
    });
    on("print", () => window.print());
    window.addEventListener("hashchange", () => void this.attempt(() => this.openFragment()));
  }

  /** Runs an action, and shows its error. */
  private async attempt(action: () => void | Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      if (error instanceof Superseded) return;
      this.say(error instanceof Error ? error.message : String(error), true);
    }
  }

  private say(text: string, isBad = false): void {
    const message = byId("message");
    message.textContent = text;
    message.classList.toggle("bad", isBad);
  }

  /**
   * Changes the text while a load is drawn or a value is entered. A whole stroke is one step of undo, and
   * each of its changes is one of the text before it: what a half-typed value does is not kept.
   */
  private draw(by: string, change: (text: string) => Change, isOpen: boolean): void {
    if (this.stroke?.by !== by) this.endStroke();
    this.stroke ??= { by, before: this.editor.text };
    const { before } = this.stroke;
    this.attemptChange(() => {
      const { from, to, insert } = change(before);
      const after = before.slice(0, from) + insert + before.slice(to);
      this.editor.draw(difference(this.editor.text, after));
    });
    if (!isOpen) this.endStroke();
  }

  private endStroke(): void {
    const before = this.stroke?.before;
    this.stroke = undefined;
    this.editor.endStroke(before === this.editor.text);
  }

  /** Changes a part of the text as one step of undo. */
  private edit(change: (text: string) => Change, place?: Place): void {
    this.endStroke();
    this.attemptChange(() => this.editor.apply(change(this.editor.text), place));
  }

  private attemptChange(action: () => void): void {
    try {
      action();
      this.say("");
    } catch (error) {
      if (!(error instanceof CantChange)) throw error;
      this.say(error.message, true);
    }
  }

  /** Predicts the scenario once, however many changes there are before the next task. */
  private changed(): void {
    this.changedAt ??= performance.now();
    if (this.isScheduled) return;
    this.isScheduled = true;
    queueMicrotask(() => {
      this.isScheduled = false;
      void this.attempt(() => this.predict());
    });
  }

  private async predict(): Promise<void> {
    const { text } = this.editor;
    const kinds = kindsOf(text);
    this.showKinds(kinds);
    const { subject } = this;
    const { other, isCompared } = this.releases;
    const since = this.changedAt;
    byId("path").textContent = subject.path === UNNAMED ? "" : subject.path;
    try {
      const requests: [Promise<Prediction>, Promise<Comparison> | undefined] =
        [this.model.predict(subject), isCompared ? this.model.compare(subject, other) : undefined];
      // The worker runs meanwhile.
      this.form.show(text, kinds.includes("hpa"));
      const [prediction, comparison] = await Promise.all(requests);
      this.showProblems([], prediction.findings);
      byId("check").hidden = prediction.hasSearch !== true;
      this.form.offer(prediction.settings);
      // The text can have changed meanwhile.
      this.load.show(prediction.loads, prediction.seconds, this.editor.text);
      this.results.show(prediction, comparison);
      this.showUpdateTime(since);
    } catch (error) {
      if (error instanceof Superseded) return;
      this.changedAt = undefined;
      this.results.stale();
      if (error instanceof Refused) this.showProblems(error.problems);
      else if (error instanceof Failed) this.showFailure(error);
      else throw error;
    }
    this.store();
  }

  /** Shows the releases and the buttons for the kinds of autoscalers of a scenario. */
  private showKinds(kinds: Kind[]): void {
    // With an HPA, the scenario names the release of the VPA.
    this.releases.kind = kinds[0] ?? "hpa";
    byId("copy-hpa").textContent = `Copy ${namesOf(kinds)}`;
    byId("upgrade").hidden = this.releases.kind !== "hpa";
  }

  private showUpdateTime(since: number | undefined): void {
    this.changedAt = undefined;
    if (since === undefined) return;
    const took = Math.max(1, Math.round(performance.now() - since));
    byId("speed-of-update").textContent = `updated in ${took} ms`;
    document.documentElement.dataset["updates"] =
      String(Number(document.documentElement.dataset["updates"] ?? 0) + 1);
    document.documentElement.dataset["took"] = String(took);
  }

  private showProblems(problems: Problem[], findings: Finding[] = []): void {
    this.editor.mark([...problems, ...findings]);
    this.form.mark(problems);
    this.load.mark(problems, this.editor.text);
    const item = ({ file, line, column, what, hint }: Problem, className = "", ...more: Node[]): HTMLElement => {
      const place = file ? `${file}, line ${line}` : `Line ${line}`;
      const go = button(place, () => this.editor.go(line, column));
      const isHere = line > 0 && !file;
      const start: (Node | string)[] = isHere ? [go] : file && line > 0 ? [make("b", {}, `${place}: `)] : [];
      const hints = hint ? [make("span", { className: "hint" }, `Hint: ${hint}`)] : [];
      return make("li", { className }, ...start, what, ...hints, ...more);
    };
    const items = problems.map((problem) => item(problem));
    const found = findings.map((finding) => {
      const { level, rule, reason, link } = finding;
      const more = make("a", { href: link, rel: "noreferrer", target: "_blank" }, rule);
      return item(finding, `finding ${level}`, make("span", { className: "hint" }, `${level}: `, more, `. ${reason}`));
    });
    const list: Node[] = items.length + found.length > 0 ? [make("ul", {}, ...items, ...found)] : [];
    const { text } = this.editor;
    const isManifest = /^kind: *(Horizontal|Vertical)PodAutoscaler\b/m.test(text) && !/^kind: *Scenario\b/m.test(text);
    if (items.length > 0 && isManifest) {
      list.push(button("Make a scenario from this manifest", () => void this.attempt(() => this.draft(text, []))));
    }
    byId("problems").replaceChildren(...list);
  }

  private showFailure(error: Failed): void {
    const what = `The model failed on this scenario. This is a bug: please report it with a link to the scenario. (${error.message})`;
    this.showProblems([{ line: 0, column: 0, what }]);
  }

  private store(): void {
    try {
      localStorage.setItem(STORED, JSON.stringify(this.work));
    } catch {
      // Without storage, a reload begins with the template.
    }
  }

  /** The work of the last visit, if any. */
  private stored(): Work | undefined {
    try {
      const work: unknown = JSON.parse(localStorage.getItem(STORED) ?? "");
      // An empty scenario is of no use to anybody.
      return isWork(work) && work.text.trim() !== "" ? work : undefined;
    } catch {
      return undefined;
    }
  }

  /** Shows the scenario of the link, of the last visit, or the template. */
  async begin(): Promise<void> {
    const template: Work = { ...this.work, text: TEMPLATE, path: UNNAMED, files: {}, other: "" };
    let shared: Work | undefined;
    await this.attempt(async () => {
      shared = await fromFragment(location.hash);
    });
    const work = shared ?? this.stored() ?? template;
    this.releases.chosen = work;
    this.editor.begin(work.text, { path: work.path, files: { ...work.files } });
    this.showScenario();
    if (shared) this.checkReleases(shared);
  }

  private async openFragment(): Promise<void> {
    const work = await fromFragment(location.hash);
    if (!work) return;
    this.work = work;
    this.checkReleases(work);
  }

  /** Says so if the page does not have the releases of a link. */
  private checkReleases(linked: Work): void {
    const { release, other } = this.work;
    const texts = [
      linked.release === release ? "" : `The link is for release ${linked.release}, which this page does not have: it shows ${release}.`,
      linked.other === other ? "" : `The link compares with release ${linked.other}, which this page does not have.`,
    ];
    const text = texts.filter((it) => it !== "").join(" ");
    if (text !== "") this.say(text, true);
  }

  private showFiles(): void {
    const shown = Object.entries(this.editor.place.files).map(([path, text]) => {
      const lines = text.trimEnd().split("\n").length;
      const name = path.split("/").pop() ?? path;
      return make(
        "span",
        { className: "file" },
        button(name, () => dialogs.showText(path, text)),
        `${lines} ${lines === 1 ? "line" : "lines"}`,
      );
    });
    byId("files").replaceChildren(...shown);
  }

  private chooseExample(): void {
    const template = { path: "template", about: "A scenario with comments, to start from" };
    dialogs.chooseExample([template, ...this.library.entries()], (path) => {
      void this.attempt(() => this.openExample(path));
    });
  }

  async openExample(path: string): Promise<void> {
    this.say("");
    if (path === "template") return this.open(TEMPLATE);
    const found = this.library.manifests(path);
    if (found) {
      const { text } = await this.model.draft(found.text, found.load);
      return this.open(text, `${path}.yaml`);
    }
    this.open(this.library.text(path) ?? "", path, this.library.filesOf(path));
  }

  private askManifests(): void {
    dialogs.askManifests({
      make: (text, load) => this.draft(text, load),
      check: async (text, load) => (await this.model.lint(text, load, this.work.release)).findings,
    });
  }

  /** Opens a scenario from manifests. */
  private async draft(text: string, load: string[]): Promise<void> {
    const draft = await this.model.draft(text, load);
    const comments = [
      ...draft.notes.map((note) => `# Note: ${note}\n`),
      ...draft.examples.map((what) => `# Replace the example: ${what}\n`),
    ];
    this.open(comments.join("") + draft.text);
    const others = draft.others.length > 0 ? ` Other autoscalers are left out: ${draft.others.join(", ")}.` : "";
    this.say(`The scenario is made from the manifests.${others}`);
  }

  private pasteCsv(path: Path): void {
    dialogs.askCsv(({ text, time, value, unit }) => {
      const { path: own, files } = this.editor.place;
      const folder = folderOf(own);
      let name = "load.csv";
      for (let number = 2; files[folder + name] !== undefined; number += 1) name = `load-${number}.csv`;
      const column = (name: string): string => JSON.stringify(name);
      const units = unit === "" ? "" : `, unit: ${JSON.stringify(unit)}`;
      const signal = `{csv: ${name}, time: ${column(time)}, value: ${column(value)}${units}}`;
      const place = { path: own, files: { ...files, [folder + name]: text } };
      this.edit((scenario) => replaceSignal(scenario, path, signal), place);
      this.showFiles();
    });
  }

  private async explain(tick: number): Promise<void> {
    await this.attempt(async () => {
      const { text } = await this.model.explain(this.subject, tick);
      dialogs.showText(`Tick ${tick}`, text);
    });
  }

  /** Searches in a separate worker, so that predictions do not wait for it. */
  private search<T extends Found>(search: Omit<dialogs.Search<T>, "cancel">): void {
    dialogs.showSearch({ ...search, cancel: () => this.searching.cancel() });
  }

  private findSettings(): void {
    const objective = make("input", { value: "missing<=+0,above<=+0", size: 36, spellcheck: false });
    this.search<Tuned>({
      title: "Find better settings",
      about: "The search varies the targets, the limits and the behavior of the HPA, and predicts each setting under the load of the scenario. It looks for the setting with the fewest pod-hours that meets the objective.",
      hint: "Bounds, separated by commas: missing<=0.1, above<=5m, peak<=20, changes<=10; <=+0 means: not more than with the current setting.",
      fields: [["Objective", objective]],
      unit: "settings",
      run: (watch) => this.searching.tune(this.subject, objective.value, MOST_SETTINGS, watch),
      use: {
        title: "Use the best setting",
        action: ({ settings, patches }) => {
          const best = settings.find(({ name }) => name === "best");
          return best === undefined || best.about === "" ? undefined : () => this.applySettings(patches);
        },
      },
    });
  }

  private applySettings(patches: Tuned["patches"]): void {
    for (const { hpa, patch, manifest } of patches) {
      const names = Object.keys(patch.spec ?? {});
      const fields = Object.fromEntries(names.map((name) => [name, manifest.spec[name]]));
      this.edit((text) => replaceInSpec(text, hpa, fields));
    }
  }

  /** Searches for the differences between two releases. */
  private findChanges(): void {
    const [from, to] = this.releases.selects();
    this.search({
      title: "What changes in another release",
      about: "The search predicts the HPA on both releases, and after each change between them: on the load of the scenario, and on generated loads and events. For each change with an effect on one of these loads, it shows the simplest load found.",
      hint: `The search predicts ${TICKS.toLocaleString("en")} ticks on generated loads; kube-lockstep upgrade --ticks can predict more.`,
      fields: [["From", from], ["to", to]],
      unit: "ticks",
      run: (watch) => this.searching.upgrade({ ...this.subject, release: from.value }, to.value, TICKS, watch),
      open: {
        title: "Open the example",
        action: (scenario) => this.openWithSameFiles(scenario, "example.yaml", { release: to.value, other: from.value }),
      },
    });
  }

  /** Searches for choices with which an expectation is not met. */
  private findCounterexample(): void {
    this.search({
      title: "Check all choices",
      about: "The search tries all choices that the scenario lists in its field search. It finds the shortest run in which an expectation is not met, or proves that there is none.",
      hint: `The search stops at ${MOST_STATES.toLocaleString("en")} states; kube-lockstep check --states can allow more.`,
      fields: [],
      unit: "states",
      run: (watch) => this.searching.check(this.subject, MOST_STATES, watch),
      open: { title: "Open the counterexample", action: (scenario) => this.openWithSameFiles(scenario, "counterexample.yaml") },
    });
  }

  /** Opens a scenario that refers to the same files. */
  private openWithSameFiles(text: string, name: string, releases: Partial<Work> = {}): void {
    const { path, files } = this.editor.place;
    this.work = { ...this.work, text, path: folderOf(path) + name, files, ...releases };
  }

  private async share(): Promise<void> {
    const fragment = await toFragment(this.work);
    const link = location.href.replace(/#.*$/, "") + fragment;
    history.replaceState(null, "", fragment);
    await this.copy(link, "The link is copied. It contains the whole scenario.", "Link to this scenario");
  }

  private async copyHpa(): Promise<void> {
    const { path, files } = this.editor.place;
    const text = manifests(this.editor.text, (name) => files[resolve(folderOf(path), name)]);
    const kinds = kindsOf(this.editor.text);
    const done = kinds.length > 1 ? "The manifests of the HPA and the VPA are copied." : `The manifest of the ${namesOf(kinds)} is copied.`;
    await this.copy(text, done, `Manifest of the ${namesOf(kinds)}`);
  }

  private async copy(text: string, done: string, title: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.say(done);
    } catch {
      dialogs.showToCopy(title, text);
    }
  }

  private download(): void {
    const { path, files } = this.editor.place;
    const name = path === UNNAMED ? `${nameOf(this.editor.text)}.yaml` : path.split("/").pop() ?? UNNAMED;
    download(name, this.editor.text, "application/yaml");
    for (const [path, text] of Object.entries(files)) {
      download(path.split("/").pop() ?? path, text, "text/plain");
    }
    const count = Object.keys(files).length;
    this.say(count === 0 ? "" : "The scenario and the files that it refers to are downloaded.");
  }
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/") + 1);
}

async function start(): Promise<void> {
  const packed = byId("module").textContent ?? "";
  const [module, library] = await Promise.all([inflate(fromBase64(packed), "gzip"), Library.open()]);
  const model = new Model(module);
  const about = await model.about();
  const page = new Page(model, new Model(module), library, about);
  byId("oldest").textContent = about.releases[0] ?? "";
  byId("newest").textContent = about.releases.at(-1) ?? "";
  byId("version").textContent = about.version;
  await page.begin();
}

start().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  byId("timelines").textContent = `The playground can't start in this browser: ${message}`;
});
