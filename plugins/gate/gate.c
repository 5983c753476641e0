// gate passes on the messages that match a pattern.
#include "bare.h"
#include "pattern.h"
#include "selector.h"

TERRARIUM_MARKER()

static selector by;
static int invert;

static int32_t compile(tr_bytes match, int ignore_case) {
	int32_t at;
	const char *error = pattern_compile(match, ignore_case, &at);
	if (!error) return TERRARIUM_OK;
	tr_buffer line = {0};
	tr_put(&line, TR("config match: "));
	tr_put_json(&line, match);
	tr_put(&line, TR(", byte "));
	tr_put_natural(&line, (uint64_t)at);
	tr_put(&line, TR(": "));
	for (; *error; error++) tr_put_byte(&line, (uint8_t)*error);
	terrarium_log(TERRARIUM_LEVEL_ERROR, line.ptr, line.len);
	return TERRARIUM_ERR_INVALID_ARGUMENT;
}

int32_t creature_init(void) {
	tr_bytes match, field = TR("");
	invert = 0;
	int ignore_case = 0;
	if (!tr_config_knows(TR("match invert ignore_case field"))) return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_begin();
	tr_config(TR("field"), &field);
	if (!tr_config_bool(TR("invert"), &invert) || !tr_config_bool(TR("ignore_case"), &ignore_case) ||
	    !selector_parse(TR("field"), field, &by))
		return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_keep();
	if (tr_config(TR("match"), &match) < 0) {
		tr_log(TERRARIUM_LEVEL_ERROR, TR("config match: it is missing; give the pattern that messages have to match"), TR(""), TR(""));
		return TERRARIUM_ERR_INVALID_ARGUMENT;
	}
	return compile(match, ignore_case);
}

int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	tr_bytes payload, part;
	if (kind != TERRARIUM_KIND_MESSAGE && kind != TERRARIUM_KIND_OUTPUT) return TERRARIUM_OK;
	tr_begin();
	int32_t status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &payload);
	if (status < 0) return status;
	int passes = selector_find(&by, payload, &part) && pattern_matches(part);
	if (passes == invert) return TERRARIUM_OK;
	return tr_forward(TERRARIUM_ALL_CHANNELS, payload);
}
