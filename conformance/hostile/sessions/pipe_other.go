//go:build !unix

package sessions

import (
	"errors"
	"fmt"
)

// pipe knows of no named pipes in directories on other systems.
func pipe(path string) error {
	return fmt.Errorf("a named pipe at %s: %w", path, errors.ErrUnsupported)
}
