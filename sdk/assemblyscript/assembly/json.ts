/** The type of a JSON value; Missing is that of a value that does not exist. */
export enum JsonType { Missing, Null, Bool, Number, Text, List, Object }

/** The most lists and objects within each other. */
const DEPTH = 128;

/** A JSON value. Reading something that is not there returns a value of the type Missing. */
export class Json {
  private constructor(private source: string, private start: i32, private end: i32) {}

  /** Reads a document, or returns a value of the type Missing if it is not JSON. */
  static parse(text: string): Json {
    const start = space(text, 0);
    const end = skip(text, start, 0);
    return end >= 0 && space(text, end) == text.length ? new Json(text, start, end) : Json.missing();
  }

  /** Returns a text as JSON, with quotation marks. */
  static quote(text: string): string {
    let quoted = "\"";
    let from = 0;
    for (let i = 0; i < text.length; i++) {
      const c = text.charCodeAt(i);
      if (c >= 0x20 && c != 0x22 && c != 0x5C) continue;
      quoted += text.substring(from, i) + (c >= 0x20 ? "\\" + text.charAt(i) : "\\u00" + hex(c >> 4) + hex(c & 15));
      from = i + 1;
    }
    return quoted + text.substring(from) + "\"";
  }

  private static missing(): Json {
    return new Json("", 0, 0);
  }

  get type(): JsonType {
    if (this.start == this.end) return JsonType.Missing;
    switch (this.source.charCodeAt(this.start)) {
      case 0x22: return JsonType.Text;
      case 0x5B: return JsonType.List;
      case 0x7B: return JsonType.Object;
      case 0x6E: return JsonType.Null;
      case 0x74: case 0x66: return JsonType.Bool;
    }
    return JsonType.Number;
  }

  /** Whether there is a value. */
  get exists(): bool {
    return this.start != this.end;
  }

  /** Returns the member of an object. If a name appears twice, its last value counts. */
  get(name: string): Json {
    const keys = this.keys();
    for (let i = keys.length - 1; i >= 0; i--) {
      if (keys[i] == name) return this.elements()[i];
    }
    return Json.missing();
  }

  /** Returns the names of the members of an object, in their order. */
  keys(): string[] {
    const keys: string[] = [];
    if (this.type == JsonType.Object) {
      for (let at = this.first(); at > 0; at = this.next(at)) keys.push(unquote(this.source, at));
    }
    return keys;
  }

  /** Returns the elements of a list. */
  items(): Json[] {
    return this.type == JsonType.List ? this.elements() : [];
  }

  /** Returns the content of a text, or "". */
  text(): string {
    return this.type == JsonType.Text ? unquote(this.source, this.start) : "";
  }

  /** Whether the value is a whole number of at most 18 digits, written without fraction and exponent. */
  get isWhole(): bool {
    return this.type == JsonType.Number && isDecimal(this.toString());
  }

  /** Returns a whole number, or 0. */
  whole(): i64 {
    return this.isWhole ? I64.parseInt(this.toString()) : 0;
  }

  /** Returns a number, or NaN. */
  number(): f64 {
    return this.type == JsonType.Number ? parseFloat(this.toString()) : NaN;
  }

  /** Whether the value is true. */
  bool(): bool {
    return this.toString() == "true";
  }

  /** Returns the value as JSON. */
  toString(): string {
    return this.source.substring(this.start, this.end);
  }

  /** Returns the values of an object or the elements of a list. */
  private elements(): Json[] {
    const values: Json[] = [];
    for (let at = this.first(); at > 0; at = this.next(at)) {
      const start = this.value(at);
      values.push(new Json(this.source, start, skip(this.source, start, 0)));
    }
    return values;
  }

  /** Returns where the first member or element begins, or 0. */
  private first(): i32 {
    const at = space(this.source, this.start + 1);
    return at < this.end - 1 ? at : 0;
  }

  /** Returns where the one after that at a position begins, or 0. */
  private next(at: i32): i32 {
    const end = space(this.source, skip(this.source, this.value(at), 0));
    return end < this.end - 1 ? space(this.source, end + 1) : 0;
  }

  /** Returns where the value of a member begins; an element is its own value. */
  private value(at: i32): i32 {
    if (this.source.charCodeAt(this.start) != 0x7B) return at;
    return space(this.source, space(this.source, skip(this.source, at, 0)) + 1);
  }
}

/** Whether a text is a decimal number of at most 18 digits, with or without a minus. */
export function isDecimal(text: string): bool {
  const start = text.startsWith("-") ? 1 : 0;
  if (text.length == start || text.length > start + 18) return false;
  for (let i = start; i < text.length; i++) {
    if (!isDigit(text.charCodeAt(i))) return false;
  }
  return true;
}

