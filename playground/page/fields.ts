// The settings of HPAs that have fields in the page: where they are in the text, and their values.

import { type Document, isMap, isSeq } from "yaml";
import type { Problem, Settings } from "./model.ts";
import type { Path } from "./schema.ts";
import { type Change, elements, nodeAt, positionOf, rangeOf, rangeOfField, read, removeValue, setValue, valueAt } from "./values.ts";

/** How a value is entered: as a whole number, a fraction, or a quantity such as `500m`. */
export type Entry = "whole" | "fraction" | "quantity";

export interface Slider {
  min: number;
  /** The largest value at first: the slider grows with the value. */
  max: number;
  step: number;
}

export interface Field {
  /** The path below `spec`, as in messages of the API server: `behavior.scaleUp.tolerance`. */
  id: string;
  label: string;
  unit: string;
  entry: Entry;
  slider: Slider;
  /** The value in the text; undefined if it is absent. */
  value: string | undefined;
  /** The value that applies if it is absent. */
  byDefault: string | undefined;
  /** The path in the scenario. */
  path: Path;
  /** The field before which this one is written. */
  before?: string;
  /** The value in YAML, if it is not the value itself. */
  written?(value: string): string;
}

/** The settings of one HPA. */
export interface FieldsOfHpa {
  /** The names of the HPAs of the scenario. */
  names: string[];
  fields: Field[];
  /** Why the HPA has no fields. */
  note?: string;
}

const REPLICAS: Slider = { min: 0, max: 20, step: 1 };
const PERCENT: Slider = { min: 1, max: 100, step: 1 };
/** The API server accepts at most an hour. */
const WINDOW: Slider = { min: 0, max: 3600, step: 15 };
const TOLERANCE: Slider = { min: 0, max: 0.5, step: 0.01 };

/** The fields of an HPA of a scenario. */
export function fieldsOf(text: string, index: number, settings: Settings | undefined): FieldsOfHpa {
  const document = read(text);
  const hpas = elements(document, ["hpas"], ["hpa"]);
  const names = hpas.map((path, number) => valueAt(document, [...path, "metadata", "name"]) ?? `HPA ${number + 1}`);
  const path = hpas[index] ?? hpas[0];
  if (!path) return { names, fields: [], note: "The scenario has no HPA." };
  const file = valueAt(document, [...path, "file"]);
  if (file !== undefined) {
    return { names, fields: [], note: `The HPA is in the file ${file}: its settings can't be changed here.` };
  }
  if (!isMap(nodeAt(document, [...path, "spec"]))) {
    return { names, fields: [], note: "The HPA has no spec yet." };
  }
  return { names, fields: new Hpa(document, path, settings).fields() };
}

class Hpa {
  private readonly version: string;

  constructor(
    private readonly document: Document,
    private readonly path: Path,
    private readonly settings: Settings | undefined,
  ) {
    this.version = valueAt(document, [...path, "apiVersion"])?.replace("autoscaling/", "") ?? "v2";
  }

  fields(): Field[] {
    const { defaults } = this.settings ?? {};
    const text = (value: number | null | undefined): string | undefined =>
      value === null || value === undefined ? undefined : String(value);
    const replicas = { unit: "", entry: "whole" as const, slider: REPLICAS };
    const fields = [
      this.field(["minReplicas"], {
        ...replicas, label: "Minimum replicas", byDefault: text(defaults?.minReplicas), before: "maxReplicas",
      }),
      this.field(["maxReplicas"], { ...replicas, label: "Maximum replicas", byDefault: undefined }),
      ...this.targets(),
    ];
    const directions = [
      { name: "scaleUp", title: "Scale-up", window: defaults?.scaleUpWindow },
      { name: "scaleDown", title: "Scale-down", window: defaults?.scaleDownWindow },
    ];
    for (const { name, title, window } of directions) {
      fields.push(this.field(["behavior", name, "stabilizationWindowSeconds"], {
        label: `${title} window`, unit: "s", entry: "whole", slider: WINDOW, byDefault: text(window),
      }));
    }
    for (const { name, title } of directions) {
      fields.push(this.field(["behavior", name, "tolerance"], {
        label: `${title} tolerance`, unit: "", entry: "fraction", slider: TOLERANCE, byDefault: text(defaults?.tolerance),
      }));
    }
    return fields.filter((field) => this.isOffered(field));
  }

  private field(below: Path, field: Omit<Field, "id" | "value" | "path">): Field {
    const path = [...this.path, "spec", ...below];
    return { ...field, id: idOf(below), path, value: valueAt(this.document, path) };
  }

  /** Fields that the release or the version of the API lacks are only shown if the text has them. */
  private isOffered({ id, value }: Field): boolean {
    if (value !== undefined || !id.startsWith("behavior.")) return true;
    if (!["v2", "v2beta2"].includes(this.version)) return false;
    const isTolerance = id.endsWith(".tolerance");
    const has = isTolerance ? this.settings?.tolerance : this.settings?.behavior;
    return (has ?? true) && !(isTolerance && this.version !== "v2");
  }

  private targets(): Field[] {
    const { document } = this;
    if (this.version === "v1") return [this.cpuOfVersion1()];
    const list = nodeAt(document, [...this.path, "spec", "metrics"]);
    const count = isSeq(list) ? list.items.length : 0;
    if (count === 0) return [this.cpuByDefault()];
    return Array.from({ length: count }, (_, index) => this.target(index)).filter((field) => field !== undefined);
  }

