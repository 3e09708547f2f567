// Modules that build.mjs makes.

declare module "made:worker" {
  /** The script of the worker. */
  const source: string;
  export default source;
}

declare module "made:examples" {
  /** Files of the repository by their paths, as compressed JSON in base64. */
  const files: string;
  export default files;
}

declare module "made:template" {
  /** The scenario that `kube-lockstep init` writes. */
  const text: string;
  export default text;
}

declare module "made:figure" {
  /** Selects the ticks of one timeline. */
  export interface Ticks {
    count: number;
    show(index: number): void;
    selected(): number;
  }
  /** The data of all figures, in the order of the page. */
  export interface Panels {
    /** Templates of texts. */
    t: string[];
    f: Figure[];
  }
  /** The ticks of a figure: the place in percent, the number, and what its panel shows. */
  export interface Figure {
    k: FigureTick[];
  }
  export type FigureTick = [number, number, ...unknown[]];
  /** All ticks of a figure, in order, also those without a derivation. */
  export function ticksOf(data: Figure): FigureTick[];
  /** crates/report/src/html/figure.js: makes a timeline select ticks. */
  export function activate(figure: HTMLElement, panels: Panels, data: Figure): Ticks | undefined;
}
