package files

import _ "github.com/seed47132306/terrarium/internal/seeded"
