package connector_test

import _ "github.com/seed47132306/terrarium/internal/seeded"
