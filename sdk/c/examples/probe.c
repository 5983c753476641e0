// A creature that makes the calls in its payload, and outputs how the host answers. Tests
// compare the answers of the fake hosts with those of the host; probes.txt in
// sdk/reference describes the lines.
#include "creature.h"

// probe_number takes the next number from a line.
static int64_t probe_number(tr_bytes *line) {
	int64_t n = 0;
	tr_whole_of(tr_until(line, ' '), &n);
	return n;
}

static int probe_digit(uint8_t c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

// probe_bytes decodes a word: - is nothing, %00 a byte, # the number of the call, and k^512
// the first byte 512 times.
static tr_bytes probe_bytes(tr_bytes word, int64_t made) {
	tr_buffer b = TR_EMPTY;
	int64_t times;
	if (tr_equal(word, TR("-"))) return TR_NONE;
	if (word.len > 2 && word.ptr[1] == '^' && tr_whole_of(tr_from(word, 2), &times)) {
		while (times-- > 0) tr_put_byte(&b, word.ptr[0]);
		return tr_view(&b);
	}
	for (int32_t i = 0; i < word.len; i++) {
		if (word.ptr[i] == '#') tr_put_whole(&b, made);
		else if (word.ptr[i] != '%') tr_put_byte(&b, word.ptr[i]);
		else tr_put_byte(&b, (uint8_t)(probe_digit(word.ptr[i + 1]) << 4 | probe_digit(word.ptr[i + 2]))), i += 2;
	}
	return tr_view(&b);
}

static uint8_t probe_payload[1048577]; // a byte more than a message may have

// probe_call makes one call.
static int32_t probe_call(tr_bytes op, tr_bytes name, tr_bytes text, int32_t size, int64_t a, int64_t b) {
	const void *p = name.ptr, *data = probe_payload;
	int32_t n = name.len, status;
	if (tr_equal(op, TR("config"))) return terrarium_config(p, n, NULL, 0);
	if (tr_equal(op, TR("send"))) return (status = terrarium_channel(p, n)) < 0 ? status : terrarium_send(status, data, size, text.ptr, text.len);
	if (tr_equal(op, TR("send_all"))) return terrarium_send(TERRARIUM_ALL_CHANNELS, data, size, text.ptr, text.len);
	if (tr_equal(op, TR("send_to"))) return terrarium_send_to(p, n, data, size);
	if (tr_equal(op, TR("request"))) return terrarium_request(p, n, data, size, a, b);
	if (tr_equal(op, TR("reply"))) return terrarium_reply(data, size);
	if (tr_equal(op, TR("output"))) return terrarium_output(data, size);
	if (tr_equal(op, TR("state_get"))) return terrarium_state_get(p, n, NULL, 0);
	if (tr_equal(op, TR("state_set"))) return terrarium_state_set(p, n, data, size);
	if (tr_equal(op, TR("state_delete"))) return terrarium_state_delete(p, n);
	if (tr_equal(op, TR("state_list"))) return terrarium_state_list(p, n, NULL, 0);
	if (tr_equal(op, TR("timer_set"))) return terrarium_timer_set(p, n, a, b, data, size);
	if (tr_equal(op, TR("timer_cancel"))) return terrarium_timer_cancel(p, n);
	if (tr_equal(op, TR("log"))) return terrarium_log((int32_t)a, data, size);
	if (tr_equal(op, TR("tool"))) return (status = terrarium_tool(p, n, text.ptr, text.len)) < 0 ? status : 0;
	return TERRARIUM_ERR_UNSUPPORTED;
}

// probe_line makes the calls of one line, and writes the line with their answer: how many
// succeeded, and the result of the last.
static void probe_line(tr_bytes line, tr_buffer *answer) {
	tr_bytes rest = line, call = line;
	tr_bytes op = tr_until(&rest, ' '), name = tr_until(&rest, ' '), text = tr_until(&rest, ' ');
	int64_t size = probe_number(&rest), a = probe_number(&rest), b = probe_number(&rest), times = probe_number(&rest), made = 0;
	int32_t status = 0;
	call.len -= rest.len;
	while (made < times && (status = probe_call(op, probe_bytes(name, made), probe_bytes(text, made), (int32_t)size, a, b)) >= 0) made++;
	tr_put(answer, tr_join(call, TR("= "), tr_whole(made), TR(" "), tr_whole(status), TR("\n")));
}

static int32_t handle(tr_turn *t) {
	if (t->kind != TERRARIUM_KIND_MESSAGE && t->kind != TERRARIUM_KIND_REQUEST) return TERRARIUM_OK;
	tr_bytes lines = tr_payload(t);
	tr_buffer answers = TR_EMPTY;
	for (size_t i = 0; i < sizeof probe_payload; i++) probe_payload[i] = 'x';
	tr_put_byte(&answers, 0); // ends what the calls put out
	while (lines.len > 0) probe_line(tr_until(&lines, '\n'), &answers);
	return tr_output(t, tr_view(&answers));
}

TERRARIUM_CREATURE(.handle = handle)
