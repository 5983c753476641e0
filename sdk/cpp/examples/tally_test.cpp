#include "tally.cpp"
#include "fake.h"

int main(void) {
	fake *f = fake_new("{\"step\":2,\"prefix\":\"n of \"}");
	fake_bind(f, "counts");
	FAKE_EXPECT(fake_init(f), "");
	FAKE_EXPECT(fake_message(f, "in", "?"), "output \"empty\\u000a\"\n");
	FAKE_EXPECT(fake_message(f, "in", "frog"), "send counts \"n of frog=2\" [count=2]\nstate n/frog \"2\"\n");
	FAKE_EXPECT(fake_message(f, "in", "ant"), "send counts \"n of ant=2\" [count=2]\nstate n/ant \"2\"\n");
	FAKE_EXPECT(fake_message(f, "in", "frog"), "send counts \"n of frog=4\" [count=4]\nstate n/frog \"4\"\n");
	FAKE_EXPECT(fake_message(f, "in", "?"), "output \"ant=2\\u000afrog=4\\u000a\"\n");
	FAKE_EXPECT(fake_message(f, "in", "-ant"), "send counts \"ant removed\"\ndelete n/ant\n");
	FAKE_EXPECT(fake_message(f, "in", "-ant"), "send counts \"ant unknown\"\n");
	FAKE_EXPECT(fake_payload(f, "in", TR("\xff"), TR_NONE), "log error the payload is not UTF-8\nfailed invalid_argument\n");
	f->config = "{\"step\":0}";
	FAKE_EXPECT(fake_init(f), "log error config step: it must be a whole number from 1 to 1000000\nfailed invalid_argument\n");
	f->config = "{\"prefix\":7}";
	FAKE_EXPECT(fake_init(f), "log error config prefix: it must be a text\nfailed invalid_argument\n");
	f->config = "{\"steps\":1}";
	FAKE_EXPECT(fake_init(f), "log error config steps: the creature has no such attribute; it has step, prefix\nfailed invalid_argument\n");
	fake_free(f);
}
