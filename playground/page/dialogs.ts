// The dialogs: examples, manifests, pasted CSV, and texts.

import { readTable } from "./csv.ts";
import { button, byId, make, option } from "./dom.ts";
import type { Entry } from "./library.ts";
import type { Tuned } from "./model.ts";

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

/** Asks for manifests. `use` returns an error to show, if any. */
export function askManifests(use: (text: string, load: string[]) => Promise<string | undefined>): void {
  const { area, file } = textOrFile("Manifests", ".yaml,.yml,.json");
  const load = make("input", { placeholder: "cpu=total:steps(0s:500m,5m:4)", size: 40 });
  const error = make("p", { className: "bad-text" });
  error.setAttribute("role", "alert");
  const accept = async (): Promise<void> => {
    const loads = load.value.trim() === "" ? [] : [load.value.trim()];
    const problem = await use(area.value, loads);
    error.textContent = problem ?? "";
    if (problem === undefined) close();
  };
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
    ),
    make("p", { className: "hint" }, "Without a load, the scenario gets an example, which you can change in the load chart."),
    error,
  );
  area.focus();
}

/** What the search for better settings needs from the page. */
export interface TuneEvents {
  search(objective: string): Promise<Tuned>;
  /** Puts the best setting into the scenario. */
  apply(tuned: Tuned): void;
  cancel(): void;
}

/** Asks for an objective, and shows the settings that the search finds. */
export function findSettings({ search, apply, cancel }: TuneEvents): void {
  const objective = make("input", { value: "missing<=+0,above<=+0", size: 36, spellcheck: false });
  const status = make("p", {});
  status.setAttribute("role", "status");
  const found = make("div", {});
  const use = button("Use the best setting", () => undefined);
  use.hidden = true;
  const start = button("Search", () => void run());
  const run = async (): Promise<void> => {
    status.className = "hint";
    status.textContent = "Searching…";
    start.disabled = true;
    use.hidden = true;
    found.replaceChildren();
    try {
      const tuned = await search(objective.value);
      status.textContent = "";
      found.innerHTML = tuned.body;
      const best = tuned.settings.find(({ name }) => name === "best");
      use.hidden = best === undefined || best.about === "";
      use.onclick = () => {
        close();
        apply(tuned);
      };
    } catch (error) {
      status.className = "bad-text";
      status.textContent = error instanceof Error ? error.message : String(error);
    }
    start.disabled = false;
  };
  dialog.addEventListener("close", cancel, { once: true });
  open(
    "Find better settings",
    make("p", {}, "The search varies the targets, the limits and the behavior of the HPA, and predicts each setting under the load of the scenario. It looks for the setting with the fewest pod-hours that meets the objective."),
    make("div", { className: "actions" }, make("label", {}, "Objective", objective), start, use),
    make("p", { className: "hint" }, "Bounds, separated by commas: missing<=0.1, above<=5m, peak<=20, changes<=10; <=+0 means: not more than with the current setting."),
    status,
    found,
  );
  objective.focus();
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
