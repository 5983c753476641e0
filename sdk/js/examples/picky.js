// picky fails in every way that a creature can fail.
function config(turn) {
  turn.configKnows("want", "most", "strict");
  return { want: turn.configText("want"), most: turn.configWhole("most", 1, 1000, 10), strict: turn.configBool("strict", false) };
}

function checkHeader(turn, want) {
  const value = turn.header("want");
  if (value === undefined) throw new TerrariumError("invalid_argument", "the header want is missing");
  if (value !== want) throw new TerrariumError("invalid_argument", `the header want is ${value}, not ${want}`);
}

const big = (turn) => turn.state.setText("big", "x".repeat(1024 * 1024 + 1));

const commands = {
  echo: (turn) => turn.sendAll("echo", { ...turn.headers, seen: "yes" }),
  big,
  caught(turn) {
    try {
      big(turn);
    } catch (error) {
      turn.output(`caught ${error.code}`);
    }
  },
  alias: (turn) => turn.send("nowhere", "x"),
  key: (turn) => turn.state.setText("", "x"),
  missing(turn) {
    if (turn.state.getText("missing") === undefined) turn.output("no state");
  },
  fail() {
    throw new TerrariumError("failed", "it went wrong");
  },
  denied() {
    throw new TerrariumError("denied", "not today");
  },
  panic() {
    throw new Error("out of cheese");
  },
  loop() {
    for (;;);
  },
  fuel: (turn) => turn.output(turn.fuelLeft >= 0 ? "counted" : "not counted"),
  log() {
    console.debug("a debug line");
    console.info("an info line");
    console.warn("a warn line");
    console.error("an error line");
  },
};

export default {
  init: config,

  message(turn) {
    const { want, most, strict } = config(turn);
    checkHeader(turn, want);
    const text = turn.text();
    if (Object.hasOwn(commands, text)) return commands[text](turn);
    if (turn.payload.length > most)
      throw new TerrariumError("too_large", `the payload has ${turn.payload.length} bytes, and at most ${most} are allowed`);
    if (strict) turn.log("info", "strict");
    turn.output(text);
  },
};
