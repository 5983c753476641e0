// The module of package probe.
package main

import (
	"github.com/seed47132306/terrarium/sdk/go/terrarium"
	"github.com/seed47132306/terrarium/sdk/internal/probe"
)

func init() { terrarium.Register(terrarium.Creature{Handle: probe.Handle}) }

func main() {}