function isDigit(c: i32): bool {
  return c >= 0x30 && c <= 0x39;
}

function hex(n: i32): string {
  return "0123456789abcdef".charAt(n);
}

function space(s: string, at: i32): i32 {
  while (at < s.length) {
    const c = s.charCodeAt(at);
    if (c != 0x20 && c != 0x0A && c != 0x0D && c != 0x09) break;
    at++;
  }
  return at;
}

/** Returns the end of the value at a position, or -1 if there is none. */
function skip(s: string, at: i32, depth: i32): i32 {
  if (at >= s.length) return -1;
  const c = s.charCodeAt(at);
  if (c == 0x22) return skipText(s, at);
  if (c == 0x7B) return skipList(s, at, depth, 0x7D);
  if (c == 0x5B) return skipList(s, at, depth, 0x5D);
  if (s.startsWith("true", at) || s.startsWith("null", at)) return at + 4;
  if (s.startsWith("false", at)) return at + 5;
  return skipNumber(s, at);
}

function skipList(s: string, at: i32, depth: i32, close: i32): i32 {
  if (depth == DEPTH) return -1;
  at = space(s, at + 1);
  if (at < s.length && s.charCodeAt(at) == close) return at + 1;
  while (at < s.length) {
    if (close == 0x7D) {
      at = s.charCodeAt(at) == 0x22 ? skipText(s, at) : -1;
      if (at < 0) return -1;
      at = space(s, at);
      if (at >= s.length || s.charCodeAt(at) != 0x3A) return -1;
      at = space(s, at + 1);
    }
    at = skip(s, at, depth + 1);
    if (at < 0) return -1;
    at = space(s, at);
    if (at >= s.length) return -1;
    const c = s.charCodeAt(at);
    if (c == close) return at + 1;
    if (c != 0x2C) return -1;
    at = space(s, at + 1);
  }
  return -1;
}

function skipText(s: string, at: i32): i32 {
  for (at++; at < s.length; at++) {
    const c = s.charCodeAt(at);
    if (c == 0x22) return at + 1;
    if (c < 0x20) return -1;
    if (c != 0x5C) continue;
    if (++at >= s.length) return -1;
    if (s.charCodeAt(at) == 0x75) {
      if (fourDigits(s, at + 1) < 0) return -1;
      at += 4;
    } else if (!"\"\\/bfnrt".includes(s.charAt(at))) {
      return -1;
    }
  }
  return -1;
}

function fourDigits(s: string, at: i32): i32 {
  if (at + 4 > s.length) return -1;
  let n = 0;
  for (let i = at; i < at + 4; i++) {
    const c = s.charCodeAt(i);
    const letter = c | 0x20;
    if (isDigit(c)) n = n << 4 | (c - 0x30);
    else if (letter >= 0x61 && letter <= 0x66) n = n << 4 | (letter - 0x57);
    else return -1;
  }
  return n;
}

function skipNumber(s: string, at: i32): i32 {
  if (s.charCodeAt(at) == 0x2D) at++;
  const zero = at < s.length && s.charCodeAt(at) == 0x30;
  const whole = digits(s, at);
  if (whole == at || (zero && whole > at + 1)) return -1;
  at = whole;
  if (at < s.length && s.charCodeAt(at) == 0x2E) {
    const end = digits(s, at + 1);
    if (end == at + 1) return -1;
    at = end;
  }
  if (at < s.length && (s.charCodeAt(at) | 0x20) == 0x65) {
    at++;
    if (at < s.length && (s.charCodeAt(at) == 0x2B || s.charCodeAt(at) == 0x2D)) at++;
    const end = digits(s, at);
    if (end == at) return -1;
    at = end;
  }
  return at;
}

function digits(s: string, at: i32): i32 {
  while (at < s.length && isDigit(s.charCodeAt(at))) at++;
  return at;
}

/** Returns the content of the text at a position, which skipText has accepted. */
function unquote(s: string, at: i32): string {
  const end = skipText(s, at) - 1;
  let text = "";
  let from = at + 1;
  for (let i = from; i < end; i++) {
    if (s.charCodeAt(i) != 0x5C) continue;
    text += s.substring(from, i++);
    const c = s.charAt(i);
    if (c == "u") {
      text += String.fromCharCode(fourDigits(s, i + 1));
      i += 4;
    } else {
      const known = "bfnrt".indexOf(c);
      text += known < 0 ? c : "\b\f\n\r\t".charAt(known);
    }
    from = i + 1;
  }
  return text + s.substring(from, end);
}
