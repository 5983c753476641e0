// envoy merges its graph with a helper's graph when help is needed, and splits them
// again.
#include "bare.h"

TERRARIUM_MARKER()

// Keys in the state.
#define CONTACT TR("contact") // the id of the helper to call
#define HELPER TR("helper")   // the id of the helper that listens here now
#define OVER TR("over")       // the id of the channel it listens on: a merge may rename the channel

int32_t creature_init(void) {
	if (!tr_config_knows(TR(""))) return TERRARIUM_ERR_INVALID_ARGUMENT;
	if (terrarium_feature(TERRARIUM_FEATURE_TOOLS)) return TERRARIUM_OK;
	tr_log(TERRARIUM_LEVEL_ERROR, TR("this host has no group tools"), TR(""), TR(""));
	return TERRARIUM_ERR_UNSUPPORTED;
}

static int32_t set(tr_bytes key, tr_bytes value) { return terrarium_state_set(key.ptr, key.len, value.ptr, value.len); }

static int32_t forget(tr_bytes key) { return terrarium_state_delete(key.ptr, key.len); }

// wire makes a creature listen on a channel, or stop listening, and logs a refusal.
static int32_t wire(tr_bytes action, tr_bytes creature, tr_bytes channel, tr_bytes more, tr_bytes *out) {
	tr_buffer args = {0};
	tr_put(&args, TR("{\"action\":"));
	tr_put_json(&args, action);
	tr_put(&args, TR(",\"direction\":\"listen\",\"creature\":"));
	tr_put_json(&args, creature);
	tr_put(&args, TR(",\"channel\":"));
	tr_put_json(&args, channel);
	tr_put(&args, more);
	tr_put_byte(&args, '}');
	if (args.failed) return TERRARIUM_ERR_LIMIT;
	int32_t status = tr_tool(TR("group_channel"), tr_view(&args), out);
	if (status >= 0 || status == TERRARIUM_ERR_CONFLICT) return status;
	tr_bytes why = TR("");
	tr_read(TERRARIUM_SOURCE_ERROR, &why);
	tr_log(TERRARIUM_LEVEL_ERROR, action, TR(": "), why);
	return status;
}

// join merges the helper's graph with this one.
static int32_t join(void) {
	tr_bytes contact, out, channel;
	int32_t status = tr_state(CONTACT, &contact);
	if (status == TERRARIUM_ERR_NOT_FOUND) tr_log(TERRARIUM_LEVEL_ERROR, TR("no helper is known; send the id of one on contact"), TR(""), TR(""));
	if (status >= 0) status = wire(TR("wire"), contact, TR("help"), TR(",\"alias\":\"help\",\"merge\":true"), &out);
	if (status < 0) return status;
	if (!tr_json_member(out, TR("channel"), &channel)) return TERRARIUM_ERR_INTERNAL;
	status = set(HELPER, contact);
	return status < 0 ? status : set(OVER, tr_json_text(channel));
}

// call passes a call on to the helper, which first joins the graph if necessary: in
// the same turn, so that the helper receives the call. Without a helper the turn
// fails, and the call becomes a dead letter, which can be delivered again.
static int32_t call(void) {
	tr_bytes helper, payload;
	int32_t status = tr_state(HELPER, &helper);
	if (status == TERRARIUM_ERR_NOT_FOUND) status = join();
	if (status >= 0) status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &payload);
	if (status >= 0) status = terrarium_channel("help", 4);
	return status < 0 ? status : tr_forward(status, payload);
}

// release disconnects the helper, which still gets the messages sent before.
static int32_t release(void) {
	tr_bytes helper, over, out;
	int32_t status = tr_state(HELPER, &helper);
	if (status == TERRARIUM_ERR_NOT_FOUND) return TERRARIUM_OK;
	if (status >= 0) status = tr_state(OVER, &over);
	if (status >= 0) status = wire(TR("unwire"), helper, over, TR(""), &out);
	if (status < 0 && status != TERRARIUM_ERR_NOT_FOUND) return status; // else the helper has left by itself
	status = forget(HELPER);
	return status < 0 ? status : forget(OVER);
}

static int32_t hear(tr_bytes channel) {
	tr_bytes payload;
	if (tr_equal(channel, TR("call"))) return call();
	if (tr_equal(channel, TR("release"))) return release();
	if (!tr_equal(channel, TR("contact"))) return TERRARIUM_OK;
	int32_t status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &payload);
	return status < 0 ? status : set(CONTACT, payload);
}

int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	tr_bytes channel;
	if (kind != TERRARIUM_KIND_MESSAGE) return TERRARIUM_OK;
	tr_begin();
	int32_t status = tr_read(TERRARIUM_SOURCE_CHANNEL, &channel);
	return status < 0 ? status : hear(channel);
}
