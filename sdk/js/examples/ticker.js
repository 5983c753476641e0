// ticker sets timers.
const day = 86_400_000;

function config(turn) {
  turn.configKnows("every_ms", "limit");
  return { every: turn.configWhole("every_ms", 1, day, 1000), limit: turn.configWhole("limit", 0, 1_000_000, 0) };
}

function tick(turn) {
  const ticks = turn.state.getWhole("ticks") + 1;
  turn.state.setWhole("ticks", ticks);
  turn.sendAll(`tick ${ticks} at ${turn.now.getTime()}`);
  if (ticks === config(turn).limit) {
    turn.cancelTimer("tick");
    console.info(`done after ${ticks} ticks`);
  }
}

export default {
  init: config,

  start(turn) {
    const { every } = config(turn);
    turn.setTimer("tick", { delayMs: every, periodMs: every, payload: "tick" });
  },

  timer(turn) {
    if (turn.timerName === "tick") return tick(turn);
    turn.sendAll(`${turn.timerName}: ${turn.text()}`);
  },

  message(turn) {
    const text = turn.text();
    const [, ms, name, payload] = /^in ([0-9]+) ([^ ]+) (.*)$/s.exec(text) ?? [];
    if (text === "stop") {
      console.info(turn.cancelTimer("tick") ? "stopped" : "was not running");
    } else if (ms !== undefined && Number(ms) <= day) {
      turn.setTimer(name, { delayMs: Number(ms), payload });
    } else {
      throw new TerrariumError("failed", `unknown command: ${text}`);
    }
  },
};
