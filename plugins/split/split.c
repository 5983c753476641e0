// split sends each message on one of its channels: in turn, or by a key, so that
// equal keys always go the same way.
#include "bare.h"
#include "selector.h"
#include "turns.h"

TERRARIUM_MARKER()

#define TO_MAX 256 // channels

static int32_t to[TO_MAX]; // handles
static uint32_t to_count;
static int in_turn;
static selector by;

static int32_t refuse(tr_bytes why) {
	tr_log(TERRARIUM_LEVEL_ERROR, TR("config to: "), why, TR(""));
	return TERRARIUM_ERR_INVALID_ARGUMENT;
}

// read_to looks up the aliases of the attribute to.
static int32_t read_to(void) {
	tr_bytes list, value;
	tr_json_cursor c;
	to_count = 0;
	if (tr_config(TR("to"), &list) < 0) return refuse(TR("it is missing; list the send aliases, as in [\"a\", \"b\"]"));
	if (!tr_json_valid(list) || !tr_json_open(list, '[', &c)) return refuse(TR("it is a list of send aliases, as in [\"a\", \"b\"]"));
	while (tr_json_next(&c, NULL, &value)) {
		tr_bytes alias = tr_json_text(value);
		if (value.ptr[0] != '"' || alias.len == 0) return refuse(TR("every element is a send alias, a string"));
		if (to_count == TO_MAX) return refuse(TR("more than 256 aliases"));
		int32_t handle = terrarium_channel(alias.ptr, alias.len);
		if (handle < 0) return handle;
		to[to_count++] = handle;
	}
	return to_count > 0 ? TERRARIUM_OK : refuse(TR("it is empty; name one send alias at least"));
}

int32_t creature_init(void) {
	tr_bytes how = TR("round_robin");
	if (!tr_config_knows(TR("to by"))) return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_begin();
	int32_t status = read_to();
	if (status < 0) return status;
	tr_config(TR("by"), &how);
	in_turn = tr_equal(how, TR("round_robin"));
	if (!in_turn && !selector_parse(TR("by"), how, &by)) return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_keep();
	return TERRARIUM_OK;
}

// hash is 32-bit FNV-1a, with a final mix so that few channels are used evenly.
static uint32_t hash(tr_bytes key) {
	uint32_t h = 2166136261u;
	for (int32_t i = 0; i < key.len; i++) h = (h ^ key.ptr[i]) * 16777619u;
	h = (h ^ h >> 16) * 0x85ebca6bu;
	return h ^ h >> 13;
}

int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	tr_bytes payload, key;
	if (kind != TERRARIUM_KIND_MESSAGE && kind != TERRARIUM_KIND_OUTPUT) return TERRARIUM_OK;
	tr_begin();
	int32_t status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &payload);
	if (status < 0) return status;
	int32_t index;
	if (in_turn) {
		index = next_in_turn(to_count);
		if (index < 0) return index;
	} else {
		if (!selector_find(&by, payload, &key)) key = TR("");
		index = (int32_t)(hash(key) % to_count);
	}
	return tr_forward(to[index], payload);
}
