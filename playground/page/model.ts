// The model: requests to the worker, one after another.

import source from "made:worker";
import type { Watch } from "./instance.ts";
import type { FromWorker, ToWorker } from "./worker.ts";

/** A scenario on a release. */
export interface Subject {
  path: string;
  text: string;
  files: Record<string, string>;
  /** The release of Kubernetes, for scenarios of HPAs. */
  release: string;
  /** The release of the VPA, for scenarios of VPAs; empty for the newest. */
  vpaRelease: string;
}

/** The kind of the autoscaler of a scenario. */
export type Kind = "hpa" | "vpa";

export interface Problem {
  file?: string;
  line: number;
  column: number;
  what: string;
  hint?: string;
}

/** A finding of `kube-lockstep lint`. */
export interface Finding extends Problem {
  level: "note" | "warning" | "error";
  /** The rule and the evidence: `missing-request, derived`. */
  rule: string;
  reason: string;
  link: string;
}

/** The value of a metric over time. */
export interface Curve {
  title: string;
  path: (string | number)[];
  points: [number, number | null][];
  /** The points of the signal under the noise, if it has noise. */
  withoutNoise?: [number, number | null][];
}

/** The settings that a release has, and the values that apply without them. */
export interface Settings {
  /** Whether HPAs have `behavior`. */
  behavior: boolean;
  /** Whether `behavior` has a tolerance, and the feature is enabled. */
  tolerance: boolean;
  defaults: {
    minReplicas: number | null;
    /** The target of an HPA without metrics. */
    cpuUtilization: number | null;
    /** Seconds. */
    scaleUpWindow: number | null;
    /** Seconds. */
    scaleDownWindow: number;
    tolerance: number;
  };
}

/** The proposals of the metrics for one HPA. */
export interface Proposals {
  hpa: string;
  /** The end of the axis of time, in seconds. */
  end: number;
  /** Seconds and replicas. */
  points: [number, number | null][];
}

/** Parts of the missing pod-hours, which add up to them. */
export interface MissingByCause {
  maximum: number;
  policy: number;
  window: number;
  startUp: number;
  syncPeriod: number;
  target: number;
  tolerance: number;
  other: number;
}

/** Figures of `kube-lockstep compare`. */
export interface Figures {
  podHours: number;
  missingPodHours: number;
  missingPodHoursByCause: MissingByCause;
  aboveTargetSeconds: number;
  longestAboveTargetSeconds: number;
  changes: number;
  directionChanges: number;
  excessReplicas: number;
  neededPeakReplicas: number;
  peakReplicas: number;
  failedSeconds: number;
}

/** A run of the recommender of VPAs in which something changes. */
export interface Decision {
  tick: number;
  at: string;
  vpa: string;
  /** The targets: `app cpu 587m, memory 362.6Mi`. */
  target: string;
  /** Changed conditions and errors. */
  notes: string[];
}

export interface Prediction {
  /** `hpa` also for an HPA and a VPA. */
  kind: Kind;
  requirement: string;
  body: string;
  /** The derivations of the ticks: `Panels` as JSON. */
  panels: string;
  /** The output of `kube-lockstep predict --format json`; of long runs of VPAs, only the summary. */
  lines: string;
  /** For HPAs. */
  figures?: Figures;
  settings?: Settings;
  proposals?: Proposals[];
  /** For VPAs, also with an HPA. */
  decisions?: Decision[] | null;
  note: string | null;
  undetermined: string | null;
  unmet: { line: number; what: string }[];
  loads: Curve[];
  seconds: number;
  supported: boolean;
  /** Whether an HPA's scenario leaves something open for a search. */
  hasSearch?: boolean;
  findings?: Finding[];
}

/** An item of a result: a change, or a counterexample. */
export interface Item {
  title: string;
  /** Empty: there is none. */
  link: string;
  /** The kind, as a heading; empty without one. */
  about: string;
  lines: string[];
  /** A scenario that shows it. */
  scenario?: string;
}

/** The result of a search. */
export interface Found {
  /** A chart as HTML. */
  body?: string;
  paragraphs?: string[];
  items?: Item[];
}

export interface Comparison {
  body: string;
  /** The derivations of the ticks: `Panels` as JSON. */
  panels: string;
  same: boolean;
  runs: { release: string; figures?: Figures; note: string | null; proposals?: Proposals[] }[];
}

/** A setting that the search shows. */
export interface TunedSetting {
  /** `current`, `best`, or a letter of the chart. */
  name: string;
  /** The changed fields. */
  about: string;
  figures: Figures;
}

/** The result of the search for better settings. */
export interface Tuned extends Found {
  /** Whether the best setting meets the objective. */
  isMet: boolean;
  settings: TunedSetting[];
  /** The changed HPAs: a merge patch, and the whole manifest. */
  patches: { hpa: string; patch: { spec?: Record<string, unknown> }; manifest: { spec: Record<string, unknown> } }[];
}

export interface DraftOfScenario {
  text: string;
  notes: string[];
  /** Missing values, for which the draft has examples. */
  examples: string[];
  ignored: string[];
  others: string[];
}

