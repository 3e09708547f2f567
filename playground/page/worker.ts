// The worker that runs the model, so that a long prediction does not block the page.

import { Instance } from "./instance.ts";

export interface ToWorker {
  /** The module, in the first message. */
  module?: Uint8Array<ArrayBuffer>;
  request?: string;
}

export interface FromWorker {
  answer?: string;
  /** The model panicked, or the module can't be compiled. */
  error?: string;
  /** The progress of the search that runs. */
  progress?: [done: number, most: number];
}

/** The least time between two messages on the progress. */
const PROGRESS_MS = 100;

let module: Uint8Array<ArrayBuffer> | undefined;
let instance: Instance | undefined;

let shownAt = 0;

function watch(done: number, most: number): void {
  const now = performance.now();
  if (now - shownAt < PROGRESS_MS) return;
  shownAt = now;
  self.postMessage({ progress: [done, most] } satisfies FromWorker);
}

async function respond(message: ToWorker): Promise<FromWorker | undefined> {
  if (message.module) module = message.module;
  if (message.request === undefined || !module) return undefined;
  try {
    instance ??= await Instance.create(module, watch);
    return { answer: instance.answer(message.request) };
  } catch (error) {
    instance = undefined;
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

self.addEventListener("message", async (event: MessageEvent<ToWorker>) => {
  const answer = await respond(event.data);
  if (answer) self.postMessage(answer);
});
