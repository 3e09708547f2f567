// The results: the timelines with their ticks, the figures, the log of decisions, and playing.

import { activate, ticksOf, type Figure, type Panels, type Ticks } from "made:figure";
import { button, byId, make } from "./dom.ts";
import { time } from "./load.ts";
import type { Comparison, Decision, Figures, MissingByCause, Prediction } from "./model.ts";
import { drawProposals } from "./proposals.ts";

/** A line of `kube-lockstep predict --format json`. */
interface Tick {
  tick: number;
  at: string;
  hpa: string;
  replicasBefore: number;
  replicasAfter: number;
  proposal: number | null;
  limitedBy: string | null;
  why: string;
  events: { type: string; reason: string; message: string }[];
}

interface Summary {
  ticks: number;
  /** For HPAs. */
  rescales?: number;
}

/** A timeline of the page, with the places and numbers of its ticks. */
interface Shown {
  figure: HTMLElement;
  ticks: Ticks;
  places: number[];
  numbers: number[];
}

export interface ResultEvents {
  /** The user asks for all details of a tick. */
  explain(tick: number): void;
}

/** The log shows at most this many ticks. */
const LONGEST_LOG = 1000;

export class Results {
  private shown: Shown[] = [];
  private rows = new Map<number, HTMLElement>();
  private timer: number | undefined;
  /** The number of the selected tick in the first timeline. */
  private selected: number | undefined;
  private isFollowing = false;
  private isScrolling = false;
  private readonly body = byId("timelines");
  private readonly log = byId("log");
  private readonly play = byId<HTMLButtonElement>("play");
  private readonly speed = byId<HTMLSelectElement>("speed");
  private readonly onlyChanges = byId<HTMLInputElement>("only-changes");

  constructor(private readonly events: ResultEvents) {
    byId("first").addEventListener("click", () => this.step(-Infinity));
    byId("back").addEventListener("click", () => this.step(-1));
    byId("forward").addEventListener("click", () => this.step(1));
    byId("last").addEventListener("click", () => this.step(Infinity));
    byId("details").addEventListener("click", () => {
      if (this.selected !== undefined) this.events.explain(this.selected);
    });
    this.play.addEventListener("click", () => (this.timer === undefined ? this.start() : this.stop()));
    this.speed.addEventListener("change", () => {
      if (this.timer !== undefined) this.start(false);
    });
    this.onlyChanges.addEventListener("change", () => this.filterLog());
  }

  get tick(): number | undefined {
    return this.selected;
  }

  show(prediction: Prediction, comparison: Comparison | undefined): void {
    const lines = prediction.lines.trimEnd().split("\n").map((line) => JSON.parse(line) as Partial<Tick> & { summary?: Summary });
    const summary = lines.pop()?.summary;
    // With an HPA, the lines of the recommender and of pods are not ticks.
    const isTick = (line: Partial<Tick>): line is Tick => line.tick !== undefined;
    this.stop();
    const before = this.selected;
    const { body, panels } = comparison ?? prediction;
    const data = JSON.parse(panels) as Panels;
    const same = comparison?.same
      ? make("p", { className: "note" }, "Both releases behave the same in this scenario.")
      : "";
    this.body.innerHTML = body;
    this.body.prepend(same);
    this.body.classList.remove("stale");
    this.drawProposals(prediction, comparison);
    this.shown = [...this.body.querySelectorAll<HTMLElement>(".fig")].flatMap((figure, index) => {
      const ticks = data.f[index];
      return ticks ? this.shownOf(figure, data, ticks) : [];
    });
    const decisions = prediction.decisions ?? [];
    if (prediction.kind === "vpa") this.showLog(this.decisionsOfVpa(decisions, true));
    else if (!prediction.decisions) this.showLog(this.ticksOfHpa(lines.filter(isTick)));
    else {
      const hpa = [make("h3", {}, "HPA"), ...this.ticksOfHpa(lines.filter(isTick))];
      this.showLog([...hpa, make("h3", {}, "VPA"), ...this.decisionsOfVpa(decisions, false)]);
    }
    this.writeFigures(prediction, comparison, summary);
    const first = this.shown[0];
    if (first) {
      const index = first.numbers.findLastIndex((number) => number <= (before ?? -1));
      if (before !== undefined) first.ticks.show(Math.max(0, index));
      // The tick that a timeline selects at first is not followed yet.
      this.follow(first.figure, first.ticks.selected());
    }
    this.updateControls();
  }

