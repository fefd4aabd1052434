package server_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// TestEveryOperationIsDocumented checks that every operation documents its purpose, its
// errors and an example, and that the page has an anchor for it.
func TestEveryOperationIsDocumented(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err == nil {
		err = doc.Validate(context.Background(), openapi3.EnableExamplesValidation())
	}
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(servertest.Start(t, nil).URL + "/docs")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for _, raw := range []string{"`", "ZgotmplZ"} {
		if before, after, found := strings.Cut(page, raw); found {
			t.Errorf("the page contains %q, want it rendered: %s%s%s", raw, before[max(0, len(before)-80):], raw, after[:min(80, len(after))])
		}
	}
	may := matrix(t)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.Summary == "" || len(op.Description) <= len(op.OperationID) {
				t.Errorf("%s %s has no summary or no description", method, path)
			}
			if words := accessWords(may[op.OperationID]); !strings.HasSuffix(op.Description, words) {
				t.Errorf("the description of %s ends with %q, want %q", op.OperationID, op.Description[max(0, len(op.Description)-60):], words)
			}
			if !strings.Contains(page, `id="`+op.OperationID+`"`) {
				t.Errorf("the page has no anchor for %s", op.OperationID)
			}
			if op.RequestBody != nil {
				if json := op.RequestBody.Value.Content["application/json"]; json != nil && json.Example == nil {
					t.Errorf("%s %s has no example of its body", method, path)
				}
			}
		}
	}
	if n := strings.Count(page, "<pre>curl"); n < len(doc.Paths.Map()) {
		t.Errorf("the page has %d examples, want at least one for each of %d paths", n, doc.Paths.Len())
	}
	for _, code := range doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		if !strings.Contains(page, "<code>"+code.(string)+"</code>") {
			t.Errorf("the page does not list error code %s", code)
		}
	}
}

// accessWords returns the last sentence of an operation's description: who may call it.
func accessWords(may map[api.Role]bool) string {
	if may[everybody] {
		return "No API key is needed."
	}
	var names []string
	for _, role := range api.Roles() {
		if may[role] {
			names = append(names, string(role))
		}
	}
	words := names[len(names)-1]
	if len(names) > 1 {
		words = strings.Join(names[:len(names)-1], ", ") + " or " + words
	}
	return "Requires role " + words + "."
}
