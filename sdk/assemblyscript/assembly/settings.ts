import { Delivery, read } from "./delivery";
import { Json, JsonType } from "./json";
import * as raw from "./raw";
import { Code, Source } from "./raw";
import { decodeLossy, encode } from "./text";

/** A delivery together with the configuration of the creature. */
export class Settings extends Delivery {
  /** The whole configuration. */
  get configJson(): Json {
    return Json.parse(this.source(Source.Config));
  }

  /** Returns an attribute, a text as it is and anything else as JSON, or null if it is missing. */
  config(key: string): string | null {
    const name = encode(key);
    const size = raw.config(name.dataStart, name.length, 0, 0);
    return size < 0 ? null : decodeLossy(read(Source.Result, size));
  }

  /** Returns an attribute that is a text. */
  configText(key: string): string {
    return this.asText(key, this.required(key), "");
  }

  /** Returns an attribute that is a text, or a default if it is missing. */
  configTextOr(key: string, missing: string): string {
    return this.asText(key, this.configJson.get(key), missing);
  }

  /** Returns an attribute that is a whole number in a range. */
  configWhole(key: string, least: i64, most: i64): i64 {
    return this.asWhole(key, this.required(key), least, most, least);
  }

  /** Returns an attribute that is a whole number in a range, or a default if it is missing. */
  configWholeOr(key: string, least: i64, most: i64, missing: i64): i64 {
    return this.asWhole(key, this.configJson.get(key), least, most, missing);
  }

  /** Returns an attribute that is true or false. */
  configBool(key: string): bool {
    return this.asBool(key, this.required(key), false);
  }

  /** Returns an attribute that is true or false, or a default if it is missing. */
  configBoolOr(key: string, missing: bool): bool {
    return this.asBool(key, this.configJson.get(key), missing);
  }

  /** Fails the turn if the configuration has an attribute that is not among names. */
  configKnows(names: string[]): void {
    const keys = this.configJson.keys();
    for (let i = 0; i < keys.length; i++) {
      if (names.includes(keys[i])) continue;
      const known = names.length == 0 ? "it has none" : "it has " + names.join(", ");
      return this.invalid(keys[i], "the creature has no such attribute; " + known);
    }
  }

  private required(key: string): Json {
    const value = this.configJson.get(key);
    if (!value.exists) this.fail(Code.NotFound, "config " + key + ": it is required");
    return value;
  }

  private invalid(key: string, why: string): void {
    this.fail(Code.InvalidArgument, "config " + key + ": " + why);
  }

  private asText(key: string, value: Json, missing: string): string {
    if (!value.exists) return missing;
    if (value.type != JsonType.Text) this.invalid(key, "it must be a text");
    return value.text();
  }

  private asWhole(key: string, value: Json, least: i64, most: i64, missing: i64): i64 {
    if (!value.exists) return missing;
    const n = value.whole();
    if (value.isWhole && n >= least && n <= most) return n;
    this.invalid(key, "it must be a whole number from " + least.toString() + " to " + most.toString());
    return missing;
  }

  private asBool(key: string, value: Json, missing: bool): bool {
    if (!value.exists) return missing;
    if (value.type != JsonType.Bool) this.invalid(key, "it must be true or false");
    return value.bool();
  }
}
