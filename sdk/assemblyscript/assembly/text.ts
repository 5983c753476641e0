/** Returns a text in UTF-8. An unpaired surrogate becomes a replacement character. */
export function encode(text: string): Uint8Array {
  return Uint8Array.wrap(String.UTF8.encode(text, false, String.UTF8.ErrorMode.REPLACE));
}

/** Returns the text of bytes, or null if they are not UTF-8. */
export function decode(bytes: Uint8Array): string | null {
  return valid(bytes) ? String.UTF8.decodeUnsafe(bytes.dataStart, bytes.length) : null;
}

/** Returns the text of bytes, with a replacement character for each byte that is not part of UTF-8. */
export function decodeLossy(bytes: Uint8Array): string {
  const text = decode(bytes);
  if (text !== null) return text;
  let lossy = "";
  for (let i = 0; i < bytes.length; ) {
    const n = sequence(bytes, i);
    lossy += n == 0 ? "\uFFFD" : String.UTF8.decodeUnsafe(bytes.dataStart + i, n);
    i += max(n, 1);
  }
  return lossy;
}

/** Returns a payload as bytes: a string in UTF-8, a Uint8Array as it is. */
// @ts-ignore: decorator
@inline
export function toBytes<P>(payload: P): Uint8Array {
  if (isString<P>()) return encode(changetype<string>(payload));
  if (idof<P>() != idof<Uint8Array>()) ERROR("a payload is a string or a Uint8Array");
  return changetype<Uint8Array>(payload);
}

function valid(bytes: Uint8Array): bool {
  for (let i = 0; i < bytes.length; ) {
    const n = sequence(bytes, i);
    if (n == 0) return false;
    i += n;
  }
  return true;
}

/** Returns the length of the UTF-8 sequence at i, or 0 if there is none (RFC 3629, section 4). */
function sequence(bytes: Uint8Array, i: i32): i32 {
  const first = unchecked(bytes[i]);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const n = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (i + n > bytes.length) return 0;
  const second = unchecked(bytes[i + 1]);
  const least: u8 = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const most: u8 = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (second < least || second > most) return 0;
  for (let k = 2; k < n; k++) {
    if ((unchecked(bytes[i + k]) & 0xC0) != 0x80) return 0;
  }
  return n;
}
