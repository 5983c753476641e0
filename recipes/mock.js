// Gives the canned answers of a mock: the first that matches a delivery decides.
const answers = /*answers*/ [];

const sorted = (value) =>
  Array.isArray(value)
    ? value.map(sorted)
    : value && typeof value === "object"
      ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]))
      : value;

const same = (text, wanted) => {
  try {
    return JSON.stringify(sorted(JSON.parse(text))) === JSON.stringify(sorted(wanted));
  } catch {
    return false;
  }
};

const matches = (answer, turn) =>
  (answer.alias === undefined || (!turn.direct && turn.channel === answer.alias)) &&
  (answer.payload === undefined || turn.text() === answer.payload) &&
  (answer.json === undefined || same(turn.text(), answer.json));

const handle = (turn) => {
  const answer = answers.find((each) => matches(each, turn));
  if (answer === undefined) return;
  for (const [alias, value] of Object.entries(answer.send ?? {})) turn.send(alias, value);
  if (answer.output !== undefined) turn.output(answer.output);
  if (answer.reply !== undefined && turn.kind === "request") turn.reply(answer.reply);
  if (answer.fail !== undefined) throw new TerrariumError("failed", answer.fail);
};

export default { message: handle, output: handle, request: handle };
