// The crew of a foreman: the workers that it has spawned, in its state as
// worker/ID with the number of the task that the worker has, or nothing.
#ifndef CREW_H
#define CREW_H

#include "bare.h"

#define WORKER TR("worker/")

// call makes a group tool call. Its arguments are a text followed by one JSON string.
static int32_t call(tr_bytes tool, tr_bytes text, tr_bytes string, tr_bytes *out) {
	tr_buffer args = {0};
	tr_put(&args, text);
	tr_put_json(&args, string);
	tr_put_byte(&args, '}');
	return args.failed ? TERRARIUM_ERR_LIMIT : tr_tool(tool, tr_view(&args), out);
}

// A member of the crew; task is 0 if it is free.
typedef struct {
	tr_bytes key, id;
	uint64_t task;
} worker;

// crew_list reads the keys of the crew, for crew_next.
static int32_t crew_list(tr_bytes *list) {
	int32_t status = terrarium_state_list(WORKER.ptr, WORKER.len, NULL, 0);
	return status < 0 ? status : tr_read(TERRARIUM_SOURCE_RESULT, list);
}

// crew_next reads the next worker of the list; it returns 0 at the end.
static int crew_next(tr_bytes *list, worker *w) {
	if (list->len == 0) return 0;
	int32_t end = 0;
	while (list->ptr[end]) end++;
	w->key = (tr_bytes){list->ptr, end};
	w->id = tr_from(w->key, WORKER.len);
	tr_state_natural(w->key, &w->task);
	*list = tr_from(*list, end + 1);
	return 1;
}

static int32_t crew_size(tr_bytes list, uint64_t *size) {
	worker w;
	for (*size = 0; crew_next(&list, &w); (*size)++) {}
	return TERRARIUM_OK;
}

static int32_t crew_set(const worker *w, uint64_t task) {
	if (task > 0) return tr_state_set_natural(w->key, task);
	return terrarium_state_set(w->key.ptr, w->key.len, NULL, 0);
}

static int32_t crew_forget(const worker *w) { return terrarium_state_delete(w->key.ptr, w->key.len); }

// lead_output wires a worker's output to another creature. A worker without that wire
// is useless.
static int32_t lead_output(tr_bytes id, tr_bytes answers_to) {
	tr_bytes out;
	tr_buffer text = {0};
	tr_put(&text, TR("{\"action\":\"add\",\"with_content\":true,\"from\":"));
	tr_put_json(&text, id);
	tr_put(&text, TR(",\"to\":"));
	int32_t status = call(TR("group_wire"), tr_view(&text), answers_to, &out);
	if (status < 0) call(TR("group_remove_node"), TR("{\"creature\":"), id, &out);
	return status;
}

// spawn adds a worker that listens on a channel.
static int32_t spawn(tr_bytes species, tr_bytes channel, tr_bytes *out) {
	tr_buffer args = {0};
	tr_put(&args, TR("{\"species\":"));
	tr_put_json(&args, species);
	tr_put(&args, TR(",\"listen\":[{\"channel\":"));
	tr_put_json(&args, channel);
	tr_put(&args, TR("}]}"));
	return args.failed ? TERRARIUM_ERR_LIMIT : tr_tool(TR("group_add_node"), tr_view(&args), out);
}

// crew_hire spawns a worker that listens on a channel, wires its output if a target
// is configured, and adds it to the crew.
static int32_t crew_hire(tr_bytes species, tr_bytes channel, tr_bytes answers_to) {
	tr_bytes out, id;
	tr_buffer key = {0};
	int32_t status = spawn(species, channel, &out);
	if (status < 0) return status;
	if (!tr_json_member(out, TR("creature"), &id)) return TERRARIUM_ERR_INTERNAL;
	id = tr_json_text(id);
	if (answers_to.len > 0) status = lead_output(id, answers_to);
	if (status < 0) return status;
	tr_put(&key, WORKER);
	tr_put(&key, id);
	return key.failed ? TERRARIUM_ERR_LIMIT : terrarium_state_set(key.ptr, key.len, NULL, 0);
}

// crew_remove removes a worker from the graph and the crew. If it is no longer in the
// graph, it is only removed from the crew.
static int32_t crew_remove(const worker *w) {
	tr_bytes out;
	int32_t status = call(TR("group_remove_node"), TR("{\"creature\":"), w->id, &out);
	return status < 0 && status != TERRARIUM_ERR_NOT_FOUND ? status : crew_forget(w);
}

// crew_of finds the worker of a task. It returns 0 if there is none.
static int crew_of(uint64_t task, worker *w) {
	tr_bytes list;
	if (crew_list(&list) < 0) return 0;
	while (crew_next(&list, w))
		if (w->task == task) return 1;
	return 0;
}

// crew_roll reads which creatures are in the graph: the ids of those that can work,
// and of those that are quarantined, each with a space before and after it.
static int32_t crew_roll(tr_buffer *fit, tr_buffer *unfit) {
	tr_bytes graph, creatures, creature, id, state;
	tr_json_cursor c;
	int32_t status = tr_tool(TR("group_status"), TR("{}"), &graph);
	if (status < 0) return status;
	if (!tr_json_member(graph, TR("creatures"), &creatures) || !tr_json_open(creatures, '[', &c)) return TERRARIUM_ERR_INTERNAL;
	tr_put_byte(fit, ' ');
	tr_put_byte(unfit, ' ');
	while (tr_json_next(&c, NULL, &creature)) {
		if (!tr_json_member(creature, TR("id"), &id) || !tr_json_member(creature, TR("state"), &state)) continue;
		tr_buffer *of = tr_equal(state, TR("\"quarantined\"")) ? unfit : fit;
		tr_put(of, tr_json_text(id));
		tr_put_byte(of, ' ');
	}
	return fit->failed || unfit->failed ? TERRARIUM_ERR_LIMIT : TERRARIUM_OK;
}

// on_roll returns whether a roll contains this id.
static int on_roll(const tr_buffer *roll, tr_bytes id) {
	tr_bytes rest = tr_view(roll);
	while (rest.len > id.len + 1) {
		if (tr_starts(tr_from(rest, 1), id) && rest.ptr[id.len + 1] == ' ') return 1;
		do rest = tr_from(rest, 1);
		while (rest.len > 0 && rest.ptr[0] != ' ');
	}
	return 0;
}

#endif // CREW_H
