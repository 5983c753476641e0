import { Runtime } from "shared/runtime";
import { Code, Kind, Level } from "./raw";
import { Turn } from "./turn";

/** A handler of a creature. */
export type Handler = (t: Turn) => void;

function ignore(t: Turn): void {}

let onDelivery: Handler = ignore;
let onInit: Handler = ignore;
let onStop: Handler = ignore;

/**
 * Makes functions the creature of this module; call it at the top of the entry file. handle is called for every delivery. init is
 * called once for every instance, before the first delivery, and stop before an orderly close; both may only read. If init fails, the
 * host does not use the instance.
 */
export function register(handle: Handler, init: Handler = ignore, stop: Handler = ignore): void {
  onDelivery = handle;
  onInit = init;
  onStop = stop;
}

export function runInit(): i32 {
  return run(onInit, <Kind>0, 0);
}

export function runHandle(kind: Kind, size: i32): i32 {
  return run(onDelivery, kind, size);
}

export function runStop(): void {
  run(onStop, <Kind>0, 0);
}

/** After how many small turns their garbage is collected, which costs more than such a turn. */
const TURNS_PER_COLLECTION: i32 = 128;

/** Linear memory, in pages, beyond which every turn collects: the garbage of several turns takes at most that. */
const PAGES_OF_GARBAGE: i32 = 4;

let turns: i32 = 0;

/** The turn of every call. */
const t = new Turn();

/** Runs a handler, logs why the turn failed, and frees what turns made. */
function run(handler: Handler, kind: Kind, size: i32): i32 {
  const status = turn(handler, kind, size);
  // No object is on the stack here, which the minimal runtime requires.
  if (ASC_RUNTIME == Runtime.Minimal && (++turns >= TURNS_PER_COLLECTION || memory.size() > PAGES_OF_GARBAGE)) {
    turns = 0;
    __collect();
  }
  return status;
}

function turn(handler: Handler, kind: Kind, size: i32): i32 {
  t.begin(kind, size);
  handler(t);
  const failure = t.caught();
  if (failure === null) return 0;
  t.log(Level.Error, failure.text);
  return -(failure.code > Code.OK ? failure.code : Code.Failed);
}
