// Creatures in C: a turn is handed to the handler, and everything that the contract offers
// is a function of it.
//
// Functions that return int32_t return 0 or more, or an error: a code below 0. A handler
// that returns an error fails the turn, none of its effects applies, and the log has the
// text of the error. All memory that the functions return lasts until the turn ends, or,
// if it was read in init, as long as the instance.
#ifndef TERRARIUM_CREATURE_H
#define TERRARIUM_CREATURE_H

#include "json.h"

// tr_turn is one call into the creature.
typedef struct {
	int32_t kind; // TERRARIUM_KIND_MESSAGE and so on; 0 in init
	int32_t size; // of the payload in bytes

	// The last error: that of a hostcall, which the host describes, or the author's.
	int32_t code;
	int refused; // by the host
	tr_bytes text;
} tr_turn;

// TR_TRY returns from a function if a call in it fails.
#define TR_TRY(call) \
	do { \
		int32_t tr_status = (call); \
		if (tr_status < 0) return tr_status; \
	} while (0)

// ---------------------------------------------------------------------------
// Errors

// tr_fail returns code as an error with the text of all that follows it, which is logged
// if the handler returns the error: return tr_fail(t, TERRARIUM_ERR_DENIED, TR("not ")
// , name). TERRARIUM_ERR_FAILED is the code for an error that no other code describes.
#define tr_fail(t, code, ...) tr_fail_with(t, code, tr_join(__VA_ARGS__))

TR_UNUSED static int32_t tr_fail_with(tr_turn *t, int32_t code, tr_bytes text) {
	t->refused = 0;
	t->code = code;
	t->text = text;
	return code;
}

// tr_check notes that a hostcall failed, and returns its result.
TR_UNUSED static int32_t tr_check(tr_turn *t, int32_t status) {
	if (status < 0) {
		t->refused = 1;
		t->code = status;
	}
	return status;
}

// tr_source reads a complete source, or nothing if the host refuses.
TR_UNUSED static tr_bytes tr_source(tr_turn *t, int32_t source) {
	int32_t size = tr_check(t, terrarium_size(source));
	if (size <= 0) return TR_NONE;
	uint8_t *ptr = (uint8_t *)tr_alloc(size);
	if (!ptr) return TR_NONE;
	size = tr_check(t, terrarium_read(source, 0, ptr, size));
	return size < 0 ? TR_NONE : TR_BYTES(ptr, size);
}

// tr_error_text returns the text of the last error; if it is a hostcall's, with the name of
// that and of the code.
TR_UNUSED static tr_bytes tr_error_text(tr_turn *t) { return t->refused ? tr_source(t, TERRARIUM_SOURCE_FAILURE) : t->text; }

// tr_log writes a log line, the texts behind level as one. Lines are kept even if the turn
// fails.
#define tr_log(t, level, ...) tr_log_with(t, level, tr_join(__VA_ARGS__))

TR_UNUSED static int32_t tr_log_with(tr_turn *t, int32_t level, tr_bytes text) {
	return tr_check(t, terrarium_log(level, text.ptr, text.len));
}

#ifdef __wasm__
#define tr_trap() __builtin_trap()
#else
#ifdef __cplusplus
[[noreturn]]
#else
_Noreturn
#endif
static void tr_trap(void); // by fake.h
#endif

// tr_panic ends the turn with a trap, for what must not happen. The log has the text and
// the place in the source.
#ifdef __FILE_NAME__
#define TR_FILE __FILE_NAME__
#else
#define TR_FILE __FILE__
#endif
#define TR_STRING_OF(x) #x
#define TR_STRING(x) TR_STRING_OF(x)
#define tr_panic(t, ...) \
	do { \
		tr_log(t, TERRARIUM_LEVEL_ERROR, tr_join(__VA_ARGS__), TR(", at "), TR(TR_FILE ":" TR_STRING(__LINE__))); \
		tr_trap(); \
	} while (0)

// ---------------------------------------------------------------------------
// The delivery

// tr_payload_buffer returns the payload in a buffer, which the creature may change and
// append to.
TR_UNUSED static tr_buffer tr_payload_buffer(tr_turn *t) {
	tr_buffer b = TR_EMPTY;
	b.ptr = (uint8_t *)tr_alloc(t->size);
	if (!b.ptr) return b;
	b.cap = t->size;
	int32_t n = tr_check(t, terrarium_read(TERRARIUM_SOURCE_PAYLOAD, 0, b.ptr, b.cap));
	if (n > 0) b.len = n;
	return b;
}

