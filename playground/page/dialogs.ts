// The dialogs: examples, manifests, pasted CSV, and texts.

import { readTable } from "./csv.ts";
import { button, byId, make, option } from "./dom.ts";
import type { Entry } from "./library.ts";
import type { Watch } from "./instance.ts";
import { type Finding, type Found, type Problem, Refused, Superseded } from "./model.ts";

const dialog = byId<HTMLDialogElement>("dialog");

function open(title: string, ...content: (Node | string)[]): void {
  byId("dialog-title").textContent = title;
  byId("dialog-body").replaceChildren(...content);
  dialog.showModal();
}

export function close(): void {
  dialog.close();
}

/** Shows a text, for example the full derivation of a tick. */
export function showText(title: string, text: string): void {
  open(title, make("pre", { tabIndex: 0 }, text));
}

/** Shows a text to be copied by hand, where the clipboard can't be used. */
export function showToCopy(title: string, text: string): void {
  const area = make("textarea", { value: text, readOnly: true });
  area.setAttribute("aria-label", title);
  open(title, area);
  area.select();
}

export function chooseExample(entries: Entry[], choose: (path: string) => void): void {
  const search = make("input", { type: "search", placeholder: "Search, for example: stabilization" });
  search.setAttribute("aria-label", "Search");
  const list = make("div", { className: "entries" });
  const filter = (): void => {
    const words = search.value.toLowerCase().split(/\s+/);
    const found = entries.filter(({ path, about }) => {
      const text = `${path} ${about}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const buttons = found.map(({ path, about }) => {
      const entry = button("", () => {
        close();
        choose(path);
      });
      const name = path.replace(/^fixtures\//, "").replace(/\.yaml$/, "");
      entry.append(make("b", {}, name), make("span", {}, about));
      return entry;
    });
    list.replaceChildren(...(buttons.length > 0 ? buttons : ["No example matches."]));
  };
  search.addEventListener("input", filter);
  filter();
  open("Examples", search, list);
  search.focus();
}

/** A text area that also takes a file. */
function textOrFile(label: string, accept: string): { area: HTMLTextAreaElement; file: HTMLInputElement } {
  const area = make("textarea", { spellcheck: false });
  area.setAttribute("aria-label", label);
  const file = make("input", { type: "file", accept });
  file.setAttribute("aria-label", "Choose a file instead");
  file.addEventListener("change", async () => {
    const chosen = file.files?.[0];
    if (!chosen) return;
    area.value = await chosen.text();
    area.dispatchEvent(new Event("input"));
  });
  return { area, file };
}

/** What the dialog for manifests needs from the page. */
export interface ManifestEvents {
  make(text: string, load: string[]): Promise<void>;
  check(text: string, load: string[]): Promise<Finding[]>;
}

/** Asks for manifests. */
export function askManifests(events: ManifestEvents): void {
  const { area, file } = textOrFile("Manifests", ".yaml,.yml,.json");
  const load = make("input", { placeholder: "cpu=total:steps(0s:500m,5m:4)", size: 40 });
  const error = make("p", { className: "bad-text" });
  error.setAttribute("role", "alert");
  const findings = make("div", {});
  findings.setAttribute("role", "status");
  const attempt = async (action: (text: string, load: string[]) => Promise<void>): Promise<void> => {
    findings.replaceChildren();
    error.textContent = "";
    try {
      await action(area.value, load.value.trim() === "" ? [] : [load.value.trim()]);
    } catch (problem) {
      if (!(problem instanceof Refused)) throw problem;
      error.textContent = problem.problems.map((it) => `${titleOf(it)}${it.hint ? `\nHint: ${it.hint}` : ""}`).join("\n");
    }
  };
  const accept = (): Promise<void> => attempt(async (text, load) => {
    await events.make(text, load);
    close();
  });
  const check = (): Promise<void> => attempt(async (text, load) => {
    const found = await events.check(text, load);
    const items = found.map((it) => ({
      title: titleOf(it), link: it.link, about: `${it.level}: ${it.rule}`, lines: [...(it.hint ? [`Hint: ${it.hint}`] : []), it.reason],
    }));
    findings.append(...listOf({ items, paragraphs: items.length > 0 ? [] : ["There are no findings."] }));
  });
  open(
    "Scenario from manifests",
    make("p", {}, "Paste an HPA and its target, for example from kubectl get hpa,deployment -o yaml."),
    area,
    make(
      "div",
      { className: "actions" },
      file,
      make("label", {}, "Load", load),
      button("Make a scenario", () => void accept()),
      button("Check the manifests", () => void check()),
    ),
    make("p", { className: "hint" }, "Without a load, the scenario gets an example, which you can change in the load chart. The check finds settings that have no effect, or another effect than they seem to have."),
    error,
    findings,
  );
  area.focus();
}

/** `Line 3: unknown field`. */
const titleOf = ({ line, what }: Problem): string => `${line > 0 ? `Line ${line}: ` : ""}${what}`;

/** A search that runs in the background. */
export interface Search<T extends Found> {
  title: string;
  about: string;
  hint: string;
  /** The fields that say what to search for, each with its label. */
  fields: [label: string, field: HTMLInputElement | HTMLSelectElement][];
  /** What the progress counts. */
  unit: string;
  run(watch: Watch): Promise<T>;
  /** Ends the search: `run` is rejected. */
  cancel(): void;
  /** Opens the scenario of an item. */
  open?: { title: string; action(scenario: string): void };
  /** Uses the result. Returns undefined if there is nothing to use. */
  use?: { title: string; action(found: T): (() => void) | undefined };
}

/** Asks what to search for, and shows the progress and the result. */
export function showSearch<T extends Found>({ title, about, hint, fields, unit, run, cancel, open: item, use }: Search<T>): void {
  const status = make("p", {});
  status.setAttribute("role", "status");
  const bar = make("progress", { max: 1 });
  bar.setAttribute("aria-label", "Progress");
  const count = make("span", { className: "hint" });
  const running = make("div", { className: "actions", hidden: true }, bar, count, button("Cancel", cancel));
  const results = make("div", {});
  const useButton = button(use?.title ?? "", () => undefined);
  useButton.hidden = true;
  const start = button("Search", () => void search());
  const say = (text: string, className: string): void => {
    status.textContent = text;
    status.className = className;
  };
  const watch: Watch = (done, most) => {
    bar.value = Math.min(1, done / most);
    count.textContent = `${done.toLocaleString("en")} of at most ${most.toLocaleString("en")} ${unit}`;
  };
  const search = async (): Promise<void> => {
    say("Searching…", "hint");
    bar.removeAttribute("value");
    count.textContent = "";
    start.disabled = true;
    running.hidden = false;
    useButton.hidden = true;
    results.replaceChildren();
    try {
      const found = await run(watch);
      say("", "hint");
      results.innerHTML = found.body ?? "";
      results.append(...listOf(found, item));
      const action = use?.action(found);
      useButton.hidden = action === undefined;
      useButton.onclick = () => {
        close();
        action?.();
      };
    } catch (error) {
      const isCanceled = error instanceof Superseded;
      if (isCanceled) say("The search was canceled.", "hint");
      else say(error instanceof Error ? error.message : String(error), "bad-text");
    }
    start.disabled = false;
    running.hidden = true;
  };
  dialog.addEventListener("close", cancel, { once: true });
  const labels = fields.map(([label, field]) => make("label", {}, label, field));
  const actions = make("div", { className: "actions" }, ...labels, start, useButton);
  open(title, make("p", {}, about), actions, make("p", { className: "hint" }, hint), running, status, results);
  (fields[0]?.[1] ?? start).focus();
}

/** The paragraphs and items of a result. An item with a scenario has a button that opens it. */
function listOf({ paragraphs = [], items = [] }: Found, open?: Search<Found>["open"]): Node[] {
  let heading = "";
  const list = items.flatMap(({ title, link, about, lines, scenario }): Node[] => {
    const name = link === "" ? title : make("a", { href: link, rel: "noreferrer", target: "_blank" }, title);
    const action = (): void => {
      close();
      open?.action(scenario ?? "");
    };
    const buttons = open && scenario !== undefined ? [button(open.title, action)] : [];
    const texts = lines.map((line) => make("p", {}, line));
    const item = make("div", { className: "item" }, make("b", {}, name), ...texts, ...buttons);
    if (about === heading) return [item];
    heading = about;
    return [make("h3", {}, about), item];
  });
  return [...paragraphs.map((text) => make("p", {}, text)), ...list];
}

export interface CsvLoad {
  text: string;
  /** The columns of times and values. */
  time: string;
  value: string;
  unit: string;
}

/** Asks for a load as CSV. */
export function askCsv(use: (csv: CsvLoad) => void): void {
  const { area, file } = textOrFile("CSV", ".csv,.tsv,.txt");
  area.placeholder = "time,value\n0,0.5\n60,2\n120,1";
  const time = make("select");
  const value = make("select");
  const unit = make("input", { placeholder: "1", size: 6 });
  const error = make("p", { className: "bad-text" });
  error.setAttribute("role", "alert");
  let found = readTable("");
  area.addEventListener("input", () => {
    found = readTable(area.value);
    error.textContent = found.columns.length > 0 ? found.problem ?? "" : "";
    time.replaceChildren(...found.columns.map((name) => option(name)));
    value.replaceChildren(...found.columns.map((name) => option(name)));
    value.selectedIndex = Math.min(1, found.columns.length - 1);
  });
  const accept = (): void => {
    if (found.problem !== undefined) {
      error.textContent = found.problem;
      return;
    }
    close();
    use({ text: found.text, time: time.value, value: value.value, unit: unit.value.trim() });
  };
  open(
    "Load from CSV",
    make("p", {}, "Paste two or more columns: times and values. Times are dates, or numbers of seconds. Columns are separated by commas, semicolons or tabs; numbers can have decimal commas."),
    area,
    make(
      "div",
      { className: "actions" },
      file,
      make("label", {}, "Times", time),
      make("label", {}, "Values", value),
      make("label", { title: "1m for millicores, 1Mi for MiB" }, "Unit", unit),
      button("Use as load", accept),
    ),
    error,
  );
  area.focus();
}
