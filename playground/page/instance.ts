// An instance of the WebAssembly module. A request goes in, an answer comes out; its only import is called with
// the progress of a search.

/** Takes the progress of a search: how much of the largest amount is done. */
export type Watch = (done: number, most: number) => void;

interface Exports {
  memory: WebAssembly.Memory;
  initialize(): void;
  allocate(length: number): number;
  release_memory(start: number, length: number): void;
  answer(start: number, length: number): number;
  panic_message(): number;
}

export class Instance {
  private constructor(private readonly exports: Exports) {}

  static async create(module: BufferSource, progress: Watch = () => undefined): Promise<Instance> {
    const { instance } = await WebAssembly.instantiate(module, { page: { progress } });
    const exports = instance.exports as unknown as Exports;
    exports.initialize();
    return new Instance(exports);
  }

  /** Answers a request. After an error, the instance must not be used again. */
  answer(request: string): string {
    const bytes = new TextEncoder().encode(request);
    const start = this.exports.allocate(bytes.length);
    new Uint8Array(this.exports.memory.buffer, start, bytes.length).set(bytes);
    try {
      return this.take(this.exports.answer(start, bytes.length));
    } catch (error) {
      const message = this.take(this.exports.panic_message());
      throw new Error(message || String(error));
    }
  }

  /** Reads a text from the memory of the module and frees it. */
  private take(start: number): string {
    const length = new DataView(this.exports.memory.buffer).getUint32(start, true);
    const bytes = new Uint8Array(this.exports.memory.buffer, start + 4, length);
    const text = new TextDecoder().decode(bytes);
    this.exports.release_memory(start, length + 4);
    return text;
  }
}