// tr_payload returns the payload.
TR_UNUSED static tr_bytes tr_payload(tr_turn *t) {
	tr_buffer b = tr_payload_buffer(t);
	return b.len > 0 ? tr_view(&b) : TR_NONE;
}

// tr_text reads the payload, which must be UTF-8.
TR_UNUSED static int32_t tr_text(tr_turn *t, tr_bytes *text) {
	*text = tr_payload(t);
	return tr_is_utf8(*text) ? TERRARIUM_OK : tr_fail_with(t, TERRARIUM_ERR_INVALID_ARGUMENT, TR("the payload is not UTF-8"));
}

// tr_channel returns the listen alias of the message's channel, or the creature's own name
// for a direct message.
TR_UNUSED static tr_bytes tr_channel(tr_turn *t) { return tr_source(t, TERRARIUM_SOURCE_CHANNEL); }

// tr_sender returns the sender's name, or nothing for a message from outside.
TR_UNUSED static tr_bytes tr_sender(tr_turn *t) { return tr_source(t, TERRARIUM_SOURCE_SENDER); }

// tr_message_id returns the id of the message, which is unique everywhere.
TR_UNUSED static tr_bytes tr_message_id(tr_turn *t) { return tr_source(t, TERRARIUM_SOURCE_MESSAGE_ID); }

// tr_self returns the creature's own name.
TR_UNUSED static tr_bytes tr_self(tr_turn *t) { return tr_source(t, TERRARIUM_SOURCE_SELF); }

// tr_headers returns all headers, in the form that the functions for sending take.
TR_UNUSED static tr_bytes tr_headers(tr_turn *t) { return tr_source(t, TERRARIUM_SOURCE_HEADERS); }

// tr_next_header takes the first header from a list. It returns 0 if there is none.
TR_UNUSED static int tr_next_header(tr_bytes *headers, tr_bytes *name, tr_bytes *value) {
	if (headers->len == 0) return 0;
	*name = tr_until(headers, 0);
	*value = tr_until(headers, 0);
	return 1;
}

// tr_header finds a header of the message, and returns 0 if it has none of that name.
TR_UNUSED static int tr_header(tr_turn *t, tr_bytes name, tr_bytes *value) {
	tr_bytes all = tr_headers(t), each, content;
	int found = 0;
	while (tr_next_header(&all, &each, &content)) {
		if (!tr_equal(each, name)) continue;
		*value = content;
		found = 1; // the last one counts
	}
	return found;
}

// tr_put_header puts a header for sending.
TR_UNUSED static void tr_put_header(tr_buffer *headers, tr_bytes name, tr_bytes value) {
	tr_put(headers, name);
	tr_put_byte(headers, 0);
	tr_put(headers, value);
	tr_put_byte(headers, 0);
}

// tr_detail returns the details of this kind of delivery, as JSON.
TR_UNUSED static tr_bytes tr_detail(tr_turn *t) { return tr_source(t, TERRARIUM_SOURCE_DETAIL); }

// tr_detail_of returns one member of the details: a string's content, anything else as
// JSON, and nothing if it is missing.
TR_UNUSED static tr_bytes tr_detail_of(tr_turn *t, tr_bytes member) {
	tr_bytes value;
	return tr_json_member(tr_detail(t), member, &value) ? tr_json_text(value) : TR_NONE;
}

// tr_direct returns whether the message was sent to this creature directly.
TR_UNUSED static int tr_direct(tr_turn *t) { return tr_equal(tr_detail_of(t, TR("direct")), TR("true")); }

// tr_attempt returns which attempt to handle the delivery this is, 1 for the first.
TR_UNUSED static int64_t tr_attempt(tr_turn *t) {
	int64_t n = 0;
	return tr_whole_of(tr_detail_of(t, TR("attempt")), &n) ? n : 1;
}

// tr_timer_name returns the name of the timer that fired.
TR_UNUSED static tr_bytes tr_timer_name(tr_turn *t) { return tr_detail_of(t, TR("name")); }

// tr_tag returns the tag of the request that this result belongs to.
TR_UNUSED static int64_t tr_tag(tr_turn *t) {
	int64_t tag = 0;
	return tr_whole_of(tr_detail_of(t, TR("tag")), &tag) ? tag : 0;
}

// tr_result_code returns ok, or the name of the error with which the request ended.
TR_UNUSED static tr_bytes tr_result_code(tr_turn *t) { return tr_detail_of(t, TR("code")); }

// ---------------------------------------------------------------------------
// Configuration. A typed function leaves the value unchanged if the attribute is missing,
// so that the value before the call is the default; tr_config_required refuses that.

