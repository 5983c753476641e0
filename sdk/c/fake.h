// A host for tests: runs a creature natively, without Wasm. Include the creature's source
// and then this file in one test program:
//
//	#include "shout.c"
//	#include "fake.h"
//
//	int main(void) {
//		fake *f = fake_new("{}");
//		fake_bind(f, "out");
//		FAKE_EXPECT(fake_message(f, "in", "frog"), "send out \"FROG\"\n");
//		fake_free(f);
//	}
//
// Every function that delivers returns the transcript of the turn: a line for each log
// line, then for each effect, or "failed CODE" for a turn that failed and had no effect.
// The lists in fake show what all turns have left behind. C11 or C++17.
#ifndef TERRARIUM_FAKE_H
#define TERRARIUM_FAKE_H

#include <setjmp.h>
#include <stdio.h>

#include "creature.h"
#include "fake_list.h"

// FAKE_EXPECT ends the test program with a message unless two texts are equal.
#define FAKE_EXPECT(got, want) fake_expect(__FILE__, __LINE__, got, want)

typedef struct fake {
	const char *config; // JSON
	fake_list channels; // to send on
	fake_list creatures; // that it can reach directly; none: any
	fake_list state, timers;                    // as they are after the last turn
	fake_list sent, outputs, logs, requests;    // of all turns
	const char *self, *awareness, *markdown;    // awareness is JSON
	int64_t revision, now, until, fuel; // now in milliseconds since 1970; fuel -1: not counted
	unsigned absent;                            // a bit for each feature that the host lacks
	// tools handles the calls of group tools. It returns the JSON of the result, or NULL
	// after setting *code.
	const char *(*tools)(struct fake *f, const char *name, const char *args, int32_t *code);

	int fresh; // a new instance for every turn

	// The delivery.
	int alive; // there is an instance
	int32_t kind;
	fake_list sources; // by number, as text
	int read_only;
	fake_list transcript, reply, result, error;
	const char *calling; // the function of the contract
	fake_list state_before, timers_before, written;
	int32_t has_output, output_size, sends, send_bytes, tool_calls, log_bytes, log_lines;
	jmp_buf trap;
} fake;

#ifdef __cpp_exceptions
struct fake_trap {}; // what a trap throws, so that destructors run
#endif

static fake *fake_now; // the host of the call that is running

static void fake_expect(const char *file, int line, const char *got, const char *want) {
	if (strcmp(got, want) == 0) return;
	fprintf(stderr, "%s:%d: got\n%s\nwant\n%s\n", file, line, got, want);
	exit(1);
}

TR_UNUSED static fake *fake_new(const char *config) {
	fake *f = (fake *)calloc(1, sizeof *f);
	if (!f) abort();
	f->config = config;
	f->self = "subject";
	f->awareness = "{\"revision\":1,\"channels\":{\"total\":0,\"items\":[]}}";
	f->markdown = "# `subject`\n";
	f->revision = 1;
	f->now = 1000;
	f->fuel = 1000000;
	return f;
}

// fake_restart discards the instance, as a host may between any two turns. Static
// variables keep their values, because init must set all that matter.
TR_UNUSED static void fake_restart(fake *f) {
	f->alive = 0;
	tr_base = NULL;
	tr_begin();
}

TR_UNUSED static void fake_free(fake *f) {
	fake_restart(f);
	fake_list *all[] = {&f->channels, &f->creatures, &f->state, &f->timers, &f->sent, &f->outputs, &f->logs, &f->requests, &f->sources,
		&f->transcript, &f->reply, &f->result, &f->error, &f->state_before, &f->timers_before, &f->written};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) fake_clear(all[i]);
	free(f);
}

// fake_bind gives the creature a channel to send on.
TR_UNUSED static void fake_bind(fake *f, const char *alias) { fake_add(&f->channels, fake_text(alias), TR_NONE); }

// fake_meet makes a creature known. Without any, the creature can reach every name.
TR_UNUSED static void fake_meet(fake *f, const char *name) { fake_add(&f->creatures, fake_text(name), TR_NONE); }

// fake_after returns a time some milliseconds after another, or the latest time there is.
static int64_t fake_after(int64_t time, int64_t ms) { return ms > INT64_MAX - time ? INT64_MAX : time + ms; }

#include "fake_calls.h"

// ---------------------------------------------------------------------------
// Turns

static void fake_note(fake *f, tr_bytes line) {
	if (f->transcript.len == 0) fake_add(&f->transcript, TR_NONE, TR_NONE);
	fake_append(&f->transcript.at[0].name, line);
	fake_append(&f->transcript.at[0].name, TR("\n"));
}

static void fake_show(fake *f, tr_bytes what, tr_bytes payload, tr_bytes headers) {
	tr_buffer line = TR_EMPTY;
	tr_put(&line, what);
	tr_put_byte(&line, ' ');
	tr_put_json_bytes(&line, payload);
	tr_bytes name, value;
	for (int first = 1; tr_next_header(&headers, &name, &value); first = 0) {
		tr_put(&line, first ? TR(" [") : TR(", "));
		tr_put(&line, name);
		tr_put_byte(&line, '=');
		tr_put(&line, value);
		if (headers.len == 0) tr_put_byte(&line, ']');
	}
	fake_note(f, tr_view(&line));
}

