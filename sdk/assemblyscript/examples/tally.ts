import { Headers, Kind, Turn, register } from "terrarium-assemblyscript";
export * from "terrarium-assemblyscript/creature";

register(handle, (t: Turn): void => {
  t.configKnows(["step", "prefix"]);
  step(t);
  prefix(t);
});

function step(t: Turn): i64 {
  return t.configWholeOr("step", 1, 1000000, 1);
}

function prefix(t: Turn): string {
  return t.configTextOr("prefix", "");
}

function handle(t: Turn): void {
  if (t.kind != Kind.Message) return;
  const text = t.text;
  if (t.failed) return;
  if (text == "?") return list(t);
  if (text.startsWith("-")) return remove(t, text.substring(1));
  const count = t.stateWhole("n/" + text) + step(t);
  t.stateSetWhole("n/" + text, count);
  t.send("counts", prefix(t) + text + "=" + count.toString(), new Headers().set("count", count.toString()));
}

function list(t: Turn): void {
  const keys = t.stateList("n/");
  let lines = "";
  for (let i = 0; i < keys.length; i++) {
    lines += keys[i].substring(2) + "=" + t.stateWhole(keys[i]).toString() + "\n";
  }
  t.output(lines == "" ? "empty\n" : lines);
}

function remove(t: Turn, key: string): void {
  const removed = t.stateDelete("n/" + key);
  t.send("counts", key + (removed ? " removed" : " unknown"));
}