// tr_result reads the complete result of the last hostcall that has one.
TR_UNUSED static int32_t tr_result(tr_turn *t, int32_t status, tr_bytes *out) {
	if (tr_check(t, status) < 0) return status;
	*out = tr_source(t, TERRARIUM_SOURCE_RESULT);
	return TERRARIUM_OK;
}

// tr_config reads an attribute: a text as it is, anything else as JSON.
TR_UNUSED static int32_t tr_config(tr_turn *t, tr_bytes key, tr_bytes *value) {
	return tr_result(t, terrarium_config(key.ptr, key.len, NULL, 0), value);
}

// tr_config_json returns the whole configuration, a JSON object.
TR_UNUSED static tr_bytes tr_config_json(tr_turn *t) { return tr_source(t, TERRARIUM_SOURCE_CONFIG); }

TR_UNUSED static int32_t tr_config_fail(tr_turn *t, int32_t code, tr_bytes key, tr_bytes why) {
	return tr_fail(t, code, TR("config "), key, TR(": "), why);
}

TR_UNUSED static int32_t tr_config_required(tr_turn *t, tr_bytes key) {
	tr_bytes value;
	if (tr_json_member(tr_config_json(t), key, &value)) return TERRARIUM_OK;
	return tr_config_fail(t, TERRARIUM_ERR_NOT_FOUND, key, TR("it is required"));
}

TR_UNUSED static int32_t tr_config_text(tr_turn *t, tr_bytes key, tr_bytes *value) {
	tr_bytes json;
	if (!tr_json_member(tr_config_json(t), key, &json)) return TERRARIUM_OK;
	if (json.ptr[0] != '"') return tr_config_fail(t, TERRARIUM_ERR_INVALID_ARGUMENT, key, TR("it must be a text"));
	*value = tr_json_text(json);
	return TERRARIUM_OK;
}

TR_UNUSED static int32_t tr_config_whole(tr_turn *t, tr_bytes key, int64_t least, int64_t most, int64_t *value) {
	tr_bytes json;
	int64_t n;
	if (!tr_json_member(tr_config_json(t), key, &json)) return TERRARIUM_OK;
	if (!tr_whole_of(json, &n) || n < least || n > most)
		return tr_config_fail(t, TERRARIUM_ERR_INVALID_ARGUMENT, key,
			tr_join(TR("it must be a whole number from "), tr_whole(least), TR(" to "), tr_whole(most)));
	*value = n;
	return TERRARIUM_OK;
}

TR_UNUSED static int32_t tr_config_bool(tr_turn *t, tr_bytes key, int *value) {
	tr_bytes json;
	if (!tr_json_member(tr_config_json(t), key, &json)) return TERRARIUM_OK;
	if (!tr_equal(json, TR("true")) && !tr_equal(json, TR("false")))
		return tr_config_fail(t, TERRARIUM_ERR_INVALID_ARGUMENT, key, TR("it must be true or false"));
	*value = json.ptr[0] == 't';
	return TERRARIUM_OK;
}

// tr_config_knows refuses an attribute that is not among the names, which single spaces
// separate: a misspelt attribute must not go unnoticed.
TR_UNUSED static int32_t tr_config_knows(tr_turn *t, tr_bytes names) {
	tr_bytes config = tr_config_json(t), key, value;
	tr_json_cursor c;
	if (!tr_json_valid(config) || !tr_json_open(config, '{', &c)) return TERRARIUM_OK;
	while (tr_json_next(&c, &key, &value)) {
		int found = 0;
		tr_buffer list = TR_EMPTY;
		for (tr_bytes rest = names; rest.len > 0;) {
			tr_bytes name = tr_until(&rest, ' ');
			found = found || tr_equal(tr_json_text(key), name);
			if (list.len > 0) tr_put(&list, TR(", "));
			tr_put(&list, name);
		}
		if (found) continue;
		return tr_config_fail(t, TERRARIUM_ERR_INVALID_ARGUMENT, tr_json_text(key),
			tr_join(TR("the creature has no such attribute; it has "), names.len > 0 ? tr_view(&list) : TR("none")));
	}
	return TERRARIUM_OK;
}

// ---------------------------------------------------------------------------
// State

// tr_state_get reads a value; TERRARIUM_ERR_NOT_FOUND if there is none.
TR_UNUSED static int32_t tr_state_get(tr_turn *t, tr_bytes key, tr_bytes *value) {
	return tr_result(t, terrarium_state_get(key.ptr, key.len, NULL, 0), value);
}

