package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

// cacheFlags say where compiled modules are kept for later processes.
type cacheFlags struct {
	dir string
	off bool
}

// cacheVariable names the directory for commands without --cache; cacheOff in it means none.
const (
	cacheVariable = "TERRARIUM_CACHE"
	cacheOff      = "off"
)

func (f *cacheFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.dir, "cache", "", "keep compiled modules in `DIR`, which holds executable code (default $"+cacheVariable+" or, without it, terrarium in the user's cache directory)")
	fs.BoolVar(&f.off, "no-cache", false, "do not use the cache of compiled modules")
}

// resolve returns the directory, or "" for none, and whether the command does without it
// if it cannot be used.
func (f *cacheFlags) resolve() (dir string, optional bool, err error) {
	switch variable := os.Getenv(cacheVariable); {
	case f.off && f.dir != "":
		return "", false, usage("--no-cache and --cache exclude each other")
	case f.dir != "":
		return f.dir, false, nil
	case f.off || variable == cacheOff:
		return "", false, nil
	case variable != "":
		return variable, false, nil
	}
	own, err := os.UserCacheDir()
	if err != nil {
		return "", false, nil // no home: an ordinary state of services
	}
	return filepath.Join(own, "terrarium"), true, nil
}
