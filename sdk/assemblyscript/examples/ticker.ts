import { Code, Kind, Level, Turn, register } from "terrarium-assemblyscript";
export * from "terrarium-assemblyscript/creature";

const DAY_MS: i64 = 86400000;

register(handle, (t: Turn): void => {
  t.configKnows(["every_ms", "limit"]);
  every(t);
  limit(t);
});

function every(t: Turn): i64 {
  return t.configWholeOr("every_ms", 1, DAY_MS, 1000);
}

function limit(t: Turn): i64 {
  return t.configWholeOr("limit", 0, 1000000, 0);
}

function handle(t: Turn): void {
  switch (t.kind) {
    case Kind.Start:
      return t.setTimer("tick", every(t), every(t), "tick");
    case Kind.Timer:
      if (t.timerName == "tick") tick(t);
      else t.sendAll(t.timerName + ": " + t.text);
      return;
    case Kind.Message:
      command(t, t.text);
  }
}

function tick(t: Turn): void {
  const n = t.stateWhole("ticks") + 1;
  t.stateSetWhole("ticks", n);
  t.sendAll("tick " + n.toString() + " at " + (t.now / 1000000).toString());
  if (n != limit(t)) return;
  t.cancelTimer("tick");
  t.log(Level.Info, "done after " + n.toString() + " ticks");
}

function command(t: Turn, text: string): void {
  if (text == "stop") return t.log(Level.Info, t.cancelTimer("tick") ? "stopped" : "was not running");
  const words = text.split(" ");
  const delay = words.length >= 4 && words[0] == "in" ? milliseconds(words[1]) : -1;
  if (delay < 0) return t.fail(Code.Failed, "unknown command: " + text);
  t.setTimer(words[2], delay, 0, words.slice(3).join(" "));
}

/** Returns a time of at most a day, or -1 if the word is none. */
function milliseconds(word: string): i64 {
  if (word.length == 0 || word.length > 8) return -1;
  for (let i = 0; i < word.length; i++) {
    if (word.charAt(i) < "0" || word.charAt(i) > "9") return -1;
  }
  const ms = I64.parseInt(word);
  return ms <= DAY_MS ? ms : -1;
}