TR_UNUSED static int32_t tr_state_set(tr_turn *t, tr_bytes key, tr_bytes value) {
	return tr_check(t, terrarium_state_set(key.ptr, key.len, value.ptr, value.len));
}

// tr_state_delete returns 1 if there was a value, else 0.
TR_UNUSED static int32_t tr_state_delete(tr_turn *t, tr_bytes key) {
	return tr_check(t, terrarium_state_delete(key.ptr, key.len));
}

// tr_state_list reads the keys with a prefix in byte order. NUL follows each key:
// tr_until(&keys, 0) takes the first from the list.
TR_UNUSED static int32_t tr_state_list(tr_turn *t, tr_bytes prefix, tr_bytes *keys) {
	return tr_result(t, terrarium_state_list(prefix.ptr, prefix.len, NULL, 0), keys);
}

// tr_state_whole reads a decimal number, 0 if there is none.
TR_UNUSED static int32_t tr_state_whole(tr_turn *t, tr_bytes key, int64_t *value) {
	tr_bytes text;
	*value = 0;
	int32_t status = tr_state_get(t, key, &text);
	if (status == TERRARIUM_ERR_NOT_FOUND) return TERRARIUM_OK;
	if (status < 0 || tr_whole_of(text, value)) return status;
	return tr_fail(t, TERRARIUM_ERR_INVALID_ARGUMENT, TR("state "), key, TR(": it is not a whole number"));
}

TR_UNUSED static int32_t tr_state_set_whole(tr_turn *t, tr_bytes key, int64_t value) { return tr_state_set(t, key, tr_whole(value)); }

// ---------------------------------------------------------------------------
// Sending. Headers are a list that tr_put_header makes, or TR_NONE.

// tr_send sends on the channel that the creature calls alias.
TR_UNUSED static int32_t tr_send(tr_turn *t, tr_bytes alias, tr_bytes payload, tr_bytes headers) {
	int32_t handle = tr_check(t, terrarium_channel(alias.ptr, alias.len));
	if (handle < 0) return handle;
	return tr_check(t, terrarium_send(handle, payload.ptr, payload.len, headers.ptr, headers.len));
}

// tr_send_all sends on every channel that the creature may send on, and returns how many
// there are.
TR_UNUSED static int32_t tr_send_all(tr_turn *t, tr_bytes payload, tr_bytes headers) {
	return tr_check(t, terrarium_send(TERRARIUM_ALL_CHANNELS, payload.ptr, payload.len, headers.ptr, headers.len));
}

// tr_send_to sends to one creature of the graph, by id or name.
TR_UNUSED static int32_t tr_send_to(tr_turn *t, tr_bytes creature, tr_bytes payload) {
	return tr_check(t, terrarium_send_to(creature.ptr, creature.len, payload.ptr, payload.len));
}

// tr_output appends to the output of the turn.
TR_UNUSED static int32_t tr_output(tr_turn *t, tr_bytes payload) { return tr_check(t, terrarium_output(payload.ptr, payload.len)); }

// tr_request sends to one creature and requests a reply, which arrives as a delivery of the
// kind result with the same tag.
TR_UNUSED static int32_t tr_request(tr_turn *t, tr_bytes creature, tr_bytes payload, int64_t deadline_ms, int64_t tag) {
	return tr_check(t, terrarium_request(creature.ptr, creature.len, payload.ptr, payload.len, deadline_ms, tag));
}

// tr_reply answers the request that is being handled.
TR_UNUSED static int32_t tr_reply(tr_turn *t, tr_bytes payload) { return tr_check(t, terrarium_reply(payload.ptr, payload.len)); }

// tr_http sends an HTTP request after the turn has taken effect. request is JSON with
// method, url and headers. The response is a delivery of the kind result.
TR_UNUSED static int32_t tr_http(tr_turn *t, tr_bytes request, tr_bytes body, int64_t tag) {
	return tr_check(t, terrarium_http(request.ptr, request.len, body.ptr, body.len, tag));
}

// ---------------------------------------------------------------------------
// Timers, tools, awareness and the rest

// tr_set_timer sets or replaces the timer of that name; a period of 0 means once.
TR_UNUSED static int32_t tr_set_timer(tr_turn *t, tr_bytes name, int64_t delay_ms, int64_t period_ms, tr_bytes payload) {
	return tr_check(t, terrarium_timer_set(name.ptr, name.len, delay_ms, period_ms, payload.ptr, payload.len));
}

// tr_cancel_timer returns 1 if the timer was set, else 0.
TR_UNUSED static int32_t tr_cancel_timer(tr_turn *t, tr_bytes name) { return tr_check(t, terrarium_timer_cancel(name.ptr, name.len)); }