  private drawProposals(prediction: Prediction, comparison: Comparison | undefined): void {
    const runs = comparison?.runs.map((run) => run.proposals ?? []) ?? [prediction.proposals ?? []];
    const timelines = [...this.body.querySelectorAll(".fig.hpa")];
    // If both releases behave the same, one timeline stands for both.
    const drawn = comparison?.same ? runs.slice(-1) : runs;
    drawProposals(timelines, drawn.flat());
  }

  /** Another scenario is opened: its first change of the replicas is selected. */
  reset(): void {
    this.selected = undefined;
  }

  /** The scenario has errors: the timelines are those of its last valid text. */
  stale(): void {
    this.stop();
    this.body.classList.add("stale");
  }

  private shownOf(figure: HTMLElement, panels: Panels, data: Figure): Shown[] {
    const all = ticksOf(data);
    const places = all.map(([place]) => place);
    const numbers = all.map(([, number]) => number);
    const future = make("div", { className: "future" });
    figure.querySelector(".charts")?.append(future);
    figure.addEventListener("tick", (event) => {
      this.follow(figure, (event as CustomEvent<number>).detail);
    });
    const ticks = activate(figure, panels, data);
    return ticks ? [{ figure, ticks, places, numbers }] : [];
  }

  /** A tick of a timeline was selected: the other timelines and the log follow. */
  private follow(figure: HTMLElement, index: number): void {
    const source = this.shown.find((shown) => shown.figure === figure);
    const place = source?.places[index];
    if (!source || place === undefined) return;
    for (const { figure: one } of this.shown) {
      one.querySelector<HTMLElement>(".future")?.style.setProperty("--p", String(place / 100));
    }
    if (!this.isFollowing) {
      this.isFollowing = true;
      for (const other of this.shown.filter((shown) => shown !== source)) {
        const nearest = other.places.findLastIndex((it) => it <= place + 0.01);
        other.ticks.show(Math.max(0, nearest));
      }
      this.isFollowing = false;
    }
    if (source === this.shown[0]) {
      this.selected = source.numbers[index];
      this.markRow();
      this.updateControls();
    }
  }

  private step(count: number): void {
    this.stop();
    this.move(count);
  }

  private move(count: number): boolean {
    const ticks = this.shown[0]?.ticks;
    if (!ticks) return false;
    const before = ticks.selected();
    const index = Math.min(ticks.count - 1, Math.max(0, before + count));
    ticks.show(index);
    return index !== before;
  }

  private start(fromStart = true): void {
    this.stop();
    const ticks = this.shown[0]?.ticks;
    if (!ticks) return;
    if (fromStart && ticks.selected() >= ticks.count - 1) ticks.show(0);
    this.body.classList.add("playing");
    this.play.textContent = "Pause";
    this.timer = window.setInterval(() => {
      if (!this.move(1)) this.stop();
    }, 1000 / Number(this.speed.value));
  }

  private stop(): void {
    window.clearInterval(this.timer);
    this.timer = undefined;
    this.play.textContent = "Play";
    this.body.classList.remove("playing");
    this.log.classList.remove("playing");
  }

  private updateControls(): void {
    const ticks = this.shown[0]?.ticks;
    const index = ticks?.selected() ?? 0;
    const is = (id: string, disabled: boolean): void => {
      byId<HTMLButtonElement>(id).disabled = disabled;
    };
    for (const id of ["first", "back"]) is(id, !ticks || index <= 0);
    for (const id of ["forward", "last"]) is(id, !ticks || index >= ticks.count - 1);
    is("play", !ticks);
    is("details", !ticks);
  }

  private showLog(parts: Node[]): void {
    this.log.replaceChildren(...parts);
    this.filterLog();
  }

