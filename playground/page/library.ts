// The scenarios to start from: the template, the examples and all fixtures of the repository.

import compressed from "made:examples";
import template from "made:template";
import { asText, fromBase64, inflate } from "./bytes.ts";

export interface Entry {
  path: string;
  /** The requirement of a scenario, or the comment at the top of manifests. */
  about: string;
}

/** Manifests of `examples/`, with a load that makes a scenario of them. */
const MANIFESTS = [
  {
    path: "examples/php-apache",
    files: ["examples/php-apache/hpa.yaml", "examples/php-apache/deployment.yaml"],
    about: "The manifests of the Kubernetes walkthrough, with a load that rises after two minutes",
    load: ["cpu=total:steps(0s:100m,2m:2,15m:100m)"],
  },
  {
    path: "examples/orders",
    files: ["examples/orders/worker.yaml"],
    about: "A worker that scales on the queue length",
    load: ["queue_messages_ready=steps(0s:100,3m:900,15m:60)"],
  },
  {
    path: "examples/hamster",
    files: ["examples/hamster/vpa.yaml", "examples/hamster/deployment.yaml"],
    about: "A VPA and eight days of usage: cpu usage with a daily wave, and growing memory usage",
    load: ["cpu=sine(mean=500m,amplitude=300m,period=24h)", "memory=ramp(0s:100Mi,192h:350Mi)"],
  },
];

export const TEMPLATE = template;

export class Library {
  private constructor(private readonly files: Record<string, string>) {}

  static async open(): Promise<Library> {
    const text = asText(await inflate(fromBase64(compressed), "gzip"));
    return new Library(JSON.parse(text) as Record<string, string>);
  }

  /** All entries: first the examples, then the fixtures by their paths. */
  entries(): Entry[] {
    const examples = MANIFESTS.map(({ path, about }) => ({ path, about }));
    const paths = Object.keys(this.files).filter((path) => this.isScenario(path)).sort();
    const fixtures = paths.map((path) => ({ path, about: requirement(this.files[path] ?? "") }));
    return [...examples, ...fixtures];
  }

  text(path: string): string | undefined {
    return this.files[path];
  }

  /** The manifests of an example, and its loads. */
  manifests(path: string): { text: string; load: string[] } | undefined {
    const found = MANIFESTS.find((example) => example.path === path);
    if (!found) return undefined;
    const texts = found.files.map((file) => this.files[file] ?? "");
    return { text: texts.join("\n---\n"), load: found.load };
  }

  /** The files that a scenario of the library names, and no others. */
  filesOf(path: string): Record<string, string> {
    const text = this.files[path] ?? "";
    const folder = path.slice(0, path.lastIndexOf("/") + 1);
    const found: Record<string, string> = {};
    for (const [, name = ""] of text.matchAll(/\b(?:file|csv|prometheus|openMetrics):\s*"?([\w./-]+)/g)) {
      const place = resolve(folder, name);
      const content = this.files[place];
      if (content !== undefined) found[place] = content;
    }
    return found;
  }

  private isScenario(path: string): boolean {
    const text = this.files[path] ?? "";
    return path.startsWith("fixtures/") && /^kind: Scenario$/m.test(text);
  }
}

/** A path relative to a folder, without `.` and `..`. */
export function resolve(folder: string, name: string): string {
  const parts: string[] = [];
  for (const part of `${folder}${name}`.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.join("/");
}

function requirement(text: string): string {
  const found = /^requirement:\s*(?:[>|]-?\s*\n)?((?:.*)(?:\n {2,}.*)*)/m.exec(text)?.[1] ?? "";
  return found.replace(/\s+/g, " ").trim().replace(/^"(.*)"$/, "$1").replace(/^'(.*)'$/, "$1");
}