export interface About {
  version: string;
  releases: string[];
  vpaReleases: string[];
  schema: object;
}

/** The model refuses a text. */
export class Refused extends Error {
  constructor(readonly problems: Problem[]) {
    super(problems.map((problem) => problem.what).join("; "));
  }
}

/** A later request of the same kind replaced this one. */
export class Superseded extends Error {}

/** The model failed: a bug. */
export class Failed extends Error {}

interface Job {
  kind: string;
  request: string;
  watch: Watch | undefined;
  resolve(answer: string): void;
  reject(error: Error): void;
}

/** A prediction that takes longer is ended when a newer one is requested. */
const PATIENCE_MS = 300;

export class Model {
  private worker: Worker | undefined;
  private running: Job | undefined;
  private since = 0;
  private waiting: Job[] = [];

  constructor(private readonly module: Uint8Array<ArrayBuffer>) {}

  about(): Promise<About> {
    return this.ask("about", { method: "about" });
  }

  predict(subject: Subject): Promise<Prediction> {
    return this.latest("predict", { method: "predict", ...subject });
  }

  compare(subject: Subject, other: string): Promise<Comparison> {
    return this.latest("compare", { method: "compare", ...subject, with: other, vpaWith: other });
  }

  explain(subject: Subject, tick: number): Promise<{ text: string }> {
    return this.latest("explain", { method: "explain", ...subject, tick });
  }

  csv(subject: Subject): Promise<{ text: string }> {
    return this.ask("csv", { method: "csv", ...subject });
  }

  trace(subject: Subject): Promise<{ text: string }> {
    return this.ask("trace", { method: "trace", ...subject });
  }

  /** Replaces an earlier search that is still waiting or has run for longer than `PATIENCE_MS`. */
  tune(subject: Subject, objective: string, settings: number, watch: Watch): Promise<Tuned> {
    return this.latest("tune", { method: "tune", ...subject, objective, settings }, watch);
  }

  /** The differences between two releases, of which `subject` has one. */
  upgrade(subject: Subject, other: string, ticks: number, watch: Watch): Promise<Found> {
    return this.latest("upgrade", { method: "upgrade", ...subject, with: other, ticks }, watch);
  }

  /** The choices with which an expectation is not met. */
  check(subject: Subject, states: number, watch: Watch): Promise<Found> {
    return this.latest("check", { method: "check", ...subject, states }, watch);
  }

  /** Stops all requests, running and waiting. Their promises are rejected with `Superseded`. */
  cancel(): void {
    const pending = [...(this.running ? [this.running] : []), ...this.waiting];
    this.waiting = [];
    this.stop();
    for (const job of pending) job.reject(new Superseded());
  }

  draft(manifests: string, load: string[]): Promise<DraftOfScenario> {
    return this.ask("draft", { method: "draft", manifests, load });
  }

  lint(manifests: string, load: string[], release: string): Promise<{ findings: Finding[] }> {
    return this.ask("lint", { method: "lint", manifests, load, release });
  }

  /** Replaces an earlier request of the same kind. */
  private latest<T>(kind: string, request: object, watch?: Watch): Promise<T> {
    const replaced = this.waiting.filter((job) => job.kind === kind);
    this.waiting = this.waiting.filter((job) => job.kind !== kind);
    for (const job of replaced) job.reject(new Superseded());
    const isSlow = this.running?.kind === kind && performance.now() - this.since > PATIENCE_MS;
    if (isSlow) {
      this.running?.reject(new Superseded());
      this.stop();
    }
    return this.ask(kind, request, watch);
  }

  private async ask<T>(kind: string, request: object, watch?: Watch): Promise<T> {
    const text = await new Promise<string>((resolve, reject) => {
      this.waiting.push({ kind, request: JSON.stringify(request), watch, resolve, reject });
      this.next();
    });
    const answer = JSON.parse(text) as T & { problems?: Problem[] };
    if (answer.problems) throw new Refused(answer.problems);
    return answer;
  }

  private stop(): void {
    this.worker?.terminate();
    this.worker = undefined;
    this.running = undefined;
  }

  private start(): Worker {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const worker = new Worker(url);
    URL.revokeObjectURL(url);
    worker.addEventListener("message", (event: MessageEvent<FromWorker>) => {
      const job = this.running;
      const { answer, error, progress } = event.data;
      if (progress) {
        job?.watch?.(...progress);
        return;
      }
      this.running = undefined;
      if (answer !== undefined) job?.resolve(answer);
      else job?.reject(new Failed(error));
      this.next();
    });
    worker.addEventListener("error", (event) => {
      this.running?.reject(new Failed(event.message || "the worker can't be started"));
      this.stop();
      this.next();
    });
    worker.postMessage({ module: this.module } satisfies ToWorker);
    return worker;
  }

  private next(): void {
    if (this.running) return;
    const job = this.waiting.shift();
    if (!job) return;
    this.running = job;
    this.since = performance.now();
    this.worker ??= this.start();
    this.worker.postMessage({ request: job.request } satisfies ToWorker);
  }
}
