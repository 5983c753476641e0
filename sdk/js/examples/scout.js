// scout looks around and edits its graph.

// commands holds, by their verbs, how many words a command has, and what it does. It
// returns what is output.
const commands = {
  members: [1, (turn) => `members: ${turn.tools.groupStatus().creatures.map((c) => c.name).join(", ")}`],
  make: [2, (turn, name) => (turn.tools.groupChannel({ action: "create", name }), `made ${name}`)],
  wire: [3, (turn, channel, alias) => {
    turn.tools.groupChannel({ action: "wire", channel, creature: turn.self, direction: "listen", alias });
    return `wired ${channel}`;
  }],
  say: [3, (turn, channel, payload) => void turn.tools.sendChannel({ channel, payload, headers: { tone: "loud" } })],
  tell: [3, (turn, creature, payload) => void turn.tools.groupSend({ creature, payload })],
  spawn: [3, (turn, species, name) => `spawned ${turn.tools.groupAddNode({ species, name }).name}`],
  stop: [2, (turn, creature) => (turn.tools.groupStopNode({ creature }), `stop ${creature}`)],
  resume: [2, (turn, creature) => (turn.tools.groupStartNode({ creature }), `resume ${creature}`)],
  remove: [2, (turn, creature) => (turn.tools.groupRemoveNode({ creature }), `remove ${creature}`)],
  route: [2, (turn, to) => (turn.tools.groupWire({ action: "add", from: turn.self, to, withContent: true }), `routed to ${to}`)],
};

// The tools of the commands, for their errors.
const tools = {
  members: "group_status", make: "group_channel", wire: "group_channel", say: "send_channel", tell: "group_send",
  spawn: "group_add_node", stop: "group_stop_node", resume: "group_start_node", remove: "group_remove_node", route: "group_wire",
};

// split divides a command into its verb and at most two arguments.
function split(text) {
  const [, verb, first, second] = /^([^ ]+)(?: ([^ ]+)(?: (.*))?)?$/s.exec(text) ?? [];
  return [verb, first, second].filter((word) => word !== undefined);
}

function perform(turn, verb, args) {
  try {
    return commands[verb][1](turn, ...args);
  } catch (error) {
    if (!(error instanceof TerrariumError)) throw error;
    return `${tools[verb]}: ${error.code}`;
  }
}

export default {
  start(turn) {
    turn.output(`${turn.self} starts at revision ${turn.awarenessRevision}`);
  },

  graphChanged(turn) {
    const aliases = turn.awareness.channels.items.filter((c) => c.listen !== undefined).map((c) => c.listen);
    turn.output(`revision ${turn.awarenessRevision}: listens on ${aliases.join(", ") || "nothing"}`);
  },

  message(turn) {
    const text = turn.text();
    if (text === "title") return turn.output(turn.awarenessMarkdown.split("\n")[0]);
    if (!turn.hasFeature("tools")) return turn.output("no tools");
    const [verb, ...args] = split(text);
    if (!Object.hasOwn(commands, verb) || commands[verb][0] !== args.length + 1)
      throw new TerrariumError("failed", `unknown command: ${text}`);
    const done = perform(turn, verb, args);
    if (done !== undefined) turn.output(done);
  },
};
