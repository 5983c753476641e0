#include "picky.c"
#include "fake.h"

static const char *say(fake *f, const char *text) { return fake_message_with(f, "in", text, "want", "tea"); }

// A long text of an error is cut at the end of a character.
static void log_long(fake *f) {
	char value[80001];
	for (size_t i = 0; i + 1 < sizeof value; i++) value[i] = i % 2 ? '\xA4' : '\xC3';
	value[80000] = 0;
	fake_message_with(f, "in", "x", "want", value);
	tr_bytes line = fake_bytes(&f->logs.at[f->logs.len - 1].data);
	FAKE_EXPECT(tr_is_utf8(line) && line.len == 65536 ? "cut" : "", "cut");
	FAKE_EXPECT((const char *)line.ptr + line.len - 5, "\xC3\xA4\xE2\x80\xA6");
}

int main(void) {
	fake *f = fake_new("{\"want\":\"tea\",\"strict\":true}");
	fake_bind(f, "out");
	FAKE_EXPECT(fake_init(f), "");
	FAKE_EXPECT(fake_message(f, "in", "x"), "log error the header want is missing\nfailed invalid_argument\n");
	FAKE_EXPECT(fake_message_with(f, "in", "x", "want", "milk"), "log error the header want is milk, not tea\nfailed invalid_argument\n");
	FAKE_EXPECT(say(f, "echo"), "send out \"echo\" [want=tea, seen=yes]\n");
	FAKE_EXPECT(say(f, "big"), "log error state_set: it has 1048577 bytes; the limit state_value is 1048576 (too_large)\nfailed too_large\n");
	FAKE_EXPECT(say(f, "caught"), "output \"caught too_large\"\n");
	FAKE_EXPECT(say(f, "alias"), "log error send: the creature has no such send alias (not_connected)\nfailed not_connected\n");
	FAKE_EXPECT(say(f, "key"), "log error state_set: it is UTF-8 without NUL and not empty; use another key (invalid_argument)\nfailed invalid_argument\n");
	FAKE_EXPECT(say(f, "missing"), "output \"no state\"\n");
	FAKE_EXPECT(say(f, "fail"), "log error it went wrong\nfailed failed\n");
	FAKE_EXPECT(say(f, "denied"), "log error not today\nfailed denied\n");
	FAKE_EXPECT(say(f, "panic"), "log error out of cheese, at picky.c:72\nfailed trapped\n");
	FAKE_EXPECT(say(f, "fuel"), "output \"counted\"\n");
	FAKE_EXPECT(say(f, "log"), "log debug a debug line\nlog info an info line\nlog warn a warn line\nlog error an error line\n");
	FAKE_EXPECT(say(f, "0123456789a"), "log error the payload has 11 bytes, and at most 10 are allowed\nfailed too_large\n");
	log_long(f);
	FAKE_EXPECT(say(f, "hello"), "log info strict\noutput \"hello\"\n");
	f->config = "{}";
	FAKE_EXPECT(fake_init(f), "log error config want: it is required\nfailed not_found\n");
	f->config = "{\"want\":\"tea\",\"strict\":1}";
	FAKE_EXPECT(fake_init(f), "log error config strict: it must be true or false\nfailed invalid_argument\n");
	fake_free(f);
}
