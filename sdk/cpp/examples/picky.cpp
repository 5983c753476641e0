// picky fails in every way that a creature can fail.
#include "terrarium.hpp"
using namespace terrarium;

static Bytes want;
static int64_t most;
static bool strict;

static Status init(Turn &t) {
	TRY(t.config_knows("want most strict"));
	TRY(t.config_required("want"));
	want = TRY(t.config_text("want"));
	most = TRY(t.config_whole("most", 1, 1000, 10));
	strict = TRY(t.config_bool("strict", false));
	return {};
}

static Status check_header(Turn &t) {
	auto value = t.header("want");
	if (!value) return t.fail(TERRARIUM_ERR_INVALID_ARGUMENT, "the header want is missing");
	if (*value == want) return {};
	return t.fail(TERRARIUM_ERR_INVALID_ARGUMENT, "the header want is ", *value, ", not ", want);
}

static Status set_big(Turn &t) {
	tr_buffer big{};
	for (int i = 0; i < 1048577; i++) tr_put_byte(&big, 'x');
	return t.state_set("big", big);
}

static Status read_missing(Turn &t) {
	auto value = t.state_get("missing");
	if (value.code == TERRARIUM_ERR_NOT_FOUND) return t.output("no state");
	return value;
}

static Status log_all(Turn &t) {
	TRY(t.log(TERRARIUM_LEVEL_DEBUG, "a debug line"));
	TRY(t.log(TERRARIUM_LEVEL_INFO, "an info line"));
	TRY(t.log(TERRARIUM_LEVEL_WARN, "a warn line"));
	return t.log(TERRARIUM_LEVEL_ERROR, "an error line");
}

static Status anything_else(Turn &t, Bytes text) {
	if (text.len > most)
		return t.fail(TERRARIUM_ERR_TOO_LARGE, "the payload has ", text.len, " bytes, and at most ", most, " are allowed");
	if (strict) TRY(t.log(TERRARIUM_LEVEL_INFO, "strict"));
	return t.output(text);
}

static Status handle(Turn &t) {
	if (t.kind() != TERRARIUM_KIND_MESSAGE) return {};
	TRY(check_header(t));
	Bytes text = TRY(t.text());
	if (text == "echo") return t.send_all("echo", Headers(t.headers()).set("seen", "yes"));
	if (text == "big") return set_big(t);
	if (text == "caught") return t.output(join("caught ", set_big(t).name()));
	if (text == "alias") return t.send("nowhere", "x");
	if (text == "key") return t.state_set("", "x");
	if (text == "missing") return read_missing(t);
	if (text == "fail") return t.fail(TERRARIUM_ERR_FAILED, "it went wrong");
	if (text == "denied") return t.fail(TERRARIUM_ERR_DENIED, "not today");
	if (text == "panic") tr_panic(t.raw(), TR("out of cheese"));
	if (text == "loop") for (volatile int n = 0;;) n = n + 1;
	if (text == "fuel") return t.output(t.fuel_left() >= 0 ? "counted" : "not counted");
	if (text == "log") return log_all(t);
	return anything_else(t, text);
}

TERRARIUM_CREATURE(of<handle>, of<init>)
TERRARIUM_MANIFEST({"name": "picky", "description": "Fails in every way that a creature can fail.", "abi": [1]})
