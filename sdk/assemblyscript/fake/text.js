const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Returns a payload as bytes. */
export function bytesOf(payload) {
  return payload instanceof Uint8Array ? payload : new TextEncoder().encode(payload);
}

/** Returns bytes as a string, or as they are if they are not UTF-8. */
export function textOf(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return bytes;
  }
}

/** Returns headers as in the contract: name NUL value NUL, repeated. */
export function encodeHeaders(headers) {
  return Object.entries(headers).map(([name, value]) => `${name}\0${value}\0`).join("");
}

/** Returns the headers of the contract as an object, or null if they are malformed. */
export function decodeHeaders(bytes) {
  const parts = String(new TextDecoder().decode(bytes)).split("\0");
  if (parts.pop() !== "" || parts.length % 2 !== 0) return null;
  const headers = {};
  for (let i = 0; i < parts.length; i += 2) {
    if (parts[i] === "" || parts[i].toLowerCase().startsWith("terrarium-")) return null;
    headers[parts[i]] = parts[i + 1];
  }
  return headers;
}

/** Orders texts by their bytes in UTF-8. */
export function byBytes(a, b) {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
