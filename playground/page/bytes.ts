// Bytes as text, compressed and not, with what browsers have.

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let index = 0; index < raw.length; index += 1) bytes[index] = raw.charCodeAt(index);
  return bytes;
}

export function toBase64(bytes: Uint8Array): string {
  let raw = "";
  for (let start = 0; start < bytes.length; start += 0x8000) {
    raw += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  }
  return btoa(raw);
}

type Format = "gzip" | "deflate-raw";

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  stream: ReadableWritablePair<Uint8Array<ArrayBuffer>, BufferSource>,
): Promise<Uint8Array<ArrayBuffer>> {
  const piped = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

export function inflate(bytes: Uint8Array<ArrayBuffer>, format: Format): Promise<Uint8Array<ArrayBuffer>> {
  return through(bytes, new DecompressionStream(format));
}

export function deflate(bytes: Uint8Array<ArrayBuffer>, format: Format): Promise<Uint8Array<ArrayBuffer>> {
  return through(bytes, new CompressionStream(format));
}

export function asText(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}
