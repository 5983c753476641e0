import { Kind, Turn, register } from "terrarium-assemblyscript";
export * from "terrarium-assemblyscript/creature";

register((t: Turn): void => {
  if (t.kind != Kind.Message) return;
  const payload = t.payload;
  for (let i = 0, n = payload.length; i < n; i++) {
    const c = unchecked(payload[i]);
    if (c >= 0x61 && c <= 0x7A) unchecked(payload[i] = c - 0x20);
  }
  t.sendAll(payload);
});
