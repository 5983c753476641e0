package serve

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/operations"
)

// Token is a secret with what its bearer may do.
type Token struct {
	Secret string
	Rights operations.Rights
}

// fewestCharacters is the shortest token that is accepted. Tokens are made with 26.
const fewestCharacters = 20

// nameField begins the name of a token's bearer.
const nameField = "name="

// maxTokens bounds the comparisons that a request needs.
const maxTokens = 1000

// ParseTokens reads the text of a token file. The parts of a line are separated by spaces:
// a token; its scope (by default admin); name= and the name of its bearer (by default
// none); and the graphs that it is for (by default all). Empty lines and lines that begin
// with # are ignored.
func ParseTokens(text string) ([]Token, error) {
	var out []Token
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		t := Token{Secret: fields[0], Rights: operations.Rights{Scope: operations.Admin}}
		if len(t.Secret) < fewestCharacters {
			return nil, fmt.Errorf("line %d: the token has fewer than %d characters", number, fewestCharacters)
		}
		if len(fields) > 1 {
			var ok bool
			if t.Rights.Scope, ok = operations.ParseScope(fields[1]); !ok {
				return nil, fmt.Errorf("line %d: the scope is not read, operate or admin", number)
			}
			t.Rights.Graphs = fields[2:]
			if len(fields) > 2 && strings.HasPrefix(fields[2], nameField) {
				t.Rights.Name, t.Rights.Graphs = fields[2][len(nameField):], fields[3:]
			}
		}
		if out = append(out, t); len(out) > maxTokens {
			return nil, fmt.Errorf("there are more than %d tokens", maxTokens)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("there is no token")
	}
	return out, nil
}
