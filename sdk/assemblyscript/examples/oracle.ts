import { Code, Kind, Turn, encode, register } from "terrarium-assemblyscript";
export * from "terrarium-assemblyscript/creature";

register(handle, (t: Turn): void => t.configKnows([]));

function handle(t: Turn): void {
  switch (t.kind) {
    case Kind.Message:
      return message(t, t.text);
    case Kind.Request:
      return answer(t, t.text);
    case Kind.Result:
      t.send("answers", append("#" + t.tag.toString() + " " + t.resultCode + ": ", t.payload));
  }
}

/** Appends bytes, which need not be UTF-8, to a text. */
function append(head: string, rest: Uint8Array): Uint8Array {
  const start = encode(head);
  const bytes = new Uint8Array(start.length + rest.length);
  bytes.set(start);
  bytes.set(rest, start.length);
  return bytes;
}

function message(t: Turn, text: string): void {
  const words = text.split(" ");
  if (words.length >= 3) {
    const rest = words.slice(2).join(" ");
    if (words[0] == "ask") return ask(t, words[1], rest);
    if (words[0] == "tell") return t.sendTo(words[1], rest);
  }
  if (text == "draw") return draw(t);
  const channel = t.direct ? "direct" : t.channel;
  t.output(channel + " from " + (t.sender == "" ? "outside" : t.sender) + ": " + text);
}

function ask(t: Turn, name: string, text: string): void {
  const tag = t.stateWhole("asked") + 1;
  t.stateSetWhole("asked", tag);
  t.request(name, text, 1000, tag);
}

function draw(t: Turn): void {
  const first = t.random(16);
  const second = t.random(16);
  t.output(first.toString() == second.toString() ? "same" : "different");
}

function answer(t: Turn, text: string): void {
  if (text == "silence") return;
  if (text == "refuse") return t.fail(Code.Denied, "I refuse");
  if (text == "twice") {
    t.reply("once");
    return t.reply("again");
  }
  t.reply("you asked: " + text);
}
