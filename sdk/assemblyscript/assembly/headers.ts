import { decodeLossy, encode } from "./text";

/** The headers of a message. A name is not empty; neither name nor value contains NUL. */
export class Headers {
  /** The headers as in the contract: name NUL value NUL, repeated. */
  raw: Uint8Array;

  constructor(raw: Uint8Array = new Uint8Array(0)) {
    this.raw = raw;
  }

  /** Returns the value of a header, or null. If a name appears twice, its last value counts. */
  get(name: string): string | null {
    const bytes = this.bytes(name);
    return bytes === null ? null : decodeLossy(bytes);
  }

  /** Returns the value of a header as bytes, which need not be UTF-8, or null. */
  bytes(name: string): Uint8Array | null {
    const key = encode(name);
    let value: Uint8Array | null = null;
    for (let at = 0; at < this.raw.length; ) {
      const middle = this.end(at);
      const end = this.end(middle + 1);
      if (middle - at == key.length && memory.compare(this.raw.dataStart + at, key.dataStart, key.length) == 0) {
        value = this.raw.slice(middle + 1, end);
      }
      at = end + 1;
    }
    return value;
  }

  /** Returns the names in their order. */
  names(): string[] {
    const names: string[] = [];
    for (let at = 0; at < this.raw.length; ) {
      const middle = this.end(at);
      names.push(decodeLossy(this.raw.subarray(at, middle)));
      at = this.end(middle + 1) + 1;
    }
    return names;
  }

  /** Adds a header, or replaces its value, and returns the headers. */
  set(name: string, value: string): Headers {
    const more = encode(name + "\0" + value + "\0");
    const raw = new Uint8Array(this.raw.length + more.length);
    raw.set(this.raw);
    raw.set(more, this.raw.length);
    this.raw = raw;
    return this;
  }

  /** Returns the position of the NUL at or after a position, or the end. */
  private end(at: i32): i32 {
    const found = at < this.raw.length ? this.raw.indexOf(0, at) : -1;
    return found < 0 ? this.raw.length : found;
  }
}
