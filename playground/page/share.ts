// A scenario in a link: compressed JSON in the fragment, which browsers do not send to servers.

import { asText, deflate, fromBase64, inflate, toBase64 } from "./bytes.ts";

/** Everything that the page shows depends on this. */
export interface Work {
  /** The path of the scenario, which other files are relative to. */
  path: string;
  text: string;
  files: Record<string, string>;
  /** The release of Kubernetes. */
  release: string;
  /** The other release of a comparison; empty without one. */
  other: string;
  /** The release of the VPA. Older links have none. */
  vpaRelease?: string;
  /** The other release of the VPA. */
  vpaOther?: string;
}

/** The version of the format, at the start of the fragment. */
const VERSION = "1.";

export async function toFragment(work: Work): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(work));
  const packed = toBase64(await deflate(bytes, "deflate-raw"));
  return `#${VERSION}${packed.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** Reads a fragment. Returns undefined if it is empty. */
export async function fromFragment(fragment: string): Promise<Work | undefined> {
  const text = fragment.replace(/^#/, "");
  if (text === "") return undefined;
  if (!text.startsWith(VERSION)) {
    throw new Error("This link was made by another version of the playground.");
  }
  try {
    const packed = text.slice(VERSION.length).replaceAll("-", "+").replaceAll("_", "/");
    const work: unknown = JSON.parse(asText(await inflate(fromBase64(packed), "deflate-raw")));
    if (isWork(work)) return work;
  } catch {
    // The message below describes it better than the decoder's.
  }
  throw new Error("This link is incomplete or damaged.");
}

export function isWork(value: unknown): value is Work {
  if (typeof value !== "object" || value === null) return false;
  const work = value as Record<string, unknown>;
  const texts = ["path", "text", "release", "other"].every((key) => typeof work[key] === "string");
  const files = work["files"];
  return texts && typeof files === "object" && files !== null
    && Object.values(files).every((text) => typeof text === "string");
}