  /** The ticks of HPAs. */
  private ticksOfHpa(ticks: Tick[]): Node[] {
    this.rows.clear();
    const several = new Set(ticks.map((tick) => tick.hpa)).size > 1;
    const kept = ticks.slice(0, LONGEST_LOG);
    const rows = kept.map((tick, index) => {
      const isChange = tick.replicasBefore !== tick.replicasAfter;
      const replicas = isChange ? `${tick.replicasBefore} → ${tick.replicasAfter}` : String(tick.replicasAfter);
      const isSame = withoutTimes(tick.why) === withoutTimes(ticks[index - 1]?.why ?? "");
      const isNew = isChange || !isSame || tick.events.length > 0;
      const select = button(String(tick.tick), () => this.select(tick.tick));
      select.setAttribute("aria-label", `tick ${tick.tick} at ${tick.at}`);
      const row = make(
        "tr",
        { className: `${isChange ? "change" : ""} ${isNew ? "" : "repeats"}` },
        make("td", {}, select),
        make("td", {}, tick.at),
        ...(several ? [make("td", {}, tick.hpa)] : []),
        make("td", { className: "replicas" }, replicas),
        make("td", {}, withArrows(tick.why)),
      );
      this.rows.set(tick.tick, row);
      return row;
    });
    const heads = ["tick", "time", ...(several ? ["HPA"] : []), "replicas", "decision"];
    const more = ticks.length - kept.length;
    return [logTable(heads, rows), ...(more > 0 ? [make("p", { className: "hint" }, `${more} more ticks are in the CSV.`)] : [])];
  }

  /** The runs of a recommender in which a target or a condition changes; alone, or with an HPA. */
  private decisionsOfVpa(decisions: Decision[], isAlone: boolean): Node[] {
    if (isAlone) this.rows.clear();
    const several = new Set(decisions.map((decision) => decision.vpa)).size > 1;
    const kept = decisions.slice(0, LONGEST_LOG);
    const rows = kept.map(({ tick, at, vpa, target, notes }) => {
      const select = button(String(tick), () => (isAlone ? this.select(tick) : this.selectRun(tick)));
      select.setAttribute("aria-label", isAlone ? `tick ${tick} at ${at}` : `run ${tick} of the recommender at ${at}`);
      const row = make(
        "tr",
        { className: "change" },
        make("td", {}, select),
        make("td", {}, at),
        ...(several ? [make("td", {}, vpa)] : []),
        make("td", { className: "target" }, target),
        make("td", { className: "conditions" }, withArrows(notes.join("; "))),
      );
      if (isAlone) this.rows.set(tick, row);
      return row;
    });
    const heads = [isAlone ? "tick" : "run", "time", ...(several ? ["VPA"] : []), "target", "conditions and errors"];
    const more = decisions.length - kept.length;
    const where = isAlone ? `${more} more changes are in the CSV.` : `${more} more changes are not listed.`;
    return [logTable(heads, rows), ...(more > 0 ? [make("p", { className: "hint" }, where)] : [])];
  }

  private filterLog(): void {
    this.log.classList.toggle("only-changes", this.onlyChanges.checked);
  }

  private select(tick: number): void {
    this.stop();
    const first = this.shown[0];
    const index = first?.numbers.findLastIndex((number) => number <= tick) ?? -1;
    if (index >= 0) first?.ticks.show(index);
    // Of several HPAs, each timeline has its own ticks.
    const own = this.shown.find((shown) => shown.numbers.includes(tick));
    own?.ticks.show(own.numbers.indexOf(tick));
    this.selected = tick;
    this.markRow();
  }

  /** Selects a run of the recommender with an HPA: the timeline of the HPA follows. */
  private selectRun(run: number): void {
    this.stop();
    const vpa = this.shown.find(({ figure }) => figure.classList.contains("vpa"));
    const index = vpa?.numbers.findLastIndex((number) => number <= run) ?? -1;
    if (index >= 0) vpa?.ticks.show(index);
  }

  private markRow(): void {
    this.log.querySelector(".selected")?.classList.remove("selected");
    this.rows.get(this.selected ?? 0)?.classList.add("selected");
    if (this.timer !== undefined) this.log.classList.add("playing");
    this.scrollToRow();
  }

  /** Scrolls in the next frame: places that are read before it would lay out the page once more. */
  private scrollToRow(): void {
    if (this.isScrolling) return;
    this.isScrolling = true;
    requestAnimationFrame(() => {
      this.isScrolling = false;
      const row = this.rows.get(this.selected ?? 0);
      if (!row) return;
      // Only the log scrolls, not the page.
      const { offsetTop, offsetHeight } = row;
      const isAbove = offsetTop < this.log.scrollTop + 30;
      const isBelow = offsetTop + offsetHeight > this.log.scrollTop + this.log.clientHeight;
      if (isAbove || isBelow) this.log.scrollTop = offsetTop - this.log.clientHeight / 2;
    });
  }

