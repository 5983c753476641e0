// Package reference contains the parts of the reference that programs serve.
package reference

import _ "embed" // for the description

// OpenAPI describes the HTTP interface of the command serve. It is generated from the table
// of operations.
//
//go:embed openapi.json
var OpenAPI string
