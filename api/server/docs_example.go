package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/basalt-gpu/basalt/api"
)

// docsCode is an error code and the HTTP status that it is sent with.
type docsCode struct {
	Code   string
	Status int
}

// errorCodes returns the error codes in the description.
func errorCodes(doc *openapi3.T) []docsCode {
	var out []docsCode
	for _, code := range doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		c := api.Code(fmt.Sprint(code))
		out = append(out, docsCode{string(c), c.HTTPStatus()})
	}
	return out
}

// errorStatuses returns the error statuses of all operations, and what each means.
func errorStatuses(doc *openapi3.T) []docsAnswer {
	found := map[string]docsAnswer{}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			for status, r := range op.Responses.Map() {
				if status >= "400" {
					found[status] = docsAnswer{Status: status, About: prose(*r.Value.Description)}
				}
			}
		}
	}
	var out []docsAnswer
	for _, status := range sortedKeys(found) {
		out = append(out, found[status])
	}
	return out
}

// example returns a curl command for an operation that runs as it is, except for names
// and secrets.
func example(method, path string, item *openapi3.PathItem, op *openapi3.Operation) string {
	var b strings.Builder
	b.WriteString("curl")
	if method != "GET" {
		b.WriteString(" -X " + method)
	}
	if op.Security == nil {
		b.WriteString(` -H "Authorization: Bearer $BASALT_TOKEN"`)
	}
	query := ""
	for _, p := range append(append(openapi3.Parameters{}, item.Parameters...), op.Parameters...) {
		v := p.Value
		switch {
		case v.In == "path":
			path = strings.ReplaceAll(path, "{"+v.Name+"}", "$"+strings.ToUpper(v.Name))
		case v.In == "query" && v.Example != nil:
			query += "&" + v.Name + "=" + fmt.Sprint(v.Example)
		}
	}
	if query != "" {
		query = "?" + query[1:]
	}
	if op.RequestBody != nil {
		if media := op.RequestBody.Value.Content["application/json"]; media == nil {
			b.WriteString(" -T disk.qcow2")
		} else if media.Example != nil {
			raw, err := json.Marshal(media.Example)
			if err == nil {
				b.WriteString(" \\\n  --json '" + string(raw) + "'")
			}
		}
	}
	return b.String() + " \\\n  \"$BASALT_SERVER" + path + query + "\""
}
