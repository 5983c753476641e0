import {
  Code, Feature, GroupAddNode, GroupChannel, GroupRemoveNode, GroupSend, GroupStartNode, GroupStatus, GroupStopNode, GroupWire, Json,
  Kind, SendChannel, ToolCall, Turn, encode, register,
} from "terrarium-assemblyscript";
export * from "terrarium-assemblyscript/creature";

/** Requests deliveries of the kind GraphChanged. */
export function terrarium_graph_changed(): void {}

register((t: Turn): void => {
  const revision = t.awarenessRevision.toString();
  switch (t.kind) {
    case Kind.Start:
      return t.output(t.self + " starts at revision " + revision);
    case Kind.GraphChanged:
      return t.output("revision " + revision + ": listens on " + listens(t));
    case Kind.Message:
      return command(t, t.text);
  }
});

function listens(t: Turn): string {
  const channels = t.awareness.get("channels").get("items").items();
  const aliases: string[] = [];
  for (let i = 0; i < channels.length; i++) {
    const alias = channels[i].get("listen");
    if (alias.exists) aliases.push(alias.text());
  }
  return aliases.length == 0 ? "nothing" : aliases.join(", ");
}

function command(t: Turn, text: string): void {
  if (t.failed) return;
  const words = text.split(" ");
  const verb = words[0];
  if (text == "title") return t.output(t.awarenessMarkdown.split("\n")[0]);
  if (!t.hasFeature(Feature.Tools)) return t.output("no tools");
  if (text == "members") return members(t);
  if (words.length == 2) {
    const name = words[1];
    if (verb == "make") return run(t, new GroupChannel("create").name(name), "made " + name);
    if (verb == "stop") return run(t, new GroupStopNode(name), text);
    if (verb == "resume") return run(t, new GroupStartNode(name), text);
    if (verb == "remove") return run(t, new GroupRemoveNode(name), text);
    if (verb == "route") return run(t, new GroupWire("add").from(t.self).to(name).withContent(true), "routed to " + name);
  }
  if (words.length >= 3) {
    const rest = words.slice(2).join(" ");
    if (verb == "say") return run(t, new SendChannel(words[1], encode(rest)).headers("{\"tone\":\"loud\"}"), "");
    if (verb == "tell") return run(t, new GroupSend(words[1], encode(rest)), "");
  }
  if (words.length == 3) {
    if (verb == "wire") {
      const wire = new GroupChannel("wire").channel(words[1]).creature(t.self).direction("listen").alias(words[2]);
      return run(t, wire, "wired " + words[1]);
    }
    if (verb == "spawn") return spawn(t, words[1], words[2]);
  }
  t.fail(Code.Failed, "unknown command: " + text);
}

function members(t: Turn): void {
  const result = attempt(t, new GroupStatus());
  if (!result.exists) return;
  const creatures = result.get("creatures").items();
  t.output("members: " + creatures.map<string>((creature) => creature.get("name").text()).join(", "));
}

function spawn(t: Turn, species: string, name: string): void {
  const result = attempt(t, new GroupAddNode(species).name(name));
  if (result.exists) t.output("spawned " + result.get("name").text());
}

/** Calls a tool and outputs what was done, unless that is empty. */
function run(t: Turn, call: ToolCall, done: string): void {
  if (attempt(t, call).exists && done != "") t.output(done);
}

/** Calls a tool. If the host refuses, the code is output, and the turn continues. */
function attempt(t: Turn, call: ToolCall): Json {
  const result = t.call(call);
  const failure = t.caught();
  if (failure !== null) t.output(call.tool + ": " + failure.name);
  return result;
}
