package storefile

import (
	"embed"

	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

//go:embed *.sql
var migrations embed.FS

// Schema is the layout of the file of a session.
var Schema = sqlite.NewSchema("a session store", 0x54455253, 7, migrations, sumFunctions)
