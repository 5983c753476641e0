// counter numbers the messages that it passes on.
import { Kind, Turn, register } from "./terrarium-kit";
export * from "./terrarium-kit/creature";

register(handle);

function handle(t: Turn): void {
  if (t.kind != Kind.Message) return;
  // FAULT
  const text = t.text;
  if (t.failed) return;
  const n = t.stateWhole("n") + 1;
  t.stateSetWhole("n", n);
  t.send("out", "VERSION " + text + " " + n.toString());
}