// fake_show_state shows how the state differs from that before the turn. Both are sorted.
static void fake_show_state(fake *f) {
	int32_t i = 0, j = 0;
	while (i < f->state.len || j < f->state_before.len) {
		fake_item *now = i < f->state.len ? &f->state.at[i] : NULL, *old = j < f->state_before.len ? &f->state_before.at[j] : NULL;
		int order = !now ? 1 : !old ? -1 : fake_compare(fake_bytes(&now->name), fake_bytes(&old->name));
		if (order > 0) fake_note(f, tr_join(TR("delete "), fake_bytes(&old->name)));
		if (order < 0 || (order == 0 && now->changed)) fake_show(f, tr_join(TR("state "), fake_bytes(&now->name)), fake_bytes(&now->data), TR_NONE);
		i += order <= 0;
		j += order >= 0;
	}
}

// fake_guard calls into the creature, which may trap.
#ifdef __cpp_exceptions
static int32_t fake_guard(fake *f, int32_t (*call)(fake *)) {
	try {
		return call(f);
	} catch (const fake_trap &) {
		return TERRARIUM_ERR_TRAPPED;
	}
}
#else
static int32_t fake_guard(fake *f, int32_t (*call)(fake *)) { return setjmp(f->trap) == 0 ? call(f) : (int32_t)TERRARIUM_ERR_TRAPPED; }
#endif

// fake_run calls into the creature, and shows and keeps what the turn did.
static const char *fake_run(fake *f, int32_t (*call)(fake *)) {
	int32_t marks[3] = {f->sent.len, f->outputs.len, f->requests.len}, log_mark = f->logs.len;
	fake *before = fake_now;
	fake_now = f;
	fake_clear(&f->transcript);
	fake_clear(&f->reply);
	fake_clear(&f->result);
	fake_clear(&f->error);
	fake_clear(&f->written);
	fake_copy(&f->state_before, &f->state);
	fake_copy(&f->timers_before, &f->timers);
	for (int32_t i = 0; i < f->state.len; i++) f->state.at[i].changed = 0;
	f->has_output = f->output_size = f->sends = f->send_bytes = f->tool_calls = f->log_bytes = f->log_lines = 0;
	int32_t status = fake_guard(f, call);
	for (int32_t i = log_mark; i < f->logs.len; i++)
		fake_note(f, tr_join(TR("log "), fake_bytes(&f->logs.at[i].name), TR(" "), fake_bytes(&f->logs.at[i].data)));
	if (status < 0) {
		fake_cut(&f->sent, marks[0]);
		fake_cut(&f->outputs, marks[1]);
		fake_cut(&f->requests, marks[2]);
		fake_clear(&f->reply);
		fake_copy(&f->state, &f->state_before);
		fake_copy(&f->timers, &f->timers_before);
		fake_note(f, tr_join(TR("failed "), tr_code_name(status)));
		fake_restart(f);
	} else {
		for (int32_t i = marks[0]; i < f->sent.len; i++)
			fake_show(f, tr_join(TR("send "), fake_bytes(&f->sent.at[i].name)), fake_bytes(&f->sent.at[i].data), fake_bytes(&f->sent.at[i].more));
		for (int32_t i = marks[2]; i < f->requests.len; i++)
			fake_show(f, tr_join(TR("request "), fake_bytes(&f->requests.at[i].name)), fake_bytes(&f->requests.at[i].data), TR_NONE);
		for (int32_t i = marks[1]; i < f->outputs.len; i++) fake_show(f, TR("output"), fake_bytes(&f->outputs.at[i].data), TR_NONE);
		fake_show_state(f);
		if (f->reply.len > 0) fake_show(f, TR("reply"), fake_bytes(&f->reply.at[0].data), TR_NONE);
	}
	fake_now = before;
	return f->transcript.len > 0 ? f->transcript.at[0].name.text : "";
}

static int32_t fake_call_init(fake *f) {
	f->read_only = 1;
	return creature_init();
}

// fake_init makes a new instance. A delivery does so first if there is none.
TR_UNUSED static const char *fake_init(fake *f) {
	fake_restart(f);
	f->alive = 1;
	return fake_run(f, fake_call_init);
}

static int32_t fake_call_handle(fake *f) {
	f->read_only = 0;
	return creature_handle(f->kind, f->sources.at[TERRARIUM_SOURCE_PAYLOAD].data.len);
}

// fake_source sets a source for the next delivery.
static void fake_source(fake *f, int32_t source, tr_bytes content) {
	while (f->sources.len <= source) fake_add(&f->sources, TR_NONE, TR_NONE);
	fake_set(&f->sources.at[source].data, content);
}

