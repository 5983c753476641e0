package terrarium_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// TestScriptErrorIsReportedOnce proves that the refusal of a script has its error once, though
// the script's text has several lines and is in the log as well.
func TestScriptErrorIsReportedOnce(t *testing.T) {
	tr, err := terrarium.New(t.Context(), terrarium.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tr.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	_, err = tr.AddCreature(t.Context(), deploy.CreatureSpec{
		Name: "script", Module: "builtin:js", Config: json.RawMessage(`{"script": "export default {\n  message( }"}`),
	})
	if err == nil || strings.Count(err.Error(), "SyntaxError") != 1 {
		t.Errorf("the error is %v", err)
	}
}