  private writeFigures(prediction: Prediction, comparison: Comparison | undefined, summary: Summary | undefined): void {
    const runs = comparison?.runs ?? [{ release: "", figures: prediction.figures, note: null }];
    const several = runs.length > 1;
    const heads = [...(several ? ["release"] : []), ...FIGURES.map((figure) => figure.title)];
    const titles = [...(several ? [""] : []), ...FIGURES.map((figure) => figure.help)];
    const head = heads.map((text, index) => make("th", { scope: "col", title: titles[index] ?? "" }, text));
    const rows = runs.map(({ release, figures }) => make(
      "tr",
      {},
      ...(several ? [make("th", { scope: "row" }, release)] : []),
      ...FIGURES.map((figure) => make("td", {}, figures ? figure.text(figures) : "")),
    ));
    const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
    const isOfVpa = prediction.kind === "vpa";
    byId("figures").replaceChildren(...(isOfVpa ? [] : [table]));
    const changes = summary?.rescales === undefined ? "" : `, ${summary.rescales} changes of the replicas`;
    byId("summary").textContent = summary ? `${summary.ticks} ticks${changes}` : "";
    const notes = [
      prediction.note ?? "",
      ...runs.flatMap((run) => (run.note ? [`${run.release}: ${run.note}`] : [])),
    ];
    const texts = notes.filter((note) => note !== "").map((note) => make("p", { className: "note" }, note));
    byId("notes").replaceChildren(...texts);
  }
}

function logTable(heads: string[], rows: HTMLElement[]): HTMLElement {
  const head = make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text))));
  return make("table", {}, head, make("tbody", {}, ...rows));
}

/** A text with arrows, at which no line ends. */
function withArrows(text: string): string {
  return text.replaceAll(" -> ", "\u00a0→\u00a0");
}

/** A decision without the age of a recommendation, which changes with each tick. */
function withoutTimes(why: string): string {
  return why.replace(/t=[\w.]+, [\w.]+ old/g, "");
}

interface FigureColumn {
  title: string;
  help: string;
  text(figures: Figures): string;
}

const CAUSES: [keyof MissingByCause, string][] = [
  ["maximum", "maximum"],
  ["policy", "policy"],
  ["window", "window"],
  ["startUp", "start-up"],
  ["syncPeriod", "sync period"],
  ["target", "target"],
  ["tolerance", "tolerance"],
  ["other", "other"],
];

/** The missing pod-hours and their causes: `1.19 (policy 0.03, start-up 1.17)`. */
function missing(figures: Figures): string {
  const all = figures.missingPodHours.toFixed(2);
  const causes = CAUSES
    .map(([cause, name]) => ({ name, text: figures.missingPodHoursByCause[cause].toFixed(2) }))
    .filter(({ text }) => text !== "0.00")
    .map(({ name, text }) => `${name} ${text}`);
  return causes.length === 0 ? all : `${all} (${causes.join(", ")})`;
}

/** The columns of `kube-lockstep compare`. */
const FIGURES: FigureColumn[] = [
  {
    title: "pod-hours",
    help: "The number of replicas, added up over time: the cost of the workload",
    text: (it) => it.podHours.toFixed(2),
  },
  {
    title: "missing",
    help: "Pod-hours by which the ready pods are fewer than the load needs, and their causes",
    text: (it) => missing(it),
  },
  {
    title: "above target",
    help: "The time during which the load per ready pod is above its target, beyond the tolerance",
    text: (it) => time(it.aboveTargetSeconds),
  },
  {
    title: "longest",
    help: "The longest time above the target without interruption: the time to recover",
    text: (it) => time(it.longestAboveTargetSeconds),
  },
  {
    title: "changes",
    help: "How often the controller changes the replicas",
    text: (it) => String(it.changes),
  },
  {
    title: "reversals",
    help: "How often it changes the direction: up after down, or down after up",
    text: (it) => String(it.directionChanges),
  },
  {
    title: "excess",
    help: "The largest number of replicas above what the load needs, for example while a stabilization window holds them",
    text: (it) => String(it.excessReplicas),
  },
  {
    title: "needed",
    help: "The largest number of replicas that the load needs to be at the targets",
    text: (it) => String(it.neededPeakReplicas),
  },
  { title: "peak", help: "The largest number of replicas", text: (it) => String(it.peakReplicas) },
  { title: "failed", help: "The time during which a metric fails", text: (it) => time(it.failedSeconds) },
];
