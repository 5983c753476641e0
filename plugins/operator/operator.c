// operator calls the group tools that a JSON message requests and answers with their
// results.
#include "bare.h"

TERRARIUM_MARKER()

static int stop_on_error, atomic;

// bool_config reads an attribute that is true or false.
static int bool_config(tr_bytes name, int standard, int *value) {
	tr_bytes text;
	int32_t status = tr_config(name, &text);
	*value = standard;
	if (status == TERRARIUM_ERR_NOT_FOUND) return 1;
	*value = status >= 0 && tr_equal(text, TR("true"));
	if (*value || (status >= 0 && tr_equal(text, TR("false")))) return 1;
	tr_log(TERRARIUM_LEVEL_ERROR, TR("config "), name, TR(": it is true or false"));
	return 0;
}

int32_t creature_init(void) {
	if (!tr_config_knows(TR("stop_on_error atomic"))) return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_begin();
	if (!bool_config(TR("stop_on_error"), 1, &stop_on_error) || !bool_config(TR("atomic"), 0, &atomic))
		return TERRARIUM_ERR_INVALID_ARGUMENT;
	if (terrarium_feature(TERRARIUM_FEATURE_TOOLS)) return TERRARIUM_OK;
	tr_log(TERRARIUM_LEVEL_ERROR, TR("this host has no group tools"), TR(""), TR(""));
	return TERRARIUM_ERR_UNSUPPORTED;
}

static void put_refusal(tr_buffer *b, int32_t status, tr_bytes text) {
	tr_put(b, TR("{\"ok\":false,\"code\":"));
	tr_put_json(b, tr_code_name(status));
	tr_put(b, TR(",\"error\":"));
	tr_put_json(b, text);
	tr_put_byte(b, '}');
}

// run_call makes one call, {"tool": …, "args": …}, and puts its result.
static int32_t run_call(tr_bytes call, tr_buffer *answer) {
	tr_bytes tool, args = TR(""), out;
	if (!tr_json_member(call, TR("tool"), &tool) || tool.ptr[0] != '"') {
		put_refusal(answer, TERRARIUM_ERR_INVALID_ARGUMENT, TR("a call is an object with the string tool and, if it takes any, the object args"));
		return TERRARIUM_ERR_INVALID_ARGUMENT;
	}
	tr_json_member(call, TR("args"), &args);
	int32_t status = tr_tool(tr_json_text(tool), args, &out);
	if (status < 0) {
		tr_bytes error = TR("");
		tr_read(TERRARIUM_SOURCE_ERROR, &error);
		put_refusal(answer, status, error);
		return status;
	}
	tr_put(answer, TR("{\"ok\":true,\"result\":"));
	tr_put(answer, out);
	tr_put_byte(answer, '}');
	return TERRARIUM_OK;
}

// run_calls makes the calls of a list until a refused call stops it, and puts the
// result of each.
static int32_t run_calls(tr_bytes calls, tr_buffer *answer) {
	tr_json_cursor c;
	tr_bytes call;
	if (!tr_json_open(calls, '[', &c)) return run_call(calls, answer); // run_call refuses it
	for (int n = 0; tr_json_next(&c, NULL, &call); n++) {
		if (n > 0) tr_put_byte(answer, ',');
		int32_t status = run_call(call, answer);
		if (status < 0 && (stop_on_error || atomic)) return status;
	}
	return TERRARIUM_OK;
}

// run_message puts the answer to a message: the id, if the message has one, and the
// results.
static int32_t run_message(tr_bytes payload, tr_buffer *answer) {
	tr_bytes id, calls;
	tr_put_byte(answer, '{');
	if (tr_json_member(payload, TR("id"), &id)) {
		tr_put(answer, TR("\"id\":"));
		tr_put(answer, id);
		tr_put_byte(answer, ',');
	}
	tr_put(answer, TR("\"results\":["));
	int32_t status = tr_json_member(payload, TR("calls"), &calls) ? run_calls(calls, answer) : run_call(payload, answer);
	tr_put(answer, TR("]}"));
	return status;
}

int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	tr_bytes payload;
	tr_buffer answer = {0};
	if (kind != TERRARIUM_KIND_MESSAGE && kind != TERRARIUM_KIND_OUTPUT && kind != TERRARIUM_KIND_REQUEST) return TERRARIUM_OK;
	tr_begin();
	int32_t status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &payload);
	if (status < 0) return status;
	status = run_message(payload, &answer);
	if (answer.failed) return TERRARIUM_ERR_LIMIT;
	if (status < 0 && atomic) {
		terrarium_log(TERRARIUM_LEVEL_ERROR, answer.ptr, answer.len); // the turn fails, and only its log is kept
		return status;
	}
	if (kind == TERRARIUM_KIND_REQUEST) return terrarium_reply(answer.ptr, answer.len);
	return terrarium_send(TERRARIUM_ALL_CHANNELS, answer.ptr, answer.len, NULL, 0);
}
