// Headers of the message being handled. join and select share it.
#ifndef HEADER_H
#define HEADER_H

#include "bare.h"

// tr_header finds a header of the message, the last of that name. It returns 1, 0 if there
// is none, or an error.
TR_UNUSED static int32_t tr_header(tr_bytes name, tr_bytes *value) {
	tr_bytes all;
	int32_t found = 0, status = tr_read(TERRARIUM_SOURCE_HEADERS, &all);
	if (status < 0) return status;
	while (all.len > 0) {
		tr_bytes each = tr_until(&all, 0), content = tr_until(&all, 0);
		if (!tr_equal(each, name)) continue;
		*value = content;
		found = 1;
	}
	return found;
}

#endif // HEADER_H
