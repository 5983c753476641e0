// oracle asks and answers.
const same = (a, b) => a.every((byte, i) => byte === b[i]);

export default {
  init(turn) {
    turn.configKnows();
  },

  message(turn) {
    const text = turn.text();
    const [, verb, name, rest] = /^(ask|tell) ([^ ]+) (.*)$/s.exec(text) ?? [];
    if (verb === "ask") {
      const tag = turn.state.getWhole("asked") + 1;
      turn.state.setWhole("asked", tag);
      turn.request(name, rest, { deadlineMs: 1000, tag });
    } else if (verb === "tell") {
      turn.sendTo(name, rest);
    } else if (text === "draw") {
      turn.output(same(turn.random(16), turn.random(16)) ? "same" : "different");
    } else {
      turn.output(`${turn.direct ? "direct" : turn.channel} from ${turn.sender || "outside"}: ${text}`);
    }
  },

  request(turn) {
    switch (turn.text()) {
      case "silence":
        return;
      case "refuse":
        throw new TerrariumError("denied", "I refuse");
      case "twice":
        turn.reply("once");
        return turn.reply("again");
    }
    turn.reply(`you asked: ${turn.text()}`);
  },

  result(turn) {
    turn.send("answers", `#${turn.tag} ${turn.resultCode}: ${turn.text()}`);
  },
};
