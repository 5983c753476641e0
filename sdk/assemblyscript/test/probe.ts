import { Json, JsonType, Kind, SendChannel, Turn, Wires, register } from "terrarium-assemblyscript";
export * from "terrarium-assemblyscript/creature";

/** Outputs a JSON payload as it was understood; a call of a tool for a message on "tool". */
register((t: Turn): void => {
  if (t.kind != Kind.Message) return;
  if (t.channel == "tool") {
    t.output(new SendChannel("a\"\n", t.payload).json + new Wires().add("c").add("d", "e").json);
    return;
  }
  const document = Json.parse(t.text);
  t.output(document.exists ? write(document) : "missing");
});

function write(value: Json): string {
  switch (value.type) {
    case JsonType.Text:
      return Json.quote(value.text());
    case JsonType.Bool:
      return value.bool() ? "true" : "false";
    case JsonType.Number:
      return value.isWhole ? value.whole().toString() : value.toString();
    case JsonType.List:
      return "[" + value.items().map<string>((item) => write(item)).join(",") + "]";
    case JsonType.Object:
      return "{" + members(value) + "}";
  }
  return "null";
}

function members(value: Json): string {
  const keys = value.keys();
  const parts: string[] = [];
  for (let i = 0; i < keys.length; i++) parts.push(Json.quote(keys[i]) + ":" + write(value.get(keys[i])));
  return parts.join(",");
}
