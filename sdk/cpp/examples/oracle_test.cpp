#include "oracle.cpp"
#include "fake.h"

int main(void) {
	fake *f = fake_new("{}");
	fake_bind(f, "answers");
	FAKE_EXPECT(fake_init(f), "");
	FAKE_EXPECT(fake_message(f, "in", "ask frog why so green"), "request frog \"why so green\"\nstate asked \"1\"\n");
	FAKE_EXPECT(fake_answer(f, 1, "algae"), "send answers \"#1 ok: algae\"\n");
	FAKE_EXPECT(fake_fail(f, 1, "deadline", "too late"), "send answers \"#1 deadline: too late\"\n");
	FAKE_EXPECT(fake_message(f, "in", "tell frog be quiet"), "send frog \"be quiet\"\n");
	FAKE_EXPECT(fake_message(f, "in", "draw"), "output \"different\"\n");
	FAKE_EXPECT(fake_message(f, "in", "hello"), "output \"in from outside: hello\"\n");
	FAKE_EXPECT(fake_direct(f, "frog", "hello"), "output \"direct from frog: hello\"\n");
	FAKE_EXPECT(fake_request(f, "why"), "reply \"you asked: why\"\n");
	FAKE_EXPECT(fake_request(f, "silence"), "");
	FAKE_EXPECT(fake_request(f, "refuse"), "log error I refuse\nfailed denied\n");
	FAKE_EXPECT(fake_request(f, "twice"), "log error reply: the request has a reply already (already_exists)\nfailed already_exists\n");
	f->config = "{\"a\":1}";
	FAKE_EXPECT(fake_init(f), "log error config a: the creature has no such attribute; it has none\nfailed invalid_argument\n");
	fake_free(f);
}
