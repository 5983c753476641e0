// The limits of the fake host are those of the host, by default.
#include "creature.h"

static uint8_t mib[1 << 20];

// until counts the calls that succeed before the first that has another code.
#define UNTIL(n, want, call) \
	do { \
		int32_t made = 0, status; \
		while ((status = (call)) >= 0) made++; \
		if (made != (n) || status != (want)) return tr_fail(t, TERRARIUM_ERR_FAILED, tr_whole(__LINE__), TR(": "), tr_whole(made), TR(" "), tr_code_name(status)); \
	} while (0)

static int32_t handle(tr_turn *t) {
	tr_bytes mode = tr_channel(t), result, large = TR_BYTES(mib, sizeof mib), half = TR_BYTES(mib, sizeof mib / 2);
	if (tr_equal(mode, TR("sends"))) UNTIL(TERRARIUM_LIMIT_SENDS, TERRARIUM_ERR_LIMIT, tr_send(t, TR("out"), TR_NONE, TR_NONE));
	if (tr_equal(mode, TR("send_bytes"))) UNTIL(8, TERRARIUM_ERR_LIMIT, tr_send_to(t, TR("frog"), large));
	if (tr_equal(mode, TR("requests"))) UNTIL(TERRARIUM_LIMIT_REQUESTS, TERRARIUM_ERR_LIMIT, tr_request(t, TR("frog"), TR_NONE, 1000, 1));
	if (tr_equal(mode, TR("timers"))) UNTIL(TERRARIUM_LIMIT_TIMERS, TERRARIUM_ERR_LIMIT, tr_set_timer(t, tr_whole(made), 1000, 0, TR_NONE));
	if (tr_equal(mode, TR("timer_bytes"))) UNTIL(1, TERRARIUM_ERR_LIMIT, tr_set_timer(t, made ? TR("b") : TR("a"), 1000, 0, half));
	if (tr_equal(mode, TR("tools"))) UNTIL(TERRARIUM_LIMIT_TOOLS, TERRARIUM_ERR_LIMIT, tr_tool(t, TR("group_status"), TR("{}"), &result));
	if (tr_equal(mode, TR("writes"))) {
		UNTIL(TERRARIUM_LIMIT_STATE_WRITES, TERRARIUM_ERR_LIMIT, tr_state_set(t, tr_whole(made), TR_NONE));
		TR_TRY(tr_state_delete(t, TR("none")));
	}
	return TERRARIUM_OK;
}

TERRARIUM_CREATURE(.handle = handle)
#include "fake.h"

static const char *status(fake *f, const char *name, const char *args, int32_t *code) {
	(void)f, (void)name, (void)args, (void)code;
	return "{}";
}

int main(void) {
	const char *modes[] = {"sends", "send_bytes", "requests", "timers", "timer_bytes", "tools", "writes"};
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		fake *f = fake_new("{}");
		fake_bind(f, "out");
		f->tools = status;
		fake_message(f, modes[i], "");
		FAKE_EXPECT(f->logs.len > 0 ? (const char *)fake_bytes(&f->logs.at[0].data).ptr : "", "");
		fake_free(f);
	}
}