// tr_tool calls a group tool with JSON arguments and reads its JSON result. tools.h has a
// function with typed arguments for each tool.
TR_UNUSED static int32_t tr_tool(tr_turn *t, tr_bytes name, tr_bytes json, tr_bytes *result) {
	return tr_result(t, terrarium_tool(name.ptr, name.len, json.ptr, json.len), result);
}

// tr_awareness returns the awareness document as JSON, and nothing without the feature.
TR_UNUSED static tr_bytes tr_awareness(tr_turn *t) { return tr_source(t, TERRARIUM_SOURCE_AWARENESS_JSON); }

TR_UNUSED static tr_bytes tr_awareness_markdown(tr_turn *t) { return tr_source(t, TERRARIUM_SOURCE_AWARENESS_MARKDOWN); }

// tr_awareness_revision returns the revision of the document, 0 without the feature.
TR_UNUSED static int64_t tr_awareness_revision(tr_turn *t) {
	int64_t n = 0;
	return tr_whole_of(tr_source(t, TERRARIUM_SOURCE_AWARENESS_REVISION), &n) ? n : 0;
}

// tr_now returns the delivery's time in nanoseconds since 1970, unless the creature was
// granted the real clock.
TR_UNUSED static int64_t tr_now(tr_turn *t) {
	(void)t;
	return terrarium_now();
}

// tr_random fills memory with bytes that are the same if the turn is run again, unless the
// creature was granted real randomness.
TR_UNUSED static int32_t tr_random(tr_turn *t, void *ptr, int32_t len) { return tr_check(t, terrarium_random(ptr, len)); }

// tr_fuel_left returns the fuel left in the turn, or -1 if fuel is not counted.
TR_UNUSED static int64_t tr_fuel_left(tr_turn *t) {
	(void)t;
	return terrarium_fuel_left();
}

// tr_has_feature returns whether the host has an optional part of the contract.
TR_UNUSED static int tr_has_feature(tr_turn *t, int32_t feature) {
	(void)t;
	return terrarium_feature(feature) > 0;
}

// ---------------------------------------------------------------------------
// What a creature declares

typedef int32_t tr_handler(tr_turn *t);

typedef struct {
	tr_handler *handle; // called for every delivery
	tr_handler *init;   // called once in the life of an instance; may be missing
} tr_creature;

// tr_end logs why a handler failed.
TR_NOINLINE static int32_t tr_end(tr_turn *t, int32_t status) {
	if (tr_exhausted) status = tr_fail_with(t, TERRARIUM_ERR_LIMIT, TR("the memory of the creature is exhausted"));
	if (status < 0 && status == t->code) {
		tr_bytes text = tr_error_text(t);
		terrarium_log(TERRARIUM_LEVEL_ERROR, text.ptr, text.len);
	}
	return status;
}

// tr_run calls a handler.
TR_UNUSED __attribute__((always_inline)) static inline int32_t tr_run(tr_handler *handler, int32_t kind, int32_t size) {
	tr_turn t = TR_EMPTY;
	t.kind = kind;
	t.size = size;
	tr_begin();
	int32_t status = handler(&t);
	return status < 0 || tr_exhausted ? tr_end(&t, status) : status;
}

// TERRARIUM_CREATURE declares the creature: TERRARIUM_CREATURE(handle), or with init
// TERRARIUM_CREATURE(.handle = handle, .init = init). Write it once, below the handlers.
#define TERRARIUM_CREATURE(...) \
	_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wmissing-field-initializers\"") \
	static const tr_creature tr_this = {__VA_ARGS__}; \
	_Pragma("GCC diagnostic pop") \
	TERRARIUM_MARKER() \
	int32_t creature_handle(int32_t kind, int32_t size) { return tr_run(tr_this.handle, kind, size); } \
	int32_t creature_init(void) { \
		if (!tr_this.init) return TERRARIUM_OK; \
		int32_t status = tr_run(tr_this.init, 0, 0); \
		tr_keep(); \
		return status; \
	}

// TERRARIUM_MANIFEST adds the manifest to the module: TERRARIUM_MANIFEST({"name": "shout"}).
#ifdef __wasm__
#define TERRARIUM_MANIFEST(...) \
	__asm__(".section .custom_section." TERRARIUM_MANIFEST_SECTION ",\"\",@\n\t.ascii " TR_STRING_OF(#__VA_ARGS__) "\n");
#else
#define TERRARIUM_MANIFEST(...)
#endif

#endif // TERRARIUM_CREATURE_H