  private cpu(field: Pick<Field, "byDefault" | "written">): Omit<Field, "id" | "value" | "path"> {
    return { label: "cpu target", unit: "%", entry: "whole", slider: PERCENT, ...field };
  }

  private cpuOfVersion1(): Field {
    const percent = this.settings?.defaults.cpuUtilization;
    return this.field(["targetCPUUtilizationPercentage"], this.cpu({ byDefault: percent ? String(percent) : undefined }));
  }

  /** The metric of an HPA without metrics. */
  private cpuByDefault(): Field {
    const percent = this.settings?.defaults.cpuUtilization;
    const target = (value: string): string =>
      this.version === "v2beta1" ? `targetAverageUtilization: ${value}` : `target: {type: Utilization, averageUtilization: ${value}}`;
    const written = (value: string): string => `[{type: Resource, resource: {name: cpu, ${target(value)}}}]`;
    return this.field(["metrics"], this.cpu({ byDefault: percent ? String(percent) : undefined, written }));
  }

  private target(index: number): Field | undefined {
    const { document } = this;
    const at = [...this.path, "spec", "metrics", index];
    const kind = valueAt(document, [...at, "type"]) ?? "";
    const source = kind.charAt(0).toLowerCase() + kind.slice(1);
    const own = [...at, source];
    if (!isMap(nodeAt(document, own))) return undefined;
    const value = (...below: string[]): string | undefined => valueAt(document, [...own, ...below]);
    const name = value("name") ?? value("metric", "name") ?? value("metricName") ?? "";
    const container = value("container");
    const below = this.isOlder() ? olderTarget(value, source) : newerTarget(value, source);
    const target = below.at(-1) ?? "";
    const isPercent = /utilization$/i.test(target);
    const where = container === undefined ? "" : ` of ${container}`;
    const average = /averageValue$/i.test(target) ? " (average)" : "";
    return this.field(["metrics", index, source, ...below], {
      label: `${name} target${where}${average}`,
      unit: isPercent ? "%" : "",
      entry: isPercent ? "whole" : "quantity",
      slider: isPercent ? PERCENT : { min: 0, max: 0, step: 0 },
      byDefault: undefined,
    });
  }

  /** Targets are directly in the metric. */
  private isOlder(): boolean {
    return this.version === "v2beta1";
  }
}

type Read = (...below: string[]) => string | undefined;

/** The path of the target in a metric of autoscaling/v2 or v2beta2. */
function newerTarget(value: Read, source: string): string[] {
  const names = ["averageUtilization", "averageValue", "value"];
  const byType: Record<string, string> = { Utilization: "averageUtilization", AverageValue: "averageValue", Value: "value" };
  const usual = source === "resource" || source === "containerResource" ? "averageUtilization" : "averageValue";
  const name = byType[value("target", "type") ?? ""] ?? names.find((it) => value("target", it) !== undefined);
  return ["target", name ?? usual];
}

/** The path of the target in a metric of autoscaling/v2beta1. */
function olderTarget(value: Read, source: string): string[] {
  const names = ["targetAverageUtilization", "targetAverageValue", "targetValue", "averageValue"];
  const usual = { resource: "targetAverageUtilization", containerResource: "targetAverageUtilization", pods: "targetAverageValue" };
  const byKind: Record<string, string> = usual;
  return [names.find((it) => value(it) !== undefined) ?? byKind[source] ?? "targetValue"];
}

/** `metrics[0].resource.target`, as in messages of the API server. */
function idOf(path: Path): string {
  return path.map((step, index) => (typeof step === "number" ? `[${step}]` : index === 0 ? step : `.${step}`)).join("");
}

/** Sets a field, or removes it if the value is empty. */
export function setField(text: string, field: Field, value: string): Change {
  if (value === "") {
    const spec = field.path.indexOf("spec");
    return removeValue(text, field.path, spec + 2);
  }
  const written = field.written?.(value);
  return setValue(text, field.path, value, {
    ...(field.before === undefined ? {} : { before: field.before }),
    ...(written === undefined ? {} : { written }),
  });
}

/** The messages about each field: problems at its place in the text, or that name it. */
export function messagesOf(text: string, fields: Field[], problems: Problem[]): Map<string, string[]> {
  const document = read(text);
  const messages = new Map<string, string[]>();
  const own = problems.filter((problem) => !problem.file && problem.line > 0);
  for (const { line, column, what, hint } of own) {
    const position = positionOf(text, line, column);
    const isInside = (range: { from: number; to: number } | undefined): boolean =>
      range !== undefined && range.from <= position && position <= range.to;
    const isHere = fields.find(({ path }) => isInside(rangeOfField(text, document, path)));
    const named = fields.find(({ id, path }) => {
      const hpa = nodeAt(document, path.slice(0, path.indexOf("spec")));
      return hpa && isInside(rangeOf(text, hpa)) && new RegExp(`spec\\.${id.replace(/[.[\]]/g, "\\$&")}(?![\\w.[])`).test(what);
    });
    const found = isHere ?? named;
    if (!found) continue;
    // The message is at its field, and in full below the editor.
    const short = what.replace("the API server rejects this HPA: ", "").replace(`spec.${found.id}: `, "");
    const message = hint ? `${short} (hint: ${hint})` : short;
    messages.set(found.id, [...messages.get(found.id) ?? [], message]);
  }
  return messages;
}
