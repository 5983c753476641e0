import { Headers } from "./headers";
import { Json } from "./json";
import * as raw from "./raw";
import { Code, Kind, Source, codeName } from "./raw";
import { decode, decodeLossy } from "./text";

/** Why a turn fails. */
export class Failure {
  constructor(
    /** The code of the contract. */
    public code: Code,
    /** What happened and what to do. */
    public text: string,
  ) {}

  /** The name of the code, for example "not_found". */
  get name(): string {
    return codeName(this.code);
  }
}

/** The delivery that the host hands to a creature, and the reason if the turn fails. */
export class Delivery {
  private failure: Failure | null = null;

  /** Why the creature is called. */
  kind: Kind = <Kind>0;

  private size: i32 = 0;

  /** Makes this the turn of another call. */
  begin(kind: Kind, size: i32): void {
    this.kind = kind;
    this.size = size;
    this.failure = null;
  }

  /**
   * Fails the turn with a code and a text, which is logged: none of its effects applies. The handler continues until it
   * returns. The first failure counts. An error that the host returns for a call fails the turn in the same way.
   */
  fail(code: Code, text: string): void {
    if (this.failure === null) this.failure = new Failure(code, text);
  }

  /** Whether the turn has failed. */
  get failed(): bool {
    return this.failure !== null;
  }

  /** Returns why the turn failed, and lets it continue as if it had not failed; null if it has not failed. */
  caught(): Failure | null {
    const failure = this.failure;
    this.failure = null;
    return failure;
  }

  /** The bytes of the delivery. They need not be UTF-8. */
  get payload(): Uint8Array {
    return read(Source.Payload, this.size);
  }

  /** The payload as a text. It fails the turn and is "" if the payload is not UTF-8. */
  get text(): string {
    const text = decode(this.payload);
    if (text !== null) return text;
    this.fail(Code.InvalidArgument, "the payload is not UTF-8");
    return "";
  }

  /** The listen alias of the message's channel, or the creature's own name for a direct message. */
  get channel(): string {
    return this.source(Source.Channel);
  }

  /** The sender's name, or "" for a message from outside. */
  get sender(): string {
    return this.source(Source.Sender);
  }

  /** The id of the message, which is unique everywhere. */
  get messageId(): string {
    return this.source(Source.MessageID);
  }

  /** The creature's own name. */
  get self(): string {
    return this.source(Source.Self);
  }

  /** The headers of the message. */
  get headers(): Headers {
    return new Headers(read(Source.Headers, raw.size(Source.Headers)));
  }

  /** Returns the value of a header of the message, or null. */
  header(name: string): string | null {
    return this.headers.get(name);
  }

  /** The details of this kind of delivery. */
  get detail(): Json {
    return Json.parse(this.source(Source.Detail));
  }

  /** Whether a message was sent directly. */
  get direct(): bool {
    return this.detail.get("direct").bool();
  }

  /** The number of the attempt to handle the delivery, from 1 on. */
  get attempt(): i32 {
    return <i32>this.detail.get("attempt").whole();
  }

  /** The name of the timer. */
  get timerName(): string {
    return this.detail.get("name").text();
  }

  /** The tag of the request whose result this is. */
  get tag(): i64 {
    return I64.parseInt(this.detail.get("tag").text());
  }

  /** "ok" or the name of the error of a result. */
  get resultCode(): string {
    return this.detail.get("code").text();
  }

  /** What the creature can know about itself and its surroundings. */
  get awareness(): Json {
    return Json.parse(this.source(Source.AwarenessJSON));
  }

  /** The same as Markdown. */
  get awarenessMarkdown(): string {
    return this.source(Source.AwarenessMarkdown);
  }

  /** The revision of the awareness document, or 0 if there is none. */
  get awarenessRevision(): i64 {
    const text = this.source(Source.AwarenessRevision);
    return text == "" ? 0 : I64.parseInt(text);
  }

  /** Returns a source as a text, or "" if the host does not have it. */
  source(source: Source): string {
    return decodeLossy(read(source, raw.size(source)));
  }

  /** Fails the turn if a status is an error of the host. Returns the status, or 0. */
  protected check(call: string, status: i32): i32 {
    if (status >= 0) return status;
    this.fail(-status, call + ": " + this.source(Source.Error) + " (" + codeName(-status) + ")");
    return 0;
  }
}

/** Returns a source of that size. */
export function read(source: Source, size: i32): Uint8Array {
  if (size <= 0) return new Uint8Array(0);
  // A new Uint8Array would be filled with zeros first.
  const buffer = changetype<ArrayBuffer>(__new(size, idof<ArrayBuffer>()));
  const n = max(raw.read(source, 0, changetype<usize>(buffer), size), 0);
  if (n < size) memory.fill(changetype<usize>(buffer) + n, 0, size - n);
  return Uint8Array.wrap(buffer);
}
