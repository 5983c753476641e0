// tally counts words.
const counts = "n/";

function config(turn) {
  turn.configKnows("step", "prefix");
  return { step: turn.configWhole("step", 1, 1_000_000, 1), prefix: turn.configText("prefix", "") };
}

function list(turn) {
  const lines = turn.state.list(counts).map((key) => `${key.slice(counts.length)}=${turn.state.getWhole(key)}\n`);
  return lines.join("") || "empty\n";
}

export default {
  init: config,

  message(turn) {
    const { step, prefix } = config(turn);
    const text = turn.text();
    if (text === "?") return turn.output(list(turn));
    if (text.startsWith("-")) {
      const key = text.slice(1);
      return turn.send("counts", `${key} ${turn.state.delete(counts + key) ? "removed" : "unknown"}`);
    }
    const count = turn.state.getWhole(counts + text) + step;
    turn.state.setWhole(counts + text, count);
    turn.send("counts", `${prefix}${text}=${count}`, { count });
  },
};
