#include "scout.cpp"
#include "fake.h"

static char called[256];

// tools notes the call, and knows the members of a graph.
static const char *tools(fake *f, const char *name, const char *args, int32_t *code) {
	(void)f;
	snprintf(called, sizeof called, "%s %s", name, args);
	if (strstr(args, "taken")) {
		*code = TERRARIUM_ERR_ALREADY_EXISTS;
		return NULL;
	}
	if (strcmp(name, "group_add_node") == 0) return "{\"name\":\"frog-1\"}";
	return "{\"creatures\":[{\"name\":\"subject\"},{\"name\":\"frog\"}]}";
}

int main(void) {
	fake *f = fake_new("{}");
	f->tools = tools;
	FAKE_EXPECT(fake_start(f), "output \"subject starts at revision 1\"\n");
	FAKE_EXPECT(fake_message(f, "in", "members"), "output \"members: subject, frog\"\n");
	FAKE_EXPECT(called, "group_status {}");
	FAKE_EXPECT(fake_message(f, "in", "make pond"), "output \"made pond\"\n");
	FAKE_EXPECT(called, "group_channel {\"action\":\"create\",\"name\":\"pond\"}");
	FAKE_EXPECT(fake_message(f, "in", "make taken"), "output \"group_channel: already_exists\"\n");
	FAKE_EXPECT(fake_message(f, "in", "wire pond in2"), "output \"wired pond\"\n");
	FAKE_EXPECT(called, "group_channel {\"action\":\"wire\",\"channel\":\"pond\",\"creature\":\"subject\",\"direction\":\"listen\",\"alias\":\"in2\"}");
	FAKE_EXPECT(fake_message(f, "in", "say pond all is well"), "");
	FAKE_EXPECT(called, "send_channel {\"channel\":\"pond\",\"payload\":\"all is well\",\"headers\":{\"tone\":\"loud\"}}");
	FAKE_EXPECT(fake_message(f, "in", "tell frog hello you"), "");
	FAKE_EXPECT(called, "group_send {\"creature\":\"frog\",\"payload\":\"hello you\"}");
	FAKE_EXPECT(fake_message(f, "in", "spawn frogs frog-1"), "output \"spawned frog-1\"\n");
	FAKE_EXPECT(fake_message(f, "in", "stop frog"), "output \"stop frog\"\n");
	FAKE_EXPECT(called, "group_stop_node {\"creature\":\"frog\"}");
	FAKE_EXPECT(fake_message(f, "in", "route frog"), "output \"routed to frog\"\n");
	FAKE_EXPECT(called, "group_wire {\"action\":\"add\",\"from\":\"subject\",\"to\":\"frog\",\"with_content\":true}");
	FAKE_EXPECT(fake_message(f, "in", "title"), "output \"# `subject`\"\n");
	FAKE_EXPECT(fake_message(f, "in", "dance"), "log error unknown command: dance\nfailed failed\n");
	fake_awareness(f, "{\"channels\":{\"items\":[{\"listen\":\"in\"},{\"send\":\"out\"},{\"listen\":\"in2\"}]}}");
	FAKE_EXPECT(fake_graph_changed(f), "output \"revision 2: listens on in, in2\"\n");
	f->absent = 1u << TERRARIUM_FEATURE_TOOLS;
	FAKE_EXPECT(fake_message(f, "in", "members"), "output \"no tools\"\n");
	fake_free(f);
}
