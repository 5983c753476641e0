// picky fails in every way that a creature can fail.
#include "creature.h"

static tr_bytes want;
static int64_t most;
static int strict;

static int32_t init(tr_turn *t) {
	most = 10;
	strict = 0;
	TR_TRY(tr_config_knows(t, TR("want most strict")));
	TR_TRY(tr_config_required(t, TR("want")));
	TR_TRY(tr_config_text(t, TR("want"), &want));
	TR_TRY(tr_config_whole(t, TR("most"), 1, 1000, &most));
	return tr_config_bool(t, TR("strict"), &strict);
}

static int32_t check_header(tr_turn *t) {
	tr_bytes value;
	if (!tr_header(t, TR("want"), &value)) return tr_fail(t, TERRARIUM_ERR_INVALID_ARGUMENT, TR("the header want is missing"));
	if (tr_equal(value, want)) return TERRARIUM_OK;
	return tr_fail(t, TERRARIUM_ERR_INVALID_ARGUMENT, TR("the header want is "), value, TR(", not "), want);
}

static int32_t echo(tr_turn *t) {
	tr_buffer headers = {0};
	tr_put(&headers, tr_headers(t));
	tr_put_header(&headers, TR("seen"), TR("yes"));
	return tr_send_all(t, TR("echo"), tr_view(&headers));
}

static int32_t set_big(tr_turn *t) {
	tr_buffer big = {0};
	for (int32_t i = 0; i < 1048577; i++) tr_put_byte(&big, 'x');
	return tr_state_set(t, TR("big"), tr_view(&big));
}

static int32_t read_missing(tr_turn *t) {
	tr_bytes value;
	int32_t status = tr_state_get(t, TR("missing"), &value);
	return status == TERRARIUM_ERR_NOT_FOUND ? tr_output(t, TR("no state")) : status;
}

static int32_t log_all(tr_turn *t) {
	TR_TRY(tr_log(t, TERRARIUM_LEVEL_DEBUG, TR("a debug line")));
	TR_TRY(tr_log(t, TERRARIUM_LEVEL_INFO, TR("an info line")));
	TR_TRY(tr_log(t, TERRARIUM_LEVEL_WARN, TR("a warn line")));
	return tr_log(t, TERRARIUM_LEVEL_ERROR, TR("an error line"));
}

static int32_t anything_else(tr_turn *t, tr_bytes text) {
	if (text.len > most)
		return tr_fail(t, TERRARIUM_ERR_TOO_LARGE, TR("the payload has "), tr_whole(text.len), TR(" bytes, and at most "), tr_whole(most),
			TR(" are allowed"));
	if (strict) TR_TRY(tr_log(t, TERRARIUM_LEVEL_INFO, TR("strict")));
	return tr_output(t, text);
}

static int32_t handle(tr_turn *t) {
	tr_bytes text;
	if (t->kind != TERRARIUM_KIND_MESSAGE) return TERRARIUM_OK;
	TR_TRY(check_header(t));
	TR_TRY(tr_text(t, &text));
	if (tr_equal(text, TR("echo"))) return echo(t);
	if (tr_equal(text, TR("big"))) return set_big(t);
	if (tr_equal(text, TR("caught"))) return tr_output(t, tr_join(TR("caught "), tr_code_name(set_big(t))));
	if (tr_equal(text, TR("alias"))) return tr_send(t, TR("nowhere"), TR("x"), TR_NONE);
	if (tr_equal(text, TR("key"))) return tr_state_set(t, TR_NONE, TR("x"));
	if (tr_equal(text, TR("missing"))) return read_missing(t);
	if (tr_equal(text, TR("fail"))) return tr_fail(t, TERRARIUM_ERR_FAILED, TR("it went wrong"));
	if (tr_equal(text, TR("denied"))) return tr_fail(t, TERRARIUM_ERR_DENIED, TR("not today"));
	if (tr_equal(text, TR("panic"))) tr_panic(t, TR("out of cheese"));
	if (tr_equal(text, TR("loop"))) for (volatile int n = 0;; n++) {}
	if (tr_equal(text, TR("fuel"))) return tr_output(t, tr_fuel_left(t) >= 0 ? TR("counted") : TR("not counted"));
	if (tr_equal(text, TR("log"))) return log_all(t);
	return anything_else(t, text);
}

TERRARIUM_CREATURE(.handle = handle, .init = init)
TERRARIUM_MANIFEST({"name": "picky", "description": "Fails in every way that a creature can fail.", "abi": [1]})
