import { Json } from "./json";
import { decode } from "./text";

/** A call of a group tool. Classes for each tool are in tools.ts; Turn.call makes the call. */
export class ToolCall {
  private members: string = "";

  constructor(public tool: string) {}

  /** The arguments as JSON. */
  get json(): string {
    return "{" + this.members + "}";
  }

  /** Sets an argument to a JSON value. */
  setJson(name: string, value: string): void {
    if (this.members.length > 0) this.members += ",";
    this.members += Json.quote(name) + ":" + value;
  }

  setText(name: string, value: string): void {
    this.setJson(name, Json.quote(value));
  }

  setWhole(name: string, value: i64): void {
    this.setJson(name, value.toString());
  }

  setBool(name: string, value: bool): void {
    this.setJson(name, value ? "true" : "false");
  }

  setPayload(name: string, value: Uint8Array): void {
    const text = decode(value);
    this.setJson(name, text === null ? "{\"base64\":\"" + base64(value) + "\"}" : Json.quote(text));
  }

  setWires(name: string, value: Wires): void {
    this.setJson(name, value.json);
  }
}

/** A list of channels, each with the alias under which a creature knows it. */
export class Wires {
  private items: string = "";

  /** Adds a channel, by id or name. Without an alias, the channel's name is the alias. */
  add(channel: string, alias: string = ""): Wires {
    if (this.items.length > 0) this.items += ",";
    this.items += "{\"channel\":" + Json.quote(channel) + (alias == "" ? "}" : ",\"alias\":" + Json.quote(alias) + "}");
    return this;
  }

  /** The list as JSON. */
  get json(): string {
    return "[" + this.items + "]";
  }
}

function base64(bytes: Uint8Array): string {
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  let text = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const left = bytes.length - i;
    const n = <i32>bytes[i] << 16 | (left > 1 ? <i32>bytes[i + 1] << 8 : 0) | (left > 2 ? <i32>bytes[i + 2] : 0);
    text += digits.charAt(n >> 18) + digits.charAt(n >> 12 & 63) + (left > 1 ? digits.charAt(n >> 6 & 63) : "=") +
      (left > 2 ? digits.charAt(n & 63) : "=");
  }
  return text;
}
