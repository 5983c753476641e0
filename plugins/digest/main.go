// Command digest is a creature that turns log lines into JSON messages. Build
// it with make digest; README.md describes the result.
package main

import (
	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

func init() { terrarium.Register(creature()) }

func main() {} // the host calls the exports of package terrarium

func creature() terrarium.Creature {
	return terrarium.Creature{
		Init:   func(t *terrarium.Turn) error { _, err := readSettings(t); return err },
		Handle: handle,
	}
}

// settings is the configuration.
type settings struct {
	dpkgOnly   bool
	onMismatch string // pass, drop or fail
}

func readSettings(t *terrarium.Turn) (settings, error) {
	s := settings{onMismatch: "pass"}
	switch format, ok := t.Config("format"); {
	case !ok, format == "auto":
	case format == "dpkg":
		s.dpkgOnly = true
	default:
		return s, misconfigured(`format: use "auto" or "dpkg", not "` + format + `"`)
	}
	if mismatch, ok := t.Config("on_mismatch"); ok {
		switch mismatch {
		case "pass", "drop", "fail":
			s.onMismatch = mismatch
		default:
			return s, misconfigured(`on_mismatch: use "pass", "drop" or "fail", not "` + mismatch + `"`)
		}
	}
	return s, nil
}

func misconfigured(text string) error {
	return &terrarium.Error{Code: terrarium.InvalidArgument, Op: "config", Text: text}
}

func handle(t *terrarium.Turn) error {
	if t.Kind() != terrarium.KindMessage && t.Kind() != terrarium.KindOutput {
		return nil
	}
	s, err := readSettings(t)
	if err != nil {
		return err
	}
	e, ok := parseDpkg(t.Payload())
	if !ok && s.dpkgOnly {
		return mismatch(t, s)
	}
	if !ok {
		e = parseAny(t.Payload())
	}
	_, err = t.SendAll(e.appendJSON(nil), t.Headers()...)
	return err
}

func mismatch(t *terrarium.Turn, s settings) error {
	switch s.onMismatch {
	case "drop":
		return nil
	case "fail":
		return &terrarium.Error{Code: terrarium.InvalidArgument, Op: "parse", Text: "the line is not in the format of dpkg.log"}
	}
	_, err := t.SendAll(t.Payload(), t.Headers()...)
	return err
}
