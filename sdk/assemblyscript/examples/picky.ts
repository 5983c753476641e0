import { Code, Kind, Level, Turn, register } from "terrarium-assemblyscript";
export * from "terrarium-assemblyscript/creature";

register(handle, (t: Turn): void => {
  t.configKnows(["want", "most", "strict"]);
  t.configText("want");
  most(t);
  strict(t);
});

function most(t: Turn): i64 {
  return t.configWholeOr("most", 1, 1000, 10);
}

function strict(t: Turn): bool {
  return t.configBoolOr("strict", false);
}

function handle(t: Turn): void {
  if (t.kind != Kind.Message) return;
  const want = t.configText("want");
  const value = t.header("want");
  if (value === null) return t.fail(Code.InvalidArgument, "the header want is missing");
  if (value != want) return t.fail(Code.InvalidArgument, "the header want is " + value + ", not " + want);
  const text = t.text;
  if (!t.failed && !command(t, text)) other(t, text);
}

/** Runs the command in a payload, and returns whether there is one. */
function command(t: Turn, text: string): bool {
  if (text == "echo") t.sendAll(text, t.headers.set("seen", "yes"));
  else if (text == "big") big(t);
  else if (text == "caught") caught(t);
  else if (text == "alias") t.send("nowhere", "x");
  else if (text == "key") t.stateSet("", "x");
  else if (text == "missing") missing(t);
  else if (text == "fail") t.fail(Code.Failed, "it went wrong");
  else if (text == "denied") t.fail(Code.Denied, "not today");
  else if (text == "panic") throw new Error("out of cheese");
  else if (text == "loop") while (true) {}
  else if (text == "fuel") t.output(t.fuelLeft < 0 ? "not counted" : "counted");
  else if (text == "log") log(t);
  else return false;
  return true;
}

function other(t: Turn, text: string): void {
  const size = String.UTF8.byteLength(text);
  if (size > most(t)) {
    return t.fail(Code.TooLarge, "the payload has " + size.toString() + " bytes, and at most " + most(t).toString() + " are allowed");
  }
  if (strict(t)) t.log(Level.Info, "strict");
  t.output(text);
}

function big(t: Turn): void {
  t.stateSet("big", new Uint8Array(1048577).fill(0x78));
}

function caught(t: Turn): void {
  big(t);
  const failure = t.caught();
  if (failure !== null) t.output("caught " + failure.name);
}

function missing(t: Turn): void {
  if (t.stateGet("missing") === null) t.output("no state");
}

function log(t: Turn): void {
  t.log(Level.Debug, "a debug line");
  t.log(Level.Info, "an info line");
  t.log(Level.Warn, "a warn line");
  t.log(Level.Error, "an error line");
}
