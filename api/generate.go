package api

import _ "embed"

// What comes from openapi.yaml: the types, the server's routes, the client. The
// generator is build/tools/oapi-codegen (make tools; make generated has it in PATH).
//go:generate oapi-codegen -config codegen-types.yaml openapi.yaml

// OpenAPI is the API's description, as served at /openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte
