package sqlite

import _ "github.com/seed47132306/terrarium/sqlitestore/internal/ccompiler" // says what to install, if it is missing
