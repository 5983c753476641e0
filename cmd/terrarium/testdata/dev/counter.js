// counter numbers the messages that it passes on.
export default {
  message(turn) {
    // FAULT
    const n = turn.state.getWhole("n") + 1;
    turn.state.setWhole("n", n);
    turn.send("out", `VERSION ${turn.text()} ${n}`);
  },
};