// fake_deliver delivers what fake_source has set, with members of the detail such as
// ,"direct":true.
TR_UNUSED static const char *fake_deliver(fake *f, int32_t kind, const char *detail) {
	char text[512];
	snprintf(text, sizeof text, "{\"kind\":\"%s\",\"attempt\":1,\"time\":%lld%s}", tr_name(TERRARIUM_KIND_NAMES, kind),
		(long long)(f->now * 1000000), detail);
	fake_source(f, TERRARIUM_SOURCE_DETAIL, fake_text(text));
	fake_source(f, TERRARIUM_SOURCE_ERROR, TR_NONE);
	f->kind = kind;
	const char *transcript = f->alive && !f->fresh ? "" : fake_init(f);
	if (f->alive) transcript = fake_run(f, fake_call_handle);
	fake_clear(&f->sources);
	return transcript;
}

// fake_payload delivers bytes with headers, a list that tr_put_header makes.
TR_UNUSED static const char *fake_payload(fake *f, const char *alias, tr_bytes payload, tr_bytes headers) {
	fake_source(f, TERRARIUM_SOURCE_PAYLOAD, payload);
	fake_source(f, TERRARIUM_SOURCE_CHANNEL, fake_text(alias));
	fake_source(f, TERRARIUM_SOURCE_HEADERS, headers);
	return fake_deliver(f, TERRARIUM_KIND_MESSAGE, ",\"direct\":false");
}

// fake_message delivers a message from outside on a channel.
TR_UNUSED static const char *fake_message(fake *f, const char *alias, const char *text) { return fake_payload(f, alias, fake_text(text), TR_NONE); }

// fake_message_with delivers a message with one header.
TR_UNUSED static const char *fake_message_with(fake *f, const char *alias, const char *text, const char *name, const char *value) {
	tr_buffer headers = TR_EMPTY;
	tr_put_header(&headers, fake_text(name), fake_text(value));
	return fake_payload(f, alias, fake_text(text), tr_view(&headers));
}

// fake_direct delivers a direct message.
TR_UNUSED static const char *fake_direct(fake *f, const char *sender, const char *text) {
	fake_source(f, TERRARIUM_SOURCE_PAYLOAD, fake_text(text));
	fake_source(f, TERRARIUM_SOURCE_CHANNEL, fake_text(f->self));
	fake_source(f, TERRARIUM_SOURCE_SENDER, fake_text(sender));
	return fake_deliver(f, TERRARIUM_KIND_MESSAGE, ",\"direct\":true");
}

TR_UNUSED static const char *fake_start(fake *f) {
	fake_source(f, TERRARIUM_SOURCE_PAYLOAD, TR_NONE);
	return fake_deliver(f, TERRARIUM_KIND_START, "");
}

// fake_request delivers a request. The transcript has the reply.
TR_UNUSED static const char *fake_request(fake *f, const char *text) {
	fake_source(f, TERRARIUM_SOURCE_PAYLOAD, fake_text(text));
	return fake_deliver(f, TERRARIUM_KIND_REQUEST, ",\"deadline_ms\":1000");
}

// fake_fail delivers the failure of a request of the creature, and fake_answer its result.
TR_UNUSED static const char *fake_fail(fake *f, int64_t tag, const char *code, const char *text) {
	char detail[96];
	snprintf(detail, sizeof detail, ",\"tag\":\"%lld\",\"code\":\"%s\"", (long long)tag, code);
	fake_source(f, TERRARIUM_SOURCE_PAYLOAD, fake_text(text));
	return fake_deliver(f, TERRARIUM_KIND_RESULT, detail);
}

TR_UNUSED static const char *fake_answer(fake *f, int64_t tag, const char *text) { return fake_fail(f, tag, "ok", text); }

// fake_awareness sets a new document. fake_graph_changed delivers that it has changed.
TR_UNUSED static void fake_awareness(fake *f, const char *json) {
	f->awareness = json;
	f->revision++;
}

TR_UNUSED static const char *fake_graph_changed(fake *f) {
	fake_source(f, TERRARIUM_SOURCE_PAYLOAD, TR_NONE);
	return fake_deliver(f, TERRARIUM_KIND_GRAPH_CHANGED, "");
}

// fake_advance lets time pass and delivers the next timer that comes due in it. It returns
// NULL when none is left, so that a test calls it until then: fake_advance(f, 500),
// fake_advance(f, 0).
TR_UNUSED static const char *fake_advance(fake *f, int64_t ms) {
	fake_item *next = NULL;
	char detail[640];
	if (f->until < fake_after(f->now, ms)) f->until = fake_after(f->now, ms);
	for (int32_t i = 0; i < f->timers.len; i++)
		if (f->timers.at[i].number <= f->until && (!next || f->timers.at[i].number < next->number)) next = &f->timers.at[i];
	if (!next) {
		f->now = f->until;
		return NULL;
	}
	f->now = next->number;
	tr_buffer name = TR_EMPTY;
	tr_put_json(&name, fake_bytes(&next->name));
	snprintf(detail, sizeof detail, ",\"name\":%.*s", (int)name.len, (const char *)name.ptr);
	fake_source(f, TERRARIUM_SOURCE_PAYLOAD, fake_bytes(&next->data));
	if (next->period > 0) next->number = fake_after(next->number, next->period);
	else fake_remove(&f->timers, fake_bytes(&next->name));
	return fake_deliver(f, TERRARIUM_KIND_TIMER, detail);
}

#endif // TERRARIUM_FAKE_H
