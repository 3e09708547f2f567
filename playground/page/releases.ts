// The selects of the releases: of Kubernetes for scenarios of HPAs, of the VPA for those of VPAs.

import { byId, make, option } from "./dom.ts";
import type { About, Kind } from "./model.ts";
import type { Work } from "./share.ts";

/** The releases that are chosen; `other` is empty without a comparison. */
interface Pair {
  release: string;
  other: string;
}

type Chosen = Pick<Work, "release" | "other" | "vpaRelease" | "vpaOther">;

export class Releases {
  private readonly release = byId<HTMLSelectElement>("release");
  private readonly otherRelease = byId<HTMLSelectElement>("other");
  private readonly newestFirst: Record<Kind, string[]>;
  private readonly pairs: Record<Kind, Pair>;
  private shown: Kind | undefined;

  constructor({ releases, vpaReleases }: About, events: { changed(): void }) {
    this.newestFirst = { hpa: [...releases].reverse(), vpa: [...vpaReleases].reverse() };
    this.pairs = {
      hpa: { release: this.newestFirst.hpa[0] ?? "", other: "" },
      vpa: { release: this.newestFirst.vpa[0] ?? "", other: "" },
    };
    this.kind = "hpa";
    for (const select of [this.release, this.otherRelease]) {
      select.addEventListener("change", () => {
        this.pairs[this.kind] = { release: this.release.value, other: this.otherRelease.value };
        events.changed();
      });
    }
  }

  get kind(): Kind {
    return this.shown ?? "hpa";
  }

  /** Shows the releases of a kind. */
  set kind(kind: Kind) {
    if (kind === this.shown) return;
    this.shown = kind;
    const releases = this.newestFirst[kind];
    this.release.replaceChildren(...releases.map((release) => option(release)));
    const none = option("", "no other release");
    this.otherRelease.replaceChildren(none, ...releases.map((release) => option(release)));
    this.select();
  }

  /** The other release of a comparison; empty without one. */
  get other(): string {
    return this.pairs[this.kind].other;
  }

  get isCompared(): boolean {
    return this.other !== "" && this.other !== this.pairs[this.kind].release;
  }

  get chosen(): Chosen {
    const { hpa, vpa } = this.pairs;
    return { release: hpa.release, other: hpa.other, vpaRelease: vpa.release, vpaOther: vpa.other };
  }

  /** Chooses the releases that are known. */
  set chosen({ release, other, vpaRelease = "", vpaOther = "" }: Chosen) {
    this.choose("hpa", { release, other });
    this.choose("vpa", { release: vpaRelease, other: vpaOther });
    this.select();
  }

  private choose(kind: Kind, { release, other }: Pair): void {
    const known = this.newestFirst[kind];
    if (known.includes(release)) this.pairs[kind].release = release;
    this.pairs[kind].other = known.includes(other) ? other : "";
  }

  /** Selects of two releases of Kubernetes: the compared ones, or the chosen one and the newest. */
  selects(): [from: HTMLSelectElement, to: HTMLSelectElement] {
    const releases = this.newestFirst.hpa;
    const { release, other } = this.pairs.hpa;
    // The newest one comes first.
    const indices = [release, other === "" ? releases[0] ?? "" : other].map((it) => releases.indexOf(it));
    const [to = 0, from = 0] = indices.sort((one, two) => one - two);
    const select = (index: number): HTMLSelectElement => {
      const made = make("select", {}, ...releases.map((release) => option(release)));
      made.selectedIndex = index;
      return made;
    };
    return [select(from === to ? Math.min(to + 1, releases.length - 1) : from), select(to)];
  }

  private select(): void {
    const { release, other } = this.pairs[this.kind];
    this.release.value = release;
    this.otherRelease.value = other;
  }
}
