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

// Every operation says what it does, how it fails and how it is called, and the
// page shows it under an anchor of its own.
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
	if strings.Contains(page, "`") || strings.Contains(page, "ZgotmplZ") {
		t.Error("the page shows marks that it should have rendered")
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.Summary == "" || op.Responses.Default() == nil {
				t.Errorf("%s %s: no summary, or no answer for failures", method, path)
			}
			if !strings.Contains(page, `id="`+op.OperationID+`"`) {
				t.Errorf("%s is not on the page", op.OperationID)
			}
			if op.RequestBody != nil {
				if json := op.RequestBody.Value.Content["application/json"]; json != nil && json.Example == nil {
					t.Errorf("%s %s: no example of its body", method, path)
				}
			}
		}
	}
	if n := strings.Count(page, "<pre>curl"); n < len(doc.Paths.Map()) {
		t.Errorf("%d examples for %d paths", n, doc.Paths.Len())
	}
	for _, code := range doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		if !strings.Contains(page, "<code>"+code.(string)+"</code>") {
			t.Errorf("the page does not list the error code %s", code)
		}
	}
}
