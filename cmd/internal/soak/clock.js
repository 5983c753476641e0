export default {
  start(turn) {
    turn.setTimer("tick", { delayMs: 50, periodMs: 50 });
  },
  timer(turn) {
    const n = turn.state.getWhole("ticks") + 1;
    turn.state.setWhole("ticks", n);
    turn.sendAll(String(n));
  },
};
