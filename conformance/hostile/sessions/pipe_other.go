//go:build !unix

package sessions

import (
	"errors"
	"fmt"
)

// pipe fails: other systems have no named pipes in directories.
func pipe(path string) error {
	return fmt.Errorf("a named pipe at %s: %w", path, errors.ErrUnsupported)
}
