// shout repeats messages in capital letters.
const a = "a".charCodeAt(0);
const z = "z".charCodeAt(0);

export default {
  message(turn) {
    turn.sendAll(turn.payload.map((byte) => (byte >= a && byte <= z ? byte - 32 : byte)));
  },
};
