#include "shout.cpp"
#include "fake.h"

int main(void) {
	fake *f = fake_new("{}");
	fake_bind(f, "loud");
	fake_bind(f, "louder");
	FAKE_EXPECT(fake_init(f), "");
	FAKE_EXPECT(fake_message(f, "in", "Frog 1 \xc3\xa4"), "send loud \"FROG 1 \xc3\xa4\"\nsend louder \"FROG 1 \xc3\xa4\"\n");
	FAKE_EXPECT(fake_payload(f, "in", TR("\xff" "a"), TR_NONE), "send loud {\"base64\":\"/0E=\"}\nsend louder {\"base64\":\"/0E=\"}\n");
	FAKE_EXPECT(fake_start(f), "");
	fake_free(f);
}
