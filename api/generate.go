package api

import _ "embed"

// The types are generated from openapi.yaml, as is api/server's table of operations.
// The generator is build/tools/oapi-codegen (make tools; make generated has it in
// PATH).
//go:generate oapi-codegen -config codegen-types.yaml openapi.yaml

// OpenAPI is the API's description, as served at /openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte
