// The arguments of group tools as JSON, for the functions in tools.h.
#ifndef TERRARIUM_ARGUMENTS_H
#define TERRARIUM_ARGUMENTS_H

#include "creature.h"

// tr_choice is true, false, or left out.
typedef enum { TR_LEFT_OUT, TR_TRUE, TR_FALSE } tr_choice;

// tr_wire connects a creature to a channel, by an alias of its own if there is one.
typedef struct {
	tr_bytes channel, alias;
} tr_wire;

typedef struct {
	const tr_wire *ptr;
	int32_t len;
} tr_wires;

// TR_WIRES is a list of wires: TR_WIRES({TR("news"), TR("in")}, {channel}).
#define TR_WIRES(...) TR_ARGS(tr_wires, (const tr_wire[]){__VA_ARGS__}, sizeof((const tr_wire[]){__VA_ARGS__}) / sizeof(tr_wire))

#ifdef __cplusplus
#define TR_UNSET {} // so that a member may be left out without a warning
#define TR_ARGS(type, ...) (type{__VA_ARGS__})
#else
#define TR_UNSET
#define TR_ARGS(type, ...) ((type){__VA_ARGS__})
#endif

TR_UNUSED static void tr_arg_name(tr_buffer *json, tr_bytes name) {
	tr_put_byte(json, json->len > 0 ? ',' : '{');
	tr_put_json(json, name);
	tr_put_byte(json, ':');
}

TR_UNUSED static void tr_arg_text(tr_buffer *json, tr_bytes name, tr_bytes value) {
	if (!value.ptr) return;
	tr_arg_name(json, name);
	tr_put_json(json, value);
}

TR_UNUSED static void tr_arg_payload(tr_buffer *json, tr_bytes name, tr_bytes value) {
	tr_arg_name(json, name);
	tr_put_json_bytes(json, value);
}

TR_UNUSED static void tr_arg_json(tr_buffer *json, tr_bytes name, tr_bytes value) {
	if (!value.ptr) return;
	tr_arg_name(json, name);
	tr_put(json, value);
}

TR_UNUSED static void tr_arg_integer(tr_buffer *json, tr_bytes name, int64_t value) {
	if (value) tr_arg_json(json, name, tr_whole(value));
}

TR_UNUSED static void tr_arg_boolean(tr_buffer *json, tr_bytes name, tr_choice value) {
	if (value) tr_arg_json(json, name, value == TR_TRUE ? TR("true") : TR("false"));
}

TR_UNUSED static void tr_arg_choice(tr_buffer *json, tr_bytes name, const char *names, int32_t value) {
	if (value) tr_arg_text(json, name, tr_chars(tr_name(names, value)));
}

TR_UNUSED static void tr_arg_wires(tr_buffer *json, tr_bytes name, tr_wires wires) {
	if (!wires.ptr) return;
	tr_arg_name(json, name);
	for (int32_t i = 0; i < wires.len; i++) {
		tr_buffer wire = TR_EMPTY;
		tr_arg_text(&wire, TR("channel"), wires.ptr[i].channel);
		tr_arg_text(&wire, TR("alias"), wires.ptr[i].alias);
		tr_put_byte(json, i > 0 ? ',' : '[');
		tr_put(json, tr_view(&wire));
		tr_put_byte(json, '}');
	}
	tr_put(json, wires.len > 0 ? TR("]") : TR("[]"));
}

// tr_call calls a tool with the arguments put so far.
TR_UNUSED static int32_t tr_call(tr_turn *t, tr_bytes tool, tr_buffer *json, tr_bytes *result) {
	tr_bytes ignored;
	if (json->len > 0) tr_put_byte(json, '}');
	return tr_tool(t, tool, json->len > 0 ? tr_view(json) : TR("{}"), result ? result : &ignored);
}

#endif // TERRARIUM_ARGUMENTS_H
